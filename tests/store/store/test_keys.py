"""What is recorded under a key is recorded once, whoever asks for it and however often."""

import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy import delete, func, select, text, update
from tests.support.effort import times
from tests.support.ended import BASH, failed, made
from tests.support.evidence import check_evidence
from tests.support.processes import finish_all, start_worker
from tests.support.rows import all_rows
from tests.support.threads import at_once

from tooltrail.records import (
    DEFAULT_POLICY,
    CompleteOutput,
    IdempotencyConflictError,
    InvalidRecordError,
    NotFoundError,
    SessionClosedError,
    ToolCall,
)
from tooltrail.store import (
    EndedCall,
    Finished,
    Loss,
    Session,
    Store,
    open_store,
    plan_downgrade,
)
from tooltrail.store._recording.keys import KEY_CHARS, Claim, claim, take
from tooltrail.store.tables import IdempotencyKeyRow

BIG = b"a line of a long output\n" * 50_000
MOMENT = datetime(2025, 3, 4, 5, 6, 7, tzinfo=UTC)
CALL = EndedCall(BASH, made(), started_at=MOMENT, finished_at=MOMENT + timedelta(seconds=1))


def record(session: Session, call: EndedCall, key: str | None = "k") -> Finished:
    return session.record(
        call.call,
        call.output,
        family=call.family,
        policy=call.policy,
        started_at=call.started_at,
        finished_at=call.finished_at,
        idempotency_key=key,
    )


def rows(store: Store) -> object:
    with store.database.read() as connection:
        return all_rows(connection)


@pytest.mark.parametrize("output", [made(), made(BIG, b"x", 1), failed()])
def test_the_same_again_changes_nothing_and_gives_what_was_recorded_first(
    store: Store, database: str, tmp_path: Path, output: CompleteOutput
) -> None:
    session = store.open_session()
    call = replace(CALL, output=output)
    first = record(session, call)
    before = rows(store)
    assert record(session, call) == first
    with open_store(database, artifacts=str(tmp_path / "artifacts")) as other:
        assert record(other.join_session(session.id), call) == first
    session.close()
    assert record(session, call) == first
    assert rows(store) != before  # the session is closed by now
    assert store.reader.counts().invocations == {first.state: 1}
    check_evidence(store)


def test_what_was_shown_first_is_handed_back_whatever_the_budgets_are_now(store: Store) -> None:
    session = store.open_session()
    small = DEFAULT_POLICY.for_tool("Bash", preview_chars=900)
    call = replace(CALL, output=made(BIG))
    first = record(session, replace(call, policy=small))
    assert record(session, call) == first
    assert len(first.receipt.text) < 2_000
    assert first.receipt.policy_digest == small.covering(store.families).digest


@pytest.mark.parametrize(
    "other",
    [
        replace(CALL, output=made(b"other\n")),
        replace(CALL, output=made(exit_status=1)),
        replace(CALL, output=failed()),
        replace(CALL, call=ToolCall.of("Bash", {"command": "make all"}, call_id="call 1")),
        replace(CALL, call=BASH.model_copy(update={"call_id": "call 2"})),
        replace(CALL, call=BASH.model_copy(update={"call_id": None})),
        replace(CALL, started_at=MOMENT - timedelta(microseconds=1)),
        replace(CALL, finished_at=None),
        replace(CALL, output=failed(), family="generic"),
    ],
)
def test_the_same_key_for_something_else_is_an_error_that_names_both(
    store: Store, other: EndedCall
) -> None:
    session = store.open_session()
    first = record(session, CALL)
    before = rows(store)
    with pytest.raises(IdempotencyConflictError) as caught:
        record(session, other)
    error = caught.value
    assert (error.key, error.kind, error.subject_id) == ("k", "invocation", first.invocation_id)
    assert error.recorded != error.given
    for part in ("'k'", str(first.invocation_id), error.recorded, error.given):
        assert part in str(error)
    with store.database.read() as connection:
        assert connection.scalar(select(IdempotencyKeyRow.fingerprint)) == error.recorded
    assert rows(store) == before
    assert record(session, CALL) == first


def test_in_another_session_it_is_something_else(store: Store) -> None:
    first = record(store.open_session(), CALL)
    with pytest.raises(IdempotencyConflictError, match=str(first.invocation_id)):
        record(store.open_session(), CALL)


