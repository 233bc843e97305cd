"""`tooltrail log`: which tools ran, when, and how they ended."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from tooltrail.cli._filters import filter_options
from tooltrail.cli._location import Location
from tooltrail.cli._options import count_option, output_options, store_options, time_option
from tooltrail.cli._output import duration_of, print_table, print_views, say, size_of
from tooltrail.cli._times import shown

if TYPE_CHECKING:
    from tooltrail.store import InvocationFilter, InvocationView, Page, Reader


@click.command("log")
@store_options
@filter_options
@count_option
@click.option("--cursor", help="Go on where a page ended.")
@click.option("--reverse", is_flag=True, help="The oldest first.")
@output_options
@time_option
def command(
    *,
    location: Location,
    where: InvocationFilter,
    count: int,
    cursor: str | None,
    reverse: bool,
    style: str | None,
    fields: str | None,
    utc: bool,
) -> None:
    """List invocations, the newest first.

    A flag repeated is OR, different flags are AND. The last digits of an id are enough to name an
    invocation elsewhere.
    """
    from tooltrail.store import InvocationView

    with location.open() as store:
        page = store.reader.invocations(
            where, limit=count or None, cursor=cursor, oldest_first=reverse
        )
        if style or fields:
            print_views(page.items, InvocationView, style or "json", fields)
        else:
            _print_log(page, utc)
        _say_if_cut(page, store.reader, where)


def _print_log(page: Page[InvocationView], utc: bool) -> None:
    header = ("ID", "STARTED", "TOOL", "STATE", "EXIT", "TIME", "OUTPUT", "CALL")
    rows = [_row(view, utc) for view in page.items]
    print_table(header, rows, right=("EXIT", "TIME", "OUTPUT"))


def _row(view: InvocationView, utc: bool) -> tuple[str, ...]:
    from tooltrail.records import short_id

    return (
        short_id(view.id),
        shown(view.started_at, utc=utc),
        view.tool_name,
        view.error_kind or view.state,
        _ending(view),
        duration_of(view.duration_ms),
        size_of(view.output_size),
        view.arguments_preview,
    )


def _ending(view: InvocationView) -> str:
    if view.timed_out:
        return "timeout"
    if view.signal is not None:
        return f"SIG {view.signal}"
    return "" if view.exit_status is None else str(view.exit_status)


def _say_if_cut(page: Page[Any], reader: Reader, where: InvocationFilter) -> None:
    if page.next_cursor is None:
        return
    total = reader.count_invocations(where)
    say(f"{len(page.items):,} of {total:,}; -n 0 for all, --cursor {page.next_cursor} for the next")
