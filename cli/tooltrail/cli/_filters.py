"""The filter options of lists of invocations."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Any

import click

from tooltrail.cli._known import NOUNS, say_unknown
from tooltrail.cli._location import Location
from tooltrail.cli._options import Decorated, stacked
from tooltrail.cli._times import MOMENT

if TYPE_CHECKING:
    from uuid import UUID

STATES = ("started", "success", "error", "interrupted", "denied", "cancelled")
"""All states of an invocation, listed here so that `--help` does not import the store."""

_STATUSES = ("success", "error")


def _many(flag: str, name: str, help_text: str, kind: Any = str) -> Callable[[Any], Any]:
    return click.option(flag, name, multiple=True, type=kind, help=help_text)


def filter_options(function: Decorated) -> Decorated:
    """Pass all filter options to the command as one argument `where`, with names resolved."""

    @wraps(function)
    def with_filter(
        *args: Any,
        location: Location,
        session_names: tuple[str, ...],
        invocation_names: tuple[str, ...],
        **kwargs: Any,
    ) -> Any:
        from tooltrail.store import InvocationFilter  # noqa: PLC0415  not for --help

        sessions: tuple[UUID, ...] = ()
        invocations: tuple[UUID, ...] = ()
        others = {name: kwargs.pop(name) for name in _OTHERS}
        if session_names or invocation_names or any(others[name] for name in NOUNS):
            with location.open() as store:
                reader = store.reader
                say_unknown(reader, others)
                sessions = tuple(reader.session(name).id for name in session_names)
                invocations = tuple(reader.invocation(name).summary.id for name in invocation_names)
        where = InvocationFilter(sessions=sessions, invocations=invocations, **others)
        return function(*args, location=location, where=where, **kwargs)

    return stacked(*_OPTIONS)(with_filter)


_OTHERS = (
    *("tools", "families", "states", "statuses", "error_kinds", "agents", "exit_statuses"),
    *("since", "until", "min_size"),
)

_OPTIONS = (
    _many("--session", "session_names", "Invocations of this session: an id, a name, or @last."),
    _many("--invocation", "invocation_names", "This invocation only."),
    _many("--tool", "tools", "Invocations of this tool."),
    _many("--family", "families", "Invocations of this family of tools."),
    _many("--state", "states", "Invocations in this state.", click.Choice(STATES)),
    _many("--status", "statuses", "Invocations with this status.", click.Choice(_STATUSES)),
    _many("--error-kind", "error_kinds", "Invocations that failed with this kind of error."),
    _many("--agent", "agents", "Invocations of this agent."),
    _many(
        "--exit-code", "exit_statuses", "Commands with this exit status.", click.IntRange(0, 255)
    ),
    click.option(
        "--since", type=MOMENT, help="Started at this time or later: 2h, 3d, yesterday, a date."
    ),
    click.option("--until", type=MOMENT, help="Started before this time."),
    click.option(
        "--min-size", type=click.IntRange(min=0), help="Output of at least this many bytes."
    ),
)