@pytest.mark.parametrize(
    "same",
    [
        replace(CALL, policy=DEFAULT_POLICY.for_tool("Bash", preview_chars=900)),
        replace(CALL, family="command"),
        replace(CALL, call=BASH.model_copy(update={"title": "make it"})),
        replace(CALL, started_at=MOMENT.astimezone()),
    ],
)
def test_what_says_the_same_in_another_way_is_the_same(store: Store, same: EndedCall) -> None:
    session = store.open_session()
    assert record(session, CALL) == record(session, same)


def test_times_that_were_not_given_make_no_difference(store: Store) -> None:
    session = store.open_session()
    timeless = EndedCall(BASH, made())
    assert record(session, timeless) == record(session, timeless)


def test_a_key_names_a_session_or_an_invocation(store: Store) -> None:
    session = store.open_session(idempotency_key="s")
    with pytest.raises(IdempotencyConflictError) as caught:
        record(session, CALL, "s")
    assert (caught.value.kind, caught.value.subject_id) == ("session", session.id)
    finished = record(session, CALL)
    with pytest.raises(IdempotencyConflictError) as caught:
        store.open_session(idempotency_key="k")
    assert (caught.value.kind, caught.value.subject_id) == ("invocation", finished.invocation_id)


@pytest.mark.parametrize("key", ["", "k" * (KEY_CHARS + 1)])
def test_a_key_that_is_empty_or_too_long_is_refused(store: Store, key: str) -> None:
    session = store.open_session()
    for attempt in (partial(record, session, CALL, key), partial(open_with, store, key)):
        with pytest.raises(InvalidRecordError, match="1 to 1,000 characters"):
            attempt()
    assert store.reader.counts().invocations == {}


def open_with(store: Store, key: str) -> Session:
    return store.open_session(idempotency_key=key)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=times(10))
@given(keys=st.lists(st.text(st.characters(codec=None), min_size=1), min_size=2, unique=True))
def test_keys_are_any_text_and_no_two_are_one(store: Store, keys: list[str]) -> None:
    session = store.open_session()
    calls = [replace(CALL, output=made(b"%d" % n)) for n in range(len(keys))]
    keys = [f"{session.id}{key}" for key in keys]  # examples share the store
    first = [record(session, call, key) for call, key in zip(calls, keys, strict=True)]
    again = [record(session, call, key) for call, key in zip(calls, keys, strict=True)]
    assert first == again
    assert len({one.invocation_id for one in first}) == len(keys)


def test_odd_keys_that_are_spelled_alike_are_not_the_same(store: Store) -> None:
    session = store.open_session()
    keys = ["a\0", "a\\0", "\ud800", "\\ud800", "é", "e\N{COMBINING ACUTE ACCENT}", "k" * KEY_CHARS]
    found = {record(session, CALL, key).invocation_id for key in keys}
    assert len(found) == len(keys)
    with pytest.raises(IdempotencyConflictError, match=r"ud800"):
        record(session, replace(CALL, output=made(b"x")), "\ud800")
    check_evidence(store)


# Sessions


def test_a_session_with_a_key_is_opened_once(store: Store) -> None:
    parent = store.open_session()
    first = store.open_session(title="a", agent="b", parent=parent.id, idempotency_key="s")
    again = store.open_session(title="a", agent="b", parent=parent.id, idempotency_key="s")
    assert (again.id, again.key) == (first.id, first.key)
    assert len(store.reader.sessions()) == 2
    again.record(BASH, made())
    check_evidence(store)


def test_importing_twice_records_everything_once(store: Store) -> None:
    for _ in range(2):
        with store.open_session(title="a", idempotency_key="s") as session:
            for n in range(3):
                record(session, replace(CALL, output=made(b"%d\n" % n)), f"call {n}")
    assert store.reader.counts().invocations == {"success": 3}
    with pytest.raises(SessionClosedError):
        record(store.open_session(title="a", idempotency_key="s"), CALL, "new")
    check_evidence(store)


