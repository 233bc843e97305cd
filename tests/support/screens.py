r"""What a person sees of the made-up project of the audit guide, on terminals of two widths.

`python -m tests.support.screens` writes the golden files in tests/cli/screens; a test compares
them. Look at a changed screen as a person would before you commit it. In the files, `\e` is the
control character escape.
"""

import os
import re
import shlex
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

from tests.support.audit_guide import record_story
from tests.support.cli import Cli, on_a_terminal

WIDTHS = (80, 160)
COMMANDS = (
    *("log", "show toolu_04", "search login", "stats --by tool", "diff toolu_02 toolu_03"),
    *("status", "--help", "log --help"),
)
_FOLDER = Path(__file__).parents[1] / "cli" / "screens"

_IN_2026 = """
import datetime
from tooltrail.cli import _times
class At(datetime.datetime):
    @classmethod
    def now(cls, tz=None):
        return datetime.datetime(2026, 11, 1, tzinfo=datetime.UTC).astimezone(tz)
_times.datetime = At
from tooltrail.cli.__main__ import main
main()
"""
"""The program on 1 November 2026. A list shows the year only of times of another year."""

_CHANGING: dict[str, str | Callable[[re.Match[str]], str]] = {
    r"SQLite [\d.]+, revision \d+": "SQLite 3.0.0, revision 0000",
    r"(?m)^(created +).*": r"\g<1>2026-03-25 02:18:00",
    r"\d+ rules": "1 rules",
    r"(?m)^(?:on disk|index) .*": lambda line: re.sub(r"[\d.]+ (?=[kM]?B)", "1 ", line[0]),
}
"""Parts of screens that differ from run to run, and what the golden files have instead."""


def golden_file(width: int) -> Path:
    """The file with the screens of this width."""
    return _FOLDER / f"{width}.txt"


def screen(cli: Cli, command: str, width: int) -> str:
    """What a command shows on a terminal, after its command line."""
    code = int(command.startswith("diff"))
    arguments = shlex.split(command)
    program = (sys.executable, "-c", _IN_2026)
    text = on_a_terminal(
        cli, *arguments, columns=width, code=code, program=program, TZ="UTC", NO_COLOR=""
    )
    text = text.replace(str(Path(cli.database).parent), "/home/you").replace("\x1b", r"\e")
    for pattern, instead in _CHANGING.items():
        text = re.sub(pattern, instead, text)
    return f"$ tooltrail {command}\n{text}\n"


def main() -> None:
    """Write the golden files."""
    with TemporaryDirectory() as folder, patch.dict(os.environ, {"TZ": "UTC"}):
        cli = Cli(f"{folder}/trail.db")
        record_story(cli)
        for width in WIDTHS:
            golden_file(width).write_text("".join(screen(cli, one, width) for one in COMMANDS))


if __name__ == "__main__":
    main()
