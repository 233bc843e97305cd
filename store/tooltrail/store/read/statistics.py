"""Statistics of groups of calls.

The calls are read in batches by their keys, and added up in Python. Quantiles in the database would
need a sort, which takes longer, and which SQLite may do in memory. Here each duration costs eight
bytes. With surfaces, each distinct content of a group, and each distinct call, costs its digest.

A value that cannot be read is left out and counted, so that a damaged row hides nothing else.
"""

from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime, timedelta, timezone, tzinfo
from functools import cache
from hashlib import blake2b
from typing import Any, Final, TypeAlias, cast
from uuid import UUID

from tooltrail.records.errors import InvalidRecordError, check_type
from tooltrail.records.frozen import Frozen
from tooltrail.store.engines.connection import Connection
from tooltrail.store.engines.values import EPOCH, LEAST_KEY
from tooltrail.store.filters import FAILED, OUTCOMES, InvocationFilter
from tooltrail.store.read.columns import NO_ID, make_view
from tooltrail.store.read.conditions import conditions_of, time_conditions
from tooltrail.store.read.pages import WITH_SESSION
from tooltrail.store.read.rows import Row, Sql, fetch, fetch_each, fetch_value, where

GroupValue: TypeAlias = str | UUID | date | datetime | None

_SOURCES: Final = {
    "tool": "invocations.tool_name",
    "family": "invocations.family",
    "agent": "sessions.agent",
    "session": "sessions.id",
    "outcome": "invocations.outcome",
}
"""The column of each group that is no time."""

GROUPS: Final = (*_SOURCES, "day", "hour")
"""By what calls can be grouped."""

_QUARTER: Final = timedelta(minutes=15)
"""The clocks of all time zones differ by a multiple of this. So few times have to be converted."""

_SQLITE_QUARTER: Final = (
    "CASE typeof(invocations.started_at) WHEN 'integer' THEN invocations.started_at / 900000000"
    " - (invocations.started_at % 900000000 < 0) END"
)
_POSTGRESQL_QUARTER: Final = (
    "CASE WHEN isfinite(invocations.started_at)"
    " THEN CAST(floor(extract(epoch FROM invocations.started_at) / 900) AS bigint) END"
)
"""The number of quarters from 1970 to the start of a call; NULL for a damaged time."""

QUANTILES: Final = (50, 95, 99)

_LARGEST_KEY: Final = (1 << 63) - 1

_COLUMNS: Final = tuple(
    f"invocations.{name}" for name in ("key", "outcome", "duration_ms", "output_size", "lost_size")
)
"""The first columns of each row. Those of the texts follow, then those of the groups."""

_TEXTS: Final = ("receipt", "arguments", "output", "canonical")

_READABLE: Final = {int, type(None)}
"""The types of readable numbers."""

_BATCH, _BATCH_OF_TEXTS = 20_000, 250
"""Calls in one query, without and with their arguments, which may be long."""

_CONTENTS: Final = """
SELECT used.invocation_key, used.digest, coalesce(length(bodies.data), artifacts.stored_size)
FROM {} AS used LEFT JOIN bodies ON bodies.digest = used.digest
LEFT JOIN artifacts ON artifacts.digest = used.digest WHERE {}"""
_USES: Final = (
    Sql(_CONTENTS.format("streams", "used.receipt_offset IS NULL AND ")),
    Sql(_CONTENTS.format("invocation_artifacts", "")),
)
"""The streams and artifacts of calls. A stream that is in the receipt is not stored again."""


