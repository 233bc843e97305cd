"""`tooltrail stats`: numbers of groups of calls."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from tooltrail.cli._filters import filter_options
from tooltrail.cli._location import Location
from tooltrail.cli._options import count_option, output_options, store_options, time_option
from tooltrail.cli._output import Listing, counted, say
from tooltrail.cli._stats import (
    COLUMNS,
    GROUPS,
    ON_DEMAND,
    TIMES,
    in_order,
    members_of,
    print_statistics,
)
from tooltrail.cli._times import shown_zone

if TYPE_CHECKING:
    from tooltrail.store import InvocationFilter


def _names(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    """The members of `--by`."""
    del ctx, param
    names = tuple(name.strip() for one in value for name in one.split(","))
    for name in names:
        if name not in GROUPS or names.count(name) > 1:
            known = ", ".join(GROUPS)
            raise click.BadParameter(f"{name!r:.80} is not one of {known}, each at most once")
    return names


@click.command("stats")
@store_options
@filter_options
@click.option(
    "--by",
    metavar="A,B",
    callback=_names,
    multiple=True,
    default=("tool",),
    show_default=True,
    help=f"Group by these, in this order: {', '.join(GROUPS)}.",
)
@click.option(
    "--surfaces",
    is_flag=True,
    help="Also count bytes shown, cut and stored, and duplicates: reads the texts of all calls.",
)
@click.option(
    "--sort",
    metavar="COLUMN",
    type=click.Choice([*COLUMNS, *GROUPS]),
    help=f"Sort by a group, or by {', '.join(COLUMNS)}: numbers and times from the greatest, names"
    " from A. By default by calls; by the first group if that is day or hour.",
)
@click.option("--reverse", is_flag=True, help="Sort the other way round.")
@count_option
@output_options
@time_option
def command(
    *,
    location: Location,
    where: InvocationFilter,
    by: tuple[str, ...],
    surfaces: bool,
    sort: str | None,
    reverse: bool,
    count: int,
    output: Listing,
) -> None:
    """Count calls by tool, day, outcome and more.

    CALLS and FAILED count calls; see `log` for how a call fails. P50, P95 and P99 are durations:
    half of the calls, 95 % and 99 % take at most this long. TOTAL is the sum of all durations.
    PRODUCED is the size of the outputs, LOST the part that was not kept.

    With --surfaces, SHOWN is what the model saw. CUT is the number of output bytes
    that the model was not shown. STORED counts the texts of the calls, and each distinct content
    once, as compressed; content that groups share counts in each group. DUPLICATES are calls with
    the same tool and arguments as an earlier one.

    How many bytes Bash stores a day: tooltrail stats --tool Bash --by day --surfaces
    """
    sort = sort or (by[0] if by[0] in TIMES else "calls")
    if sort in GROUPS and sort not in by:
        raise click.UsageError(f"--sort {sort} needs --by {sort}")
    wanted = {COLUMNS[sort][0] if sort in COLUMNS else "", *(output.fields or "").split(",")}
    zone = shown_zone()
    with location.open() as store:
        reader = store.reader
        found = reader.statistics(
            where, by=by, zone=zone, with_surfaces=surfaces or not wanted.isdisjoint(ON_DEMAND)
        )
        has_trends = output == (None, None) and sys.stdout.isatty() and not {*by} & {*TIMES}
        daily = reader.statistics(where, by=(*by, "day"), zone=zone) if has_trends else []
    listed = in_order(found, sort, reverse=reverse)[: count or None]
    if not output.print_records(listed, members_of(by)):
        print_statistics(listed, by, daily)
    if len(listed) < len(found):
        say(f"{len(listed):,} of {counted(len(found), 'group')}; -n 0 for all")
    damaged = sum(one.damaged_count for one in found)
    if damaged:
        calls = counted(damaged, "call")
        say(f"{calls} with damaged values, which do not count; `tooltrail verify` names them")
