"""The reference part of docs/cli.md, generated from the commands.

`python -m tests.support.cli_reference` writes the file; a test compares the file.
"""

import re
from collections.abc import Iterator
from copy import copy
from pathlib import Path

import click

from tooltrail.cli._app import app
from tooltrail.cli._filters import filter_options
from tooltrail.cli._options import output_options, store_options

DOCUMENT = Path(__file__).parents[2] / "docs" / "cli.md"
MARK = "<!-- reference: written by tests/support/cli_reference.py, not by hand -->\n"
_WIDTH = 96
_ABOUT_SHARED = (
    "The last line of a command's options names the shared groups that the command also takes."
)
_HELP_OPTION = re.compile(r"^  -h, --help .*$", re.MULTILINE)


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


def shared_options() -> dict[str, list[click.Parameter]]:
    """The options that many commands take, in named groups."""
    groups = {"store options": store_options, "list options": output_options}
    groups["filters"] = filter_options
    return {name: click.command(name)(add(lambda: None)).params for name, add in groups.items()}


def spelled(option: click.Parameter) -> tuple[str, str | None]:
    """The spelling of an option and its help, by which two commands have the same option."""
    return (option.opts[0], getattr(option, "help", None))


def reference() -> str:
    """The reference: the shared options, and one section for each command, with its help."""
    sections = {"Shared options": _shared()}
    for path, command, context in commands():
        name = path.split()[-1]
        is_short = path != f"tooltrail {name}" and app.get_command(context, name) is command
        sections[path] = (
            f"The same as `tooltrail {name}`." if is_short else _block(_help(path, command))
        )
    return "".join(f"\n## {title}\n\n{text}\n" for title, text in sections.items())


def _block(text: str) -> str:
    lines = (line.rstrip() for line in text.strip().splitlines())
    return "\n".join(["```text", *lines, "```"])


def _context(command: click.Command, path: str) -> click.Context:
    # Use the settings of the root, which a command takes from its first context.
    return click.Context(
        command,
        info_name=path,
        terminal_width=_WIDTH,
        max_content_width=_WIDTH,
        **app.context_settings,
    )


def _shared() -> str:
    command = click.Command("shared")
    formatter = _context(command, "").make_formatter()
    for name, options in shared_options().items():
        context = _context(command, "")
        with formatter.section(name.capitalize()):
            formatter.write_dl([one.get_help_record(context) or ("", "") for one in options])
    return f"{_ABOUT_SHARED}\n\n{_block(formatter.getvalue())}"


def _help(path: str, command: click.Command) -> str:
    """The help of a command; names the groups of shared options that the command takes."""
    taken, own = {spelled(one) for one in command.params}, copy(command)
    also: list[str] = []
    for name, options in shared_options().items():
        group = {spelled(one) for one in options}
        if group <= taken:
            also.append(name)
            own.params = [one for one in own.params if spelled(one) not in group]
    text = own.get_help(_context(own, path))
    return _HELP_OPTION.sub(f"  Also {', '.join(also)}, and --help.", text) if also else text


def prose() -> str:
    """The handwritten part of the document."""
    return DOCUMENT.read_text().partition(MARK)[0]


if __name__ == "__main__":
    DOCUMENT.write_text(prose() + MARK + reference())
