"""`artifact tail -f` and `log -f`: another process sees what happens, and when it is over."""

import io
import json
import signal
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import pytest
from tests.support.cli import Cli, Ended
from tests.support.recording import fail_tool, run_command
from tests.support.spool_writer import SpoolWriter, digits
from tests.support.spools import left_in

from tooltrail.artifacts import FrameIndex
from tooltrail.records import ToolCall

MANY = ("-n", "1000000")


@pytest.fixture
def writer(cli: Cli) -> Generator[SpoolWriter]:
    with SpoolWriter(cli.database, cli.folder / "artifacts", cli.spool) as process:
        yield process


class Follower:
    """A program that follows; its output can be read as it comes."""

    def __init__(self, cli: Cli, *arguments: str) -> None:
        self.process = cli.start(*arguments)

    def read(self, size: int) -> bytes:
        """So many bytes, waited for."""
        assert isinstance(self.process.stdout, io.RawIOBase)
        seen = b""
        while len(seen) < size:
            data = self.process.stdout.read(size - len(seen))
            assert data, "the follower has ended"
            seen += data
        return seen

    def line(self) -> bytes:
        line = b""
        while not line.endswith(b"\n"):
            line += self.read(1)
        return line

    def rest(self) -> Ended:
        """What it prints until it ends by itself."""
        out, err = self.process.communicate(timeout=120)
        return Ended(self.process.returncode, out, err)


@contextmanager
def following(cli: Cli, *arguments: str) -> Generator[Follower]:
    follower = Follower(cli, *arguments)
    try:
        yield follower
    finally:
        follower.process.kill()
        with follower.process:
            follower.process.wait()


def test_tail_follows_from_before_the_first_byte_to_the_end(cli: Cli, writer: SpoolWriter) -> None:
    name = writer.do("start")
    with following(cli, "artifact", "tail", "-f", *MANY, name) as follower:
        writer.do("write stdout first")
        # Nobody flushes: a frame ends within a second by itself.
        assert follower.read(6) == b"first\n"
        writer.do("fill stdout 300000")
        assert follower.read(250_000) == digits(300_000)[:250_000]
        writer.do("write stdout last")
        writer.do("close stdout")
        writer.do("finish")
        ended = follower.rest()
    assert ended.stdout == digits(300_000)[250_000:] + b"last\n"
    assert (ended.code, ended.stderr) == (0, b"")


def test_a_slow_stream_is_followed_to_its_end_and_stored_in_one_frame(
    cli: Cli, writer: SpoolWriter
) -> None:
    name = writer.do("start")
    wanted = b""
    with following(cli, "artifact", "tail", "-f", *MANY, name) as follower:
        for number in range(30):
            writer.do(f"fill stdout {2_000 + number}")
            writer.do("flush stdout")
            wanted += digits(2_000 + number)
        assert follower.read(len(wanted) - 100) == wanted[:-100]
        writer.do("close stdout")
        writer.do("finish")
        assert follower.rest() == Ended(0, wanted[-100:], b"")
    with cli.open() as store:
        (artifact,) = store.reader.artifacts()
        index = FrameIndex.from_bytes(store.archive.sink.read(artifact.path, 0))
        assert (len(index), index.plain_size) == (1, len(wanted))
        assert artifact.stored_size == index.object_size
    cli.ok("verify")
    assert cli.ok("artifact", "cat", artifact.path).stdout == wanted
    assert left_in(cli.spool) == []


def test_both_streams_are_followed_and_stay_apart(cli: Cli, writer: SpoolWriter) -> None:
    name = writer.do("start")
    writer.do("write stdout out")
    writer.do("flush stdout")
    with following(cli, "artifact", "tail", "-f", name) as follower:
        assert follower.read(4) == b"out\n"
        writer.do("write stderr err")
        writer.do("write order 1 4 0")
        for role in ("order", "stderr", "stdout"):
            writer.do(f"close {role}")
        writer.do("finish")
        ended = follower.rest()
    assert (ended.code, ended.stdout, ended.stderr) == (0, b"", b"err\n")


def test_one_stream_ends_when_it_is_closed_although_the_tool_goes_on(
    cli: Cli, writer: SpoolWriter
) -> None:
    name = writer.do("start")
    writer.do("write stderr err")
    writer.do("write stdout out")
    writer.do("close stderr")
    ended = cli.program("artifact", "tail", "-f", "--stream", "stderr", name)
    assert (ended.code, ended.stdout, ended.stderr) == (0, b"err\n", b"")


