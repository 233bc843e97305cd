"""`tooltrail stats`: numbers of groups of calls."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

import click

from tooltrail.cli._filters import filter_options
from tooltrail.cli._location import Location
from tooltrail.cli._options import count_option, output_options, store_options, time_option
from tooltrail.cli._output import Listing, Members, attributes, counted, duration_of, say, size_of
from tooltrail.cli._tables import PLAIN, RED, Colours, print_table
from tooltrail.cli._times import shown_in_list, shown_zone
from tooltrail.records.ids import short_id

if TYPE_CHECKING:
    from tooltrail.store import CallStatistics, InvocationFilter

_GROUPS: Final = ("tool", "family", "agent", "session", "outcome", "day", "hour")
"""By what calls can be grouped, listed here so that `--help` does not import the store."""

_TIMES: Final = ("day", "hour")

_ON_DEMAND: Final = ("shown_bytes", "cut_bytes", "stored_bytes", "duplicate_count")
"""The numbers that are read with the surfaces of the calls."""


def _number(count: int | None) -> str:
    return "" if count is None else f"{count:,}"


_COLUMNS: Final[Mapping[str, tuple[str, Callable[[Any], str]]]] = {
    "calls": ("call_count", _number),
    "failed": ("failed_count", _number),
    **{f"p{share}": (f"p{share}_ms", duration_of) for share in (50, 95, 99)},
    "total": ("total_ms", duration_of),
    **{name: (f"{name}_bytes", size_of) for name in ("produced", "lost", "shown", "cut", "stored")},
    "duplicates": ("duplicate_count", _number),
}
"""The columns of the table: the number that each shows, and how."""

_BAR_CELLS, _TREND_DAYS = 8, 28

_CELL: Final = 28
"""Widest cell for which columns are removed; a wider one is cut."""

_BAR, _TREND = "", f"LAST {_TREND_DAYS} DAYS"
_SPARE: Final = (_TREND, "P99", "LOST", _BAR, "P95", "TOTAL", "P50", "SHOWN", "PRODUCED")
"""The columns that a narrow terminal does without, in this order."""

_EIGHTHS, _LEVELS = "▏▎▍▌▋▊▉█", "▁▂▃▄▅▆▇█"


def _names(ctx: click.Context, param: click.Parameter, value: tuple[str, ...]) -> tuple[str, ...]:
    """The members of `--by`."""
    del ctx, param
    names = tuple(name.strip() for one in value for name in one.split(","))
    for name in names:
        if name not in _GROUPS or names.count(name) > 1:
            known = ", ".join(_GROUPS)
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
    help=f"Group by these, in this order: {', '.join(_GROUPS)}.",
)
@click.option(
    "--surfaces",
    is_flag=True,
    help="Also count bytes shown, cut and stored, and duplicates: reads the texts of all calls.",
)
@click.option(
    "--sort",
    metavar="COLUMN",
    type=click.Choice([*_COLUMNS, *_GROUPS]),
    help=f"Sort by a group, or by {', '.join(_COLUMNS)}: numbers and times from the greatest, names"
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

    CALLS counts calls. FAILED counts those that `log --failed` lists. P50, P95 and P99 are
    durations: half of the calls, 95 % and 99 % take at most this long. TOTAL is the sum of all
    durations. PRODUCED is the size of the outputs, LOST the part that was not kept.

    With --surfaces, SHOWN is what the model saw. CUT is the number of output bytes
    that the model was not shown. STORED counts the texts of the calls, and each distinct content
    once, as compressed; content that groups share counts in each group. DUPLICATES are calls with
    the same tool and arguments as an earlier one.

    How many bytes Bash stores a day: tooltrail stats --tool Bash --by day --surfaces
    """
    sort = sort or (by[0] if by[0] in _TIMES else "calls")
    if sort in _GROUPS and sort not in by:
        raise click.UsageError(f"--sort {sort} needs --by {sort}")
    wanted = {_COLUMNS[sort][0] if sort in _COLUMNS else "", *(output.fields or "").split(",")}
    surfaces = surfaces or not wanted.isdisjoint(_ON_DEMAND)
    zone = shown_zone()
    with location.open() as store:
        reader = store.reader
        found = reader.statistics(where, by=by, zone=zone, with_surfaces=surfaces)
        has_trends = output == (None, None) and sys.stdout.isatty() and not {*by} & {*_TIMES}
        daily = reader.statistics(where, by=(*by, "day"), zone=zone) if has_trends else []
    listed = _in_order(found, sort, reverse=reverse)[: count or None]
    if not output.print_records(listed, _members_of(by)):
        _print_statistics(listed, by, daily)
    if len(listed) < len(found):
        say(f"{len(listed):,} of {counted(len(found), 'group')}; -n 0 for all")
    if damaged := sum(one.damaged_count for one in found):
        calls = counted(damaged, "call")
        say(f"{calls} with damaged values, which do not count; `tooltrail verify` names them")


