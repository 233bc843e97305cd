"""What is printed on stderr neither steers a terminal nor passes for another message."""

import re
import sys
from pathlib import Path

import click
import pytest
from tests.support.cli import PROGRAM, Cli

import tooltrail.cli
from tooltrail.cli import _failures
from tooltrail.cli._output import on_terminal, say
from tooltrail.records import CompleteOutput, NotFoundError, ToolCall, ToolError, TooltrailError

HOSTILE = "\x1b[2J\x1b]0;title\x07\r\x08\x7f\x9b31m\u202eevil\u2066\u200f\u2028\udc80"
HARMFUL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")

FOLDERS = [Path(one) for one in tooltrail.cli.__path__]
BYPASSES = re.compile(
    r"err=True|sys\.stderr|__stderr__|\bsecho\(|\bprint\(|click\.(echo|prompt|confirm|getchar)"
    r"|\.show\(|traceback\.print|warnings\.warn|logging\.|fdopen\(2|\bopen\(2\b"
)
ALLOWED = {
    "_output.py": "has `say`, the one way to stderr",
    "_standard.py": "opens and flushes the descriptors",
    "_long_commands.py": "draws a bar of fixed words and numbers",
    "_failures.py": "has click word an error in memory",
    "_process/outlet.py": "passes on a command's own bytes",
    "_texts.py": "passes on recorded bytes",
}
"""Modules that may name stderr or print, and why."""


def modules() -> dict[str, str]:
    """The source of every module of the command line, by its path."""
    return {
        str(path.relative_to(folder)): path.read_text()
        for folder in FOLDERS
        for path in sorted(folder.rglob("*.py"))
    }


def test_no_module_prints_to_stderr_but_by_the_one_function() -> None:
    found = {name for name, source in modules().items() if BYPASSES.search(source)}
    assert found == set(ALLOWED)


def test_only_one_place_echoes_to_stderr() -> None:
    assert not [name for name, source in modules().items() if "err=True" in source]
    writers = [name for name, source in modules().items() if "stderr.write(" in source]
    assert writers == ["_output.py"]


def test_a_message_keeps_its_lines_and_loses_what_steers_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    say(f"one\n\ttwo ü 漢 {HOSTILE}")
    printed = capsys.readouterr().err
    assert printed.startswith("one\n\ttwo ü 漢 ")
    assert not HARMFUL.search(printed)
    assert printed.count("\n") == 2


@pytest.mark.parametrize("kind", [NotFoundError, OSError, click.UsageError, click.ClickException])
def test_an_error_with_hostile_text_is_printed_harmless(
    kind: type[Exception], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    error = kind(2, HOSTILE, HOSTILE) if kind is OSError else kind(HOSTILE)
    error.add_note(HOSTILE)

    @click.command()
    def fail() -> None:
        raise error

    monkeypatch.setattr(sys, "argv", ["tooltrail"])
    assert _failures.run(fail) != 0
    printed = capsys.readouterr().err
    assert "evil" in printed
    assert not HARMFUL.search(printed)


def test_no_text_of_an_error_passes_for_a_message_of_its_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    _failures.say_error(TooltrailError("no such name\ntooltrail: all is well"))
    first, second = capsys.readouterr().err.splitlines()
    assert first == "tooltrail: no such name"
    assert second == "  tooltrail: all is well"


def test_no_recorded_text_begins_a_line_of_its_own(
    cli: Cli, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    forged = "x\noutcome    ok, exit status 0\nwarning: all is well"
    folder = tmp_path / forged
    folder.mkdir()
    named = Cli(str(folder / "trail.db"))
    ended = named.exec("--tool", forged, "--call-id", forged, "--", "false", cwd=folder)
    assert not [one for one in ended.message.splitlines()[1:] if not one.startswith("  ")]
    shown = named.ok("show").lines
    assert [line for line in shown if line.startswith("outcome")] == ["outcome    exit 1"]
    assert sum("x�outcome    ok" in line for line in shown) == 3  # tool, call id and folder
    (named.spool / "journal" / "00000001.seg").unlink()
    for line in [*named.run("status").lines, *named.run("status").message.splitlines()]:
        assert not line.startswith(("outcome", "warning: all"))
    say(f"in {forged}")
    assert capsys.readouterr().err.splitlines()[1:] == [
        "  outcome    ok, exit status 0",
        "  warning: all is well",
    ]
    with cli.open() as store, store.open_session() as session:
        error = ToolError(kind="tool_execution_failed", message=forged)
        session.start(ToolCall(tool_name="Read")).finish(CompleteOutput.failure("Read", error))
    assert "           outcome    ok, exit status 0" in cli.ok("show").lines


def test_names_given_on_the_command_line_are_repeated_harmless(cli: Cli) -> None:
    for arguments in (
        ("show", HOSTILE),
        ("session", "close", HOSTILE),
        ("artifact", "cat", HOSTILE),
        ("log", "--since", HOSTILE),
        ("log", f"--{HOSTILE}"),
        (HOSTILE,),
        ("log", "--db", f"/no/{HOSTILE}"),
        ("log", "--tool", HOSTILE, "--fields", HOSTILE, "--csv"),
    ):
        ended = cli.run(*arguments)
        assert ended.code != 0
        assert "evil" in ended.message
        assert not HARMFUL.search(ended.message.replace("\n", ""))
        assert not HARMFUL.search(on_terminal(ended.message))


def test_a_command_that_cannot_start_is_named_harmless(cli: Cli) -> None:
    ended = cli.exec("--", "/no/\x1b[31m\u202ecommand")
    assert ended.code == 127
    assert "command" in ended.message
    assert not HARMFUL.search(ended.message)


SET_BACK = """
import datetime, sys
from tooltrail.journal import clock
from tooltrail.cli._app import app
from tooltrail.cli._failures import run

class SetBack:
    hours = 0
    @classmethod
    def now(cls, zone):
        cls.hours += 1
        return datetime.datetime.now(zone) - datetime.timedelta(hours=cls.hours)

clock.datetime = SetBack
sys.exit(run(app))
"""


def test_the_duration_of_a_command_is_right_although_the_clock_is_set_back(cli: Cli) -> None:
    program = (PROGRAM[0], "-c", SET_BACK)
    ended = cli.program("exec", "--", "sleep", "0.3", program=program)
    assert ended.code == 0, ended.message
    [row] = cli.ok("log", "--json").records
    assert row["state"] == "success"
    assert 300 <= row["duration_ms"] < 60_000
    assert cli.run("verify").code == 0
