"""Filters as SQL over `invocations`.

A partial index is used only if the query repeats the condition of the index. So these conditions
repeat it, although another condition implies it.

SQLite has no statistics of a store and may choose any index that fits. If one list of a filter
leads a page, a hint in the conditions of the other lists prevents SQLite from using their indexes.
"""

from typing import Any, Final

from tooltrail.records.errors import check_type
from tooltrail.store.filters import COLUMN_OF, LISTS, InvocationFilter
from tooltrail.store.read.columns import LARGE_BYTES
from tooltrail.store.read.rows import Sql, is_in

_COLUMNS: Final = COLUMN_OF | {
    "invocations": "id",
    "sessions": "session_key",
    "not_exit_statuses": "exit_status",
    "tools": "tool_name",
    "agents": "session_key",
    "min_size": "output_size",
}
"""The column of `invocations` that a list or `min_size` compares."""

_UNTIMED: Final = {"agents", "invocations", "min_size"}
"""Members whose index has no times."""

COMMON: Final[dict[str, str | int]] = {"states": "success", "outcomes": "ok", "exit_statuses": 0}
"""The most common value of a list, which its index does not have."""


def conditions_of(filters: InvocationFilter, *, lead: str | None = None) -> list[Sql]:
    """The conditions of a filter, joined by AND. Empty for an empty filter.

    `lead` is the member whose index SQLite should use, or `started_at`; None for any index.
    """
    check_type("where", filters, InvocationFilter)
    found: list[Sql] = []
    for name in (*LISTS, "min_size"):
        found += member_conditions(filters, name, indexed=lead in (None, name))
    if filters.expression is not None:
        from tooltrail.store.read.expression_sql import condition_of  # noqa: PLC0415  rarely needed

        found.append(condition_of(filters.expression))
    return [*found, *time_conditions(filters, indexed=lead not in _UNTIMED)]


def member_conditions(filters: InvocationFilter, name: str, *, indexed: bool = True) -> list[Sql]:
    """The conditions of one list of a filter, or of `min_size`."""
    values: Any = getattr(filters, name)
    if values in (None, ()):
        return []
    column = _hinted(f"invocations.{_COLUMNS[name]}", indexed=indexed)
    if name == "min_size":
        is_large = [Sql(f"{column} >= {LARGE_BYTES}")] if values >= LARGE_BYTES else []
        return [Sql(f"{column} >= ?", (values,)), *is_large]
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
    is_rare = name in COMMON and COMMON[name] not in values
    rare = [Sql(f"{column} <> {COMMON[name]!r}")] if is_rare else []
    return [is_in(column, values), *rare]


def time_conditions(
    filters: InvocationFilter, column: str = "invocations.started_at", *, indexed: bool = True
) -> list[Sql]:
    """The conditions of `since` and `until` on a column with times."""
    bounds = ((">=", filters.since), ("<", filters.until))
    hinted = _hinted(column, indexed=indexed)
    return [Sql(f"{hinted} {sign} ?", (at,)) for sign, at in bounds if at is not None]


def _hinted(column: str, *, indexed: bool) -> str:
    return column if indexed else f"+{column}"
