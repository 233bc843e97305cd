"""The options and arguments whose values a shell completes with the names of a store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import click
from click.types import StringParamType

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

_COMPLETED: Final = {
    "--agent": "agents",
    "--error-kind": "error_kinds",
    "--family": "families",
    "--format": "formats",
    "--invocation": "invocations",
    "--tool": "tools",
    "A [B": "invocations",
    "INVOCATION": "invocations",
    "NAME": "artifacts",
    "PATH": "artifacts",
    **dict.fromkeys(("--parent", "--session", "SESSION"), "sessions"),
    **dict.fromkeys(("--artifacts", "--cwd", "--db", "--policy", "--spool"), "files"),
    "-- COMMAND [ARG": "files",
}
"""Options, and words for arguments, with the kind of the names that a shell completes."""


class _Name(StringParamType):
    """A text that a shell completes with names of a kind."""

    def __init__(self, kind: str) -> None:
        self._kind = kind

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        """The names that begin with a text."""
        from tooltrail.cli._completing import complete  # noqa: PLC0415  needs the store

        del param
        return complete(self._kind, incomplete, ctx)


def complete_values(command: click.Command) -> None:
    """Let a shell complete the values of a command and of its subcommands; see `_COMPLETED`."""
    for one in command.commands.values() if isinstance(command, click.Group) else ():
        complete_values(one)
    for parameter in command.params:
        word = (parameter.metavar or parameter.name or "").strip("[].").upper()
        kind = _COMPLETED.get(word if isinstance(parameter, click.Argument) else parameter.opts[0])
        if kind and isinstance(parameter.type, StringParamType):
            parameter.type = _Name(kind)
