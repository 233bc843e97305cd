"""Which of the tools that models were offered a command is about."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from tooltrail.cli._options import Decorated, stacked
from tooltrail.cli._output import Record

if TYPE_CHECKING:
    from tooltrail.store import Reader, ToolView


@dataclass(frozen=True, slots=True)
class WantedTools:
    """What was asked for.

    Attributes:
        session: whose latest offer it is to be; None for all that the store has.
        names: of the tools; none for all of them.
    """

    session: str | None
    names: tuple[str, ...]

    def read(self, reader: "Reader", *, latest: bool = False) -> "list[ToolView]":
        """The versions of these tools.

        Args:
            reader: of the store.
            latest: whether to leave out all but the latest version of each. What a session offered
                last is the latest, also where it has a name twice.

        Raises:
            NotFoundError: there is no such session, or no tool of a name that was asked for.
        """
        from tooltrail.records import NotFoundError  # noqa: PLC0415  not for --help

        if self.session is None:
            found = reader.tools(latest=latest)
        else:
            found = reader.offered_tools(self.session)
        missing = [name for name in self.names if all(tool.name != name for tool in found)]
        if missing:
            where = "" if self.session is None else f" by session {self.session}"
            raise NotFoundError(f"no tool {missing[0]!r} was offered{where}")
        return [tool for tool in found if not self.names or tool.name in self.names]


def wanted_tools_options(function: Decorated) -> Decorated:
    """`--session` and `--tool`, handed on as one `wanted`."""

    @wraps(function)
    def with_wanted(*args: Any, session: str | None, tools: tuple[str, ...], **kwargs: Any) -> Any:
        return function(*args, wanted=WantedTools(session, tools), **kwargs)

    return stacked(
        click.option(
            "--session",
            metavar="SESSION",
            help="Tools that this session offered last: an id, a name, a part of an id, or @last.",
        ),
        click.option(
            "--tool",
            "tools",
            metavar="NAME",
            multiple=True,
            help="Tools of this name. May be repeated.",
        ),
    )(with_wanted)


TOOL_FIELDS = ("digest", "name", "family", "offered_at", "definition")
"""JSON fields of a version of a tool."""


def tool_records(tools: "Sequence[ToolView]") -> list[Record]:
    """The versions as records for programs."""
    return [
        {
            "digest": tool.digest,
            "name": tool.name,
            "family": tool.family,
            "offered_at": tool.offered_at,
            "definition": tool.definition.model_dump(exclude_defaults=True),
        }
        for tool in tools
    ]
