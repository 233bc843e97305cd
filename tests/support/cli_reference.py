"""The reference part of docs/cli.md, generated from the commands.

`python -m tests.support.cli_reference` writes the file; a test compares the file.
"""

from collections.abc import Iterator
from pathlib import Path

import click

from tooltrail.cli._app import app

DOCUMENT = Path(__file__).parents[2] / "docs" / "cli.md"
MARK = "<!-- reference: written by tests/support/cli_reference.py, not by hand -->\n"
_WIDTH = 96


def commands(
    command: click.Command = app, path: tuple[str, ...] = ("tooltrail",)
) -> Iterator[tuple[str, click.Command, click.Context]]:
    """Every command below the root, with its full path."""
    context = click.Context(command, info_name=path[-1], **app.context_settings)
    if len(path) > 1:
        yield " ".join(path), command, context
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            child = command.get_command(context, name)
            assert child is not None
            yield from commands(child, (*path, name))


def reference() -> str:
    """The reference: one section for each command, with its help."""
    return "".join(
        f"\n## {path}\n\n```text\n{_help(path, command)}\n```\n" for path, command, _ in commands()
    )


def _help(path: str, command: click.Command) -> str:
    # Use the settings of the root, which a command takes from its first context.
    context = click.Context(
        command,
        info_name=path,
        terminal_width=_WIDTH,
        max_content_width=_WIDTH,
        **app.context_settings,
    )
    return "\n".join(line.rstrip() for line in command.get_help(context).splitlines()).strip()


def prose() -> str:
    """The handwritten part of the document."""
    return DOCUMENT.read_text().partition(MARK)[0]


if __name__ == "__main__":
    DOCUMENT.write_text(prose() + MARK + reference())
