"""Statistics of groups of calls, computed by the database.

The first query counts the calls of a group that have the same duration and outcome together.
Quantiles are exact: they are taken from these counts, in the order of the durations. Two more
queries go through the texts and the contents of the calls, on demand.

All queries read from `calls`: the calls that match, each with the values of its group. A number
that cannot be read counts as missing, so that a damaged row hides nothing else.
"""

from bisect import bisect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from typing import Any, Final, TypeAlias
from uuid import UUID

from tooltrail.journal.clock import now
from tooltrail.records.errors import InvalidRecordError
from tooltrail.store.engines.connection import Connection
from tooltrail.store.filters import FAILED, OUTCOMES, InvocationFilter
from tooltrail.store.read.columns import Columns, Computed, make_view
from tooltrail.store.read.conditions import conditions_of
from tooltrail.store.read.pages import WITH_SESSION
from tooltrail.store.read.rows import Sql, fetch, joined, where

GroupValue: TypeAlias = str | UUID | date | datetime | None

_Query: TypeAlias = tuple[Mapping[str, str], str]
"""The numbers of a query by name, as SQL, and the rows that they are computed from."""

_KINDS: Final = {
    "tool": "text",
    "family": "text",
    "agent": "text",
    "session": "id",
    "outcome": "text",
    "day": "integer",
    "hour": "time",
}
_SOURCES: Final = {
    "tool": "invocations.tool_name",
    "family": "invocations.family",
    "agent": "sessions.agent",
    "session": "sessions.id",
    "outcome": "invocations.outcome",
}
"""The columns of groups that are no unit of time."""

GROUPS: Final = tuple(_KINDS)
"""By what calls can be grouped."""

QUANTILES: Final = (50, 95, 99)

_HOUR: Final = 3_600_000_000
_UNITS: Final = {"day": 24 * _HOUR, "hour": _HOUR}
"""The length of each unit of time, in microseconds."""

_YEAR_1: Final = -62_135_596_800_000_000
"""The first day of `date` in microseconds since 1970."""

_FIRST, _LAST = datetime(1, 1, 2, tzinfo=UTC), datetime(9999, 12, 30, tzinfo=UTC)
"""The times that have a day in every time zone."""

