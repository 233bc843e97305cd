"""Pages of invocations by keyset, and how many a filter means.

A page is in the order of `started_at` and then of the key; a page of one session is in the order of
its `seq`. A cursor is the key of the last invocation of a page.

    all; one session; one list that has   read from that index; several values of a list are
    an index in the order of a page       merged
    anything else                         first among the next `NEARBY` invocations, which have what
                                          is common; then by the index of that member of the filter
                                          that means the fewest invocations
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final, NamedTuple

from sqlalchemy import Column, ColumnElement, Connection, Select, func, or_, select, union_all

from tooltrail.records import InvalidRecordError
from tooltrail.store.filters import STATES_OF_STATUS, InvocationFilter
from tooltrail.store.read.conditions import (
    LISTS,
    conditions_of,
    is_held_by,
    list_conditions,
    size_conditions,
    time_conditions,
)
from tooltrail.store.read.hints import unindexed
from tooltrail.store.read.invocations import SMALL, invocation_view, with_session
from tooltrail.store.read.rows import AnyRow, AnySelect, fetch
from tooltrail.store.schema import LARGE_BYTES, invocations
from tooltrail.store.views import InvocationView, Page

MAX_KEY_DIGITS: Final = 18
"""Decimal digits that surely fit into the 64 bits of a key."""

NEARBY: Final = 4_000
"""Invocations that are looked through before an index is."""

_COUNTED: Final = 20_000
"""Entries of an index that are counted to find out how many invocations a list means."""

_MOST_MERGED: Final = 16
"""Values of a list that are read from an index one by one."""

_ORDERED: Final = ("exit_statuses", "error_kinds", "states", "tools")
"""Lists of a filter with an index in the order of a page."""


class Order(NamedTuple):
    """The order of a page, and where it begins.

    Attributes:
        column: `started_at` or `seq`.
        oldest_first: whether it ascends.
        after: key of the last invocation of the page before.
        indexed: whether SQLite is to read an index in this order.
    """

    column: Column[Any]
    oldest_first: bool
    after: int | None
    indexed: bool = True

    def clauses(self) -> list[ColumnElement[Any]]:
        """For ORDER BY."""
        columns = (self._place(), invocations.c.key)
        return [one.asc() if self.oldest_first else one.desc() for one in columns]

    def conditions(self) -> list[ColumnElement[bool]]:
        """What follows the page before. The database compares even times that are no times."""
        if self.after is None:
            return []
        place, key, last = self._place(), invocations.c.key, invocations.alias("last")
        at = select(last.c[self.column.name]).where(last.c.key == self.after).scalar_subquery()
        if self.oldest_first:
            return [place >= at, or_(place > at, key > self.after)]
        return [place <= at, or_(place < at, key < self.after)]

    def _place(self) -> ColumnElement[Any]:
        return self.column if self.indexed else unindexed(self.column)


def page(
    connection: Connection,
    where: InvocationFilter,
    limit: int | None,
    cursor: str | None,
    *,
    oldest_first: bool,
) -> Page[InvocationView]:
    """What follows the cursor in the order asked for.

    Raises:
        InvalidRecordError: a cursor that no page gave, or a limit below 1.
    """
    check_limit(limit)
    after = None if cursor is None else _key_of(cursor)
    where = _simplified(where)
    is_one_session = len(where.sessions) == 1
    column = invocations.c.seq if is_one_session else invocations.c.started_at
    order = Order(column, oldest_first, after)
    rows = _found(connection, where, order, None if limit is None else limit + 1)
    if not rows and after is not None:
        _check_cursor(connection, after)
    shown = rows if limit is None else rows[:limit]
    next_cursor = str(shown[-1][0]) if len(rows) > len(shown) else None
    return Page(tuple(invocation_view(row) for row in shown), next_cursor)


def _found(
    connection: Connection, where: InvocationFilter, order: Order, limit: int | None
) -> Sequence[AnyRow]:
    if limit is None:
        return fetch(connection, select_all(where, order))
    leads = leads_of(where)
    if not _is_direct(where, leads):
        rows = fetch(connection, select_nearby(where, order, limit))
        if len(rows) == limit:
            return rows
    lead = leads[0] if leads else None
    if len(leads) > 1:
        numbers = fetch(connection, select_numbers(where, leads))[0]
        lead = leads[min(range(len(leads)), key=numbers.__getitem__)]
    return fetch(connection, select_page(where, order, limit, lead))


def select_all(where: InvocationFilter, order: Order) -> AnySelect:
    """All invocations that a filter means, `SMALL` of each."""
    return _selected(order).where(*conditions_of(where), *order.conditions())


def select_page(
    where: InvocationFilter, order: Order, limit: int, lead: str | None = None
) -> AnySelect:
    """The first invocations that a filter means, `SMALL` of each.

    Args:
        where: the filter.
        order: of the page.
        limit: at most so many.
        lead: the member of the filter whose index is read; by order when None.
    """
    if lead in _ORDERED:
        values: Sequence[Any] = getattr(where, lead)
        each: list[dict[str, Any]] = [{lead: (value,)} for value in values]
        parts = [replace(where, **one) for one in each]
    else:
        parts = [where]
        order = order._replace(indexed=lead is None or lead == "sessions")
    if len(parts) == 1:
        keys = _select_keys(where, order, limit, lead).subquery("page")
    else:
        merged = (_select_keys(part, order, limit, lead).subquery() for part in parts)
        keys = union_all(*(select(one.c.key) for one in merged)).subquery("page")
    few = invocations.c.key.in_(select(keys.c.key))
    return _selected(order).where(few).limit(limit)


def select_nearby(where: InvocationFilter, order: Order, limit: int) -> AnySelect:
    """As `select_page`, among the next `NEARBY` invocations; finds none where there are fewer."""
    started_at = invocations.c.started_at
    end = (
        select(started_at)
        .where(*time_conditions(where), *order.conditions())
        .order_by(*order.clauses())
        .limit(1)
        .offset(NEARBY)
        .correlate(None)
        .scalar_subquery()
    )
    is_near = started_at < end if order.oldest_first else started_at > end
    # Of two bounds on one side SQLite uses the first; the nearer one implies the other.
    one_bound: dict[str, Any] = {"until": None} if order.oldest_first else {"since": None}
    fits = conditions_of(replace(where, agents=(), **one_bound))
    if where.agents:
        fits.append(is_held_by(where.agents))
    return _selected(order).where(*fits, *order.conditions(), is_near).limit(limit)


def select_numbers(where: InvocationFilter, leads: Sequence[str]) -> AnySelect:
    """How many invocations some members of a filter mean, each by itself; `_COUNTED` at most."""
    counted: list[ColumnElement[int]] = []
    for name in leads:
        value = getattr(where, name)
        fits = size_conditions(value) if name == "min_size" else list_conditions(name, value)
        some = select(invocations.c.key).where(*fits).limit(_COUNTED).subquery()
        counted.append(select(func.count()).select_from(some).scalar_subquery())
    return select(*counted)


def count(connection: Connection, where: InvocationFilter) -> int:
    """How many invocations a filter means."""
    return connection.scalars(select_count(where)).one()


def select_count(where: InvocationFilter) -> Select[int]:
    """The number of invocations that a filter means."""
    return select(func.count()).select_from(invocations).where(*conditions_of(where))


def leads_of(where: InvocationFilter) -> list[str]:
    """Members of a filter with an index; one of them may lead a page."""
    for name in ("invocations", "sessions"):
        if getattr(where, name):
            return [name]
    found = [name for name in _ORDERED if _is_ordered(name, getattr(where, name))]
    if where.agents:
        found.append("agents")
    if where.min_size is not None and where.min_size >= LARGE_BYTES:
        found.append("min_size")
    return found


def check_limit(limit: int | None) -> None:
    """Refuse a list of nothing.

    Raises:
        InvalidRecordError: the limit is below 1.
    """
    if limit is not None and limit < 1:
        raise InvalidRecordError(f"a list of at most {limit} rows shows nothing; ask for 1 or more")


def _selected(order: Order) -> AnySelect:
    return select(*SMALL.selected).select_from(with_session()).order_by(*order.clauses())


def _select_keys(
    where: InvocationFilter, order: Order, limit: int, lead: str | None
) -> Select[int]:
    """The keys of the first invocations that a filter means, read from an index if possible."""
    return (
        select(invocations.c.key)
        .where(*conditions_of(where, lead=lead), *order.conditions())
        .order_by(*order.clauses())
        .limit(limit)
    )


def _simplified(where: InvocationFilter) -> InvocationFilter:
    """The same filter without values that stand there twice, and without statuses if possible.

    Each status is a few states.
    """
    once: dict[str, Any] = {name: tuple(dict.fromkeys(getattr(where, name))) for name in LISTS}
    named = [state for one in where.statuses for state in STATES_OF_STATUS[one]]
    states = once["states"]
    if named:
        both = tuple(one for one in named if not states or one in states)
        # Where no state has the status, both stay, and nothing fits.
        if both:
            once |= {"states": both, "statuses": ()}
    return replace(where, **once)


def _is_ordered(name: str, values: Sequence[Any]) -> bool:
    """Whether an index gives each value of a list in the order of a page."""
    common = {"states": "success", "exit_statuses": 0}
    return 0 < len(values) <= _MOST_MERGED and (name not in common or common[name] not in values)


def _is_direct(where: InvocationFilter, leads: Sequence[str]) -> bool:
    """Whether the page is read from one index, without a filter that passes many entries over."""
    if leads and leads[0] in ("invocations", "sessions"):
        return True
    members = [name for name in LISTS if getattr(where, name)]
    if where.min_size is not None:
        members.append("min_size")
    return not members or (members == list(leads) and members[0] in _ORDERED and len(members) == 1)


def _key_of(cursor: str) -> int:
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= MAX_KEY_DIGITS):
        raise InvalidRecordError(f"not a cursor of this list: {cursor[:40]!r}")
    return int(cursor)


def _check_cursor(connection: Connection, key: int) -> None:
    query = select(invocations.c.key).where(invocations.c.key == key)
    if connection.scalar(query) is None:
        raise InvalidRecordError(f"not a cursor of this list: {key}")
