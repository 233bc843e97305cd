"""Pages of invocations, in the order of their keys, and how many a filter means.

What many have in common is found at once among the next few invocations. What few have is looked up
in an index and sorted; there are indexes for what is unusual, and none that would be written for
every call because somebody may ask.
"""

from collections.abc import Sequence
from typing import NamedTuple

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    SQLColumnExpression,
    UnaryExpression,
    and_,
    func,
    select,
)
from sqlalchemy.orm import aliased

from tooltrail.records import InvalidRecordError
from tooltrail.store._conditions import condition_of
from tooltrail.store._queries import (
    AnyRow,
    check_limit,
    invocation_view,
    select_invocations,
)
from tooltrail.store.filters import ALL, InvocationFilter
from tooltrail.store.tables import InvocationRow
from tooltrail.store.tables.invocations import LARGE_BYTES
from tooltrail.store.views import InvocationView, Page

MAX_KEY_DIGITS = 18
"""Decimal digits that surely fit into the 64 bits of a key."""

_NEARBY = 1_000
"""Invocations among which a page is looked for first; that takes a millisecond or two."""

_WIDEST = 20_000
"""Invocations among which it is looked for at the most."""

_FILTERED = (
    InvocationRow.key,
    InvocationRow.session_key,
    InvocationRow.tool_name,
    InvocationRow.family,
    InvocationRow.state,
    InvocationRow.error_kind,
    InvocationRow.exit_status,
    InvocationRow.started_at,
    InvocationRow.output_size,
)
"""What filters ask about."""


def page(
    connection: Connection,
    where: InvocationFilter,
    limit: int | None,
    cursor: str | None,
    *,
    oldest_first: bool,
) -> Page[InvocationView]:
    """One page by keyset: what follows the cursor in the order asked for."""
    check_limit(limit)
    place = _Place(None if cursor is None else _key_of(cursor), oldest_first)
    rows = _nearby(connection, where, limit, place)
    if rows is None:
        rows = _following(connection, where, limit, place)
    shown = rows if limit is None else rows[:limit]
    more = len(rows) > len(shown)
    return Page(tuple(invocation_view(row) for row in shown), str(shown[-1].key) if more else None)


class _Place(NamedTuple):
    """Where a page begins.

    Attributes:
        after: the key that it follows, None at the beginning.
        oldest_first: the order.
        key: what is sorted by.
    """

    after: int | None
    oldest_first: bool
    key: SQLColumnExpression[int] = InvocationRow.key

    @property
    def order(self) -> UnaryExpression[int]:
        """As the page is sorted."""
        return self.key.asc() if self.oldest_first else self.key.desc()

    @property
    def follows(self) -> ColumnElement[bool]:
        """Whether an invocation comes after the place."""
        if self.after is None:
            return self.key > 0
        return self.key > self.after if self.oldest_first else self.key < self.after


def _nearby(
    connection: Connection, where: InvocationFilter, limit: int | None, place: _Place
) -> Sequence[AnyRow] | None:
    """The page, if the next few invocations fill it.

    What many have in common is found there at once, where an index would give all of them to be
    sorted. What few have is left to the index.
    """
    if limit is None or where == ALL or where.invocations:
        return None
    rows = _among(connection, where, limit, place, _NEARBY)
    if rows and len(rows) <= limit:
        # As many as should hold the page twice over, unless that is more than an index takes.
        wider = 2 * _NEARBY * (limit + 1) // len(rows)
        rows = _among(connection, where, limit, place, wider) if wider <= _WIDEST else ()
    return rows if len(rows) > limit else None


def _among(
    connection: Connection, where: InvocationFilter, limit: int, place: _Place, number: int
) -> Sequence[AnyRow]:
    # With its limit the part stays a part on both engines, whatever indexes there are.
    near = select(*_FILTERED).where(place.follows).order_by(place.order).limit(number)
    row = aliased(InvocationRow, near.subquery())
    order = row.key.asc() if place.oldest_first else row.key.desc()
    chosen = select(row.key).where(condition_of(where, row)).order_by(order).limit(limit + 1)
    return _chosen(connection, chosen, place)


def _following(
    connection: Connection, where: InvocationFilter, limit: int | None, place: _Place
) -> Sequence[AnyRow]:
    """The invocations of a page, and one more where there are more."""
    if limit is None or where == ALL:
        condition = and_(condition_of(where), place.follows)
        query = select_invocations().where(condition).order_by(place.order)
        return connection.execute(query if limit is None else query.limit(limit + 1)).all()
    # SQLite has no statistics, and takes those without a value of their own for many: it would go
    # through all in the order asked for, had they one.
    key = InvocationRow.key + 0 if _asks_for_size_alone(where) else InvocationRow.key
    fitting = place._replace(key=key)
    # Keys alone are sorted: the rest is looked up of those that are shown.
    chosen = select(InvocationRow.key).where(condition_of(where), fitting.follows)
    return _chosen(connection, chosen.order_by(fitting.order).limit(limit + 1), place)


def _chosen(connection: Connection, keys: Select[int], place: _Place) -> Sequence[AnyRow]:
    query = select_invocations().where(InvocationRow.key.in_(keys)).order_by(place.order)
    return connection.execute(query).all()


def count(connection: Connection, where: InvocationFilter) -> int:
    """How many invocations a filter means."""
    query = select(func.count()).select_from(InvocationRow)
    # Without a condition SQLite counts pages of an index, and not its rows one by one.
    if where != ALL:
        query = query.where(InvocationRow.key > 0, condition_of(where))
    return connection.scalars(query).one()


def _asks_for_size_alone(where: InvocationFilter) -> bool:
    size = where.min_size
    return size is not None and size >= LARGE_BYTES and where == InvocationFilter(min_size=size)


def _key_of(cursor: str) -> int:
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= MAX_KEY_DIGITS):
        raise InvalidRecordError(f"not a cursor of this list: {cursor[:40]!r}")
    return int(cursor)