_OLDEST: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""Earlier times have the UTC offset of this one."""

_WEEK_S: Final = 7 * 86_400

_LARGEST: Final = 1 << 43
"""Largest readable duration or size. The sum of a million of them fits into 64 bits."""

_READ: Final = ("duration_ms", "output_size", "lost_size")

_TEXTS: Final = ("arguments", "output", "canonical", "receipt")
_STORED: Final = (*_TEXTS, "content")
"""The parts of a stored call; the queries name their numbers `PART_size`."""


@dataclass(frozen=True, slots=True)
class CallStatistics:
    """How often, how long and how much: the calls of one group.

    Attributes:
        group: the value of each member of `by`. It is None if the call has none, or if the value is
            damaged. `day` is a date and `hour` its first moment, in the requested time zone.
        failed_count: calls whose outcome is neither `ok` nor `running`.
        outcomes: the number of calls of each outcome that occurs.
        p50_ms: the least duration that at least half of the calls do not exceed. Calls without a
            duration do not count.
        total_ms: the sum of all durations. This and the other durations are None if no call has
            one, as in some imported sessions.
        produced_bytes: what the tools produced. Of that, `lost_bytes` were not kept. Both are None
            if no call has an output.
        damaged_count: calls with a value that cannot be read, and is left out.
        shown_bytes: what the model was shown; None if no call has a receipt. This and the next
            members are None unless they were asked for.
        cut_bytes: by how much outputs are longer than what was shown of them.
        stored_bytes: the texts of the calls, and their distinct contents as compressed. Content
            that several groups share counts in each of them.
        duplicate_count: calls with the same tool and the same arguments, byte for byte, as an
            earlier call among those that match.
    """

    group: Mapping[str, GroupValue]
    call_count: int
    failed_count: int
    outcomes: Mapping[str, int]
    p50_ms: int | None
    p95_ms: int | None
    p99_ms: int | None
    total_ms: int | None
    produced_bytes: int | None
    lost_bytes: int | None
    damaged_count: int
    shown_bytes: int | None
    cut_bytes: int | None
    stored_bytes: int | None
    duplicate_count: int | None


def call_statistics(
    connection: Connection,
    filters: InvocationFilter,
    by: Sequence[str],
    zone: tzinfo | None,
    *,
    with_surfaces: bool,
) -> list[CallStatistics]:
    """See `Reader.statistics`."""
    if isinstance(by, str) or not by or len({*by} & {*GROUPS}) < len(by):
        raise InvalidRecordError(f"calls are not grouped by {by!r:.80}, but by {', '.join(GROUPS)}")
    calls = _calls(connection, filters, by, zone)
    groups = ", ".join(f"g{n}" for n in range(len(by)))
    queries = [_durations(groups)]
    if with_surfaces:
        queries += [_texts(connection, groups), _contents(groups)]
    found: dict[tuple[object, ...], dict[str, int]] = {}
    for numbers, source in queries:
        columns = ", ".join(f"CAST({number} AS bigint)" for number in numbers.values())
        query = f" SELECT {groups}, {columns} FROM {source} GROUP BY {groups}"
        for row in fetch(connection, calls + query):
            values = dict(zip(numbers, row[len(by) :], strict=True))
            found.setdefault(tuple(row[: len(by)]), {}).update(values)
    keys = Columns(optional=[Computed("", name, _KINDS[name]) for name in by])
    views = [_view(keys, key, numbers, zone) for key, numbers in found.items()]
    return sorted(views, key=lambda one: (-one.call_count, str([*one.group.values()])))


def _view(
    keys: Columns, key: Sequence[Any], numbers: dict[str, int], zone: tzinfo | None
) -> CallStatistics:
    group, problems = keys.read(key)
    if group.get("day") is not None:
        group["day"] = date.fromordinal(group["day"] + 1)
    if group.get("hour") is not None:
        group["hour"] = group["hour"].astimezone(zone)
    outcomes = {name: numbers[name] for name in OUTCOMES if numbers[name]}
    if problems:
        numbers["damaged_count"] = numbers["call_count"]
    if "shown_bytes" in numbers:
        numbers["stored_bytes"] = sum(numbers.get(f"{name}_size", 0) for name in _STORED)
    failed = sum(outcomes.get(name, 0) for name in FAILED)
    return make_view(CallStatistics, numbers, group=group, outcomes=outcomes, failed_count=failed)


def _calls(
    connection: Connection, filters: InvocationFilter, by: Sequence[str], zone: tzinfo | None
) -> Sql:
    """The common part of all queries."""
    groups = [_group(connection, name, zone) + f" AS g{n}" for n, name in enumerate(by)]
    others = ("key", "tool_name", "started_at", "outcome")
    read = "CASE WHEN invocations.{0} BETWEEN 0 AND {1} THEN invocations.{0} END AS {0}"
    is_damaged = " OR ".join(f"invocations.{one} NOT BETWEEN 0 AND {_LARGEST}" for one in _READ)
    columns = [
        *groups,
        *(Sql(f"invocations.{one} AS {one}") for one in others),
        *(Sql(read.format(one, _LARGEST)) for one in _READ),
        Sql(f"CASE WHEN {is_damaged} THEN 1 ELSE 0 END AS damaged"),
    ]
    selected = Sql("WITH calls AS (SELECT ") + joined(", ", columns) + f" FROM {WITH_SESSION}"
    return selected + where(conditions_of(filters)) + ")"


def _durations(groups: str) -> _Query:
    """All numbers that are in the table of calls."""
    part = f"PARTITION BY {groups}, duration_ms IS NULL"
    numbers = {
        "call_count": "sum(calls)",
        **{name: _total(f"CASE WHEN outcome = '{name}' THEN calls END") for name in OUTCOMES},
        **{
            f"p{share}_ms": f"min(CASE WHEN rank * 100 >= timed * {share} THEN duration_ms END)"
            for share in QUANTILES
        },
        "total_ms": "sum(duration_ms * calls)",
        "produced_bytes": "sum(produced)",
        "lost_bytes": "sum(lost)",
        "damaged_count": _total("damaged"),
    }
    return numbers, f"""(
        SELECT counted.*, sum(calls) OVER ({part} ORDER BY duration_ms) AS rank,
            sum(calls) OVER ({part}) AS timed
        FROM (
            SELECT {groups}, outcome, duration_ms, count(*) AS calls, sum(output_size) AS produced,
                sum(lost_size) AS lost, sum(damaged) AS damaged
            FROM calls GROUP BY {groups}, outcome, duration_ms
        ) AS counted
    ) AS ranked"""


def _texts(connection: Connection, groups: str) -> _Query:
    """All numbers that need the texts of the calls."""
    size = "length(CAST({} AS BLOB))" if connection.is_sqlite else "octet_length({})"
    sizes = ", ".join(f"{size.format(name)} AS {name}_size" for name in _TEXTS)
    numbers = {
        "shown_bytes": "sum(receipt_size)",
        "cut_bytes": _total(
            "CASE WHEN output_size > receipt_size THEN output_size - receipt_size END"
        ),
        **{f"{name}_size": _total(f"{name}_size") for name in _TEXTS},
        "duplicate_count": _total("CASE WHEN nth > 1 AND arguments_size IS NOT NULL THEN 1 END"),
    }
    return numbers, f"""(
        SELECT {groups}, output_size, {sizes},
            row_number() OVER (PARTITION BY tool_name, arguments ORDER BY started_at, key) AS nth
        FROM calls JOIN surfaces ON surfaces.invocation_key = calls.key
    ) AS measured"""


def _contents(groups: str) -> _Query:
    """The stored size of the distinct streams and artifacts."""
    used = " UNION ".join(
        f"SELECT {groups}, {table}.digest FROM calls JOIN {table}"
        f" ON {table}.invocation_key = calls.key{condition}"
        for table, condition in (
            ("streams", " WHERE streams.receipt_offset IS NULL"),
            ("invocation_artifacts", ""),
        )
    )
    size = "coalesce(length(bodies.data), artifacts.stored_size)"
    return {"content_size": _total(size)}, (
        f"({used}) AS used LEFT JOIN bodies ON bodies.digest = used.digest"
        " LEFT JOIN artifacts ON artifacts.digest = used.digest"
    )


def _total(of: str) -> str:
    return f"coalesce(sum({of}), 0)"


def _group(connection: Connection, name: str, zone: tzinfo | None) -> Sql:
    """The value of a call that puts it into a group."""
    if name in _SOURCES:
        # The order of an index saves the sorting. Looking up its rows one by one takes longer.
        return Sql(f"+{_SOURCES[name]}")
    at, unit = "invocations.started_at", _UNITS[name]
    passed = at if connection.is_sqlite else f"CAST(extract(epoch FROM {at}) * 1000000 AS bigint)"
    ahead = _ahead(zone)
    count = Sql(f"({passed} - ({_YEAR_1}) - ") + ahead + f") / {unit}"
    value = count if name == "day" else count + f" * {unit} - ({-_YEAR_1}) - (-" + ahead + ")"
    return Sql(f"CASE WHEN {at} BETWEEN ? AND ? THEN ", (_FIRST, _LAST)) + value + " END"


def _ahead(zone: tzinfo | None) -> Sql:
    """By how many microseconds UTC is ahead of the clocks of a zone when a call starts."""

    def at(second: int) -> int:
        offset = datetime.fromtimestamp(second, UTC).astimezone(zone).utcoffset()
        assert offset is not None
        return -offset // timedelta(microseconds=1)

    first = int(_OLDEST.timestamp())
    changes = [(first, at(first))]
    for second in range(first, int(now().timestamp()) + _WEEK_S, _WEEK_S):
        last = changes[-1][1]
        if at(second + _WEEK_S) != last:
            week = range(second, second + _WEEK_S + 1)
            change = week[bisect(week, False, key=lambda one: at(one) != last)]
            changes.append((change, at(change)))
    cases = [
        Sql(f"WHEN invocations.started_at >= ? THEN {value} ", (datetime.fromtimestamp(one, UTC),))
        for one, value in reversed(changes)
    ]
    return Sql("(CASE ") + joined("", cases) + f"ELSE {changes[0][1]} END)"
