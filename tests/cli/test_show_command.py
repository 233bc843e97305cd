"""One invocation, whole: the overview, each surface exactly, each stream exactly."""

import json
import re

import pytest
from tests.support.altering import alter
from tests.support.call_facts import started
from tests.support.cli import Cli
from tests.support.recording import captured, command_output, fail_tool, run_command, say
from tests.support.rewording import reworded, without

from tooltrail.journal.clock import new_id
from tooltrail.records import (
    CommandOutput,
    CompleteOutput,
    StreamRecord,
    ToolCall,
    default_families,
)
from tooltrail.records._error_receipts import ERROR_RENDERER_VERSION
from tooltrail.records.digests import digest_of
from tooltrail.store import Session, open_store

OUT = b"first line\n\xff\xfe no text \0\n" + b"".join(b"line %d\n" % n for n in range(9_000))
ERR = b"warning\n"
ENVIRONMENTS = ("sessions", "invocations")
ARGUMENTS = '{"command":  "make all"}'


def record(session: Session) -> str:
    call = ToolCall(tool_name="Bash", arguments_raw=ARGUMENTS, call_id="call/1")
    return str(run_command(session, OUT, ERR, exit_status=2, call=call).invocation_id)


def test_the_overview_has_the_facts_and_the_three_surfaces(cli: Cli) -> None:
    with cli.open() as store:
        name = record(store.open_session())
        detail = store.reader.invocation(name)
    text = cli.ok("show", "--utc").text
    facts, *surfaces = text.split("\n── ")
    assert f"invocation {name}\n" in facts
    assert f"session    {detail.summary.session_id}#1\n" in facts
    assert "tool       Bash (command family)\ncall id    call/1\n" in facts
    assert "call       make all\n" in facts
    assert "outcome    exit 2\n" in facts
    assert re.search(r"where      \S+@\S+ in /", facts)
    assert re.search(r"started    \S+ \S+Z, took \d+\.\d\d s\n", facts)
    titles = [surface.partition(" ──\n")[0] for surface in surfaces]
    assert [title.split(",")[0] for title in titles] == [
        "receipt",
        "left out",
        "complete output",
        "canonical result",
    ]
    receipt, left_out, complete, canonical = surfaces
    lines = complete.splitlines()
    digest = detail.streams[0].digest[:19]
    assert lines[1] == f"[stdout] {len(OUT):,} bytes, 9,002 lines, {digest}, an artifact"
    for line in (lines[2], lines[4], canonical.splitlines()[1]):
        assert cli.ok(*line.split()[1:]).stdout  # what it says can be pasted
    assert lines[2] == f"  tooltrail cat --stream stdout {name[-8:]}"
    assert lines[3].startswith("[stderr] 8 bytes, 1 line, ")
    assert "Process exited with code 2\n" in receipt
    cut = (
        f"stdout shows 0 of {len(OUT):,} bytes ({len(OUT):,} left out): binary output is not shown"
    )
    assert f"projection: {cut}" in left_out.splitlines()


def test_nothing_that_a_tool_printed_moves_the_cursor(cli: Cli) -> None:
    wild = b"\x1b[2J\x1b]0;owned\x07 tab\there \x9b31m"
    with cli.open() as store, store.open_session() as session:
        call = ToolCall(tool_name="Bash", call_id="\x1b[1m")
        run_command(session, wild, call=call)
    text = cli.ok("show").text
    assert "\x1b" not in text
    assert "\x07" not in text
    assert "�[2J�]0;owned� tab\there" in text
    assert cli.ok("show", "--stream", "stdout").stdout == wild


