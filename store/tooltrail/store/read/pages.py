"""Pages of invocations by keyset, and counts of invocations.

A page is in the order of `started_at`, then of the key. A page of one session is in the order of
`seq`. A cursor is the key of the last invocation of a page.

    all; one session; one list that has   read from this index; several values of a list are
    an index in the order of a page       merged
    a filter whose members have no index  read by time until the page is full
    anything else                         first among the next `NEARBY` invocations, which is enough
                                          for common values; then by the index of the member of the
                                          filter that matches the fewest invocations
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

from tooltrail.records.argument_previews import PREVIEWED_CHARS, preview_arguments
from tooltrail.records.errors import InvalidRecordError, check_type
from tooltrail.store.engines.connection import Connection
from tooltrail.store.filters import COLUMN_OF, FAILED, LISTS, InvocationFilter
from tooltrail.store.read.columns import LARGE_BYTES, Columns, Computed, damage_of, make_view
from tooltrail.store.read.conditions import (
    COMMON,
    conditions_of,
    member_conditions,
    time_conditions,
)
from tooltrail.store.read.rows import (
    MAX_KEY_DIGITS,
    Row,
    Sql,
    check_limit,
    fetch,
    fetch_value,
    joined,
    limited,
    where,
)
from tooltrail.store.views import InvocationView, Page

SMALL_COLUMNS: Final = (
    "invocations: key id",
    Computed("sessions.id", "session_id", "id"),
    "invocations: seq call_id tool_name family",
    Computed("invocations.state", "state", "state"),
    Computed(
        "COALESCE(invocations.title, (SELECT substr(surfaces.arguments, 1,"
        f" {PREVIEWED_CHARS}) FROM surfaces WHERE surfaces.invocation_key = invocations.key"
        " LIMIT 1), '')",
        "arguments_preview",
        "text",
    ),
    "invocations: started_at finished_at duration_ms error_kind exit_status signal timed_out",
    "invocations: output_size truncated lost_size is_late",
    Computed("invocations.outcome", "outcome_kind", "text"),
)
"""The key, and the columns of an `InvocationView`."""

SMALL: Final = Columns(*SMALL_COLUMNS)

# An outer join: if the row of a session is lost, its invocations are still listed.
WITH_SESSION: Final = "invocations LEFT JOIN sessions ON sessions.key = invocations.session_key"

NEARBY: Final = 4_000
"""Invocations to search in the order of the page, before an index of the filter is used."""

_COUNTED: Final = 20_000
"""Most entries of an index that are counted to estimate how many invocations a list matches."""

_MOST_MERGED: Final = 16
"""Most values of a list that are read from an index one by one and merged."""

_ORDERED: Final = ("exit_statuses", "error_kinds", "outcomes", "states", "tools", "families")
"""Lists of a filter with an index in the order of a page."""

_SELECTED: Final = f"SELECT {SMALL.sql} FROM {WITH_SESSION}"


class Order(NamedTuple):
    """The order of a page, and its first position.

    Attributes:
        column: `started_at` or `seq`.
        oldest_first: whether the order is ascending.
        after: key of the last invocation of the page before.
        indexed: whether SQLite should read an index in this order.
        table: the table of the rows.
    """

    column: str
    oldest_first: bool
    after: int | None
    indexed: bool = True
    table: str = "invocations"

    @property
    def clause(self) -> str:
        """The ORDER BY clause."""
        way = "ASC" if self.oldest_first else "DESC"
        return f" ORDER BY {self._place} {way}, {self.table}.key {way}"

    def conditions(self) -> list[Sql]:
        """Conditions for rows behind the page before. The database compares damaged times, too."""
        if self.after is None:
            return []
        sign = ">" if self.oldest_first else "<"
        at = f"(SELECT last.{self.column} FROM {self.table} AS last WHERE last.key = ?)"
        place, after = self._place, (self.after,)
        return [
            Sql(f"{place} {sign}= {at}", after),
            Sql(f"({place} {sign} {at} OR {self.table}.key {sign} ?)", after * 2),
        ]

    @property
    def _place(self) -> str:
        return f"{'' if self.indexed else '+'}{self.table}.{self.column}"


def page(
    connection: Connection,
    filters: InvocationFilter,
    limit: int | None,
    cursor: str | None,
    *,
    oldest_first: bool,
) -> Page[InvocationView]:
    """The invocations behind the cursor in the requested order.

    Raises:
        InvalidRecordError: the cursor does not come from a page, or the limit is below 1.
    """
    check_limit(limit)
    after = None if cursor is None else key_of(cursor)
    filters = simplified(filters)
    column = "seq" if len(filters.sessions) == 1 else "started_at"
    order = Order(column, oldest_first, after)
    rows = _found(connection, filters, order, None if limit is None else limit + 1)
    if not rows and after is not None:
        query = Sql("SELECT 1 FROM invocations WHERE key = ?", (after,))
        if fetch_value(connection, query) is None:
            raise InvalidRecordError(f"not a cursor of this list: {after}")
    shown = rows if limit is None else rows[:limit]
    next_cursor = str(shown[-1][0]) if len(rows) > len(shown) else None
    return Page(tuple(invocation_view(row) for row in shown), next_cursor)


def _found(
    connection: Connection, filters: InvocationFilter, order: Order, limit: int | None
) -> Sequence[Row]:
    if limit is None:
        conditions = [*conditions_of(filters), *order.conditions()]
        return fetch(connection, _selected(conditions, order, None))
    leads = _leads_of(filters)
    if _is_direct(filters, leads):
        lead = leads[0] if leads else "started_at"
        return fetch(connection, _select_page(filters, order, limit, lead))
    rows = fetch(connection, _select_nearby(filters, order, limit))
    if len(rows) == limit:
        return rows
    counts = zip(leads, fetch(connection, _select_numbers(filters, leads))[0], strict=True)
    # A lead whose index does not have the order of the page is read completely and sorted.
    few = {name: count for name, count in counts if name in _ORDERED or count <= NEARBY}
    lead = min(few, key=few.__getitem__, default="started_at")
    return fetch(connection, _select_page(filters, order, limit, lead))


def _select_page(filters: InvocationFilter, order: Order, limit: int, lead: str) -> Sql:
    """Select `SMALL` of the first invocations that match a filter.

    `lead` is the member of the filter whose index is read, or `started_at` for all invocations.
    """
    parts = [filters]
    if lead in _ORDERED:
        changes: list[dict[str, Any]] = [{lead: (one,)} for one in getattr(filters, lead)]
        parts = [filters.replaced(**one) for one in changes]
    else:
        order = order._replace(indexed=lead not in ("invocations", "agents", "min_size"))
    keys = [
        Sql("SELECT key FROM (") + select_keys(part, order, limit, lead) + f") AS part{n}"
        for n, part in enumerate(parts)
    ]
    few = Sql("invocations.key IN (") + joined(" UNION ALL ", keys) + ")"
    return _selected([few], order, limit)


def _select_nearby(filters: InvocationFilter, order: Order, limit: int) -> Sql:
    """Like `_select_page`, among the next `NEARBY` invocations. Finds none if there are fewer."""
    end = (
        Sql("SELECT invocations.started_at FROM invocations")
        + where([*time_conditions(filters), *order.conditions()])
        + order.clause
        + Sql(" LIMIT 1 OFFSET ?", (NEARBY,))
    )
    is_near = Sql(f"invocations.started_at {'<' if order.oldest_first else '>'} (") + end + ")"
    # If there are two bounds on one side, SQLite uses the first. The nearer bound is enough.
    one_bound: dict[str, Any] = {"until": None} if order.oldest_first else {"since": None}
    fits = conditions_of(filters.replaced(**one_bound), lead="started_at")
    return _selected([*fits, *order.conditions(), is_near], order, limit)


def _select_numbers(filters: InvocationFilter, leads: Sequence[str]) -> Sql:
    """Count the invocations that each of some members of a filter matches, up to `_COUNTED`."""
    counted = [
        Sql("(SELECT count(*) FROM (SELECT invocations.key FROM invocations")
        + where(member_conditions(filters, name))
        + f" LIMIT {_COUNTED}) AS counted)"
        for name in leads
    ]
    return Sql("SELECT ") + joined(", ", counted)


def count(connection: Connection, filters: InvocationFilter) -> int:
    """The number of invocations that match a filter."""
    query = Sql("SELECT count(*) FROM invocations") + where(conditions_of(simplified(filters)))
    return int(fetch_value(connection, query))


def _leads_of(filters: InvocationFilter) -> list[str]:
    """The members of a filter whose index may lead a page."""
    for name in ("invocations", "sessions"):
        if getattr(filters, name):
            return [name]
    found = [name for name in _ORDERED if _is_ordered(name, getattr(filters, name))]
    if filters.agents:
        found.append("agents")
    if filters.min_size is not None and filters.min_size >= LARGE_BYTES:
        found.append("min_size")
    return found


def _selected(conditions: Sequence[Sql], order: Order, limit: int | None) -> Sql:
    return Sql(_SELECTED) + where(conditions) + order.clause + limited(limit)


def select_keys(filters: InvocationFilter, order: Order, limit: int, lead: str) -> Sql:
    """Select the keys of the first invocations that match a filter, from the index of the lead."""
    conditions = [*conditions_of(filters, lead=lead), *order.conditions()]
    if lead == "started_at":
        # Without a bound, and with a small LIMIT, SQLite reads the complete table and sorts it.
        first = "(SELECT min(first.started_at) FROM invocations AS first)"
        conditions.append(Sql(f"invocations.started_at >= {first}"))
    keys = Sql("SELECT invocations.key FROM invocations")
    return keys + where(conditions) + order.clause + limited(limit)


def simplified(filters: InvocationFilter) -> InvocationFilter:
    """The same filter without duplicate values, and with lists that other conditions imply."""
    check_type("where", filters, InvocationFilter)
    if filters.expression is not None:
        from tooltrail.store.expressions import required_values  # noqa: PLC0415  rarely needed

        # The indexes of lists that its expression implies may lead a page.
        implied = required_values(filters.expression)
        found = {
            name: implied[column]
            for name, column in COLUMN_OF.items()
            if column in implied and not getattr(filters, name)
        }
        filters = filters.replaced(**found)
    once: dict[str, Any] = {name: tuple(dict.fromkeys(getattr(filters, name))) for name in LISTS}
    if not filters.outcomes and (filters.signals or 0 in filters.not_exit_statuses):
        once["outcomes"] = FAILED
    return filters.replaced(**once)


def _is_ordered(name: str, values: Sequence[Any]) -> bool:
    """Whether an index has the order of a page for each value of a list."""
    return 0 < len(values) <= _MOST_MERGED and COMMON.get(name) not in values


def _is_direct(filters: InvocationFilter, leads: Sequence[str]) -> bool:
    """Whether one index is enough for the page, without a filter that skips many entries."""
    if not leads or leads[0] in ("invocations", "sessions"):
        return True
    if filters.expression is not None:
        return False
    members = [name for name in LISTS if getattr(filters, name)]
    if filters.min_size is not None:
        members.append("min_size")
    return members == list(leads) and members[0] in _ORDERED and len(members) == 1


def key_of(cursor: str) -> int:
    """The number in a cursor; raises `InvalidRecordError` if there is none."""
    check_type("cursor", cursor, str)
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= MAX_KEY_DIGITS):
        raise InvalidRecordError(f"not a cursor of this list: {cursor[:40]!r}")
    return int(cursor)


def invocation_view(row: Row) -> InvocationView:
    """The view of a row that begins with `SMALL`."""
    values, problems = SMALL.read(row)
    return view_of(values, damage_of("invocations", values["key"], problems))


def view_of(values: Mapping[str, Any], damage: str | None) -> InvocationView:
    """The view of values with the names of `SMALL`; further values are ignored."""
    preview = preview_arguments(values["arguments_preview"])
    return make_view(InvocationView, values, arguments_preview=preview, damage=damage)
