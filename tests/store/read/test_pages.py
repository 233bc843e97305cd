"""Pages and counts by every filter, against a plain filter of the same records."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any, cast
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.call_facts import moment
from tests.support.recorded_calls import Call, call, entries_of
from tests.support.store_parts import StoreParts, store_parts

from tooltrail.journal import Entry
from tooltrail.journal.clock import new_id
from tooltrail.records import InvalidRecordError
from tooltrail.records.facts import SessionOpened
from tooltrail.records.states import InvocationState
from tooltrail.store.filters import FAILED, OUTCOMES, InvocationFilter
from tooltrail.store.read import pages
from tooltrail.store.read.reader import Reader

STATES: tuple[InvocationState, ...] = (
    *("started", "success", "success", "success"),
    *("error", "interrupted", "denied", "cancelled"),
)
TOOLS = (("bash", "command"), ("cat", "command"), ("lookup", "generic"))
KINDS = ("tool_timed_out", "not_found")
AGENTS = ("main", "helper", None)
SIZES = (0, 10, 40_000, 70_000)
CALLS = 120


@dataclass(frozen=True)
class Record:
    """What a filter looks at, of one call."""

    id: UUID
    session: UUID
    seq: int
    agent: str | None
    tool: str
    family: str
    state: str
    error_kind: str | None
    exit_status: int | None
    signal: int | None
    timed_out: bool
    size: int | None
    started_at: datetime


@dataclass(frozen=True)
class Filled:
    """A store, and what was recorded in it in the order of the journal."""

    reader: Reader
    records: Sequence[Record]
    sessions: Sequence[UUID]


def made_calls(sessions: Sequence[UUID]) -> list[Call]:
    """Calls in which every value of a filter comes with every other one, more or less."""
    found: list[Call] = []
    for n in range(CALLS):
        state = STATES[n % len(STATES)]
        tool, family = TOOLS[n % 7 % len(TOOLS)]
        has_failed = state not in ("started", "success")
        end = {
            "error_kind": KINDS[n // 3 % 2] if has_failed else None,
            "exit_status": (0, 1, None, 137)[n % 11 % 4],
            "signal": (9, 15)[n % 2] if n % 11 % 4 == 2 and not has_failed else None,
            "timed_out": n % 19 == 0,
        }
        found.append(
            call(
                sessions[n % 5 % len(sessions)],
                # Some start at the same time, and some were recorded late.
                n // 2 - (30 if n % 17 == 0 else 0),
                tool=tool,
                family=family,
                state=None if state == "started" else state,
                stdout=b"x" * SIZES[n % 13 % len(SIZES)],
                receipt=b"r",
                end=end,
            )
        )
    return found


def record_of(made: Call, seq: int, agent: str | None) -> Record:
    start, end = made.started, made.ended
    return Record(
        id=start.id,
        session=start.session,
        seq=seq,
        agent=agent,
        tool=start.tool_name,
        family=start.family,
        state="started" if end is None else end.state,
        error_kind=None if end is None else end.error_kind,
        exit_status=None if end is None else end.exit_status,
        signal=None if end is None else end.signal,
        timed_out=end is not None and bool(end.timed_out),
        size=None if end is None else sum(one.produced_size for one in end.streams),
        started_at=start.at,
    )


def fill(store: StoreParts) -> Filled:
    sessions = [new_id() for _ in AGENTS]
    opened = [
        Entry(SessionOpened(session=one, at=moment(0), agent=agent))
        for one, agent in zip(sessions, AGENTS, strict=True)
    ]
    made = made_calls(sessions)
    store.ingest(*opened, *entries_of(made))
    seqs = dict.fromkeys(sessions, 0)
    records: list[Record] = []
    for one in made:
        session = one.started.session
        seqs[session] += 1
        records.append(record_of(one, seqs[session], AGENTS[sessions.index(session)]))
    return Filled(store.reader, records, sessions)


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Filled]:
    folder: Path = tmp_path_factory.mktemp("filled")
    with store_parts(str(folder / "trail.db"), folder) as store:
        yield fill(store)


def outcome_of(one: Record) -> str:
    """The outcome of a call, by the rules of the documentation."""
    if one.state == "started":
        return "unfinished"  # no program runs it
    if one.timed_out or one.error_kind == "tool_timed_out":
        return "timeout"
    if one.state != "success":
        return one.state
    if one.signal is not None:
        return "signal"
    return "exit" if one.exit_status else "ok"


def fits(where: InvocationFilter, one: Record) -> bool:
    """Whether a filter means a call, in plain Python."""
    lists = (
        (where.sessions, one.session),
        (where.invocations, one.id),
        (where.tools, one.tool),
        (where.families, one.family),
        (where.states, one.state),
        (where.outcomes, outcome_of(one)),
        (where.error_kinds, one.error_kind),
        (where.agents, one.agent),
        (where.exit_statuses, one.exit_status),
        (where.signals, one.signal),
    )
    return (
        all(not wanted or value in wanted for wanted, value in lists)
        and not (where.not_exit_statuses and one.exit_status in (None, *where.not_exit_statuses))
        and (where.since is None or one.started_at >= where.since)
        and (where.until is None or one.started_at < where.until)
        and (where.min_size is None or (one.size is not None and one.size >= where.min_size))
    )


def expected(filled: Filled, where: InvocationFilter, *, oldest_first: bool) -> list[UUID]:
    """The ids in the order of a page."""
    found = [(n, one) for n, one in enumerate(filled.records) if fits(where, one)]
    by_place = len(set(where.sessions)) == 1
    found.sort(key=lambda item: (item[1].seq if by_place else item[1].started_at, item[0]))
    ids = [one.id for _, one in found]
    return ids if oldest_first else ids[::-1]


def some(values: Sequence[Any]) -> st.SearchStrategy[Any]:
    return st.lists(st.sampled_from(values), min_size=1, max_size=3).map(tuple)


def filters(filled: Filled) -> st.SearchStrategy[InvocationFilter]:
    """Filters of one or a few members."""
    members: dict[str, st.SearchStrategy[Any]] = {
        "sessions": some([*filled.sessions, new_id()]),
        "invocations": some([one.id for one in filled.records[:9]]),
        "tools": some(["bash", "cat", "lookup", "nothing"]),
        "families": some(["command", "generic", "nothing"]),
        "states": some(sorted(set(STATES))),
        "outcomes": some(OUTCOMES),
        "error_kinds": some([*KINDS, "nothing"]),
        "agents": some(["main", "helper", "nobody"]),
        "exit_statuses": some([0, 1, 137, 5]),
        "not_exit_statuses": some([0, 1, 5]),
        "signals": some([9, 15, 3]),
        "since": st.integers(-5, 65).map(moment),
        "until": st.integers(-5, 65).map(moment),
        "min_size": st.sampled_from([0, 1, 10, 11, 32_768, 40_000, 70_000, 70_001]),
    }
    names = st.lists(st.sampled_from(sorted(members)), max_size=3, unique=True)
    return names.flatmap(
        lambda chosen: st.fixed_dictionaries({name: members[name] for name in chosen})
    ).map(lambda values: InvocationFilter(**values))


def check(
    filled: Filled, where: InvocationFilter, limit: int | None, *, oldest_first: bool
) -> None:
    """All pages of a filter, and its count, are what plain Python finds."""
    wanted = expected(filled, where, oldest_first=oldest_first)
    assert filled.reader.count_invocations(where) == len(wanted)
    seen, cursor = list[UUID](), None
    while True:
        page = filled.reader.invocations(
            where, limit=limit, cursor=cursor, oldest_first=oldest_first
        )
        assert limit is None or len(page.items) <= limit
        seen += [one.id for one in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert seen == wanted


@settings(max_examples=150)
@given(data=st.data())
def test_pages_of_every_filter_are_those_of_a_plain_filter(
    filled: Filled, data: st.DataObject
) -> None:
    where = data.draw(filters(filled))
    limit = data.draw(st.sampled_from([None, 1, 2, 7, 500]))
    check(filled, where, limit, oldest_first=data.draw(st.booleans()))


@settings(max_examples=60)
@given(data=st.data(), nearby=st.integers(1, 40))
def test_a_page_is_the_same_however_few_are_looked_through_first(
    filled: Filled, data: st.DataObject, nearby: int
) -> None:
    where = data.draw(filters(filled))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pages, "NEARBY", nearby)
        limit = data.draw(st.sampled_from([1, 3, 7]))
        check(filled, where, limit, oldest_first=data.draw(st.booleans()))


@pytest.mark.both_engines
def test_both_engines_page_by_every_member_and_pair(parts: StoreParts) -> None:
    filled = fill(parts)
    members: dict[str, Any] = {
        "sessions": tuple(filled.sessions[:2]),
        "invocations": tuple(one.id for one in filled.records[:30]),
        "tools": ("bash", "lookup"),
        "families": ("command",),
        "states": ("error", "denied"),
        "outcomes": FAILED,
        "error_kinds": ("tool_timed_out",),
        "agents": ("main",),
        "exit_statuses": (1, 137),
        "not_exit_statuses": (0,),
        "signals": (9,),
        "since": moment(10),
        "until": moment(40),
        "min_size": 40_000,
    }
    for n, pair in enumerate(combinations_with_replacement(members, 2)):
        where = InvocationFilter(**{name: members[name] for name in pair})
        check(filled, where, 9, oldest_first=n % 2 == 0)


@pytest.mark.parametrize("cursor", ["", "x", "-1", "1.5", "9" * 19, "999999"])
def test_a_cursor_that_no_page_gave_is_refused(filled: Filled, cursor: str) -> None:
    with pytest.raises(InvalidRecordError, match="not a cursor"):
        filled.reader.invocations(limit=5, cursor=cursor)


def test_a_list_of_nothing_is_refused(filled: Filled) -> None:
    with pytest.raises(InvalidRecordError, match="shows nothing"):
        filled.reader.invocations(limit=0)


@pytest.mark.parametrize(
    ("call", "problem"),
    [
        (lambda reader: reader.invocations(limit="20"), "limit must be of type int, not str"),
        (lambda reader: reader.retries(limit=2.5), "limit must be of type int, not float"),
        (lambda reader: reader.invocations(cursor=5), "cursor must be of type str, not int"),
        (lambda reader: reader.invocations("Bash"), "where must be of type InvocationFilter"),
        (lambda reader: reader.count_invocations(None), "where must be of type InvocationFilter"),
        (lambda reader: reader.sessions("Bash"), "where must be of type InvocationFilter"),
        (lambda reader: reader.retries("Bash"), "where must be of type InvocationFilter"),
        (lambda reader: reader.statistics("Bash"), "where must be of type InvocationFilter"),
        (lambda reader: reader.statistics(by=5), "by must be of type Sequence, not int"),
        (lambda _: InvocationFilter(expression=cast("Any", "x")), "filter expression must be of "),
        (lambda _: InvocationFilter(min_size=cast("Any", "5")), "filter min_size must be of type"),
        (lambda _: InvocationFilter(since=cast("Any", "now")), "filter since must be of type"),
    ],
)
def test_a_wrong_type_is_no_damage(
    parts: StoreParts, call: Callable[[Any], object], problem: str
) -> None:
    with pytest.raises(InvalidRecordError, match=problem):
        call(parts.reader)


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(InvalidRecordError, match="has no zone"):
        InvocationFilter(since=moment(0).replace(tzinfo=None))


def test_a_filter_that_can_fit_nothing_is_refused(filled: Filled) -> None:
    with pytest.raises(InvalidRecordError, match="filter states has 'finished'"):
        InvocationFilter(states=("finished",))
    with pytest.raises(InvalidRecordError, match="filter outcomes has 'sucess'"):
        InvocationFilter(outcomes=("sucess",))
    with pytest.raises(InvalidRecordError, match="filter tools takes a tuple"):
        InvocationFilter(tools="Bash")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
    for where in (InvocationFilter(min_size=1 << 70), InvocationFilter(exit_statuses=(1, 1 << 70))):
        with pytest.raises(InvalidRecordError):
            filled.reader.invocations(where)


@pytest.mark.parametrize("word", ["\0", "\ud800", "' OR 1=1 --", "%"])
def test_odd_words_in_a_filter_find_nothing(filled: Filled, word: str) -> None:
    for where in (
        InvocationFilter(tools=(word,)),
        InvocationFilter(families=(word,)),
        InvocationFilter(error_kinds=(word,)),
        InvocationFilter(agents=(word,)),
    ):
        assert filled.reader.count_invocations(where) == 0


def test_times_of_other_zones_are_the_same_moments(filled: Filled) -> None:
    there = timezone(timedelta(hours=-9, minutes=-30))
    for since in (moment(10), moment(40)):
        here = filled.reader.count_invocations(InvocationFilter(since=since))
        elsewhere = InvocationFilter(since=since.astimezone(there))
        assert filled.reader.count_invocations(elsewhere) == here
