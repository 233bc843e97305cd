"""Lists of very many invocations, found by what ranges of them tell, beside plain Python."""

import os
import random
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import delete, event, func, insert, select, update
from tests.support.chance import (
    AGENTS,
    BEGINNING,
    ORACLE,
    STATES,
    TOOLS,
    Fact,
    fact_row,
    insert_facts,
    random_facts,
    uneven_facts,
)
from tests.support.cli import HANG_S
from tests.support.processes import NOBODY, run_python
from tests.support.recording import statements_of, without_housekeeping
from tests.support.template_stores import make_store

from tooltrail.records import InvalidRecordError
from tooltrail.store import (
    InvocationFilter,
    Store,
    check_database,
    downgrade_store,
    index_invocations,
    plan_downgrade,
)
from tooltrail.store._engines.sqlite import sqlite3
from tooltrail.store._reading.members import RANGE
from tooltrail.store._reading.ranges import DUE, SETTLING, iter_made, iter_wrong, remake_all
from tooltrail.store._reading.traits import HEAD, SIZES, TIMES, Head, name_of
from tooltrail.store.filters import MOST_VALUES
from tooltrail.store.tables import InvocationRow, RangeTraitRow

MADE = 3
COUNT = MADE * RANGE + SETTLING + 300
FACTS = uneven_facts(COUNT, seed=11)
SESSIONS = sorted({fact.session for fact in FACTS})
RARE = InvocationFilter(families=("rare",))
HEADS = select(RangeTraitRow.range_number).where(RangeTraitRow.trait == HEAD)

CHOICES: dict[str, list[Any]] = {
    "sessions": [*SESSIONS, UUID(int=1)],
    "tools": [*TOOLS, "Rare", "Nothing"],
    "families": ["command", "generic", "rare", "brief", "nothing"],
    "states": sorted(set(STATES)),
    "statuses": ["success", "error"],
    "error_kinds": ["timeout", "broken", "nothing"],
    "agents": [*filter(None, AGENTS), "nobody"],
    "exit_statuses": [0, 1, 2, 3],
    "invocations": [*(fact.id for fact in FACTS[::900]), UUID(int=1)],
}


def made_in(store: Store) -> list[int]:
    with store.database.read() as connection:
        return sorted(connection.scalars(HEADS))


def chosen(chance: random.Random, name: str) -> object:
    if name in ("since", "until"):
        return chance.choice(FACTS).started_at + timedelta(seconds=chance.choice((0, 0.5)))
    if name == "min_size":
        return chance.choice((0, 1, 10, 300, 29_999, 30_000, 30_001, 1 << 20, 1 << 50))
    return tuple(chance.sample(CHOICES[name], chance.randint(1, min(3, len(CHOICES[name])))))


def asked(chance: random.Random) -> dict[str, Any]:
    names = chance.sample(list(ORACLE), chance.choice((1, 2, 2, 3, 4)))
    return {name: chosen(chance, name) for name in names}


def expected(facts: list[Fact], question: dict[str, Any], *, oldest_first: bool) -> list[UUID]:
    ordered = facts if oldest_first else facts[::-1]
    return [
        fact.id
        for fact in ordered
        if all(ORACLE[name](fact, value) for name, value in question.items())
    ]


def listed(store: Store, where: InvocationFilter, limit: int = 50) -> list[UUID]:
    """The newest, by pages."""
    return [view.id for view in store.reader.invocations(where, limit=limit).items]


@pytest.fixture
def filled(store: Store) -> Store:
    """A store in which three ranges were made, and some invocations come after them."""
    insert_facts(store, FACTS)
    assert list(iter_made(store.database)) == [0, 1, 2]
    return store


