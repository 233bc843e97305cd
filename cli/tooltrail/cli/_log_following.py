"""`log -f`: prints a line for each invocation when it starts or ends."""

from collections.abc import Iterator, Sequence

from tooltrail.artifacts import FOLLOW_INTERVAL_S
from tooltrail.cli._location import Location
from tooltrail.cli._output import printable, write
from tooltrail.cli._tables import colour_of_outcome, coloured
from tooltrail.cli._waiting import wait_for_more
from tooltrail.store import InvocationFeed, InvocationFilter, InvocationView, Reader

_WIDTHS = (8, 19, 10, 11, 10, 7, 0)
"""Minimum widths of the columns. Later rows are not known when the first row is printed."""

_OUTCOME = 3
"""The column that has colours."""

_GAP = "  "


def write_row(cells: Sequence[str], *, is_header: bool = False) -> None:
    """Print one row of the table."""
    padded = [printable(cell).ljust(width) for cell, width in zip(cells, _WIDTHS, strict=True)]
    if not is_header:
        padded[_OUTCOME] = coloured(padded[_OUTCOME], colour_of_outcome(cells[_OUTCOME]))
    write(f"{_GAP.join(padded).rstrip()}\n")


def follow_log(
    location: Location, where: InvocationFilter, count: int
) -> Iterator[Sequence[InvocationView]]:
    """Yield the newest invocations, newest last, and then each one that starts or ends.

    Stops when all invocations of the filter have ended, or when all sessions of the filter are
    closed and have no running invocation. Without such a filter, never stops.
    """
    with location.open() as store:
        feed = InvocationFeed(store.reader, where)
        feed.poll()
        page = store.reader.invocations(where, limit=count or None).items
        yield page[::-1]
        # An invocation that changed between `poll` and this page is printed once.
        printed = {(view.id, view.state) for view in page}
        while True:
            # Checked before the poll, so that the last changes are printed. `reader` ingests.
            is_over = _is_over(store.reader, where)
            yield [view for view in feed.poll() if (view.id, view.state) not in printed]
            printed.clear()
            if is_over:
                return
            wait_for_more(FOLLOW_INTERVAL_S)


def _is_over(reader: Reader, where: InvocationFilter) -> bool:
    if where.invocations:
        running = InvocationFilter(invocations=where.invocations, states=("started",))
        return reader.count_invocations(running) == 0
    if where.sessions:
        sessions = [reader.session(session) for session in where.sessions]
        return all(view.closed_at is not None and not view.open_count for view in sessions)
    return False
