"""What the program says of itself."""

import re
import subprocess
import sys
from importlib.metadata import version

import click
from tests.support.cli import PROGRAM, Cli, clean_environment, without_coverage
from tests.support.cli_reference import DOCUMENT, commands

from tooltrail.cli import _export_options, _transcribing
from tooltrail.cli._exit_codes import EXEC_MEANINGS, MEANINGS, ExitCode
from tooltrail.transcripts import FORMATS
from tooltrail.wire import FORMAT_MODULES

HEAVY = ("sqlalchemy", "alembic", "pydantic", "fsspec", "zstandard", "rich")
PATHS = [path for path, _, _ in commands()]
QUIET = without_coverage(clean_environment())


def test_every_command_has_a_help_text_and_helps_for_every_option(nowhere: Cli) -> None:
    for path, command, _ in commands():
        assert command.help
        assert command.get_short_help_str()
        for parameter in command.params:
            assert not isinstance(parameter, click.Option) or parameter.help, parameter.name
        *group, name = path.split()[1:]
        for flag in ("--help", "-h"):
            ended = nowhere.ok(*group, name, flag)
            assert ended.text.startswith(f"Usage: {path} ")
            assert ended.message == ""
        listed = nowhere.ok(*group, "--help").text
        assert re.search(rf"^  {name}  +\S", listed, re.MULTILINE), path


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


LOADED = """
import sys
from contextlib import redirect_stdout
from io import StringIO
from tooltrail.cli.__main__ import main
for line in {lines!r}:
    sys.argv = ["tooltrail", *line.split()]
    with redirect_stdout(StringIO()) as printed:
        try:
            main()
        except SystemExit as end:
            assert not end.code, (line, end.code)
    assert printed.getvalue().startswith(("tooltrail 0", "Usage: tooltrail")), line
print(*{{one.partition(".")[0] for one in sys.modules}})
"""


def test_version_and_help_import_nothing_heavy() -> None:
    helps = (f"{path.removeprefix('tooltrail ')} --help" for path in PATHS)
    lines = ["--version", "--help", *helps]
    command = [sys.executable, "-c", LOADED.format(lines=lines)]
    done = subprocess.run(command, capture_output=True, check=True, text=True, env=QUIET)
    loaded = set(done.stdout.split())
    assert "click" in loaded
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