def test_any_page_of_any_filter_is_what_python_finds(filled: Store) -> None:
    chance = random.Random(3)
    for _ in range(150):
        question = asked(chance)
        oldest_first = chance.random() < 0.5
        whole = expected(FACTS, question, oldest_first=oldest_first)
        place = chance.choice((None, chance.randrange(1, COUNT + 2)))
        if place is not None:
            beyond = {fact.id for fact in (FACTS[:place] if oldest_first else FACTS[place - 1 :])}
            whole = [found for found in whole if found not in beyond]
        limit = chance.choice((1, 5, 20, 400, 3_000))
        page = filled.reader.invocations(
            InvocationFilter(**question),
            limit=limit,
            cursor=None if place is None else str(place),
            oldest_first=oldest_first,
        )
        assert [view.id for view in page.items] == whole[:limit], question
        assert (page.next_cursor is not None) == (len(whole) > limit), question


@pytest.mark.parametrize("oldest_first", [False, True])
def test_pages_of_what_is_rare_put_together_are_all_of_it(
    filled: Store, oldest_first: bool
) -> None:
    questions: list[dict[str, Any]] = [
        {"families": ("rare",)},
        {"tools": ("Bash",), "min_size": 30_001},
    ]
    for question in questions:
        found: list[UUID] = []
        cursor: str | None = None
        while True:
            page = filled.reader.invocations(
                InvocationFilter(**question), limit=3, cursor=cursor, oldest_first=oldest_first
            )
            found += [view.id for view in page.items]
            cursor = page.next_cursor
            if cursor is None:
                break
        assert found == expected(FACTS, question, oldest_first=oldest_first)
        assert found


def test_few_invocations_are_looked_at_for_few_of_many(filled: Store) -> None:
    for where in (
        RARE,
        InvocationFilter(tools=("Nothing",)),
        InvocationFilter(families=("brief",), statuses=("error",)),
        InvocationFilter(until=BEGINNING - timedelta(days=200), min_size=30_001),
    ):
        listed(filled, where)
        with statements_of(filled.database.engine) as statements:
            listed(filled, where)
        asked_keys = [v for s, v in statements if "range_traits" not in s and "invocations" in s]
        assert len(without_housekeeping(statements)) <= 10
        assert sum(map(len, asked_keys)) < 700


def test_a_call_that_ends_after_its_range_was_made_is_found_by_how_it_ended(store: Store) -> None:
    facts = [
        replace(fact, state="success", error_kind=None, exit_status=None, size=7, family="f")
        for fact in random_facts(DUE + 1, seed=5)
    ]
    running = (0, 1_000, RANGE - 1)
    for place in running:
        facts[place] = replace(facts[place], state="started", size=None)
    insert_facts(store, facts)
    assert list(iter_made(store.database)) == [0]
    where = InvocationFilter(exit_statuses=(9,), states=("error",), min_size=5_000)
    assert listed(store, where) == []
    assert listed(store, InvocationFilter(states=("started",))) == [
        facts[place].id for place in reversed(running)
    ]
    ended = {"state": "error", "finished_at": BEGINNING, "error_kind": "odd", "exit_status": 9}
    with store.database.write() as connection:
        ids = [facts[place].id for place in running]
        query = update(InvocationRow).where(InvocationRow.id.in_(ids))
        connection.execute(query.values(output_size=6_000, **ended))
    assert listed(store, where) == ids[::-1]
    assert listed(store, InvocationFilter(states=("started",))) == []
    assert list(iter_wrong(store.database)) == []


def test_a_row_that_is_committed_after_its_range_was_made_is_found(store: Store) -> None:
    facts = uneven_facts(DUE + 1, seed=8)
    late = facts[100:103]
    keys = [key for key in range(1, DUE + 2) if key not in (101, 102, 103)]
    insert_facts(store, [fact for fact in facts if fact not in late], keys)
    assert list(iter_made(store.database)) == [0]
    where = InvocationFilter(tools=("Late",), since=BEGINNING + timedelta(days=9))
    assert listed(store, where) == []
    moved = [replace(fact, tool="Late", started_at=BEGINNING + timedelta(days=10)) for fact in late]
    with store.database.write() as connection:
        shared = connection.execute(select(InvocationRow.__table__).limit(1)).mappings().one()
        for key, fact in enumerate(moved, 101):
            row = {**shared, **fact_row(key, fact, shared["session_key"])}
            connection.execute(insert(InvocationRow).values(row))
    assert listed(store, where) == [fact.id for fact in reversed(moved)]
    assert list(iter_wrong(store.database)) == []


