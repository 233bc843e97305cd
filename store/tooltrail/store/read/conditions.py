"""Filters as SQL over `invocations`.

A partial index is used only if the query repeats the condition of the index. So these conditions
repeat it, although another condition implies it.

SQLite has no statistics of a store and may choose any index that fits. If one list of a filter
leads a page, a hint in the conditions of the other lists prevents SQLite from using their indexes.
"""

from collections.abc import Sequence
from typing import Any, Final

from tooltrail.store.filters import COLUMN_OF, LISTS, InvocationFilter
from tooltrail.store.read.columns import LARGE_BYTES
from tooltrail.store.read.expression_sql import condition_of
from tooltrail.store.read.rows import Sql, is_in

_COLUMNS: Final = COLUMN_OF | {
    "invocations": "id",
    "sessions": "session_key",
    "not_exit_statuses": "exit_status",
    "tools": "tool_name",
    "agents": "session_key",
}
"""The column of `invocations` that a list compares."""

_UNTIMED: Final = {"agents", "invocations", "min_size"}
"""Members whose index has no times."""

COMMON: Final[dict[str, str | int]] = {"states": "success", "outcomes": "ok", "exit_statuses": 0}
"""The most common value of a list, which its index does not have."""


def conditions_of(filters: InvocationFilter, *, lead: str | None = None) -> list[Sql]:
    """The conditions of a filter, joined by AND. Empty for an empty filter.

    `lead` is the member whose index SQLite should use, or `started_at`; None for any index.
    """
    found: list[Sql] = []
    for name in (*LISTS, "min_size"):
        found += member_conditions(filters, name, indexed=lead in (None, name))
    if filters.expression is not None:
        found.append(condition_of(filters.expression))
    return [*found, *time_conditions(filters, indexed=lead not in _UNTIMED)]


def member_conditions(filters: InvocationFilter, name: str, *, indexed: bool = True) -> list[Sql]:
    """The conditions of one list of a filter, or of `min_size`."""
    value: Any = getattr(filters, name)
    if name == "min_size":
        return [] if value is None else _size_conditions(value, indexed=indexed)
    return _list_conditions(name, value, indexed=indexed) if value else []


def time_conditions(filters: InvocationFilter, *, indexed: bool = True) -> list[Sql]:
    """The conditions of `since` and `until`."""
    started_at = _column("started_at", indexed=indexed)
    found: list[Sql] = []
    if filters.since is not None:
        found.append(Sql(f"{started_at} >= ?", (filters.since,)))
    if filters.until is not None:
        found.append(Sql(f"{started_at} < ?", (filters.until,)))
    return found


def _list_conditions(name: str, values: Sequence[Any], *, indexed: bool) -> list[Sql]:
    column = _column(_COLUMNS[name], indexed=indexed)
    if name == "agents" and not indexed:
        # An agent has very many sessions; listing all of them for a page would take longer.
        mine = "SELECT 1 FROM sessions AS held WHERE held.key = invocations.session_key AND "
        return [Sql(f"EXISTS ({mine}") + is_in("held.agent", values) + ")"]
    if name in ("sessions", "agents"):
        source = "id" if name == "sessions" else "agent"
        keys = Sql("(SELECT key FROM sessions WHERE ") + is_in(source, values) + ")"
        is_one = name == "sessions" and len(values) == 1
        return [Sql(f"{column} {'=' if is_one else 'IN'} ") + keys]
    if name == "not_exit_statuses":
        return [Sql(f"{column} <> ?", (value,)) for value in values]
    found = [is_in(column, values)]
    if name in COMMON and COMMON[name] not in values:
        common = COMMON[name]
        found.append(Sql(f"{column} <> {common!r}"))
    return found


def _size_conditions(least: int, *, indexed: bool) -> list[Sql]:
    size = _column("output_size", indexed=indexed)
    found = [Sql(f"{size} >= ?", (least,))]
    if least >= LARGE_BYTES:
        found.append(Sql(f"{size} >= {LARGE_BYTES}"))
    return found


def _column(name: str, *, indexed: bool) -> str:
    return f"{'' if indexed else '+'}invocations.{name}"