class CallStatistics(Frozen):
    """How often, how long and how much: the calls of one group.

    Attributes:
        group: the value of each member of `by`; None if it is damaged, or if there is no agent.
            `day` is a date and `hour` its first moment, in the requested time zone.
        failed_count: calls whose outcome is one of `FAILED`.
        outcomes: the number of calls of each outcome that occurs.
        p50_ms: the least duration that at least half of the calls do not exceed. Calls without a
            duration do not count.
        total_ms: the sum of all durations. This and the other durations are None if no call has
            one, as in some imported sessions.
        produced_bytes: what the tools produced. Of that, `lost_bytes` were not kept. Both are None
            if no call has an output.
        shown_bytes: what the model was shown; None if no call has a receipt. This and the next
            members are None unless they were asked for.
        cut_bytes: the `cut_size` of the calls with a receipt.
        stored_bytes: the texts of the calls, and their distinct contents as compressed. Content
            that several groups share counts in each of them.
        duplicate_count: calls with the tool and the arguments, byte for byte, of another call that
            matches and was stored before.
        damaged_count: calls with a value that cannot be read, and is left out.
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
    shown_bytes: int | None
    cut_bytes: int | None
    stored_bytes: int | None
    duplicate_count: int | None
    damaged_count: int


@dataclass(slots=True)
class _Sums:
    """The numbers of a group so far; `numbers` are members of `CallStatistics`."""

    outcomes: Counter[str] = field(default_factory=Counter[str])
    durations: "array[int]" = field(default_factory=lambda: array("q"))
    contents: dict[bytes, int] = field(default_factory=dict[bytes, int])
    numbers: Counter[str] = field(default_factory=Counter[str])

    def add(self, row: Row, called: set[bytes]) -> None:
        """Add a call: `_COLUMNS` and, if requested, its texts. `called` has the calls before it."""
        _, outcome, duration, produced, lost, *texts = row
        numbers = self.numbers
        self.outcomes[outcome] += 1
        if type(duration) is int:
            self.durations.append(duration)
        if type(produced) is int:
            numbers["produced_bytes"] += produced
            numbers["lost_bytes"] += lost if type(lost) is int else 0
        if not {type(duration), type(produced), type(lost)} <= _READABLE:
            numbers["damaged_count"] += 1
        if not texts:
            return
        *sizes, cut, arguments, tool = texts
        numbers["stored_bytes"] += sum(filter(None, sizes))
        if sizes[0] is not None:
            numbers["shown_bytes"] += sizes[0]
            numbers["cut_bytes"] += cut if type(cut) is int else 0
        if arguments is not None:  # not erased
            text = f"{tool!r} {arguments!r}".encode("utf-8", "surrogatepass")
            call = blake2b(text, digest_size=16).digest()
            numbers["duplicate_count"] += call in called
            called.add(call)

    def view(self, group: Mapping[str, GroupValue]) -> CallStatistics:
        """The numbers for the caller."""
        numbers: dict[str, Any] = {"damaged_count": 0, **self.numbers}
        numbers["call_count"] = self.outcomes.total()
        numbers["failed_count"] = sum(self.outcomes[name] for name in FAILED)
        if any(value is None for name, value in group.items() if name != "agent"):
            numbers["damaged_count"] = self.outcomes.total()
        if "stored_bytes" in numbers:
            numbers["stored_bytes"] += sum(self.contents.values())
        if durations := sorted(self.durations):
            numbers["total_ms"] = sum(durations)
            for share in QUANTILES:
                numbers[f"p{share}_ms"] = durations[-(-len(durations) * share // 100) - 1]
        outcomes = {name: self.outcomes[name] for name in OUTCOMES if self.outcomes[name]}
        return make_view(CallStatistics, numbers, group=group, outcomes=outcomes)


def call_statistics(
    connection: Connection,
    filters: InvocationFilter,
    by: Sequence[str],
    zone: tzinfo | None,
    *,
    with_surfaces: bool,
) -> list[CallStatistics]:
    """See `Reader.statistics`."""
    check_type("where", filters, InvocationFilter)
    check_type("by", by, Sequence)
    if isinstance(by, str) or not by or len({*by} & {*GROUPS}) < len(by):
        raise InvalidRecordError(f"calls are not grouped by {by!r:.80}, but by {', '.join(GROUPS)}")

    @cache
    def group_of(values: tuple[Any, ...]) -> tuple[GroupValue, ...]:
        return tuple(_value(name, value, zone) for name, value in zip(by, values, strict=True))

    found: defaultdict[tuple[GroupValue, ...], _Sums] = defaultdict(_Sums)
    called: set[bytes] = set()
    for rows in _batches(connection, filters, by, with_surfaces=with_surfaces):
        owners: dict[int, _Sums] = {}
        for row in rows:
            sums = owners[row[0]] = found[group_of(tuple(row[-len(by) :]))]
            sums.add(row[: -len(by)], called)
        for use in _USES if with_surfaces and owners else ():
            used = fetch_each(connection, use, "used.invocation_key", [*owners])
            for key, digest, size in used:
                owners[key].contents[bytes(digest)] = size or 0
    views = [sums.view(dict(zip(by, group, strict=True))) for group, sums in found.items()]
    return sorted(views, key=lambda one: (-one.call_count, str([*one.group.values()])))


def _batches(
    connection: Connection, filters: InvocationFilter, by: Sequence[str], *, with_surfaces: bool
) -> Iterator[Sequence[Row]]:
    """The rows of the calls that match: `_COLUMNS`, the texts if requested, and the groups."""
    quarter = _SQLITE_QUARTER if connection.is_sqlite else _POSTGRESQL_QUARTER
    columns, source = [*_COLUMNS], WITH_SESSION
    if with_surfaces:
        size = "length(CAST({} AS BLOB))" if connection.is_sqlite else "octet_length({})"
        texts = [f"surfaces.{name}" for name in _TEXTS]
        columns += [*map(size.format, texts), "surfaces.cut_size"]
        columns += ["surfaces.arguments", "invocations.tool_name"]
        source += " LEFT JOIN surfaces ON surfaces.invocation_key = invocations.key"
    columns += [_SOURCES.get(name, quarter) for name in by]
    # Without an index of the filter: each batch is a range of keys.
    others = filters.replaced(since=None, until=None)
    conditions = [*conditions_of(others, lead="key"), *time_conditions(filters, indexed=False)]
    step = _BATCH_OF_TEXTS if with_surfaces else _BATCH
    following = "SELECT min(key) FROM invocations WHERE key > ?"
    last = LEAST_KEY
    # A damaged row may have a key far behind the others.
    while (first := fetch_value(connection, Sql(following, (last,)))) is not None:
        last = min(first + step - 1, _LARGEST_KEY)
        near = Sql("invocations.key BETWEEN ? AND ?", (first, last))
        query = Sql(f"SELECT {', '.join(columns)} FROM {source}") + where([near, *conditions])
        yield fetch(connection, query + " ORDER BY invocations.key")


def _value(name: str, value: object, zone: tzinfo | None) -> GroupValue:
    """The value of one group; None if it cannot be read."""
    if name == "session" and isinstance(value, bytes):
        return UUID(bytes=value) if len(value) == len(NO_ID.bytes) else None
    if name in _SOURCES:
        return value if isinstance(value, str | UUID) else None
    try:
        start = EPOCH + cast("int", value) * _QUARTER
        local = start.astimezone(zone)
    except (TypeError, ValueError, OverflowError):
        return None
    if name == "day":
        return local.date()
    # With a fixed offset: when clocks are set back, two hours differ by their offset alone.
    clock = timezone(local.utcoffset() or timedelta())
    return (start - timedelta(minutes=local.minute)).astimezone(clock)
