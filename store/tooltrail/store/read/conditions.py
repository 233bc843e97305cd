"""Filters as SQL over `invocations`.

A partial index is used only where the SQL says in the words of the index that nothing else is asked
for. So these conditions say that, although another condition implies it.

SQLite keeps no statistics of a store and would take any index that fits. Where a page is led by one
list of a filter, the conditions of the others are written so that SQLite cannot use an index for
them.
"""

from collections.abc import Sequence
from typing import Any, Final

from sqlalchemy import Column, ColumnElement, literal_column, select

from tooltrail.store.filters import STATES_OF_STATUS, InvocationFilter
from tooltrail.store.read.hints import unindexed
from tooltrail.store.schema import LARGE_BYTES, invocations, sessions

Condition = ColumnElement[bool]

LISTS: Final = (
    "invocations",
    "sessions",
    "exit_statuses",
    "error_kinds",
    "states",
    "statuses",
    "tools",
    "families",
    "agents",
)
"""The lists of a filter."""

_COLUMNS: Final[dict[str, Column[Any]]] = {
    "invocations": invocations.c.id,
    "exit_statuses": invocations.c.exit_status,
    "error_kinds": invocations.c.error_kind,
    "states": invocations.c.state,
    "tools": invocations.c.tool_name,
    "families": invocations.c.family,
}


def conditions_of(where: InvocationFilter, *, lead: str | None = None) -> list[Condition]:
    """The conditions of a filter; all of them must hold. Empty for the filter of all.

    Args:
        where: the filter.
        lead: the member of the filter whose index SQLite is to use; of any when None.
    """
    found: list[Condition] = []
    for name in LISTS:
        values: Sequence[Any] = getattr(where, name)
        if values:
            found += list_conditions(name, values, indexed=lead in (None, name))
    if where.min_size is not None:
        found += size_conditions(where.min_size, indexed=lead in (None, "min_size"))
    return [*found, *time_conditions(where, indexed=lead not in ("agents", "min_size"))]


def list_conditions(name: str, values: Sequence[Any], *, indexed: bool = True) -> list[Condition]:
    """The conditions of one list of a filter."""
    if name in ("sessions", "agents"):
        return [_of_sessions(name, values, indexed=indexed)]
    if name == "statuses":
        name, values = "states", [one for each in values for one in STATES_OF_STATUS[each]]
    column = _column(_COLUMNS[name], indexed=indexed)
    found: list[Condition] = [column == values[0] if len(values) == 1 else column.in_(values)]
    if name == "states" and "success" not in values:
        found.append(column != literal_column("'success'"))
    if name == "exit_statuses" and 0 not in values:
        found.append(column != literal_column("0"))
    return found


def size_conditions(least: int, *, indexed: bool = True) -> list[Condition]:
    """The conditions of a least size."""
    size = _column(invocations.c.output_size, indexed=indexed)
    found: list[Condition] = [size >= least]
    if least >= LARGE_BYTES:
        found.append(size >= literal_column(str(LARGE_BYTES)))
    return found


def time_conditions(where: InvocationFilter, *, indexed: bool = True) -> list[Condition]:
    """The conditions of `since` and `until`."""
    started_at = _column(invocations.c.started_at, indexed=indexed)
    found: list[Condition] = []
    if where.since is not None:
        found.append(started_at >= where.since)
    if where.until is not None:
        found.append(started_at < where.until)
    return found


def is_held_by(agents: Sequence[str]) -> Condition:
    """Whether an agent held the session of an invocation; for a look at few invocations.

    An agent has very many sessions, and to list all of them takes longer.
    """
    mine = sessions.c.key == invocations.c.session_key
    held = select(sessions.c.key).where(mine, sessions.c.agent.in_(agents))
    return held.correlate(invocations).exists()


def _of_sessions(name: str, values: Sequence[Any], *, indexed: bool) -> Condition:
    column = sessions.c.id if name == "sessions" else sessions.c.agent
    key = _column(invocations.c.session_key, indexed=indexed)
    if name == "sessions" and len(values) == 1:
        only = select(sessions.c.key).where(column == values[0])
        return key == only.scalar_subquery()
    return key.in_(select(sessions.c.key).where(column.in_(values)))


def _column(column: Column[Any], *, indexed: bool) -> ColumnElement[Any]:
    return column if indexed else unindexed(column)
