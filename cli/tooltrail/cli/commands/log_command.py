"""`tooltrail log`: list and follow invocations."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

import click

from tooltrail.cli._filters import filter_options, say_missing
from tooltrail.cli._location import Location
from tooltrail.cli._options import count_option, output_options, store_options, time_option
from tooltrail.cli._output import Listing, attributes, duration_of, printable, say, size_of, write
from tooltrail.cli._tables import Columns, colour_of_outcome, coloured, count_damaged, print_list
from tooltrail.cli._times import shown_in_list
from tooltrail.records.ids import short_id
from tooltrail.store.filters import InvocationFilter

if TYPE_CHECKING:
    from tooltrail.store import InvocationView, Reader

_WIDTHS = (8, 19, 10, 11, 10, 7, 0)
"""Minimum widths of the columns. Later rows are not known when the first row is printed."""


@click.command("log")
@store_options
@filter_options
@count_option
@click.option(
    "--cursor", metavar="CURSOR", help="Continue after the page that printed this cursor."
)
@click.option(
    "--sort",
    metavar="COLUMN",
    type=click.Choice(("started", "duration", "size", "cut")),
    default="started",
    show_default=True,
    help="List the longest (duration), the largest output (size), or the most shortened one (cut)"
    " first.",
)
@click.option("--reverse", is_flag=True, help="List the oldest first, or the least.")
@click.option(
    "-f",
    "follow",
    is_flag=True,
    help="Follow: also print each invocation that starts or ends from now on.",
)
@output_options
@time_option
def command(
    *,
    location: Location,
    where: InvocationFilter,
    count: int,
    cursor: str | None,
    sort: str,
    reverse: bool,
    follow: bool,
    output: Listing,
) -> None:
    """List invocations, newest first.

    A repeated option means OR, different options mean AND. --failed, --ok, --timed-out and
    --outcome count as one option. In other commands, the ID names the invocation.

    OUTCOME says how the call ended: ok, exit 1, SIGSEGV, timeout, "error: KIND", denied,
    interrupted, cancelled, running or unfinished. Of an unfinished call, a hook or an import
    recorded no result yet. OUTPUT is the size of the produced output. If some output was not kept,
    OUTPUT also shows the kept size.

    With --sort, calls without such a value, or with a damaged one, are left out. CUT is the part of
    the output that the model was not shown. If another program showed it to the model, CUT is by
    how much the output is longer than what was shown.

    With -f, the newest invocations come last, followed by one line for each invocation that starts
    or ends. Following stops when every invocation given with --invocation has ended, and every
    session given with --session is closed and has no running invocation. Otherwise, stop with
    Ctrl-C.
    """
    if follow:
        if cursor is not None or sort != "started" or reverse:
            raise click.UsageError("-f cannot be combined with --cursor, --sort or --reverse")
        _follow(location, where, count, output)
        return
    if sort != "started":
        if cursor is not None:
            raise click.UsageError("--cursor needs --sort started; -n says how many to list")
        with location.open() as store:
            ranked = store.reader.ranked_invocations(
                sort, where, limit=count or None, least_first=reverse
            )
        value_of = dict(ranked)
        _print(value_of, output, value_of.__getitem__ if sort == "cut" else None)
        if 0 < count == len(ranked):
            say(f"{count:,} listed; -n 0 for all")
        return
    with location.open() as store:
        reader = store.reader
        page = reader.invocations(where, limit=count or None, cursor=cursor, oldest_first=reverse)
        # Counting by a condition would read every invocation.
        is_counted = page.next_cursor is not None and where.expression is None
        total = reader.count_invocations(where) if is_counted else None
        if not page.items:
            say_missing(reader, where)
    _print(page.items, output)
    if page.next_cursor is not None:
        of_all = "listed" if total is None else f"of {total:,}"
        more = f"-n 0 for all, --cursor {page.next_cursor} for the next"
        say(f"{len(page.items):,} {of_all}; {more}")


def _members() -> dict[str, Callable[[Any], object]]:
    from tooltrail.store.views import InvocationView

    return attributes(*InvocationView.member_types, "outcome")


def _print(
    views: Iterable[InvocationView],
    output: Listing,
    cut_of: Callable[[InvocationView], int] | None = None,
) -> None:
    """Print a list. What was cut has a column of its own, if the list is sorted by the cut."""
    members, columns = _members(), dict(_COLUMNS)
    if cut_of is not None:
        members["cut_size"] = cut_of
        columns["CUT"] = lambda view: size_of(cut_of(view))
        columns["CALL"] = columns.pop("CALL")  # the last column
    colours = {"OUTCOME": colour_of_outcome}
    right, spare = ("TIME", "OUTPUT", "CUT"), ("OUTPUT", "TIME", "STARTED", "TOOL")
    print_list(views, output, members, columns, right=right, colours=colours, spare=spare)
    count_damaged(views, output)


def _follow(location: Location, where: InvocationFilter, count: int, output: Listing) -> None:
    """Print the newest invocations, newest last, and then each one that starts or ends.

    Stops when all invocations of the filter have ended, or when all sessions of the filter are
    closed and have no running invocation. Without such a filter, never stops.
    """
    from tooltrail.artifacts import FOLLOW_INTERVAL_S
    from tooltrail.cli._waiting import wait_for_more
    from tooltrail.store import InvocationFeed

    if output.style not in (None, "ndjson"):
        raise click.UsageError("-f prints a table or --ndjson: the list has no end")
    if output.fields:
        output = output._replace(style="ndjson")
    with location.open() as store:
        feed = InvocationFeed(store.reader, where)
        feed.poll()
        page = store.reader.invocations(where, limit=count or None).items
        if output.style is None:
            _write_row([*_COLUMNS], is_header=True)
        _write_rows(page[::-1], output)
        # An invocation that changed between `poll` and this page is printed once.
        printed = {(view.id, view.state) for view in page}
        while True:
            # Checked before the poll, so that the last changes are printed. `reader` ingests.
            is_over = _is_over(store.reader, where)
            changes = [view for view in feed.poll() if (view.id, view.state) not in printed]
            _write_rows(changes, output)
            printed.clear()
            if is_over:
                return
            wait_for_more(FOLLOW_INTERVAL_S)


def _write_rows(views: Iterable[InvocationView], output: Listing) -> None:
    if not output.print_records(views, _members()):
        for view in views:
            _write_row([cell(view) for cell in _COLUMNS.values()])


def _write_row(cells: Sequence[str], *, is_header: bool = False) -> None:
    """Print one row of the table."""
    columns = zip(_COLUMNS, cells, _WIDTHS, strict=True)
    padded = {name: printable(cell).ljust(width) for name, cell, width in columns}
    if not is_header:
        outcome = padded["OUTCOME"]
        padded["OUTCOME"] = coloured(outcome, colour_of_outcome(outcome.strip()))
    write(f"{'  '.join(padded.values()).rstrip()}\n")


def _is_over(reader: Reader, where: InvocationFilter) -> bool:
    if where.invocations:
        running = InvocationFilter(invocations=where.invocations, states=("started",))
        return reader.count_invocations(running) == 0
    sessions = list(map(reader.session, where.sessions))
    is_closed = (view.closed_at is not None and not view.open_count for view in sessions)
    return bool(sessions) and all(is_closed)


def _output(view: InvocationView) -> str:
    """The produced size; if some bytes were not kept, the kept size of the produced size."""
    if view.output_size is None or not view.lost_size:
        return size_of(view.output_size)
    return f"{size_of(view.output_size - view.lost_size)} of {size_of(view.output_size)}"


_COLUMNS: Final[Columns] = {
    "ID": lambda view: short_id(view.id),
    "STARTED": lambda view: shown_in_list(view.started_at),
    "TOOL": attrgetter("tool_name"),
    "OUTCOME": attrgetter("outcome"),
    "TIME": lambda view: duration_of(view.duration_ms),
    "OUTPUT": _output,
    "CALL": attrgetter("arguments_preview"),
}