def test_each_surface_alone_is_exact(cli: Cli) -> None:
    with cli.open() as store:
        record(store.open_session())
        detail = store.reader.invocation("@last")
    complete = cli.ok("show", "--surface", "complete")
    assert (complete.stdout, complete.stderr) == (OUT, ERR)
    assert cli.ok("show", "--surface", "canonical").text == detail.canonical_json
    assert detail.receipt
    assert cli.ok("show", "--surface", "receipt").text == detail.receipt.text
    assert cli.ok("show", "--surface", "input").text == ARGUMENTS
    for name, data in (("stdout", OUT), ("stderr", ERR)):
        alone = cli.ok("show", "--stream", name)
        assert (alone.stdout, alone.stderr) == (data, b"")


def test_a_stream_that_there_is_not_names_those_that_there_are(cli: Cli) -> None:
    with cli.open() as store:
        name = record(store.open_session())
        failed = str(fail_tool(store.open_session()).invocation_id)
    ended = cli.run("show", name, "--stream", "nope")
    assert (ended.code, ended.stdout) == (3, b"")
    assert ended.sentence == f"invocation {name} has no stream 'nope'; it has stdout, stderr"
    ended = cli.run("show", failed, "--stream", "stdout")
    assert ended.code == 3
    assert ended.sentence == f"invocation {failed} has no stream 'stdout'; it has none"


def test_json_has_the_surfaces_as_they_are_stored(cli: Cli) -> None:
    with cli.open() as store:
        name = record(store.open_session())
        detail = store.reader.invocation(name)
    (found,) = cli.ok("show", name, "--json").records
    assert found["schema_version"] == 1
    assert found["id"] == name
    assert found["arguments_raw"] == ARGUMENTS
    assert found["policy_digest"] == detail.policy_digest
    assert found["canonical_result"] == json.loads(detail.canonical_json or "")
    assert found["complete_output"] == json.loads(detail.complete_json or "")
    assert [stream["role"] for stream in found["streams"]] == ["stdout", "stderr"]
    assert found["artifacts"] == [{"role": "stdout", "path": found["streams"][0]["artifact_path"]}]
    assert detail.receipt
    assert found["receipt"]["text"] == detail.receipt.text
    assert {cut["stage"] for cut in found["omissions"]} == {"projection"}


def test_an_open_invocation_is_incomplete_except_for_its_input(cli: Cli) -> None:
    with cli.open() as store:
        call = ToolCall(tool_name="Bash", arguments_raw="not { json")
        name = str(store.open_session().start(call).id)
        for flags in (
            ["--surface", "complete"],
            ["--surface", "canonical"],
            ["--surface", "receipt"],
            ["--stream", "stdout"],
        ):
            ended = cli.run("show", *flags)
            assert (ended.code, ended.stdout) == (4, b"")
            assert ended.sentence == f"invocation {name} has not ended"
        assert cli.ok("show", "--surface", "input").text == "not { json"
        text = cli.ok("show").text
        assert "outcome    running\n" in text
        assert f"  tooltrail tail -f {name[-8:]}\n" in text
        assert "(the invocation has not ended)\n" in text
        (found,) = cli.ok("show", "--json").records
        assert (found["receipt"], found["complete_output"], found["streams"]) == (None, None, [])


def test_the_outcome_says_how_a_command_ended(cli: Cli) -> None:
    for ending, outcome in (
        ({"signal": 11}, "SIGSEGV"),
        ({"exit_status": 0}, "ok, exit status 0"),
        ({"exit_status": 143, "timed_out": True, "timeout_ms": 9}, "timeout, exit status 143"),
    ):
        with cli.open() as store:
            invocation = store.open_session().start(ToolCall(tool_name="Bash"))
            streams = {name: captured(invocation, name, b"") for name in ("stdout", "stderr")}
            result = CommandOutput.model_validate({**ending, **streams})
            invocation.finish(CompleteOutput.success("Bash", result))
        assert f"outcome    {outcome}\n" in cli.ok("show").text


def test_a_failure_shows_its_kind_and_prints_its_envelope(cli: Cli) -> None:
    with cli.open() as store:
        fail_tool(store.open_session(), kind="permission_denied")
    text = cli.ok("show").text
    assert "outcome    denied\n" in text
    assert "error      permission_denied: " in text
    envelope = json.loads(cli.ok("show", "--surface", "complete").text)
    assert envelope["error"]["kind"] == "permission_denied"


