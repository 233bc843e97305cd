"""What differs between two calls, between two sessions, and between a call and its receipt."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from tests.importers.sources import claude_call, claude_result, write_lines
from tests.support.altering import alter
from tests.support.cli import Cli, Ended, on_a_terminal
from tests.support.outputs import returned
from tests.support.recording import captured, fail_tool, run_command, run_tool

from tooltrail.records import CommandOutput, CompleteOutput, StreamRecord, ToolCall
from tooltrail.store import Session

LINES = [b"line %d\n" % n for n in range(20_000)]
OUT = b"".join(LINES)
CHANGED = b"".join([*LINES[:5_000], b"another line\n", *LINES[5_001:]])
CALL = ToolCall.of("Bash", {"command": "make all"})


def record(
    session: Session, out: bytes, err: bytes = b"", status: int = 0, call: ToolCall = CALL
) -> str:
    return str(run_command(session, out, err, exit_status=status, call=call).invocation_id)


def two(cli: Cli, before: bytes, after: bytes, **more: Any) -> tuple[str, str]:
    with cli.open() as store, store.open_session() as session:
        return record(session, before), record(session, after, **more)


def a_call(cli: Cli, out: bytes, err: bytes = b"") -> tuple[str, str]:
    """The name of a new call, and what the model saw of it."""
    with cli.open() as store, store.open_session() as session:
        name = record(session, out, err)
        receipt = store.reader.invocation(name).receipt
    assert receipt is not None
    return name, receipt.text


def parts_of(cli: Cli, name: str) -> list[dict[str, Any]]:
    """The parts of stdout."""
    (found,) = differs(cli, "--surfaces", name, "--json").records
    return found["streams"][0]["parts"]  # type: ignore[no-any-return]


def imported(cli: Cli, stdout: str, seen: str) -> None:
    """Import a call, of whose output the model saw another text."""
    returned = {"stdout": stdout, "stderr": "", "interrupted": False}
    call = claude_call(1, "toolu_1", "Bash", {"command": "seq"})
    lines = [call, claude_result(2, "toolu_1", seen, returned)]
    cli.ok("import", str(write_lines(cli.folder.parent / "session.jsonl", lines)))


def differs(cli: Cli, *arguments: str) -> Ended:
    ended = cli.run("diff", *arguments)
    assert (ended.code, ended.message) == (1, ""), ended.message
    return ended


def hunks_of(text: str, member: str) -> list[str]:
    """The lines of one member of a unified diff, behind its two lines of names."""
    _, _, part = text.partition(f"/{member}\t")
    _, _, part = part.partition(f"/{member}\t")
    return re.split(r"\n(?=--- )", part.partition("\n")[2])[0].splitlines()


def test_only_what_differs_is_shown_as_a_unified_diff(cli: Cli) -> None:
    names = two(cli, OUT, CHANGED, err=b"oops", status=2)
    text = differs(cli, *names).text
    first, second, same = text.splitlines()[:3]
    assert re.fullmatch(rf"before {names[0][-8:]}  \S+ \S+  ok in \S+ s  .*make all.*", first)
    assert re.fullmatch(rf"after  {names[1][-8:]}  \S+ \S+  exit 2 in \S+ s  .*make all.*", second)
    assert same == "same   tool, arguments"
    members = re.findall(r"^--- \w+/(.*)\t", text, re.MULTILINE)
    texts = ["outcome", "complete output", "canonical result", "receipt"]
    assert members == [*texts, "stdout", "stderr"]
    assert hunks_of(text, "outcome") == ["@@ -1,1 +1,1 @@", "-ok", "+exit 2"]
    around = [f" line {n}" for n in (4_997, 4_998, 4_999)]
    behind = [f" line {n}" for n in (5_001, 5_002, 5_003)]
    changed = ["-line 5000", "+another line"]
    assert hunks_of(text, "stdout") == ["@@ -4998,7 +4998,7 @@", *around, *changed, *behind]
    no_newline = "\\ No newline at end of file"
    assert hunks_of(text, "stderr") == ["@@ -0,0 +1,1 @@", "+oops", no_newline]


def test_equal_calls_are_identical_although_they_took_another_time(cli: Cli) -> None:
    for _ in range(2):
        cli.exec("--", "sh", "-c", "echo hi; sleep 0.0$$; echo oops >&2")
    assert cli.ok("diff", "@last", "--same-args").text == (
        "identical: tool, arguments, outcome, complete output, canonical result, receipt,"
        " stdout, stderr\n"
    )
    (found,) = cli.ok("diff", "@last", "--same-args", "--json").records
    assert found["identical"] is True
    assert found["different"] == []


def test_json_has_both_values_and_the_hunks(cli: Cli) -> None:
    names = two(cli, OUT, CHANGED + b"\xff", status=2)
    (found,) = differs(cli, *names, "--json").records
    assert found["schema_version"] == 1
    assert (found["before"]["id"], found["after"]["id"]) == names
    assert (found["before"]["outcome"], found["after"]["outcome"]) == ("ok", "exit 2")
    assert found["same"] == ["tool", "arguments", "stderr"]
    different = {one["name"]: one for one in found["different"]}
    assert different["outcome"]["hunks"] == [
        {
            "before": {"line": 1, "count": 1},
            "after": {"line": 1, "count": 1},
            "lines": ["-ok\n", "+exit 2\n"],
        }
    ]
    stdout = different["stdout"]
    assert (stdout["before"]["size"], stdout["after"]["size"]) == (len(OUT), len(CHANGED) + 1)
    assert stdout["first_difference"] == OUT.index(b"line 5000")
    assert stdout["notes"] == []
    assert [line for hunk in stdout["hunks"] for line in hunk["lines"] if line[0] != " "] == [
        "-line 5000\n",
        "+another line\n",
        "+\udcff",
    ]


def test_brief_says_what_differs_and_reads_no_output(cli: Cli) -> None:
    names = two(cli, OUT, CHANGED)
    for path in (cli.folder / "artifacts").rglob("*.zst"):
        path.unlink()
    *_, last = differs(cli, *names, "--brief").lines
    assert last == f"differ stdout: {len(OUT):,} and {len(CHANGED):,} bytes"
    cli.exec("--", "sh", "-c", "exit 2")
    assert "differ outcome: ok → exit 2" in differs(cli, names[0], "@last", "--brief").lines
    (found,) = differs(cli, *names, "--brief", "--json").records
    assert [one["name"] for one in found["different"]][-1] == "stdout"
    assert "hunks" not in found["different"][-1]


def test_a_stream_that_cannot_be_read_ends_with_the_code_of_its_error(cli: Cli) -> None:
    names = two(cli, OUT, CHANGED, err=b"behind")
    for path in (cli.folder / "artifacts").rglob("*.zst"):
        path.write_bytes(path.read_bytes()[:-1])
    damaged = cli.run("diff", *names)
    for path in (cli.folder / "artifacts").rglob("*.zst"):
        path.unlink()
    for code, ended in ((1, damaged), (4, cli.run("diff", *names))):
        assert (ended.code, ended.sentence[:9]) == (code, "artifact ")
        assert f"\n(cannot be compared: {ended.sentence})\n" in ended.text
        assert hunks_of(ended.text, "stderr")[1] == "+behind"
    ended = cli.run("diff", *names, "--json")
    assert ended.code == 4
    assert [len(one["notes"]) for one in ended.records[0]["different"]][-2:] == [1, 0]


def test_binary_output_is_compared_by_size_and_first_byte(cli: Cli) -> None:
    names = two(cli, b"\0" * 90_000, b"\0" * 80_000 + b"x")
    text = differs(cli, *names).text
    (note,) = hunks_of(text, "stdout")
    assert note == (
        "(binary content: not compared by lines from here on; 90,000 and 80,001 bytes,"
        " the first difference is at byte 80,000)"
    )


def test_colours_are_for_terminals_and_hostile_text_drives_none(cli: Cli) -> None:
    wild = "\x1b[2J\x1b]52;c;x\x07 \u202eabc\r"
    call = ToolCall(tool_name="Bash", arguments_raw=wild, call_id=wild)
    names = two(cli, b"a\nb\n", f"a\n{wild}\n".encode(), call=call)
    text = differs(cli, *names).text
    assert not re.search("[\x00-\x08\x0b-\x1f\u202e]", text)
    assert hunks_of(text, "stdout")[-1] == r"+\x1b[2J\x1b]52;c;x\x07 \u202eabc\r"
    shown = on_a_terminal(cli, "diff", *names, columns=80, code=1)
    assert "\x1b[31m-b\x1b[0m\n" in shown
    assert "\x1b[32m+\\x1b[2J" in shown
    assert set(re.findall(r"\x1b\S?\d*\w", shown)) == {
        f"\x1b[{style}m" for style in (0, 1, 31, 32, 36)
    }
    assert "\x1b" not in on_a_terminal(cli, "diff", *names, columns=80, code=1, NO_COLOR="1")


def test_arguments_are_compared_by_their_bytes(cli: Cli) -> None:
    with cli.open() as store, store.open_session() as session:
        names = [
            record(session, b"", call=ToolCall(tool_name="Bash", arguments_raw=text))
            for text in ('{"a":1}', '{"a": 1}', '{"a": "\ud800', '{"a": "\udc00')
        ]
    for pair in (names[:2], names[2:]):
        lines = hunks_of(differs(cli, *pair).text, "arguments")
        assert [line[0] for line in lines] == list("@-\\+\\")
    lines = hunks_of(differs(cli, names[0], names[1]).text, "arguments")
    assert (lines[1], lines[3]) == ('-{"a":1}', '+{"a": 1}')


def test_a_call_that_runs_has_no_result_yet(cli: Cli) -> None:
    with cli.open() as store, store.open_session() as session:
        ended = record(session, b"out\n")
        running, other = (str(session.start(CALL).id) for _ in range(2))
        text = differs(cli, running, ended).text
        unknown = cli.run("diff", running, other)
        (found,) = cli.run("diff", "--same-args", "--json", other).records
    assert hunks_of(text, "outcome") == ["@@ -1,1 +1,1 @@", "-running", "+ok"]
    assert "\nunknown stdout: before: the invocation has not ended\n" in text
    why = "the invocation has not ended"
    surfaces = ["complete output", "canonical result", "receipt"]
    assert unknown.code == 4
    assert unknown.lines[2:] == [
        "same   tool, arguments, outcome",
        *(f"unknown {one}: before: {why}; after: {why}" for one in surfaces),
    ]
    assert (found["identical"], found["different"]) == (False, [])
    assert found["unknown"] == [{"name": one, "before": why, "after": why} for one in surfaces]


def test_what_is_not_recorded_is_not_equal(cli: Cli, tmp_path: Path) -> None:
    for name in ("first", "second"):
        file = tmp_path / f"{name}.jsonl"
        call = {"type": "function_call", "name": "exec_command", "arguments": "{}", "call_id": "c"}
        output = {"type": "function_call_output", "call_id": "c", "output": "text"}
        head = {"id": name, "timestamp": "2026-01-02T03:04:05Z", "cwd": "/"}
        lines = [("session_meta", head), ("response_item", call), ("response_item", output)]
        at = {"timestamp": "2026-01-02T03:04:05Z"}
        entries = [{**at, "type": kind, "payload": payload} for kind, payload in lines]
        cli.ok("import", str(write_lines(file, entries)))
    ended = cli.run("diff", "@last", "--same-args")
    assert ended.code == 4
    assert ended.lines[2] == "same   tool, arguments, outcome, receipt"
    absent = "is not recorded: its source does not contain it"
    assert ended.lines[4].startswith(
        f"unknown canonical result: before: canonical {absent}; after:"
    )
    sessions = [one["session_id"] for one in cli.ok("log", "--json").records]
    ended = cli.run("diff", *sessions)
    assert (ended.code, ended.lines[1]) == (4, "calls: 1 unknown")
    assert "[unknown: complete output, canonical result]" in ended.lines[0]
    (found,) = cli.run("diff", *sessions, "--json").records
    assert (found["result"], found["changed"]) == ("unknown", [])
    assert found["unknown"] == ["complete output", "canonical result"]


def test_who_leaves_the_pager_early_learns_of_the_difference(cli: Cli) -> None:
    names = two(cli, OUT, CHANGED.replace(b"line", b"row"))
    seen = on_a_terminal(cli, "diff", *names, columns=80, code=1, PAGER="head -n 1")
    assert seen.startswith("before ")


def test_the_same_call_before_is_found_in_any_session(cli: Cli) -> None:
    with cli.open() as store:
        first = record(store.open_session(), b"1\n")
        record(store.open_session(), b"", call=ToolCall.of("Bash", {"command": "make"}))
        second = record(store.open_session(), b"2\n")
    (found,) = differs(cli, "--same-args", second[-8:], "--json").records
    assert (found["before"]["id"], found["after"]["id"]) == (first, second)
    ended = cli.run("diff", "--same-args", first)
    assert ended.code == 3
    assert ended.sentence.startswith(f"no call of Bash before invocation {first} has the same arg")


def test_a_lost_end_of_a_stream_is_a_difference(cli: Cli) -> None:
    with cli.open() as store, store.open_session() as session:
        names = [record(session, b"kept\n")]
        invocation = session.start(CALL)
        lost = {"produced_size": 9, "produced_line_count": 2, "loss_reason": "disk full"}
        result = CommandOutput(
            command="make",
            exit_status=0,
            stdout=StreamRecord.from_bytes("stdout", b"kept\n").model_copy(update=lost),
            stderr=captured(invocation, "stderr", b""),
        )
        output = CompleteOutput.success("Bash", result)
        names.append(str(invocation.finish(output).invocation_id))
    text = differs(cli, *names).text
    assert f"+++ {names[1][-8:]}/stdout\t5 bytes, lost 4 bytes: disk full\n" in text
    text = differs(cli, "--surfaces", names[1]).text
    assert "\n- lost    bytes 5-9  capture: disk full\n" in text


def test_the_model_did_not_see_a_stream_that_was_captured_beside_the_result(cli: Cli) -> None:
    with cli.open() as store, store.open_session() as session:
        invocation = session.start(CALL)
        captured(invocation, "debug; log", b"never shown\n")
        ended = invocation.finish(returned("Bash", "out"))
        assert ended.receipt.text == "out\n"
    lines = differs(cli, "--surfaces", str(ended.invocation_id)).lines
    assert lines[0].startswith("the model did not see all")
    (cut,) = cli.ok("log", "--sort", "cut", "--json").records
    assert (cut["cut_size"], cut["truncated"]) == (12, True)
    assert lines[3:5] == [
        "debug; log: 12 bytes",
        "- cut     bytes 0-12, lines 1-1  projection: captured beside the result",
    ]
    named = [one for one in cli.ok("show").lines if "cat --stream 'debug; log'" in one]
    for line in (lines[5], *named):
        assert cli.ok(*shlex.split(line)[1:]).text == "never shown\n"
    assert named


def test_a_captured_stream_with_the_role_of_a_surface_hides_no_surface(cli: Cli) -> None:
    with cli.open() as store, store.open_session() as session:
        names: list[str] = []
        for text in ("one", "two"):
            invocation = session.start(CALL)
            for role, data in (("receipt", b"the same"), ("arguments", text.encode())):
                captured(invocation, role, data)
            ended = invocation.finish(returned("Bash", "out"), seen=f"saw {text}")
            names.append(str(ended.invocation_id))
    lines = differs(cli, *names).lines
    assert lines[2].startswith("same   tool, arguments, outcome, ")
    assert lines[2].endswith(", content.0, stream receipt")
    assert [line for line in lines if re.match(r"[-+]\w", line)] == [
        *("-saw one", "+saw two"),
        *("-one", "+two"),
    ]


def calls(*numbers: int) -> list[ToolCall]:
    return [ToolCall.of("Bash", {"command": f"step {n}"}) for n in numbers]


def two_sessions(cli: Cli) -> None:
    with cli.open() as store:
        with store.open_session(name="monday") as session:
            for call in calls(1, 2, 3, 4):
                record(session, b"out\n", call=call)
        with store.open_session(name="tuesday") as session:
            for call in calls(1, 5, 2, 4):
                is_last = call == calls(4)[0]
                record(session, b"out\n", status=int(is_last), call=call)
            run_tool(session, "x")


def test_two_sessions_are_aligned_by_call(cli: Cli) -> None:
    two_sessions(cli)
    lines = differs(cli, "monday", "tuesday").lines
    places = [line.rpartition("#")[0] + "#" + line.rpartition("#")[2][:1] for line in lines[:4]]
    assert places == ["+            #2", "-     #3", "~     #4     #4", "+            #5"]
    assert [line[-6:] for line in lines[:3]] == ["step 5", "step 3", "step 4"]
    assert "ok → exit 1  [outcome, complete output, canonical result, receipt]" in lines[2]
    assert lines[4] == "calls: 2 same, 1 changed, 1 only before, 2 only after"
    assert differs(cli, "monday", "tuesday", "--brief").lines == lines[4:]
    found = differs(cli, "monday", "tuesday", "--json").records
    results = [
        (one["result"], *(s and s["seq"] for s in (one["before"], one["after"]))) for one in found
    ]
    assert results == [
        ("same", 1, 1),
        ("only after", None, 2),
        ("same", 2, 3),
        ("only before", 3, None),
        ("changed", 4, 4),
        ("only after", None, 5),
    ]
    assert found[4]["changed"][0] == "outcome"
    assert (found[4]["before"]["outcome"], found[4]["after"]["outcome"]) == ("ok", "exit 1")
    assert cli.ok("diff", "monday", "monday").text == "identical: 4 same\n"


def test_names_are_those_of_invocations_first_and_of_sessions_on_request(cli: Cli) -> None:
    two_sessions(cli)
    assert cli.ok("diff", "@last", "@last").text.startswith("identical: tool, ")
    assert cli.ok("diff", "--session", "@last", "@last").text == "identical: 5 same\n"
    for names in (("monday", "monday#1"), ("@last", "nope"), ("nope", "monday")):
        ended = cli.run("diff", *names)
        assert ended.code == 3
        assert re.match(r"no invocation is named '(monday'; a session has|nope'$)", ended.sentence)


def test_a_damaged_call_equals_no_call_and_hides_no_other(cli: Cli) -> None:
    two_sessions(cli)
    with cli.open() as store:
        alter(store, "UPDATE surfaces SET receipt = 'altered' WHERE invocation_key = 2")
    lines = differs(cli, "monday", "tuesday").lines
    assert lines[-1] == "calls: 1 same, 1 changed, 2 only before, 3 only after"
    ended = cli.run("diff", "monday#2", "monday#1")
    assert ended.code == 1
    assert "receipt is not the text that was recorded" in ended.sentence


def test_surfaces_say_which_bytes_and_lines_were_cut_at_which_stage(cli: Cli) -> None:
    name, receipt = a_call(cli, OUT, b"oops\n")
    (found,) = differs(cli, "--surfaces", name, "--json").records
    stdout, stderr = found["streams"]
    first, cut, last = stdout["parts"]
    assert [part["state"] for part in (first, cut, last)] == ["shown", "cut", "shown"]
    assert (cut["stage"], cut["reason"]) == ("projection", "preview budget")
    for part in (first, last):
        assert OUT[part["start"] : part["stop"]].decode() in receipt
    # The parts are all of the stream, and the counts of lines are those of the bytes.
    assert first["start"] == 0
    assert (first["stop"], cut["stop"], last["stop"]) == (cut["start"], last["start"], len(OUT))
    for part in (first, cut, last):
        assert part["first_line"] == OUT.count(b"\n", 0, part["start"]) + 1
        assert part["last_line"] == OUT.count(b"\n", 0, part["stop"] - 1) + 1
    assert f"{cut['last_line'] - cut['first_line'] + 1:,} lines, " in receipt
    assert [part["state"] for part in stderr["parts"]] == ["shown"]
    text = differs(cli, "--surfaces", name).text
    assert text.startswith("the model did not see all: receipt of ")
    where = f"--stream stdout --bytes {cut['start']}:{cut['stop']}"
    opens = f"tooltrail cat {name[-8:]} {where}"
    assert opens in text
    shown = cli.ok(*opens.split()[1:]).stdout
    assert shown == OUT[cut["start"] : cut["stop"]]


@pytest.mark.parametrize(
    "data", [b"x" * 90_000, "é\n".encode() * 40_000, b"\xff" + b"a line\n" * 9_000 + b"end"]
)
def test_the_cut_is_exact_in_long_lines_and_in_any_encoding(cli: Cli, data: bytes) -> None:
    name, receipt = a_call(cli, data)
    first, cut, last = parts_of(cli, name)
    for shown in (data[: cut["start"]], data[cut["stop"] :]):
        assert shown.decode("utf-8", "backslashreplace") in receipt
    assert f" {cut['stop'] - cut['start']:,} bytes omitted" in receipt
    for part in (first, cut, last):
        assert part["first_line"] == data.count(b"\n", 0, part["start"]) + 1
        assert part["last_line"] == data.count(b"\n", 0, part["stop"] - 1) + 1


def test_a_marker_that_a_tool_prints_says_nothing(cli: Cli) -> None:
    def output(omitted: str) -> bytes:
        rest = f"lines; 7 lines, {omitted} omitted]"
        marks = [f"[output truncated: showing first {n} and last 9 {rest}" for n in (1, 99999, ",")]
        return b"\n".join([b"first", *(mark.encode() for mark in marks), OUT])

    real = re.findall(r", ([\d,]+ bytes) omitted; full", a_call(cli, output("12,345 bytes"))[1])[-1]
    assert len(real) == len("12,345 bytes") + 1
    first, cut, last = parts_of(cli, a_call(cli, output(real))[0])
    assert first["stop"] > 1_000
    assert last["stop"] - last["start"] > 1_000
    assert cut["state"] == "cut"


def test_a_receipt_that_shows_all_is_no_difference(cli: Cli) -> None:
    with cli.open() as store, store.open_session() as session:
        record(session, b"short\n")
        fail_tool(session)
    for name in ("@last:Bash", "@last:Read"):
        text = cli.ok("diff", "--surfaces", name).text
        assert text.startswith("the model saw all: receipt of ")
        assert "bytes 0-0" not in text
        (found,) = cli.ok("diff", "--surfaces", name, "--json").records
        assert found["complete"] is True


def test_binary_output_is_cut_as_a_whole(cli: Cli) -> None:
    a_call(cli, b"\0" * 70_000)
    text = differs(cli, "--surfaces", "@last").text
    assert "- cut     bytes 0-70,000, lines 1-1  projection: binary output is not shown\n" in text


def test_the_cut_of_another_program_is_found_in_its_text(cli: Cli) -> None:
    whole = "".join(f"line {n}\n" for n in range(900))
    imported(cli, whole, f"{whole[:3000]}\n... [cut] ...\n{whole[-2000:]}")
    parts = [(p["state"], p["start"], p["stop"], p["stage"]) for p in parts_of(cli, "@last")]
    size = len(whole)
    assert parts == [
        ("shown", 0, 3000, ""),
        ("cut", 3000, size - 2000, "seen"),
        ("shown", size - 2000, size, ""),
    ]


def test_another_text_than_the_output_says_nothing(cli: Cli) -> None:
    imported(cli, "a long output\n" * 9, "a summary")
    ended = cli.run("diff", "--surfaces", "@last")
    assert ended.code == 4
    assert ended.lines[0].startswith("it is not known whether the model saw all: receipt of 9 by")
    assert "- unknown bytes 0-126  seen: the model saw another text" in ended.lines


def test_what_the_model_saw_of_a_running_call_is_not_known(cli: Cli) -> None:
    with cli.open() as store, store.open_session() as session:
        name = str(session.start(CALL).id)
        ended = cli.run("diff", "--surfaces", name)
    assert (ended.code, ended.stdout) == (4, b"")
    assert ended.sentence == f"invocation {name}: the invocation has not ended"
