"""Man pages that say what `--help` says: `python -m tests.support.man_pages FOLDER`."""

import re
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path

import click
from tests.support.cli_reference import commands

from tooltrail.cli._app import app
from tooltrail.cli._version import VERSION

_UNWRAPPED = "\b\n"
"""What begins a paragraph that click does not wrap."""


class ManFormatter(click.HelpFormatter):
    """Writes the parts of a help text as roff."""

    def write_usage(self, prog: str, args: str = "", prefix: str | None = None) -> None:
        del prefix
        self.write(f".SH SYNOPSIS\n\\fB{roff(prog)}\\fR {roff(args)}\n.SH DESCRIPTION\n")

    def write_text(self, text: str) -> None:
        for paragraph in re.split(r"\n\s*\n", text):
            if paragraph.startswith(_UNWRAPPED):
                lines = paragraph.removeprefix(_UNWRAPPED)
                self.write(f".PP\n.nf\n{roff(lines)}\n.fi\n")
            else:
                self.write(f".PP\n{roff(' '.join(paragraph.split()))}\n")

    def write_dl(
        self, rows: Iterable[tuple[str, str]], col_max: int = 30, col_spacing: int = 2
    ) -> None:
        del col_max, col_spacing
        self.write("".join(f".TP\n\\fB{roff(a.rstrip())}\\fR\n{roff(b)}\n" for a, b in rows))

    def write_paragraph(self) -> None:
        """Write nothing: `write_text` separates paragraphs."""

    @contextmanager
    def section(self, name: str) -> Generator[None]:
        self.write(f".SH {roff(name.upper())}\n")
        yield


def roff(text: str) -> str:
    """Text that roff prints as it stands: no escape, and no line that begins a request."""
    escaped = text.replace("\\", r"\e").replace("-", r"\-")
    return re.sub(r"^(?=[.'])", r"\\&", escaped, flags=re.MULTILINE)


def page(path: str, command: click.Command) -> str:
    """The man page of a command."""
    name = path.replace(" ", "-")
    about = command.get_short_help_str(limit=200).rstrip(".")
    formatter = ManFormatter()
    command.format_help(click.Context(command, info_name=path, **app.context_settings), formatter)
    title = f'.TH {name.upper()} 1 "" "tooltrail {VERSION}"\n.SH NAME\n{name} \\- {roff(about)}\n'
    return title + formatter.getvalue()


def write_pages(folder: Path) -> None:
    """Write the page of each command into a folder, which `man` finds if its name is `man1`."""
    folder.mkdir(parents=True, exist_ok=True)
    each = ((path, command) for path, command, _ in commands())
    for path, command in (("tooltrail", app), *each):
        (folder / f"{path.replace(' ', '-')}.1").write_text(page(path, command), encoding="utf-8")


if __name__ == "__main__":
    write_pages(Path(sys.argv[1]))
