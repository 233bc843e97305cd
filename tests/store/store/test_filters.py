"""Every filter, alone and combined, against the same question asked of Python."""

import random
from dataclasses import fields
from datetime import datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest
from tests.support.chance import (
    AGENTS,
    BEGINNING,
    ORACLE,
    STATES,
    TOOLS,
    insert_facts,
    random_facts,
)
from tests.support.recording import run_tool

from tooltrail.records import InvalidRecordError
from tooltrail.store import InvocationFilter, Store
from tooltrail.store.filters import STATES_OF_STATUS  # pyright: ignore[reportPrivateUsage]  its gaps would hide rows

FACTS = random_facts(250, seed=2026)
SESSIONS = sorted({fact.session for fact in FACTS})

CHOICES: dict[str, list[Any]] = {
    "sessions": [*SESSIONS, UUID(int=1)],
    "tools": [*TOOLS, "Nothing"],
    "families": ["command", "generic", "nothing"],
    "states": sorted(STATES),
    "statuses": ["success", "error"],
    "error_kinds": ["timeout", "broken", "nothing"],
    "agents": [*filter(None, AGENTS), "nobody"],
    "exit_statuses": [0, 1, 2, 3],
    "invocations": [*(fact.id for fact in FACTS[::3]), UUID(int=1)],
}


def moment(chance: random.Random) -> datetime:
    return BEGINNING + timedelta(seconds=chance.randrange(-10, 1010))


def chosen(chance: random.Random, name: str) -> object:
    if name in ("since", "until"):
        return moment(chance)
    if name == "min_size":
        return chance.choice((0, 1, 10, 5_000, 5_001, 1 << 40, 1 << 41))
    return tuple(chance.sample(CHOICES[name], chance.randint(1, len(CHOICES[name]))))


def filtered(name: str, value: object) -> InvocationFilter:
    conditions: dict[str, Any] = {name: value}
    return InvocationFilter(**conditions)


def expected(conditions: dict[str, Any]) -> list[UUID]:
    """Newest first, as lists are."""
    return [
        fact.id
        for fact in reversed(FACTS)
        if all(ORACLE[name](fact, value) for name, value in conditions.items())
    ]


def test_the_oracle_knows_every_field() -> None:
    assert [field.name for field in fields(InvocationFilter)] == list(ORACLE)


def test_every_filter_alone_and_combined_finds_what_python_finds(store: Store) -> None:
    insert_facts(store, FACTS)
    chance = random.Random(7)
    names = list(ORACLE)
    questions: list[dict[str, Any]] = [{}]
    for name in names:
        questions.extend({name: chosen(chance, name)} for _ in range(3))
    for _ in range(60):
        some = chance.sample(names, chance.randint(2, 4))
        questions.append({name: chosen(chance, name) for name in some})
    for question in questions:
        where = InvocationFilter(**question)
        page = store.reader.invocations(where)
        assert [view.id for view in page.items] == expected(question), question
        assert page.next_cursor is None
        assert store.reader.count_invocations(where) == len(page.items)
    assert any(expected(question) for question in questions[-60:])


def test_what_a_list_shows_is_what_was_recorded(store: Store) -> None:
    insert_facts(store, FACTS)
    for view, fact in zip(store.reader.invocations(oldest_first=True).items, FACTS, strict=True):
        assert (view.id, view.session_id, view.tool_name) == (fact.id, fact.session, fact.tool)
        assert (view.state, view.error_kind) == (fact.state, fact.error_kind)
        assert (view.started_at, view.output_size) == (fact.started_at, fact.size)
        assert view.started_at.utcoffset() == timedelta(0)


@pytest.mark.parametrize("limit", [1, 7, 249, 250, 251])
@pytest.mark.parametrize("oldest_first", [True, False])
def test_pages_put_together_are_the_whole_list(
    sqlite_store: Store, limit: int, oldest_first: bool
) -> None:
    insert_facts(sqlite_store, FACTS)
    assert_pages_fit(sqlite_store, limit, oldest_first=oldest_first)