def _members_of(by: Sequence[str]) -> Members:
    """The JSON fields of the numbers of a group."""
    from tooltrail.store import CallStatistics

    def of_group(name: str) -> Callable[[Any], object]:
        return lambda one: one.group[name]

    numbers = [name for name in CallStatistics.member_types if name != "group"]
    return {**{name: of_group(name) for name in by}, **attributes(*numbers)}


def _in_order(found: Sequence[CallStatistics], sort: str, *, reverse: bool) -> list[CallStatistics]:
    """Sort groups: names from A to Z, numbers and times from the greatest; without value last."""

    def value(one: CallStatistics) -> Any:
        return getattr(one, _COLUMNS[sort][0]) if sort in _COLUMNS else one.group[sort]

    known = [one for one in found if value(one) is not None]
    falls = sort in _COLUMNS or sort in _TIMES
    known.sort(key=value, reverse=falls != reverse)
    return [*known, *(one for one in found if value(one) is None)]


def _print_statistics(
    found: Sequence[CallStatistics], by: Sequence[str], daily: Sequence[CallStatistics]
) -> None:
    """Print the groups as a table, with bars and trends on a terminal.

    `daily` has the same calls by group and day, for the trends; it may be empty.
    """
    table = {name.upper(): [_name(one.group[name]) for one in found] for name in by}
    for column, (field, spelled) in _COLUMNS.items():
        values = [getattr(one, field) for one in found]
        is_unknown = all(one is None for one in values) and (found or field in _ON_DEMAND)
        if is_unknown or (column == "lost" and not any(values)):
            continue
        table[column.upper()] = [spelled(one) for one in values]
        if column == "calls" and sys.stdout.isatty():
            most = max(values, default=1)
            table[_BAR] = [_bar(one, most) for one in values]
    if trends := _trends(daily, by):
        table[_TREND] = [trends[(*one.group.values(),)] for one in found]
    right = [name.upper() for name in _COLUMNS]
    colours: Colours = {"FAILED": lambda cell: PLAIN if cell == "0" else RED}
    rows = zip(*table.values(), strict=True)
    print_table([*table], rows, right=right, colours=colours, spare=_SPARE, least=_CELL)


def _name(value: object) -> str:
    if isinstance(value, UUID):
        return short_id(value)
    if isinstance(value, datetime):
        return shown_in_list(value)
    return "(none)" if value is None else str(value)


def _bar(value: int, most: int) -> str:
    full, rest = divmod(value * _BAR_CELLS * 8 // most, 8)
    return "█" * full + (_EIGHTHS[max(rest - 1, 0)] if rest or not full else "")


def _trends(daily: Sequence[CallStatistics], by: Sequence[str]) -> dict[tuple[object, ...], str]:
    """For each group its calls per day, on the days up to that of the newest call."""
    days = [day.toordinal() if isinstance(day := one.group["day"], date) else 0 for one in daily]
    newest = max(days, default=0)
    counts: dict[tuple[object, ...], list[int]] = {}
    for one, number in zip(daily, days, strict=True):
        row = counts.setdefault(tuple(one.group[name] for name in by), [0] * _TREND_DAYS)
        if newest - number < _TREND_DAYS:
            row[number - newest - 1] = one.call_count
    return {group: _trend(row) for group, row in counts.items()}


def _trend(counts: Sequence[int]) -> str:
    most = max(counts)
    return "".join(_LEVELS[-(-count * 8 // most) - 1] if count else " " for count in counts)