def test_when_the_tool_is_killed_the_follower_says_so(cli: Cli, writer: SpoolWriter) -> None:
    name = writer.do("start")
    with following(cli, "artifact", "tail", "-f", name) as follower:
        writer.do("write stdout so far")
        assert follower.read(7) == b"so far\n"
        writer.kill()
        ended = follower.rest()
    assert (ended.code, ended.stdout) == (4, b"")
    assert ended.sentence == f"invocation {name} was interrupted"
    assert cli.ok("log", "--state", "interrupted", "--json").records[0]["id"] == name


@pytest.mark.parametrize("size", [100, 100_000])
def test_what_has_ended_is_printed_from_the_store(cli: Cli, size: int) -> None:
    with cli.open() as store:
        finished = run_command(store.open_session(), digits(size), b"warning\n")
    name = str(finished.invocation_id)
    ended = cli.ok("artifact", "tail", "-f", "-n", "3", name)
    assert ended.stdout == b"".join(digits(size).splitlines(keepends=True)[-3:])
    assert ended.stderr == b"warning\n"
    assert cli.ok("artifact", "tail", "-f", *MANY, "--stream", "stdout", "@last").stdout == digits(
        size
    )
    assert cli.ok("artifact", "tail", "-f", "-n", "0", name).stdout == b""


def test_a_failure_that_printed_nothing_ends_at_once(cli: Cli) -> None:
    with cli.open() as store:
        fail_tool(store.open_session())
    assert cli.ok("artifact", "tail", "-f", "@last").stdout == b""


@pytest.mark.parametrize("size", [100, 100_000])
def test_one_name_reads_an_output_in_every_way(cli: Cli, size: int) -> None:
    with cli.open() as store:
        call = ToolCall(tool_name="Bash", call_id="toolu/1")
        found = run_command(store.open_session(), digits(size), b"warning\n", call=call)
    lines = digits(size).splitlines(keepends=True)
    for name in ("@last", str(found.invocation_id), "toolu/1", "@last:Bash", "@last#1"):
        ended = cli.ok("tail", "-n", "2", name)
        assert (ended.stdout, ended.stderr) == (b"".join(lines[-2:]), b"warning\n")
    assert cli.ok("head", "-n", "2", "--stream", "stdout", "@last").stdout == b"".join(lines[:2])
    assert cli.ok("cat", "@last").stdout == digits(size)
    assert cli.ok("cat", "--stream", "stderr", "@last").stdout == b"warning\n"
    assert cli.ok("cat", "--lines", "2:3", "@last").stdout == b"".join(lines[1:3])
    assert cli.ok("grep", "-n", "^warn", "@last").stdout == b"stderr:1:warning\n"
    assert cli.ok("grep", "-c", ".", "@last").lines == [f"stdout:{len(lines)}", "stderr:1"]
    (match,) = cli.ok("grep", "--json", "arning", "@last").records
    assert (match["stream"], match["line"]) == ("stderr", "warning")
    assert cli.run("grep", "nothing", "@last").code == 3
    ended = cli.run("head", "--stream", "none", "@last")
    assert (ended.code, ended.sentence) == (
        3,
        f"invocation {found.invocation_id} has no stream 'none'; it has stdout, stderr",
    )


def test_an_output_is_read_while_it_comes(cli: Cli, writer: SpoolWriter) -> None:
    assert cli.run("tail", "@running").sentence == "the store has no running invocation"
    writer.do("start")
    for word in ("one", "two", "three"):
        writer.do(f"write stdout {word}")
    writer.do("flush stdout")
    for name in ("@running", "@running:Bash", "@last"):
        assert cli.ok("tail", "-n", "2", name).stdout == b"two\nthree\n"
        assert cli.ok("head", "-n", "1", name).stdout == b"one\n"
        assert cli.ok("grep", "t", name).stdout == b"two\nthree\n"
        assert cli.ok("cat", name).stdout == b"one\ntwo\nthree\n"
    ended = cli.run("tail", "@running:Read")
    assert (ended.code, ended.sentence) == (
        3,
        "the store has no running invocation of Read; nearest: `Bash`",
    )