def test_the_output_so_far_of_an_open_invocation_is_where_show_says(cli: Cli) -> None:
    with cli.open() as store:
        invocation = store.open_session().start(ToolCall(tool_name="Bash"))
        captured(invocation, "stdout", b"so far\n")
        ended = cli.run("show", "--stream", "stdout")
        assert ended.code == 4
        assert ended.sentence == (
            f"invocation {invocation.id} has not ended; its output so far is in {invocation.spool}"
        )


def lose_output(cli: Cli) -> bytes:
    """Record a command whose spool could not be written; what was kept all the same."""
    with cli.open() as store:
        invocation = store.open_session().start(ToolCall(tool_name="Bash"))
        # A file where the folder of the spool should be.
        invocation.spool.parent.mkdir(exist_ok=True)
        invocation.spool.write_text("")
        output = command_output(invocation, b"x" * 50_000)
        invocation.spool.unlink()
        invocation.finish(output)
        result = output.result
    assert isinstance(result, CommandOutput)
    return kept_of(result.stdout)


def kept_of(stream: StreamRecord | None) -> bytes:
    assert stream is not None
    assert stream.content is not None
    return stream.content


def test_lost_bytes_are_counted_and_incomplete(cli: Cli) -> None:
    kept = lose_output(cli)
    missing = 50_000 - len(kept)
    assert missing
    for flags in (["--surface", "complete"], ["--stream", "stdout"]):
        ended = cli.run("show", *flags)
        assert (ended.code, ended.stdout) == (4, kept)
        assert ended.sentence == (
            f"stdout: {missing:,} bytes were not kept: spool cannot be written: Not a directory"
        )
    assert f"  {missing:,} bytes lost: spool cannot be written" in cli.ok("show").text
    assert cli.ok("show", "--stream", "stderr").stdout == b""


def record_then(cli: Cli, words: str) -> str:
    """Record a command with a program whose renderer has these words, of version 0."""
    with open_store(cli.database, families=reworded("command", words)) as store:
        return str(run_command(store.open_session(), b"kept\n").invocation_id)


def use_today(monkeypatch: pytest.MonkeyPatch, words: str, version: int) -> None:
    """Let the program's command family give these words."""
    families = reworded("command", words, version=version)
    monkeypatch.setattr("tooltrail.records.default_families", lambda: families)


def test_rerender_says_that_the_receipt_is_what_today_s_renderer_gives(cli: Cli) -> None:
    with cli.open() as store:
        name = record(store.open_session())
        failed = str(fail_tool(store.open_session()).invocation_id)
    version = default_families().named("command").version
    renderers = {name: f"command {version}", failed: f"error {ERROR_RENDERER_VERSION}"}
    for named, renderer in renderers.items():
        ended = cli.ok("show", named, "--rerender")
        assert ended.stdout == b""
        assert ended.message == (
            f"the receipt of invocation {named} is the text that renderer {renderer} makes today\n"
        )


