"""What the program says of itself."""

import re
import subprocess
import sys
from importlib.metadata import version

import click
import pytest
from tests.support.cli import PROGRAM, Cli, clean_environment
from tests.support.cli_reference import DOCUMENT, commands

from tooltrail.cli import _export_options, _transcribing
from tooltrail.cli._exit_codes import EXEC_MEANINGS, MEANINGS, ExitCode
from tooltrail.transcripts import FORMATS
from tooltrail.wire import FORMAT_MODULES

HEAVY = ("sqlalchemy", "alembic", "pydantic", "fsspec", "zstandard", "rich")
PATHS = [path for path, _, _ in commands()]
GROUPS = ("artifact", "db", "session")
WANTED = {
    "init",
    "status",
    "exec",
    "log",
    "show",
    "transcript",
    "session open",
    "session close",
    "session ls",
    "db current",
    "db upgrade",
    "db check",
    "db backup",
    *(f"artifact {name}" for name in ("ls", "cat", "stat", "head", "tail", "verify")),
    *GROUPS,
}


def test_every_command_of_the_main_job_is_there() -> None:
    assert {path.removeprefix("tooltrail ") for path in PATHS} >= WANTED


@pytest.mark.parametrize("path", PATHS)
def test_every_command_has_a_help_text_and_helps_for_every_option(path: str, nowhere: Cli) -> None:
    (command,) = [command for name, command, _ in commands() if name == path]
    assert command.help
    assert command.get_short_help_str()
    for parameter in command.params:
        assert not isinstance(parameter, click.Option) or parameter.help, parameter.name
    for flag in ("--help", "-h"):
        ended = nowhere.ok(*path.split()[1:], flag)
        assert ended.text.startswith(f"Usage: {path} ")
        assert ended.message == ""


@pytest.mark.parametrize("path", PATHS)
def test_every_command_is_listed_by_its_group(path: str, nowhere: Cli) -> None:
    *group, name = path.split()[1:]
    listed = nowhere.ok(*group, "--help").text
    assert re.search(rf"^  {name}  +\S", listed, re.MULTILINE)


@pytest.mark.parametrize("path", PATHS)
def test_every_command_has_an_entry_in_the_docs(path: str) -> None:
    lines = DOCUMENT.read_text().splitlines()
    assert f"## {path}" in lines


def test_help_prints_the_table_of_exit_codes(nowhere: Cli) -> None:
    printed = nowhere.ok("--help").text.partition("Exit codes:\n")[2]
    table = re.findall(r"^ +(\d+)  (.+)$", printed, re.MULTILINE)
    assert [(int(code), meaning) for code, meaning in table] == [
        (code.value, MEANINGS[code]) for code in ExitCode
    ]
    assert printed.rstrip("\n").endswith(EXEC_MEANINGS)


def test_the_docs_list_every_exit_code() -> None:
    table = DOCUMENT.read_text().partition("## Exit codes")[2].partition("## ")[0]
    documented = [int(code) for code in re.findall(r"^\| (\d+) \|", table, re.MULTILINE)]
    assert documented == [code.value for code in ExitCode]


def test_without_a_command_it_prints_its_help_and_exits_with_2(nowhere: Cli) -> None:
    ended = nowhere.run()
    assert ended.code == ExitCode.USAGE
    assert ended.stdout == b""
    assert ended.message.startswith("Usage: tooltrail ")


def test_an_unknown_command_is_wrong_usage(nowhere: Cli) -> None:
    ended = nowhere.run("lgo")
    assert ended.code == ExitCode.USAGE
    assert ended.usage_error == "No such command 'lgo'. Did you mean 'log'?"


def modules_after(*arguments: str) -> set[str]:
    """The top-level modules that the program has imported when it ends."""
    code = (
        "import sys, runpy, atexit\n"
        "atexit.register(lambda: print(*{m.partition('.')[0] for m in sys.modules}, "
        "file=sys.stderr))\n"
        f"sys.argv = ['tooltrail', *{list(arguments)!r}]\n"
        "runpy.run_module('tooltrail.cli', run_name='__main__')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        env=clean_environment(),
    )
    assert done.stdout.startswith(("tooltrail 0", "Usage: tooltrail"))
    return set(done.stderr.split())


@pytest.mark.parametrize(
    "line",
    ["--version", "--help", *(f"{path.removeprefix('tooltrail ')} --help" for path in PATHS)],
)
def test_version_and_help_import_nothing_heavy(line: str) -> None:
    loaded = modules_after(*line.split())
    assert ("click" in loaded) is (line != "--version")
    assert loaded.isdisjoint(HEAVY)


def test_what_is_known_before_the_libraries_are_imported_is_what_they_know() -> None:
    assert set(_transcribing.STYLES) == set(FORMATS)
    assert set(_export_options.PROVIDERS) == set(FORMAT_MODULES) - {"mcp"}


def test_the_version_is_that_of_the_package(nowhere: Cli) -> None:
    assert nowhere.ok("--version").text == f"tooltrail {version('tooltrail')}\n"


def test_the_console_script_and_the_module_are_the_same_program() -> None:
    script = re.sub(r"python[\d.]*$", "tooltrail", sys.executable)
    outputs = {
        subprocess.run([*argv, "--version"], capture_output=True, check=True).stdout
        for argv in ([script], PROGRAM)
    }
    assert len(outputs) == 1


def test_a_shell_gets_its_completion_script(nowhere: Cli) -> None:
    nowhere.environment["_TOOLTRAIL_COMPLETE"] = "bash_source"
    ended = nowhere.program()
    assert ended.code == 0
    assert b"complete" in ended.stdout
    nowhere.environment.update(
        {"_TOOLTRAIL_COMPLETE": "bash_complete", "COMP_WORDS": "tooltrail art", "COMP_CWORD": "1"}
    )
    assert nowhere.program().stdout == b"plain,artifact\n"
