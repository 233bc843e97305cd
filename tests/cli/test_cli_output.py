"""Numbers, tables, records and files as every command prints them."""

import csv
import fcntl
import io
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from random import Random
from unittest.mock import patch
from uuid import UUID

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cli import Cli, on_a_terminal
from tests.support.recording import run_command

from tooltrail.cli import _output
from tooltrail.cli._exit_codes import ExitCode
from tooltrail.cli._failures import code_of, run
from tooltrail.cli._standard import drop_unwritten
from tooltrail.cli._tables import print_table
from tooltrail.records import ToolCall, UnavailableError, errors


@dataclass(frozen=True)
class View:
    id: UUID
    at: datetime | None
    text: str
    count: int | None


ONE = View(UUID(int=1), datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), 'a "b", c', 7)
TWO = View(UUID(int=2), None, "line\nend \ud800 ✓", None)


def printed(action: Callable[[], object]) -> str:
    out = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with patch.object(sys, "stdout", out):
        action()
    buffer = out.buffer
    assert isinstance(buffer, io.BytesIO)
    return buffer.getvalue().decode()


def test_sizes_are_in_powers_of_a_thousand() -> None:
    for count, text in (
        (None, ""),
        (0, "0 B"),
        (999, "999 B"),
        (1000, "1 kB"),
        (1234, "1.23 kB"),
        (999_499, "999 kB"),
        (999_500, "1 MB"),
        (256 * 2**20, "268 MB"),
        (10**12, "1 TB"),
        (2**63 - 1, "9.22 EB"),
    ):
        assert _output.size_of(count) == text


@given(st.integers(0, 2**63 - 1))
def test_a_size_is_short_and_near_the_truth(count: int) -> None:
    number, unit = _output.size_of(count).split()
    exact = float(number) * 1000 ** ("B", "kB", "MB", "GB", "TB", "PB", "EB").index(unit)
    assert abs(exact - count) <= count / 100
    assert len(number) <= 4


def test_durations_are_in_the_unit_that_fits() -> None:
    for milliseconds, text in (
        (None, ""),
        (0, "0.00 s"),
        (312, "0.31 s"),
        (59_994, "59.99 s"),
        (59_995, "1 min 0 s"),
        (60_000, "1 min 0 s"),
        (252_000, "4 min 12 s"),
        (3_599_600, "1 h 0 min"),
        (90_061_000, "25 h 1 min"),
    ):
        assert _output.duration_of(milliseconds) == text


def test_one_thing_is_not_plural() -> None:
    assert [_output.counted(n, "artifact") for n in (0, 1, 2000)] == [
        "0 artifacts",
        "1 artifact",
        "2,000 artifacts",
    ]


def print_views(views: list[View], style: str, fields: str | None) -> bool:
    return _output.Listing(style, fields).print_records(
        views, _output.attributes("id", "at", "text", "count")
    )


def test_csv_has_a_header_also_when_there_is_nothing() -> None:
    text = printed(lambda: print_views([ONE, TWO], "csv", None))
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0] == ["schema_version", "id", "at", "text", "count"]
    assert rows[1][2:] == ["2026-01-02T03:04:05+00:00", 'a "b", c', "7"]
    assert rows[2][2:] == ["", "line\nend \\ud800 ✓", ""]
    assert printed(lambda: print_views([], "csv", "at,id")) == "at,id\n"
    everything = printed(lambda: print_views([], "csv", None))
    assert everything == "schema_version,id,at,text,count\n"


def test_control_characters_in_a_cell_do_nothing() -> None:
    wild = "a\x1b[2Kb\rc\nd\te\0f\x9bg\u202eh\ud800"
    text = printed(lambda: print_table(("A", "B"), [(wild, "[bold]:smile:")]))
    assert text.splitlines() == ["A                    B", "a�[2Kb�c�d�e�f�g�h�  [bold]:smile:"]