def test_rerender_prints_the_difference_from_stored_to_today(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = record_then(cli, "exit status 0\nstdout:\nkept\x0cline\n")
    use_today(monkeypatch, "Exited with 0\nstdout:\nkept\x0cline", 3)
    ended = cli.run("show", "--rerender")
    assert ended.code == 1
    assert ended.text == (
        "--- stored (command 0)\n"
        "+++ today (command 3)\n"
        "@@ -1,3 +1,3 @@\n"
        "-exit status 0\n"
        "+Exited with 0\n"
        " stdout:\n"
        "-kept\ufffdline\n"
        "+kept\ufffdline\n"
        "\\ No newline at end of file\n"
    )
    assert ended.message == (
        f"the receipt of invocation {name} differs from the text of today's renderer: "
        "the receipt was rendered by command 0, the current renderer is command 3\n"
    )


def test_rerender_as_json_has_both_texts(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    name = record_then(cli, "then\n")
    use_today(monkeypatch, "today\n", 0)
    ended = cli.run("show", name, "--rerender", "--json")
    assert ended.code == 1
    (found,) = ended.records
    policy = found["today"]["policy_digest"]
    stored, today = (
        {
            "text": text,
            "digest": digest_of(text.encode()),
            "renderer_name": "command",
            "renderer_version": 0,
            "policy_digest": policy,
        }
        for text in ("then\n", "today\n")
    )
    assert found == {
        "schema_version": 1,
        "invocation_id": name,
        "state": "drifted",
        "reason": "renderer command 0 gives other text, although its version is the same",
        "stored": stored,
        "today": today,
    }
    use_today(monkeypatch, "then\n", 1)
    (found,) = cli.ok("show", name, "--rerender", "--json").records
    assert (found["state"], found["reason"]) == ("same", "")


def test_rerender_without_text_to_compare_says_why(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = record_then(cli, "then\n")
    monkeypatch.setattr("tooltrail.records.default_families", lambda: without("command"))
    ended = cli.run("show", "--rerender")
    assert (ended.code, ended.stdout) == (4, b"")
    assert ended.message == (
        f"the receipt of invocation {name} cannot be compared: "
        "the family 'command' is not known to this program\n"
    )


def test_rerender_of_an_open_invocation_is_incomplete(cli: Cli) -> None:
    with cli.open() as store:
        name = str(store.open_session().start(ToolCall(tool_name="Bash")).id)
        ended = cli.run("show", "--rerender")
        assert (ended.code, ended.stdout) == (4, b"")
        assert ended.sentence == f"invocation {name} has not ended"
        ended = cli.run("show", "--rerender", "--json")
        assert ended.code == 4
        assert [(r["state"], r["stored"], r["today"]) for r in ended.records] == [
            ("open", None, None)
        ]


def test_arguments_that_are_no_utf_8_are_in_the_json(cli: Cli) -> None:
    with cli.open() as store, store.open_session() as session:
        session.append([started(session.id, new_id(), arguments=b"\xff{}")])
    (record_of_call,) = cli.ok("show", "--json").records
    assert record_of_call["arguments_raw"].encode("utf-8", "surrogateescape") == b"\xff{}"
    assert cli.ok("show", "--surface", "input").stdout == b"\xff{}"


def test_an_environment_that_is_no_object_stops_no_command(cli: Cli) -> None:
    with cli.open() as store, store.open_session() as session:
        record(session)
        say(session, "user", "no JSON")
        store.ingest()
        words = "(SELECT text FROM messages)"
        alter(store, *(f"UPDATE {one} SET environment = {words}" for one in ENVIRONMENTS))
    assert cli.ok("show").lines
    assert cli.ok("show", "--json").records[0]["environment"] == {}
    assert json.loads(cli.ok("transcript", "--json").text)["session"]["environment"] == {}


def test_a_lost_environment_is_damage_and_all_else_is_printed(cli: Cli) -> None:
    with cli.open() as store:
        name = record(store.open_session())
        whole = cli.ok("show").text
        assert not cli.ok("show").stderr
        alter(store, f"UPDATE invocations SET environment = x'{'00' * 32}'")
    shown = cli.run("show")
    assert shown.code == 1
    assert without_place(shown.text) == without_place(whole)
    assert f"environment of call {name} is damaged" in shown.sentence
    assert "`tooltrail verify`" in shown.sentence
    (found,) = json.loads(cli.run("show", "--json").text)
    assert found["environment"] == {}
    assert name in found["damage"]
    assert cli.ok("cat", "@last", "--stream", "stderr").stdout == ERR


def without_place(text: str) -> list[str]:
    return [line for line in text.splitlines() if not line.startswith("where ")]