@pytest.mark.parametrize("name", ["title", "agent", "parent"])
def test_a_session_of_other_content_is_a_conflict(store: Store, name: str) -> None:
    parent = store.open_session().id
    first = store.open_session(title="a", agent="b", idempotency_key="s")
    before = rows(store)
    changed: dict[str, str | UUID] = {"title": "a", "agent": "b"}
    changed[name] = parent if name == "parent" else "other"
    with pytest.raises(IdempotencyConflictError, match=str(first.id)):
        store.open_session(idempotency_key="s", **changed)  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  by name
    with pytest.raises(NotFoundError):
        store.open_session(parent=uuid4(), idempotency_key="t")
    assert rows(store) == before


# Several at once


def test_of_threads_with_one_key_one_records_and_all_are_told_the_same(
    store: Store, database: str, tmp_path: Path
) -> None:
    session = store.open_session()
    with open_store(database, artifacts=str(tmp_path / "artifacts")) as other:
        joined = other.join_session(session.id)
        tasks = [partial(record, one, CALL) for one in (session, joined) * 4]
        told = at_once(*tasks)
    assert told == [told[0]] * len(tasks)
    assert store.reader.counts().invocations == {"success": 1}
    check_evidence(store)


def test_of_threads_with_one_key_and_other_content_one_records_and_the_others_are_refused(
    store: Store,
) -> None:
    sessions = [store.open_session() for _ in range(6)]

    def attempt(session: Session) -> str:
        try:
            return str(record(session, CALL).invocation_id)
        except IdempotencyConflictError as error:
            return f"not {error.subject_id}"

    told = [str(one) for one in at_once(*(partial(attempt, session) for session in sessions))]
    (winner,) = (one for one in told if not one.startswith("not"))
    assert sorted(told) == sorted([winner, *[f"not {winner}"] * 5])
    assert store.reader.counts().invocations == {"success": 1}
    check_evidence(store)


def test_of_threads_that_open_a_session_with_one_key_all_have_the_same(store: Store) -> None:
    tasks: list[Callable[[], object]] = [lambda: store.open_session(idempotency_key="s").id] * 6
    assert len(set(at_once(*tasks))) == 1
    assert len(store.reader.sessions()) == 1
    check_evidence(store)


def test_of_processes_with_one_key_one_records_and_all_are_told_the_same(
    store: Store, database: str, tmp_path: Path
) -> None:
    artifacts = str(tmp_path / "artifacts")
    workers = [start_worker("once", database, artifacts, "50") for _ in range(3)]
    told = set(finish_all(workers))
    assert len(told) == 1
    assert len(set(told.pop().split())) == 50
    assert store.reader.counts().invocations == {"success": 50}
    assert len(store.reader.sessions()) == 1
    check_evidence(store)


def test_who_waits_for_one_that_comes_to_nothing_records_it_itself(postgres_store: Store) -> None:
    session = postgres_store.open_session()
    waiting = text(
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )

    def is_waited_for() -> bool:
        with postgres_store.database.read() as connection:
            return bool(connection.scalar(waiting))

    def give_up(pool: ThreadPoolExecutor) -> Future[Finished]:
        with postgres_store.database.write() as connection:
            assert take(connection, [another_claim()]) == {}
            future = pool.submit(record, session, CALL)
            while not is_waited_for():
                assert not future.done()
                time.sleep(0.01)
            connection.rollback()
        return future

    with ThreadPoolExecutor(1) as pool:
        future = give_up(pool)
        assert future.result().state == "success"
    assert postgres_store.reader.counts().invocations == {"success": 1}
    check_evidence(postgres_store)


def another_claim() -> Claim:
    return claim("k", "invocation", uuid4(), {}, MOMENT)


# The table


def test_a_key_is_never_changed_or_deleted(store: Store) -> None:
    record(store.open_session(), CALL)
    for change in (delete(IdempotencyKeyRow), update(IdempotencyKeyRow).values(name="x")):
        with (
            pytest.raises(InvalidRecordError, match="idempotency_keys is append-only"),
            store.database.write() as connection,
        ):
            connection.execute(change)
    with store.database.read() as connection:
        assert connection.scalar(select(func.count()).select_from(IdempotencyKeyRow)) == 1


def test_a_downgrade_says_how_many_keys_it_would_lose(store: Store, database: str) -> None:
    record(store.open_session(), CALL)
    assert plan_downgrade(database, "0002").losses == (Loss("idempotency_keys", None, 1),)