def test_invisible_letters_in_a_cell_are_replaced() -> None:
    text = printed(lambda: print_table(("A", "B"), [("\u115fx\u3164\uffa0", "y")]))
    assert text.splitlines() == ["A     B", "�x��  y"]


def test_wide_characters_take_the_room_that_they_take() -> None:
    rows = [("漢字", "1", "a"), ("x", "22", "b")]
    text = printed(lambda: print_table(("N", "C", "T"), rows, right=("C",)))
    assert text == "N      C  T\n漢字   1  a\nx     22  b\n"


def test_a_table_off_a_terminal_has_cells_of_a_thousand_characters() -> None:
    for count, shown in ((1_000, "x" * 1_000), (1_001, f"{'x' * 1_000}…")):
        row = ("1", "x" * count)
        text = printed(partial(print_table, ("N", "LONG"), [row], right=("N",)))
        assert text.splitlines()[1] == f"1  {shown}"


def test_a_table_fits_its_terminal_and_keeps_short_columns(cli: Cli) -> None:
    day = datetime.now().astimezone().date()
    with cli.open() as store, store.open_session() as session:
        run_command(session, call=ToolCall(tool_name="Bash", title="long " * 40))
        path = f"/{'deep/' * 40}file.py"
        run_command(session, exit_status=3, call=ToolCall.of("shell", {"path": path}))
    for columns in (60, 80, 160):
        header, first, last = on_a_terminal(cli, "log", columns=columns, NO_COLOR="1").splitlines()
        assert header.split() == ["ID", "STARTED", "TOOL", "OUTCOME", "TIME", "OUTPUT", "CALL"]
        assert len(first) == len(last) == columns
        assert last.endswith("…")
        assert "  long" in last
        assert first.endswith("file.py")  # the end of a path tells more
        assert "  …" in first
        assert re.search(r"  exit 3 +\d+\.\d\d s", first)
    if datetime.now().astimezone().date() == day:
        assert re.match(r"\w{8}  \d\d:\d\d:\d\d  Bash", last)  # started today
    for columns, left in ((40, ["ID", "TOOL", "OUTCOME", "CALL"]), (50, ["ID", "STARTED", "TOOL"])):
        lines = on_a_terminal(cli, "log", columns=columns, NO_COLOR="1").splitlines()
        assert lines[0].split()[: len(left)] == left
        assert max(map(len, lines)) == columns


@pytest.mark.parametrize("columns", [40, 60])
def test_lists_of_retries_and_sessions_fit_a_narrow_terminal(cli: Cli, columns: int) -> None:
    for status in (0, 1):
        with cli.open() as store, store.open_session(title="long " * 40, agent="a" * 40) as session:
            for _ in range(2):
                run_command(
                    session, exit_status=status, call=ToolCall(tool_name="t" * 40, title="x" * 90)
                )
    for command in ("retries", "session ls"):
        lines = on_a_terminal(cli, *command.split(), columns=columns, NO_COLOR="1").splitlines()
        assert lines[0].startswith("SESSION ")
        assert max(map(len, lines)) <= columns


def test_an_outcome_has_a_colour_on_a_terminal_that_wants_it(cli: Cli) -> None:
    with cli.open() as store, store.open_session() as session:
        run_command(session, exit_status=3)
        run_command(session)
    seen = on_a_terminal(cli, "log", columns=120)
    assert re.findall(r"\x1b\[(\d+)m(\w+)", seen) == [("32", "ok"), ("31", "exit")]
    assert "\x1b" not in on_a_terminal(cli, "log", columns=120, NO_COLOR="1")
    assert "\x1b" not in on_a_terminal(cli, "log", columns=120, TERM="dumb")
    assert "\x1b" not in cli.program("log").text


