"""The invocations that `log` lists."""

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
    with location.open() as store:
        reader = store.reader
        page = reader.invocations(
            where, limit=count or None, cursor=cursor, oldest_first=oldest_first
        )
        total = reader.count_invocations(where) if page.next_cursor else len(page.items)
    return page, total
