"""Everything that is stored, checked at once: a line for what is not right, a code that says so."""

from collections.abc import Iterator

import pytest
from tests.support.altering import alter
from tests.support.cli import Cli, on_a_terminal
from tests.support.recording import fail_tool, run_command, run_tool
from tests.support.rewording import reworded
from tests.support.sinks import retold

from tooltrail.artifacts import FrameIndex
from tooltrail.cli._output import print_array
from tooltrail.records import Message, ToolCall, ToolDefinition
from tooltrail.store import Session

BIG = b"".join(b"line %d\n" % n for n in range(30_000))
THEN = reworded("command", "exit status 0\n")


def record(session: Session, *outputs: bytes) -> list[str]:
    """Run a command for each output; the ids."""
    return [str(run_command(session, output).invocation_id) for output in outputs]


def test_an_empty_store_is_right(cli: Cli) -> None:
    ended = cli.ok("verify")
    assert (ended.text, ended.message) == ("", "compared nothing: 0 damaged, 0 incomplete\n")
    assert cli.ok("verify", "--json").text == "[]\n"


def test_what_today_s_program_recorded_is_right(cli: Cli) -> None:
    with cli.open() as store, store.open_session() as session:
        record(session, b"short\n", BIG)
        run_tool(session, "text", tool="lookup")
        fail_tool(session)
        session.message(Message.of("user", "run it"))
        session.message(Message.of("assistant", "done"), payload=b"{}")
        session.offer_tools([ToolDefinition(name="Bash")])
    for flags in (["--receipts"], [], ["--no-artifacts"]):
        ended = cli.ok("verify", *flags)
        assert ended.text == ""
        assert ended.message.startswith("compared ")
        assert ended.message.endswith(": 0 damaged, 0 incomplete\n")
        for count in ("4 calls", "2 messages", "1 session"):
            assert f"{count}, " in ended.message
        assert ("1 artifact:" in ended.message) == ("--no-artifacts" not in flags)


def test_a_call_that_has_not_ended_is_incomplete(cli: Cli) -> None:
    with cli.open() as store:
        running = store.open_session().start(ToolCall(tool_name="Bash"))
        ended = cli.run("verify")
    assert ended.code == 4
    (line,) = ended.lines
    assert line.startswith("incomplete ")
    assert str(running.id) in line
    assert ended.message.endswith(": 0 damaged, 1 incomplete\n")


def test_a_bar_on_a_terminal_is_erased_before_each_line(cli: Cli) -> None:
    with cli.open() as store:
        altered = store.open_session().message(Message.of("user", "no, stop"))
    with cli.open() as store:
        store.ingest()
        alter(store, "UPDATE messages SET role = 'system'")
    seen = on_a_terminal(cli, "verify", "--receipts", columns=200, code=1)
    assert "checking  ░" in seen
    line, totals = (left.rpartition("\r\x1b[K")[2] for left in seen.rstrip().split("\n"))
    assert line.startswith("damage ")
    assert line.endswith(f"of message {altered} is not what its fact says")
    assert totals.startswith("compared ")


def test_with_receipts_what_would_be_worded_otherwise_is_incomplete(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = cli.exec("--", "echo", "one")
    assert shown.code == 0
    cli.ok("log")
    monkeypatch.setattr("tooltrail.records.default_families", lambda: THEN)
    assert cli.ok("verify").text == ""
    ended = cli.run("verify", "--receipts")
    assert ended.code == 4
    (line,) = ended.lines
    assert line.startswith("incomplete the receipt of call ")


def test_json_has_a_record_for_each_finding(cli: Cli) -> None:
    with cli.open() as store, store.open_session() as session:
        (name,) = record(session, b"one\n")
        store.ingest()
        alter(store, "UPDATE invocations SET tool_name = 'Sh'")
    ended = cli.run("verify", "--json")
    assert ended.code == 1
    (found,) = ended.records
    assert (found["kind"], found["table"], found["column"]) == (
        "damage",
        "invocations",
        "tool_name",
    )
    assert name in found["subject"]
    assert name in found["message"]


def test_an_array_is_printed_while_its_records_come(
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    def records() -> Iterator[dict[str, int]]:
        yield {"n": 1}
        assert capfdbinary.readouterr().out == b'[{"schema_version": 1, "n": 1}'
        yield {"n": 2}

    print_array(records())
    assert capfdbinary.readouterr().out == b',\n {"schema_version": 1, "n": 2}]\n'


def lying_object(cli: Cli) -> tuple[str, FrameIndex]:
    """Record one artifact, and have its index count other newlines in two of its frames."""
    with cli.open() as store:
        record(store.open_session(), BIG)
        (artifact,) = store.reader.artifacts()
        index = FrameIndex.from_bytes(store.archive.sink.read(artifact.path, 0))
    assert len(index) > 1
    file = cli.folder / "artifacts" / artifact.path
    data = file.read_bytes()[: index.frames_size]
    file.chmod(0o600)
    file.write_bytes(data + retold(index, newlines={0: -3, 1: 3}).to_bytes())
    return artifact.path, index


def test_an_index_that_lies_is_damage_and_each_frame_is_named(cli: Cli) -> None:
    path, index = lying_object(cli)
    said = [
        f"its index: frame {frame}: newlines {count:,} found, {count + more:,} expected"
        for frame, count, more in ((0, index.newlines_in(0), -3), (1, index.newlines_in(1), 3))
    ]
    ended = cli.run("verify")
    assert ended.code == 1
    (line,) = ended.lines
    assert line.startswith("damage ")
    assert line.endswith("; ".join(said))
    ended = cli.run("artifact", "verify", path, "--json")
    assert ended.code == 1
    (verdict,) = ended.records
    assert (verdict["state"], verdict["differences"]) == ("damaged", said)
    assert verdict["reason"].endswith("; ".join(said))
    # Reading lines by it is refused, bytes are read.
    ended = cli.run("artifact", "tail", "-n", "9000", path)
    assert (ended.code, ended.stdout) == (1, b"")
    assert "newlines in frame 0, but the frame has" in ended.sentence
    assert cli.ok("artifact", "cat", "--bytes", "5:90000", path).stdout == BIG[5:90_000]


def test_a_row_with_other_lines_is_damage_and_keeps_nobody_from_reading(cli: Cli) -> None:
    with cli.open() as store:
        record(store.open_session(), BIG)
        (artifact,) = store.reader.artifacts()
        alter(store, "UPDATE artifacts SET line_count = 29999")
    ended = cli.run("artifact", "verify")
    assert ended.code == 1
    assert "30,000 lines found, 29,999 expected" in ended.text
    for verb in ("head", "tail"):
        assert cli.ok("artifact", verb, "-n", "30000", artifact.path).stdout == BIG