def test_long_text_on_a_terminal_goes_through_the_pager(cli: Cli) -> None:
    with cli.open() as store, store.open_session() as session:
        for _ in range(3):
            run_command(session)
    for arguments in (["log"], ["session", "ls"], ["show", "@last"], ["transcript", "@last"]):
        seen = on_a_terminal(cli, *arguments, columns=200, PAGER="sed 's/^/| /'").splitlines()
        assert seen
        assert all(line.startswith("| ") for line in seen)
    first, message = on_a_terminal(
        cli, "log", "-n", "2", columns=200, PAGER="head -n 1"
    ).splitlines()
    assert first.startswith("ID ")  # who leaves the pager early sees no error
    assert message.startswith("2 of 3;")
    plain = on_a_terminal(cli, "log", columns=200, PAGER="sed d", TOOLTRAIL_PAGER="cat")
    assert len(plain.splitlines()) == 4


def test_a_file_is_written_whole_and_keeps_its_rights(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    _output.write_file(path, ["one\r\n", "two \ud800"])
    assert path.read_bytes() == b"one\r\ntwo \\ud800"
    path.chmod(0o640)
    _output.write_file(path, ["three"])
    assert path.read_text() == "three"
    assert path.stat().st_mode & 0o777 == 0o640
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_cannot_be_finished_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("before")

    def pieces() -> list[str]:
        raise UnavailableError("no more")

    with pytest.raises(UnavailableError, match="no more"):
        _output.write_file(path, (piece for piece in ["begin", *pieces()]))
    assert path.read_text() == "before"
    assert list(tmp_path.iterdir()) == [path]


def test_a_link_stays_a_link_and_a_device_stays_a_device(tmp_path: Path) -> None:
    target, link = tmp_path / "target", tmp_path / "link"
    target.write_text("before")
    link.symlink_to(target)
    _output.write_file(link, ["after"])
    assert link.is_symlink()
    assert target.read_text() == "after"
    _output.write_file(Path(os.devnull), ["gone"])
    assert Path(os.devnull).is_char_device()
    with pytest.raises(UnavailableError, match=r"^/dev/full cannot be written: No space left"):
        _output.write_file(Path("/dev/full"), ["x"])
    with pytest.raises(UnavailableError, match=r"nowhere/x cannot be written: No such file"):
        _output.write_file(tmp_path / "nowhere" / "x", ["x"])


ERROR_CODES = {
    errors.NotFoundError("x"): ExitCode.NOT_FOUND,
    errors.AmbiguousNameError("x", ["a", "b"]): ExitCode.USAGE,
    errors.StoreNotFoundError("x"): ExitCode.UNAVAILABLE,
    errors.InvalidRecordError("x"): ExitCode.USAGE,
    errors.PathEscapeError("x"): ExitCode.USAGE,
    errors.StoreExistsError("x"): ExitCode.USAGE,
    errors.SessionClosedError("x"): ExitCode.USAGE,
    errors.InvocationFinishedError("x"): ExitCode.USAGE,
    errors.DamageError("x", path="p"): ExitCode.DAMAGED,
    errors.DigestMismatchError("x", path="p"): ExitCode.DAMAGED,
    errors.IndexMismatchError("x", ["y"]): ExitCode.DAMAGED,
    errors.MissingArtifactError("x", path="p"): ExitCode.INCOMPLETE,
    errors.SchemaMismatchError("x", found=None, expected="1"): ExitCode.UNAVAILABLE,
    errors.UnavailableError("x"): ExitCode.UNAVAILABLE,
    errors.AccessRefusedError("x"): ExitCode.UNAVAILABLE,
    errors.DiskFullError("x"): ExitCode.UNAVAILABLE,
    errors.TooltrailError("x"): ExitCode.USAGE,
}


def leaves(kind: type[Exception]) -> set[type[Exception]]:
    return {kind}.union(*map(leaves, kind.__subclasses__()))


def test_every_error_has_its_exit_code() -> None:
    public = {kind for kind in leaves(errors.TooltrailError) if kind.__module__ == errors.__name__}
    assert {type(error) for error in ERROR_CODES} == public
    assert {type(e).__name__: code_of(e) for e in ERROR_CODES} == {
        type(e).__name__: code for e, code in ERROR_CODES.items()
    }


def ended_by(error: BaseException) -> tuple[int, str]:
    """The exit code and the message of a command that an exception ends."""

    @click.command()
    def command() -> None:
        raise error

    err = io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True)
    with patch.object(sys, "argv", ["tooltrail"]), patch.object(sys, "stderr", err):
        code = run(command)
    buffer = err.buffer
    assert isinstance(buffer, io.BytesIO)
    return code, buffer.getvalue().decode()


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (errors.NotFoundError("nothing there"), 3, "tooltrail: nothing there\n"),
        (OSError(13, "Permission denied", "/x"), 5, "tooltrail: /x: Permission denied\n"),
        (OSError("odd"), 5, "tooltrail: odd\n"),
        (BrokenPipeError(32, "Broken pipe"), 141, ""),
        (KeyboardInterrupt(), 130, ""),
        (click.Abort(), 130, ""),
        (click.exceptions.Exit(7), 7, ""),
        (click.UsageError("wrong"), 2, "Error: wrong\n"),
    ],
)
def test_what_ends_a_command_becomes_a_code_and_a_sentence(
    error: BaseException, code: int, message: str
) -> None:
    ended = ended_by(error)
    assert ended[0] == code
    assert ended[1].endswith(message)
    assert bool(ended[1]) == bool(message)


