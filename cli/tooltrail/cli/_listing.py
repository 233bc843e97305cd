"""The invocations that `log` lists, read by the shortest way there is.

The newest of all are what people ask for most, and to import the database toolkit takes longer than
to list them. So an SQLite store is asked by `look_up_newest` first; whoever names filters, another
kind of store or another artifact root, or has something waiting in a spool, gets the store opened.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tooltrail.cli._location import Location
    from tooltrail.store import InvocationFilter, InvocationView, Page


def read_page(
    location: Location,
    where: InvocationFilter,
    *,
    count: int,
    cursor: str | None,
    oldest_first: bool,
) -> tuple[Page[InvocationView], int]:
    """A page, and how many invocations the filter means when there is more than the page.

    Args:
        location: of the store.
        where: which ones.
        count: at most so many; 0 for all.
        cursor: of the page before.
        oldest_first: the order.

    Raises:
        TooltrailError: as `Reader.invocations`.
    """
    found = _plain_page(location, where, count, cursor, oldest_first=oldest_first)
    if found is not None:
        return found
    with location.open() as store:
        page = store.reader.invocations(
            where, limit=count or None, cursor=cursor, oldest_first=oldest_first
        )
        total = store.reader.count_invocations(where) if page.next_cursor else len(page.items)
    return page, total


def _plain_page(
    location: Location,
    where: InvocationFilter,
    count: int,
    cursor: str | None,
    *,
    oldest_first: bool,
) -> tuple[Page[InvocationView], int] | None:
    from tooltrail.store.filters import ALL  # noqa: PLC0415  not before a command is run
    from tooltrail.store.newest import look_up_newest  # noqa: PLC0415  the same
    from tooltrail.store.spools import may_wait_in  # noqa: PLC0415  the same

    if where != ALL or location.artifacts or not count:
        return None
    found = look_up_newest(location.database, limit=count, cursor=cursor, oldest_first=oldest_first)
    if found is None:
        return None
    spools = [location.spool or found.spool, *location.other_spools()]
    # Where anything waits, who lists is told of it; what it is the store must say.
    return (found.page, found.total) if not any(map(may_wait_in, spools)) else None
