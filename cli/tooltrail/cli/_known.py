"""The names that a store knows: completed in a shell, and compared with the values of a filter."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

import click
from click.types import StringParamType

from tooltrail.cli._output import printable, say
from tooltrail.store.filters import COLUMN_OF

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from tooltrail.store import Reader
    from tooltrail.store.expressions import Expression

NAMES: Final = ("agents", "error_kinds", "families", "tools")
"""Filters whose values are compared with those of the store."""

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

_MOST_SHOWN: Final = 80


def say_unknown(
    reader: Reader, wanted: Mapping[str, Sequence[str]], expressions: Sequence[Expression]
) -> None:
    """Say on stderr which values of a filter no record has, and which values are the nearest."""
    from tooltrail.store.expressions import required_values  # noqa: PLC0415  not for --help
    from tooltrail.store.read.values import has_value, near_values  # noqa: PLC0415  the same

    required = [required_values(one) for one in expressions]
    with reader.database.read() as connection:
        for kind in NAMES:
            column = COLUMN_OF[kind]
            named = [one.get(column, ()) for one in required]
            for value in dict.fromkeys(map(str, chain(wanted[kind], *named))):
                if not has_value(connection, kind, value):
                    near = near_values(connection, kind, value)
                    noun = column.replace("_", " ")
                    say(f"tooltrail: no {noun} `{printable(value[:_MOST_SHOWN])}`{near}")


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