def test_a_fault_of_the_program_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        ended_by(ZeroDivisionError())


def test_an_integer_that_a_command_returns_is_its_exit_code() -> None:
    def code_after(returned: object) -> int:
        with patch.object(sys, "argv", ["tooltrail"]):
            return run(click.Command("c", callback=lambda: returned))

    assert [code_after(found) for found in (ExitCode.DAMAGED, None, "text")] == [1, 0, 0]


def test_what_no_reader_took_is_dropped_before_python_flushes_again() -> None:
    read_end, write_end = os.pipe()
    os.close(read_end)
    with os.fdopen(write_end, "w") as pipe:
        pipe.write("nobody reads this")
        with patch.object(sys, "stdout", pipe):
            drop_unwritten()
        # The descriptor is the null device now: what a closed pipe refuses, it takes whole.
        assert os.write(pipe.fileno(), b"goes nowhere") == len(b"goes nowhere")


def test_ctrl_c_ends_a_command_as_it_ends_any_other(cli: Cli) -> None:
    cli.ok("session", "open")
    cli.ok("log")
    assert cli.exec("--", "true").code == 0
    with (cli.spool / "journal" / "ingest.lock").open() as lock:
        # A reading command waits for the lock of the other ingester.
        fcntl.flock(lock, fcntl.LOCK_EX)
        process = cli.start("log")
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(10)
        process.send_signal(signal.SIGINT)
        with process:
            out, err = process.communicate(timeout=60)
            assert (out, err.split(b":")[:2]) in (
                (b"", [b""]),
                (b"", [b"tooltrail", b" ingesting facts"]),
            )
    assert process.returncode == -signal.SIGINT


def test_a_command_in_the_background_goes_on_ignoring_ctrl_c(cli: Cli) -> None:
    line = 'trap "" INT; kill -INT $$; exec "$0" -m tooltrail.cli exec -- sh -c "kill -INT $$"'
    done = subprocess.run(
        ["sh", "-c", line, sys.executable], env=cli.full_environment, check=False, timeout=60
    )
    assert done.returncode == 0


def test_no_text_in_csv_is_a_formula(cli: Cli) -> None:
    for formula in ("=1+1", "+1", "-1", "@SUM(A1)", "\t=1"):
        cli.ok("session", "open", "--title", formula)
        table = cli.ok("session", "ls", "--csv", "--fields", "invocation_count,title").text
        assert [*csv.reader(table.splitlines())][1] == ["0", f"'{formula}"]