def test_keys_far_from_each_other_have_no_ranges_between_them(store: Store) -> None:
    facts = uneven_facts(3 * RANGE, seed=9)
    far = 1 << 40
    keys = [*range(1, RANGE + 1), *range(far, far + 2 * RANGE)]
    insert_facts(store, facts, keys)
    assert list(iter_made(store.database)) == [0, 1, far // RANGE]
    for oldest_first in (False, True):
        page = store.reader.invocations(RARE, limit=500, oldest_first=oldest_first)
        wanted = expected(facts, {"families": ("rare",)}, oldest_first=oldest_first)
        assert [view.id for view in page.items] == wanted


def test_more_ranges_than_are_asked_at_once_are_asked_one_after_another(store: Store) -> None:
    facts = uneven_facts(2 * RANGE - 1, seed=9)
    far = 700 * RANGE
    insert_facts(store, facts, [*range(1, RANGE), *range(far, far + RANGE)])
    empty = Head(0, -1, 0, -1, 0).encode()
    assert list(iter_made(store.database)) == [0]
    with store.database.write() as connection:
        values = [{"trait": HEAD, "range_number": n, "members": empty} for n in range(1, 700)]
        connection.execute(insert(RangeTraitRow), values)
    for oldest_first in (False, True):
        page = store.reader.invocations(RARE, limit=500, oldest_first=oldest_first)
        wanted = expected(facts, {"families": ("rare",)}, oldest_first=oldest_first)
        assert [view.id for view in page.items] == wanted


def test_who_passes_by_many_makes_some_ranges_and_nobody_else_does(store: Store) -> None:
    insert_facts(store, uneven_facts(6 * RANGE + SETTLING + 1, seed=2))
    listed(store, InvocationFilter(statuses=("success",)))
    store.reader.invocations()
    store.reader.invocations(RARE)
    assert made_in(store) == []
    listed(store, RARE)
    assert made_in(store) == [0, 1, 2, 3]
    listed(store, RARE)
    assert made_in(store) == [0, 1, 2, 3, 4, 5]
    listed(store, RARE)
    assert made_in(store) == [0, 1, 2, 3, 4, 5]


def test_a_range_is_made_when_calls_after_it_have_begun(sqlite_store: Store) -> None:
    facts = random_facts(DUE, seed=6)
    insert_facts(sqlite_store, facts[:-1])
    assert list(iter_made(sqlite_store.database)) == []
    with sqlite_store.database.write() as connection:
        row = connection.execute(select(InvocationRow.__table__).limit(1)).mappings().one()
        last = {"key": DUE, "id": UUID(int=1), "seq": DUE}
        connection.execute(insert(InvocationRow).values({**row, **last}))
    assert list(iter_made(sqlite_store.database)) == [0]


def test_several_who_make_a_range_at_once_make_it_once(store: Store) -> None:
    insert_facts(store, FACTS)
    threads = [threading.Thread(target=lambda: list(iter_made(store.database))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made_in(store) == [0, 1, 2]
    assert list(iter_wrong(store.database)) == []


def test_two_who_make_all_anew_at_once_leave_none_out(store: Store) -> None:
    insert_facts(store, FACTS)
    one = remake_all(store.database)
    assert [next(one), next(one)] == [0, 1]
    # As another does at its beginning, and is killed then.
    next(remake_all(store.database))
    assert list(one) == [2]
    assert made_in(store) == [0, 2]
    assert list(iter_made(store.database)) == [1]
    assert list(iter_made(store.database)) == []
    assert list(iter_wrong(store.database)) == []


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_range_without_its_head_is_made_again_whatever_is_left_of_it(
    filled: Store, number: int
) -> None:
    lost = (RangeTraitRow.trait == HEAD) & (RangeTraitRow.range_number == number)
    with filled.database.write() as connection:
        connection.execute(delete(RangeTraitRow).where(lost))
    assert list(iter_made(filled.database)) == [number]
    assert list(iter_wrong(filled.database)) == []
    wanted = expected(FACTS, {"families": ("rare",)}, oldest_first=False)
    assert listed(filled, RARE, 500) == wanted


def test_a_child_makes_ranges_though_its_parent_was_making_some(postgres_store: Store) -> None:
    insert_facts(postgres_store, FACTS)
    is_busy, go_on = threading.Event(), threading.Event()

    def stand_still(*told: Any) -> None:
        if "NOT (EXISTS" in told[2]:
            is_busy.set()
            assert go_on.wait(HANG_S)

    engine = postgres_store.database.engine
    event.listen(engine, "before_cursor_execute", stand_still)
    maker = threading.Thread(target=listed, args=(postgres_store, RARE))
    maker.start()
    try:
        assert is_busy.wait(HANG_S)
        child = os.fork()
        if not child:
            with suppress(BaseException):
                event.remove(engine, "before_cursor_execute", stand_still)
                listed(postgres_store, RARE)
                os._exit(0 if made_in(postgres_store) == [0, 1, 2] else 1)
            os._exit(2)
        assert os.waitpid(child, 0)[1] == 0
    finally:
        go_on.set()
        maker.join()
    assert list(iter_wrong(postgres_store.database)) == []


def test_a_large_page_and_a_filter_of_very_many_values_fit_in_statements(filled: Store) -> None:
    everything = InvocationFilter(statuses=("success", "error"), families=(*CHOICES["families"],))
    question = {"statuses": ("success", "error"), "families": tuple(CHOICES["families"])}
    wanted = expected(FACTS, question, oldest_first=False)
    assert listed(filled, everything, 100_000) == wanted
    many = tuple(f"Tool {n}" for n in range(MOST_VALUES - 2))
    where = InvocationFilter(tools=(*many, "Bash"), families=("rare",))
    question = {"tools": ("Bash",), "families": ("rare",)}
    assert listed(filled, where, 100_000) == expected(FACTS, question, oldest_first=False)
    with pytest.raises(InvalidRecordError, match="has 30001 values, and may have 30000"):
        InvocationFilter(tools=(*many, "Bash"), families=("rare",), exit_statuses=(1,))


def test_a_range_that_was_not_written_to_its_end_is_none(store: Store) -> None:
    insert_facts(store, FACTS)
    if store.database.is_server:
        refuse = f"ALTER TABLE range_traits ADD CONSTRAINT no CHECK (trait <> {SIZES})"
        allow = "ALTER TABLE range_traits DROP CONSTRAINT no"
    else:
        when = f"BEFORE INSERT ON range_traits WHEN NEW.trait = {SIZES}"
        refuse = f"CREATE TRIGGER no {when} BEGIN SELECT RAISE(ABORT, 'no'); END"
        allow = "DROP TRIGGER no"
    with store.database.write() as connection:
        connection.exec_driver_sql(refuse)
    with pytest.raises(InvalidRecordError):
        list(iter_made(store.database))
    wanted = expected(FACTS, {"families": ("rare",)}, oldest_first=False)
    assert listed(store, RARE) == wanted
    with store.database.read() as connection:
        assert connection.scalar(select(func.count()).select_from(RangeTraitRow)) == 0
    with store.database.write() as connection:
        connection.exec_driver_sql(allow)
    assert list(iter_made(store.database)) == [0, 1, 2]
    assert listed(store, RARE) == wanted


def test_a_list_waits_for_no_writer_and_goes_on_without_ranges(sqlite_store: Store) -> None:
    insert_facts(sqlite_store, FACTS)
    wanted = expected(FACTS, {"families": ("rare",)}, oldest_first=False)
    writer = sqlite3.connect(str(sqlite_store.database.target), isolation_level=None)
    try:
        writer.execute("BEGIN IMMEDIATE")
        assert listed(sqlite_store, RARE) == wanted
        writer.execute("ROLLBACK")
    finally:
        writer.close()
    assert made_in(sqlite_store) == []
    # For a while nothing is tried again.
    assert listed(sqlite_store, RARE) == wanted
    assert made_in(sqlite_store) == []


READ_ALONE = """
import sys
from tooltrail.store import InvocationFilter, open_store
with open_store(sys.argv[1]) as store:
    page = store.reader.invocations(InvocationFilter(families=("rare",)), limit=500)
    print(*(view.id for view in page.items))
"""


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that another user may enter, which pytest's own are not."""
    with tempfile.TemporaryDirectory(prefix="tooltrail-") as name:
        Path(name).chmod(0o777)
        yield Path(name)


def test_who_may_only_read_finds_the_same(open_folder: Path) -> None:
    database = open_folder / "trail.db"
    with make_store(database) as store:
        insert_facts(store, FACTS)
    database.chmod(0o444)
    found, _ = run_python(READ_ALONE, str(database), user=NOBODY)
    wanted = expected(FACTS, {"families": ("rare",)}, oldest_first=False)
    assert found.split() == list(map(str, wanted))
    with sqlite3.connect(database) as connection:
        assert connection.execute("SELECT count(*) FROM range_traits").fetchone() == (0,)
    connection.close()


@pytest.mark.parametrize("trait", [HEAD, TIMES, SIZES, name_of("family", "rare")])
@pytest.mark.parametrize("data", [b"", b"\xff", b"\0" * 511, "text"])
def test_what_a_range_cannot_have_told_leaves_nothing_out_but_is_found_by_the_check(
    sqlite_store: Store, trait: int, data: bytes | str
) -> None:
    insert_facts(sqlite_store, FACTS)
    assert list(iter_made(sqlite_store.database)) == [0, 1, 2]
    with sqlite3.connect(str(sqlite_store.database.target)) as connection:
        connection.execute(
            "UPDATE range_traits SET members = ? WHERE range_number = 1 AND trait = ?",
            (data, trait),
        )
    connection.close()
    (problem,) = check_database(sqlite_store.database)
    assert problem == (
        "range 1 of invocations tells what they are not, so that lists may leave some out; "
        "`tooltrail db index` makes it anew"
    )
    if data != b"":
        old = BEGINNING - timedelta(days=100)
        questions: list[dict[str, Any]] = [
            {"families": ("rare",)},
            {"tools": ("Bash",), "since": old, "until": BEGINNING, "min_size": 29_000},
        ]
        for question in questions:
            wanted = expected(FACTS, question, oldest_first=False)
            assert listed(sqlite_store, InvocationFilter(**question), 400) == wanted[:400]
    index_invocations(sqlite_store)
    assert check_database(sqlite_store.database) == []


def test_the_check_finds_a_row_that_was_altered_behind_its_range(filled: Store) -> None:
    assert check_database(filled.database) == []
    with filled.database.write() as connection:
        gone = name_of("tool", "Bash")
        connection.execute(
            delete(RangeTraitRow).where(
                RangeTraitRow.trait == gone, RangeTraitRow.range_number == 2
            )
        )
    (problem,) = check_database(filled.database)
    assert problem.startswith("range 2 of invocations")


def test_a_damaged_invocation_keeps_no_other_range_from_being_made(sqlite_store: Store) -> None:
    insert_facts(sqlite_store, FACTS)
    with sqlite3.connect(str(sqlite_store.database.target)) as connection:
        connection.execute("DROP TRIGGER invocations_no_update")
        connection.execute("UPDATE invocations SET started_at = 'never' WHERE key = 5000")
        connection.execute("UPDATE invocations SET output_size = 'much' WHERE key = 70")
    connection.close()
    assert list(iter_made(sqlite_store.database)) == [0, 2]
    wanted = expected(FACTS, {"families": ("rare",)}, oldest_first=False)
    assert listed(sqlite_store, RARE, 500) == wanted


def test_an_index_that_is_made_anew_is_the_same(filled: Store) -> None:
    def rows() -> list[Any]:
        with filled.database.read() as connection:
            return list(connection.execute(select(RangeTraitRow.__table__)))

    before = rows()
    told: list[int] = []
    assert index_invocations(filled, told.append) == MADE
    assert told == [1, 2, 3]
    assert sorted(rows()) == sorted(before)


def test_a_downgrade_loses_nothing_with_what_is_derived(filled: Store, database: str) -> None:
    filled.close()
    assert plan_downgrade(database, "0004").losses == ()
    assert downgrade_store(database, "0004").after == "0004"
