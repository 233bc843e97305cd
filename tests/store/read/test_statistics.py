"""Statistics of groups of calls, against plain computations from the same records."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from tests.importers.sources import CORPUS
from tests.support.call_facts import EPOCH
from tests.support.recorded_calls import Call, call, entries_of
from tests.support.store_parts import StoreParts, store_parts

from tooltrail.importers import Importer, session_files
from tooltrail.journal import Entry
from tooltrail.journal.clock import new_id
from tooltrail.records import InvalidRecordError
from tooltrail.records.facts import SessionOpened
from tooltrail.records.states import InvocationState
from tooltrail.store import CallStatistics, InvocationFilter, Reader, open_store
from tooltrail.store.expressions import Comparison
from tooltrail.store.read.statistics import GroupValue

A, B, C = (new_id() for _ in range(3))
AGENTS = {A: "main", B: "helper", C: None}
ENDS: tuple[tuple[InvocationState | None, dict[str, object], str], ...] = (
    ("success", {"exit_status": 0}, "ok"),
    ("success", {"exit_status": 2}, "exit"),
    ("success", {"exit_status": None, "signal": 9}, "signal"),
    ("success", {"exit_status": None, "timed_out": True}, "timeout"),
    ("error", {"error_kind": "not_found"}, "error"),
    ("denied", {"error_kind": "permission_denied"}, "denied"),
    ("interrupted", {"error_kind": "interrupted"}, "interrupted"),
    ("cancelled", {"error_kind": "cancelled"}, "cancelled"),
    (None, {}, "unfinished"),
)


@dataclass(frozen=True)
class Record:
    """What counts of one call."""

    made: Call
    group: dict[str, GroupValue]
    outcome: str
    duration: int | None
    size: int | None
    shown: int | None

    @property
    def asked(self) -> tuple[object, bytes]:
        return self.group["tool"], self.made.arguments


def made_calls() -> list[Record]:
    """Calls in which all kinds of ends, tools, sessions and sizes come together."""
    found: list[Record] = []
    for n in range(180):
        state, end, outcome = ENDS[n * 7 % 13 % len(ENDS)]
        session = (A, B, C)[n % 5 % 3]
        tool, family = (("bash", "command"), ("cat", "command"), ("find", "generic"))[n % 7 % 3]
        duration, size = (n * 37) % 101, (0, 10, 4_000)[n % 3]
        seconds = n * 5_400.0
        made = call(
            session,
            seconds,
            tool=tool,
            family=family,
            arguments=b'{"n":%d}' % (n % 50),
            stdout=b"x" * size,
            state=state,
            receipt=b"r" * (n % 30),
            end={"duration_ms": duration, **end},
        )
        at = EPOCH + timedelta(seconds=seconds)
        group: dict[str, GroupValue] = {
            "tool": tool,
            "family": family,
            "agent": AGENTS[session],
            "session": session,
        }
        group |= {"outcome": outcome, "day": at.date()}
        group |= {"hour": at.replace(minute=0, second=0, microsecond=0)}
        ended = (None, None, None) if state is None else (duration, size, n % 30)
        found.append(Record(made, group, outcome, *ended))
    return found


def fill(parts: StoreParts) -> list[Record]:
    opened = [
        Entry(SessionOpened(session=one, at=EPOCH, agent=agent)) for one, agent in AGENTS.items()
    ]
    records = made_calls()
    parts.ingest(*opened, *entries_of([one.made for one in records]))
    return records


def nearest_rank(durations: Sequence[int], share: int) -> int | None:
    """The least duration that so many percent of all do not exceed."""
    return min(
        (
            one
            for one in durations
            if sum(other <= one for other in durations) * 100 >= share * len(durations)
        ),
        default=None,
    )


def expected(records: Sequence[Record], group: dict[str, GroupValue]) -> CallStatistics:
    """The numbers of a group, from its records."""
    durations = [one.duration for one in records if one.duration is not None]
    sizes = [one.size for one in records if one.size is not None]
    outcomes = [one.outcome for one in records]
    return CallStatistics(
        group=group,
        call_count=len(records),
        failed_count=sum(one not in ("ok", "unfinished") for one in outcomes),
        outcomes={one: outcomes.count(one) for one in outcomes},
        p50_ms=nearest_rank(durations, 50),
        p95_ms=nearest_rank(durations, 95),
        p99_ms=nearest_rank(durations, 99),
        total_ms=sum(durations) if durations else None,
        produced_bytes=sum(sizes) if sizes else None,
        lost_bytes=0 if sizes else None,
        damaged_count=0,
        **dict.fromkeys(("shown_bytes", "cut_bytes", "stored_bytes", "duplicate_count")),
    )


def by_group(records: Sequence[Record], by: Sequence[str]) -> list[CallStatistics]:
    groups: dict[tuple[GroupValue, ...], list[Record]] = {}
    for one in records:
        groups.setdefault(tuple(one.group[name] for name in by), []).append(one)
    return [expected(some, dict(zip(by, key, strict=True))) for key, some in groups.items()]


def in_one_order(found: Sequence[CallStatistics]) -> list[CallStatistics]:
    return sorted(found, key=lambda one: str(one.group))


@pytest.mark.both_engines
def test_every_group_has_the_numbers_of_its_calls(parts: StoreParts) -> None:
    records = fill(parts)
    names = ("tool", "family", "agent", "session", "outcome", "day", "hour")
    for by in [*((name,) for name in names), ("tool", "day"), ("day", "agent", "outcome")]:
        found = parts.reader.statistics(by=by)
        assert in_one_order(found) == in_one_order(by_group(records, by))
        counts = [one.call_count for one in found]
        assert counts == sorted(counts, reverse=True)


@pytest.mark.both_engines
def test_only_calls_that_match_count(parts: StoreParts) -> None:
    records = fill(parts)
    since, until = datetime(2026, 1, 3, tzinfo=UTC), datetime(2026, 1, 5, tzinfo=UTC)
    some: list[tuple[InvocationFilter, str, tuple[object, ...]]] = [
        (InvocationFilter(tools=("bash", "cat")), "tool", ("bash", "cat")),
        (InvocationFilter(sessions=(A, C)), "session", (A, C)),
        (InvocationFilter(agents=("helper",)), "agent", ("helper",)),
        (InvocationFilter(outcomes=("exit", "denied")), "outcome", ("exit", "denied")),
        (InvocationFilter(since=since, until=until), "day", (date(2026, 1, 3), date(2026, 1, 4))),
        (InvocationFilter(tools=("nothing",)), "tool", ()),
    ]
    for where, name, values in some:
        matching = [one for one in records if one.group[name] in values]
        found = parts.reader.statistics(where, by=("family", "outcome"))
        assert in_one_order(found) == in_one_order(by_group(matching, ("family", "outcome")))


@pytest.mark.both_engines
def test_quantiles_are_those_of_the_nearest_rank(parts: StoreParts) -> None:
    durations = {
        f"tool{n}": [i * 7919 % 211 for i in range(n)] for n in (1, 2, 19, 20, 21, 100, 101)
    }
    parts.ingest(
        *entries_of(
            [
                call(A, tool=tool, receipt=b"", end={"duration_ms": one})
                for tool, some in durations.items()
                for one in some
            ]
        )
    )
    found = {str(one.group["tool"]): one for one in parts.reader.statistics()}
    assert {tool: (one.p50_ms, one.p95_ms, one.p99_ms) for tool, one in found.items()} == {
        tool: tuple(nearest_rank(some, share) for share in (50, 95, 99))
        for tool, some in durations.items()
    }


@pytest.mark.both_engines
def test_days_and_hours_are_those_of_the_time_zone(parts: StoreParts) -> None:
    zone = ZoneInfo("Europe/Berlin")
    # The clocks were set back from 3:00 to 2:00 at 1:00 UTC.
    hours = [datetime(2025, 10, 25, 22, 30, tzinfo=UTC) + timedelta(hours=n) for n in range(5)]
    before = datetime(2025, 10, 25, 21, 59, 59, 999_999, tzinfo=UTC)
    at = [(one - EPOCH).total_seconds() for one in (before, *hours)]
    parts.ingest(*entries_of([call(A, one, receipt=b"") for one in at]))
    days = parts.reader.statistics(by=("day",), zone=zone)
    assert {one.group["day"]: one.call_count for one in days} == {
        date(2025, 10, 25): 1,
        date(2025, 10, 26): 5,
    }
    summer, winter = (timezone(timedelta(hours=n)) for n in (2, 1))
    found = [one.group["hour"] for one in parts.reader.statistics(by=("hour",), zone=zone)]
    assert sorted(map(str, found)) == [
        str(datetime(2025, 10, 25, 23, tzinfo=summer)),
        str(datetime(2025, 10, 26, 0, tzinfo=summer)),
        str(datetime(2025, 10, 26, 1, tzinfo=summer)),
        str(datetime(2025, 10, 26, 2, tzinfo=winter)),
        str(datetime(2025, 10, 26, 2, tzinfo=summer)),
        str(datetime(2025, 10, 26, 3, tzinfo=winter)),
    ]
    in_nepal = parts.reader.statistics(by=("hour",), zone=ZoneInfo("Asia/Kathmandu"))
    assert {str(one.group["hour"])[11:] for one in in_nepal} == {
        f"{hour:02}:00:00+05:45" for hour in (3, 4, 5, 6, 7, 8)
    }


@pytest.mark.both_engines
def test_surfaces_are_counted_on_demand(parts: StoreParts) -> None:
    records = fill(parts)
    assert parts.reader.statistics()[0].shown_bytes is None
    asked: set[tuple[object, bytes]] = set()
    duplicates: Counter[object] = Counter()
    for record in records:
        duplicates[record.group["tool"]] += record.asked in asked
        asked.add(record.asked)
    found = parts.reader.statistics(with_surfaces=True)
    for one in found:
        some = [record for record in records if record.group["tool"] == one.group["tool"]]
        ended = [record for record in some if record.shown is not None]
        assert one.shown_bytes == sum(record.shown or 0 for record in ended)
        assert one.cut_bytes == sum(
            max((record.size or 0) - (record.shown or 0), 0) for record in ended
        )
        assert one.duplicate_count == duplicates[one.group["tool"]]
    plain = by_group(records, ("tool",))
    assert {str(one.group): one.p95_ms for one in found} == {
        str(one.group): one.p95_ms for one in plain
    }


@pytest.mark.both_engines
def test_the_call_that_was_stored_later_is_the_duplicate(parts: StoreParts) -> None:
    first = call(A, 9, receipt=b"r", end={"exit_status": 0})
    again = call(A, 1, receipt=b"r", end={"exit_status": 1})  # stored later, started before
    parts.ingest(*entries_of([first, again]))
    where = InvocationFilter(expression=Comparison("family", "=", "command"))
    found = parts.reader.statistics(where, by=("outcome",), with_surfaces=True)
    counts = {one.group["outcome"]: one.duplicate_count for one in found}
    assert counts == {"ok": 0, "exit": 1}


@pytest.mark.both_engines
def test_content_that_several_calls_share_is_stored_once_in_a_group(parts: StoreParts) -> None:
    log = b"".join(b"line %d\n" % n for n in range(40_000))
    some = [call(A, n, tool=tool, stdout=log) for n, tool in enumerate(("bash", "bash", "cat"))]
    parts.ingest(*entries_of(some))
    size = "length(CAST({0} AS BLOB))" if parts.is_sqlite else "octet_length({0})"
    texts = " + ".join(
        size.format(name) for name in ("arguments", "output", "canonical", "receipt")
    )
    sizes = [
        int(row[0]) for row in parts.run(f"SELECT {texts} FROM surfaces ORDER BY invocation_key")
    ]
    ((stored,),) = parts.run("SELECT stored_size FROM artifacts")
    assert 0 < stored < len(log)
    found = {
        one.group["tool"]: one.stored_bytes for one in parts.reader.statistics(with_surfaces=True)
    }
    assert found == {"bash": sizes[0] + sizes[1] + stored, "cat": sizes[2] + stored}


@pytest.mark.parametrize(
    ("change", "by"),
    [
        ("duration_ms = 'x'", "outcome"),
        ("output_size = 'large'", "outcome"),
        ("tool_name = CAST(x'ff' AS TEXT)", "tool"),
        ("tool_name = x'00'", "tool"),
        ("started_at = 'never'", "day"),
        ("started_at = 9223372036854775807", "hour"),
        ("session_key = 77", "session"),
    ],
)
def test_a_damaged_row_is_counted_and_hides_no_other(
    parts: StoreParts, change: str, by: str
) -> None:
    made = [call(A, n, receipt=b"r", stdout=b"out", end={"duration_ms": n}) for n in (1, 2, 3)]
    parts.ingest(*entries_of(made))
    parts.alter(f"UPDATE invocations SET {change} WHERE seq = 2")
    found = parts.reader.statistics(by=(by,), with_surfaces=True)
    assert sum(one.call_count for one in found) == 3
    assert sum(one.damaged_count for one in found) == 1
    if by == "outcome":
        (all_of_them,) = found
        is_duration = change.startswith("duration")
        assert all_of_them.total_ms == (4 if is_duration else 6)
        assert all_of_them.produced_bytes == (9 if is_duration else 6)
    else:
        assert [one.group[by] for one in found if one.damaged_count] == [None]


@pytest.mark.both_engines
@pytest.mark.parametrize("key", [(1 << 63) - 1, -(1 << 62)])
def test_a_key_far_from_the_others_costs_no_time_and_hides_no_call(
    parts: StoreParts, key: int
) -> None:
    parts.ingest(*entries_of([call(A, n, receipt=b"r") for n in (1, 2, 3)]))
    parts.alter(f"UPDATE invocations SET key = {key} WHERE seq = 2")
    (found,) = parts.reader.statistics()
    assert found.call_count == 3


def test_a_time_that_no_calendar_has_is_damage(postgres_url: str, tmp_path: Path) -> None:
    with store_parts(postgres_url, tmp_path) as parts:
        parts.ingest(*entries_of([call(A, n, receipt=b"r") for n in (1, 2)]))
        parts.alter("UPDATE invocations SET started_at = 'infinity' WHERE seq = 2")
        for by in ("day", "hour"):
            found = parts.reader.statistics(by=(by,))
            counts = {one.group[by] is None: one.damaged_count for one in found}
            assert counts == {False: 0, True: 1}


@pytest.mark.parametrize("by", [(), ("colour",), ("tool", "tool"), "tool"])
def test_unknown_groups_are_refused(parts: StoreParts, by: Sequence[str]) -> None:
    with pytest.raises(InvalidRecordError, match="not grouped by"):
        parts.reader.statistics(by=by)


def test_batches_are_added_up(parts: StoreParts) -> None:
    """More calls than one query reads, with surfaces."""
    made = [call(A, n, receipt=b"r", arguments=b"%d" % (n % 300)) for n in range(600)]
    parts.ingest(*entries_of(made))
    (found,) = parts.reader.statistics(with_surfaces=True)
    assert (found.call_count, found.shown_bytes, found.duplicate_count) == (600, 600, 300)


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the shared corpus is not beside the repository")
def test_real_sessions_have_the_numbers_that_sql_finds(tmp_path: Path) -> None:
    importer = Importer(tmp_path / "tooltrail.db-spool", None)
    for file in session_files(CORPUS / "codex"):
        importer.import_file(file)
    with open_store(tmp_path / "tooltrail.db", create=True) as store:
        store.ingest()
        check_with_sql(store.reader)


def check_with_sql(reader: Reader) -> None:
    """Compare the numbers of each tool with those of plain SQL."""
    found = reader.statistics(with_surfaces=True)
    assert sum(one.call_count for one in found) > 700
    with reader.database.read() as connection:
        for one in found:
            tool = one.group["tool"]
            of_tool = (
                "FROM invocations i JOIN surfaces s ON s.invocation_key = i.key WHERE tool_name = ?"
            )
            ((calls, failed, total, produced, shown, distinct),) = connection.query(
                "SELECT count(*), sum(outcome NOT IN ('ok', 'running', 'unfinished')),"
                " sum(duration_ms),"
                " sum(output_size), sum(length(CAST(receipt AS BLOB))),"
                f" count(DISTINCT arguments) {of_tool}",
                (tool,),
            )
            durations = connection.query(
                f"SELECT duration_ms {of_tool} AND duration_ms IS NOT NULL", (tool,)
            )
            quantiles = [
                nearest_rank([row[0] for row in durations], share) for share in (50, 95, 99)
            ]
            assert (one.call_count, one.failed_count, one.total_ms) == (calls, failed, total)
            assert (one.produced_bytes, one.shown_bytes) == (produced, shown)
            assert [one.p50_ms, one.p95_ms, one.p99_ms] == quantiles
            assert (one.duplicate_count, one.damaged_count) == (calls - distinct, 0)
