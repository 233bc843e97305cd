"""`tooltrail help`: show the help text of a command."""

from collections.abc import Iterable

import click

from tooltrail.cli._output import write


def _named(context: click.Context, names: Iterable[str]) -> click.Context:
    """The context of a command, found from the root; raises `click.UsageError`."""
    found = context.find_root()
    for name in names:
        if not isinstance(found.command, click.Group):
            raise click.UsageError(f"`{found.command_path}` has no commands", found)
        _, command, _ = found.command.resolve_command(found, [name])
        if command is not None:
            found = click.Context(command, parent=found, info_name=name)
    return found


def _complete(context: click.Context, _: click.Parameter, beginning: str) -> list[str]:
    command = _named(context, context.params["names"]).command
    names = command.list_commands(context) if isinstance(command, click.Group) else []
    return [name for name in names if name.startswith(beginning)]


@click.command("help")
@click.argument("names", metavar="[COMMAND]...", nargs=-1, shell_complete=_complete)
@click.pass_context
def command(context: click.Context, names: tuple[str, ...]) -> None:
    """Show the help text of a command, like COMMAND --help."""
    found = _named(context, names)
    write(f"{found.command.get_help(found)}\n")