def test_pages_fit_together_on_both_engines(store: Store) -> None:
    insert_facts(store, FACTS)
    for oldest_first in (True, False):
        assert_pages_fit(store, 17, oldest_first=oldest_first)


def assert_pages_fit(store: Store, limit: int, *, oldest_first: bool) -> None:
    for where in (InvocationFilter(), InvocationFilter(tools=("Bash",), statuses=("success",))):
        whole = store.reader.invocations(where, oldest_first=oldest_first)
        together: list[UUID] = []
        cursor: str | None = None
        while True:
            page = store.reader.invocations(
                where, limit=limit, cursor=cursor, oldest_first=oldest_first
            )
            assert len(page.items) <= limit
            together.extend(view.id for view in page.items)
            cursor = page.next_cursor
            if cursor is None:
                break
            assert len(page.items) == limit
        assert together == [view.id for view in whole.items]
        assert whole.items


def test_a_page_stays_where_it_is_when_something_is_added(store: Store) -> None:
    session = store.open_session()
    old = [run_tool(session, f"{number}").invocation_id for number in range(4)]
    first = store.reader.invocations(limit=2)
    new = run_tool(session, "new").invocation_id
    second = store.reader.invocations(limit=9, cursor=first.next_cursor)
    assert [view.id for view in (*first.items, *second.items)] == old[::-1]
    assert store.reader.invocations(limit=1).items[0].id == new


def test_a_cursor_that_no_page_gave_is_refused(store: Store) -> None:
    for cursor in ("", "-1", "1.5", "x", "٣", "1 OR 1", "9" * 19, "9" * 5_000, "1\n"):
        with pytest.raises(InvalidRecordError, match="cursor"):
            store.reader.invocations(cursor=cursor)


def test_a_list_of_nothing_is_refused(store: Store) -> None:
    run_tool(store.open_session(), "something")
    for limit in (0, -1):
        with pytest.raises(InvalidRecordError, match=f"at most {limit} rows"):
            store.reader.invocations(limit=limit)
        with pytest.raises(InvalidRecordError, match=f"at most {limit} rows"):
            store.reader.sessions(limit=limit)


def test_a_filter_that_no_row_could_be_asked_is_refused(store: Store) -> None:
    for where in (
        InvocationFilter(since=datetime(2026, 1, 1)),  # noqa: DTZ001  the missing zone is the point
        InvocationFilter(min_size=1 << 70),
        InvocationFilter(exit_statuses=(1, 1 << 70)),
    ):
        with pytest.raises(InvalidRecordError):
            store.reader.invocations(where)


def test_a_filter_that_can_fit_nothing_is_refused() -> None:
    with pytest.raises(InvalidRecordError, match="filter states has 'finished'"):
        InvocationFilter(states=("finished",))
    with pytest.raises(InvalidRecordError, match="filter statuses has 'sucess'"):
        InvocationFilter(statuses=("sucess",))
    with pytest.raises(InvalidRecordError, match="filter tools takes a tuple"):
        InvocationFilter(tools="Bash")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]


def test_times_of_other_zones_are_the_same_moments(store: Store) -> None:
    insert_facts(store, FACTS)
    there = timezone(timedelta(hours=-9, minutes=-30))
    at = BEGINNING + timedelta(seconds=500)
    for name in ("since", "until"):
        here = store.reader.count_invocations(filtered(name, at))
        elsewhere = filtered(name, at.astimezone(there))
        assert here == store.reader.count_invocations(elsewhere)
        assert here == len(expected({name: at}))


def test_odd_words_in_a_filter_find_nothing_and_break_nothing(store: Store) -> None:
    insert_facts(store, FACTS)
    for word in ("\0", "\ud800", "' OR 1=1 --", "%"):
        for name in ("tools", "families", "error_kinds", "agents"):
            assert store.reader.count_invocations(filtered(name, (word,))) == 0
    assert store.reader.count_invocations(InvocationFilter(tools=("re\0ad",))) > 0


def test_the_states_of_the_statuses_are_all_final_states() -> None:
    covered = [state for states in STATES_OF_STATUS.values() for state in states]
    assert sorted(covered) == sorted(set(STATES) - {"started"})
