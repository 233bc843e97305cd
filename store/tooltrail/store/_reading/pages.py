"""Pages of invocations, in the order of their keys, and how many a filter means.

What many have in common is found at once among the next few invocations, and what few have by what
ranges of them tell; no index is written for every call because somebody may ask.
"""

from typing import NamedTuple

from sqlalchemy import Connection, func, select

from tooltrail.records import InvalidRecordError
from tooltrail.store._reading.conditions import condition_of
from tooltrail.store._reading.queries import check_limit, invocation_view
from tooltrail.store._reading.range_search import Found, search
from tooltrail.store._reading.ranges import DUE
from tooltrail.store._reading.stretches import BEYOND_ALL, NEARBY, Stretch, among, by_index, every
from tooltrail.store.filters import ALL, InvocationFilter
from tooltrail.store.tables import InvocationRow
from tooltrail.store.views import InvocationView, Page

MAX_KEY_DIGITS = 18
"""Decimal digits that surely fit into the 64 bits of a key."""


class Listed(NamedTuple):
    """A page, and what it took.

    Attributes:
        page: of invocations.
        is_late: whether it would have been found sooner, had ranges been made that may be due.
    """

    page: Page[InvocationView]
    is_late: bool


def page(
    connection: Connection,
    where: InvocationFilter,
    limit: int | None,
    cursor: str | None,
    *,
    oldest_first: bool,
) -> Listed:
    """One page by keyset: what follows the cursor in the order asked for."""
    check_limit(limit)
    after = None if cursor is None else _key_of(cursor)
    stretch = _following(after, oldest_first=oldest_first)
    rows, passed_count = _found(connection, where, None if limit is None else limit + 1, stretch)
    shown = rows if limit is None else rows[:limit]
    next_cursor = str(shown[-1].key) if len(rows) > len(shown) else None
    views = tuple(invocation_view(row) for row in shown)
    return Listed(Page(views, next_cursor), is_late=passed_count >= DUE)


def _following(after: int | None, *, oldest_first: bool) -> Stretch:
    """The keys that follow one in the order asked for; all for None."""
    if oldest_first:
        return Stretch((after or 0) + 1, BEYOND_ALL, oldest_first)
    return Stretch(1, BEYOND_ALL if after is None else after, oldest_first)


def _found(
    connection: Connection, where: InvocationFilter, limit: int | None, stretch: Stretch
) -> Found:
    """The first invocations of a stretch that a filter means, up to a limit."""
    if limit is None or where == ALL:
        return Found(every(connection, where, limit, stretch), 0)
    if where.invocations:
        return Found(by_index(connection, where, limit, stretch), 0)
    # What many have in common is found there at once.
    rows = among(connection, where, limit, stretch, NEARBY)
    return Found(rows, 0) if len(rows) == limit else search(connection, where, limit, stretch)


def count(connection: Connection, where: InvocationFilter) -> int:
    """How many invocations a filter means."""
    query = select(func.count()).select_from(InvocationRow)
    # Without a condition SQLite counts pages of an index, and not its rows one by one.
    if where != ALL:
        query = query.where(InvocationRow.key > 0, condition_of(where))
    return connection.scalars(query).one()


def _key_of(cursor: str) -> int:
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= MAX_KEY_DIGITS):
        raise InvalidRecordError(f"not a cursor of this list: {cursor[:40]!r}")
    return int(cursor)
