"""The fields and the table of `tooltrail stats`."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from datetime import date, datetime
from typing import TYPE_CHECKING, Any, Final
from uuid import UUID

from tooltrail.cli._output import Members, attributes, duration_of, size_of
from tooltrail.cli._tables import PLAIN, RED, Colours, print_table
from tooltrail.cli._times import shown_in_list
from tooltrail.records.ids import short_id

if TYPE_CHECKING:
    from tooltrail.store import CallStatistics

GROUPS: Final = ("tool", "family", "agent", "session", "outcome", "day", "hour")
"""By what calls can be grouped, listed here so that `--help` does not import the store."""

TIMES: Final = ("day", "hour")

ON_DEMAND: Final = ("shown_bytes", "cut_bytes", "stored_bytes", "duplicate_count")
"""The numbers that are read with the surfaces of the calls."""

_Format = Callable[[Any], str]


def _number(count: int | None) -> str:
    return "" if count is None else f"{count:,}"


COLUMNS: Final[Mapping[str, tuple[str, _Format]]] = {
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


def members_of(by: Sequence[str]) -> Members:
    """The JSON fields of the numbers of a group."""
    from tooltrail.store import CallStatistics  # noqa: PLC0415  not for --help

    def of_group(name: str) -> Callable[[Any], object]:
        return lambda one: one.group[name]

    numbers = [one.name for one in fields(CallStatistics) if one.name != "group"]
    return {**{name: of_group(name) for name in by}, **attributes(*numbers)}


def in_order(
    found: Sequence[CallStatistics], column: str, *, reverse: bool
) -> list[CallStatistics]:
    """Sort groups: names from A to Z, numbers and times from the greatest; without value last."""

    def value(one: CallStatistics) -> Any:
        return getattr(one, COLUMNS[column][0]) if column in COLUMNS else one.group[column]

    known = [one for one in found if value(one) is not None]
    falls = column in COLUMNS or column in TIMES
    known.sort(key=value, reverse=falls != reverse)
    return [*known, *(one for one in found if value(one) is None)]


def print_statistics(
    found: Sequence[CallStatistics],
    by: Sequence[str],
    daily: Sequence[CallStatistics],
) -> None:
    """Print the groups as a table, with bars and trends on a terminal.

    `daily` has the same calls by group and day, for the trends; it may be empty.
    """
    table = {name.upper(): [_name(one.group[name]) for one in found] for name in by}
    for column, (field, spelled) in COLUMNS.items():
        values = [getattr(one, field) for one in found]
        is_unknown = all(one is None for one in values) and (found or field in ON_DEMAND)
        if is_unknown or (column == "lost" and not any(values)):
            continue
        table[column.upper()] = [spelled(one) for one in values]
        if column == "calls" and sys.stdout.isatty():
            most = max(values, default=1)
            table[_BAR] = [_bar(one, most) for one in values]
    if trends := _trends(daily, by):
        table[_TREND] = [trends[(*one.group.values(),)] for one in found]
    right = [name.upper() for name in COLUMNS]
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
