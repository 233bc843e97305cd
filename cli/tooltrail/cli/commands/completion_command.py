"""`tooltrail completion`: print the script with which a shell completes commands and names."""

import click
from click.shell_completion import get_completion_class

from tooltrail.cli._failures import COMPLETION
from tooltrail.cli._output import write


@click.command("completion")
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def command(context: click.Context, shell: str) -> None:
    """Print the script with which a shell completes commands, options and names of the store.

    Names are those of invocations, sessions, tools and agents, the newest first.
    """
    root = context.find_root()
    completion = get_completion_class(shell)
    assert completion is not None
    write(completion(root.command, {}, root.command_path, COMPLETION).source())