def test_tail_says_that_a_running_call_has_no_output_yet(cli: Cli, writer: SpoolWriter) -> None:
    name = writer.do("start")
    ended = cli.run("tail", "@running")
    assert (ended.code, ended.stdout) == (4, b"")
    assert ended.sentence.startswith(f"invocation {name} runs, and has no output in ")
    writer.do("write stdout first")
    writer.do("flush stdout")
    assert cli.ok("tail", "@running").text == "first\n"


def test_a_name_of_a_call_and_of_an_artifact_is_ambiguous(cli: Cli) -> None:
    with cli.open() as store:
        session = store.open_session()
        run_command(session, digits(100_000))
        (artifact,) = store.reader.artifacts()
        digits_of = artifact.path.rpartition("/")[2].removesuffix(".zst")[:12]
        run_command(session, b"x", call=ToolCall(tool_name="Bash", call_id=digits_of))
    for verb in ("cat", "head", "tail"):
        ended = cli.run(verb, digits_of)
        assert ended.code == 2
        assert artifact.path in ended.message
    assert cli.ok("head", "-n", "1", artifact.path).stdout == digits(10)[:2]


def test_what_runs_with_another_spool_cannot_be_followed(cli: Cli, tmp_path: Path) -> None:
    with SpoolWriter(cli.database, cli.folder / "artifacts", tmp_path / "other") as writer:
        name = writer.do("start")
        there = Cli(cli.database, {"TOOLTRAIL_SPOOL": str(tmp_path / "other")})
        there.ok("repair")
        ended = cli.run("artifact", "tail", "-f", name)
        assert ended.code == 4
        assert ended.sentence == (
            f"invocation {name} has not ended, and has no output in {cli.spool}: "
            "it runs on another machine, or with another spool"
        )
        with following(there, "artifact", "tail", "-f", name) as follower:
            writer.do("write stdout here")
            assert follower.read(5) == b"here\n"


def test_log_tells_the_beginning_and_the_end_of_one_invocation(
    cli: Cli, writer: SpoolWriter
) -> None:
    name = writer.do("start")
    with following(cli, "log", "-f", "--utc", "--invocation", name) as follower:
        assert follower.line().split()[:4] == [b"ID", b"STARTED", b"TOOL", b"OUTCOME"]
        assert follower.line().split()[3:] == [b"Bash", b"running", b"{}"]
        writer.do("write stdout x")
        writer.do("close stdout")
        writer.do("finish")
        ended = follower.rest()
    assert ended.code == 0
    (line,) = ended.lines
    assert line.split()[0] == UUID(name).hex[-8:]
    assert line.split()[3:5] == ["Bash", "ok"]


def test_log_tells_of_all_that_begins_and_ends_until_it_is_stopped(cli: Cli) -> None:
    with cli.open() as store:
        session = store.open_session()
        run_command(session, b"before\n")
        with following(cli, "log", "-f", "--ndjson", "--fields", "id,state") as follower:
            seen = [json.loads(follower.line())]
            first = session.start(ToolCall(tool_name="Bash"))
            seen.append(json.loads(follower.line()))
            ended = run_command(session, b"x\n")
            seen.append(json.loads(follower.line()))
            if seen[-1]["state"] == "started":  # it was seen before its end
                seen[-1] = json.loads(follower.line())
            first.interrupt("stopped")
            seen.append(json.loads(follower.line()))
            follower.process.send_signal(signal.SIGINT)
            rest = follower.rest()
    # As Ctrl-C ends any program.
    assert (rest.code, rest.stdout) == (-signal.SIGINT, b"")
    assert [line["state"] for line in seen] == ["success", "started", "success", "interrupted"]
    assert [line["id"] for line in seen[1:]] == [
        str(first.id),
        str(ended.invocation_id),
        str(first.id),
    ]


def test_log_of_a_session_ends_with_the_session(cli: Cli) -> None:
    with cli.open() as store:
        session = store.open_session()
        running = session.start(ToolCall(tool_name="Bash"))
        with following(cli, "log", "-f", "--session", str(session.id), "--ndjson") as follower:
            follower.line()
            session.close()
            running.interrupt("stopped")
            ended = follower.rest()
    assert ended.code == 0
    assert [json.loads(line)["state"] for line in ended.lines] == ["interrupted"]