def test_lines_that_a_command_printed_on_a_terminal_end_as_other_lines(cli: Cli) -> None:
    with cli.open() as store, store.open_session() as session:
        run_command(session, b"before\r\nok\rok\r\nafter\r\n")
    seen = on_a_terminal(cli, "cat", "@last", columns=80)
    assert seen == "before\nok\ufffdok\nafter\n"
    with cli.open() as store, store.open_session() as session:
        run_command(session, b"x" * ((1 << 20) - 1) + b"\r\nafter\n")
    assert "\ufffd" not in on_a_terminal(cli, "cat", "@last", columns=80)
    found = cli.ok("search", "ok", "-C", "1").text
    assert "    before\n    ok\ufffdok\n    after\n" in found


class Terminal(io.BytesIO):
    def isatty(self) -> bool:
        return True

    def copy(self, blocks: Iterable[bytes]) -> None:
        # The line of progress remembers whether a terminal ends with a newline.
        with patch.object(_output, "PROGRESS_LINE", _output.ProgressLine()):
            _output.copy_blocks(blocks, self)


@given(st.lists(st.sampled_from([*"aé€😀\r\n", "\r\n", "\x1b"]).map(str.encode)), st.data())
def test_blocks_are_shown_on_a_terminal_as_one_text(
    words: list[bytes], data: st.DataObject
) -> None:
    text = b"".join(words)
    cut = data.draw(st.integers(0, len(text)))
    begin, end = sorted(data.draw(st.tuples(*[st.integers(0, cut)] * 2)))
    terminal = Terminal()
    terminal.copy([text[:begin], text[begin:end], text[end:cut]])
    shown = _output.on_terminal(text[:cut].decode("utf-8", "backslashreplace"))
    assert terminal.getvalue().decode() == shown


def test_what_came_before_a_failure_is_shown_on_a_terminal() -> None:
    def blocks() -> Iterator[bytes]:
        yield b"abc\xe2\x82"
        raise OSError("gone")

    terminal = Terminal()
    with pytest.raises(OSError, match="gone"):
        terminal.copy(blocks())
    assert terminal.getvalue() == rb"abc\xe2\x82"


def test_what_two_blocks_of_a_running_stream_share_is_shown_as_one_text(cli: Cli) -> None:
    text = "".join(Random(1).choices(["€", "😀", "\r\n"], k=400_000))
    with (
        cli.open() as store,
        store.open_session() as session,
        session.start(ToolCall(tool_name="Bash")).capture("stdout") as stdout,
    ):
        stdout.write(text.encode() + b"\xe2")
        stdout.flush()
        seen = on_a_terminal(cli, "tail", "-n", "1000000", "@running", columns=80)
    assert seen.endswith("\\xe2")
    assert seen.removesuffix("\\xe2") == text.replace("\r\n", "\n")


def test_recorded_bytes_drive_no_terminal_unless_raw_is_given(cli: Cli) -> None:
    wild = b"\x1b]52;c;aGk=\x07 \xe2\x80\xae\tok \xff\n"
    with cli.open() as store, store.open_session() as session:
        run_command(session, wild)
    for arguments in (
        *(("cat", "@last"), ("head", "@last"), ("tail", "@last")),
        ("grep", "--stream", "stdout", "ok", "@last"),
        *(("show", "--stream", "stdout"), ("show", "--surface", "complete")),
    ):
        seen = on_a_terminal(cli, *arguments, columns=80)
        assert seen == "\ufffd]52;c;aGk=\ufffd \ufffd\tok \\xff\n"
        assert cli.ok(*arguments).stdout == wild
    for style in ("--json", "--ndjson", "--csv"):
        seen = on_a_terminal(cli, "search", "ok", style, columns=80)
        assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202e]", seen)
        assert ("\\u202e" in seen) == (style != "--csv")
    raw = on_a_terminal(cli, "show", "--raw", "--stream", "stdout", columns=80)
    assert raw.encode("utf-8", "surrogateescape") == wild
