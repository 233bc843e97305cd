"""Writes that come together are committed together, and each is told how its own went."""

import ctypes
import os
import signal
import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path

import pytest
from sqlalchemy import Connection, event, text
from tests.support.ended import BASH, made
from tests.support.evidence import check_evidence
from tests.support.recording import command_output, run_command
from tests.support.waiting import until

from tooltrail.records import (
    IdempotencyConflictError,
    InvocationFinishedError,
    SessionClosedError,
    ToolCall,
    UnavailableError,
)
from tooltrail.store import Invocation, MessageView, Session, Store
from tooltrail.store._engines import sqlite_connections as connections
from tooltrail.store._engines.sqlite import sqlite3
from tooltrail.store._engines.turns import WriteTurns
from tooltrail.store._recording.group_commit import GroupCommit, Write
from tooltrail.store._recording.starting import plan_start

WRITERS = 12


@contextmanager
def busy(store: Store) -> Generator[None]:
    """Another program writes, and whoever else wants to waits until the block ends."""
    other = sqlite3.connect(str(store.database.target), isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    try:
        yield
    finally:
        other.execute("ROLLBACK")
        other.close()


@contextmanager
def counted_commits(store: Store) -> Generator[list[None]]:
    """How many transactions that wrote were committed in the block."""
    commits: list[None] = []

    def count(connection: Connection) -> None:
        if not connection.get_execution_options().get("tooltrail_read_only", False):
            commits.append(None)

    event.listen(store.database.engine, "commit", count)
    try:
        yield commits
    finally:
        event.remove(store.database.engine, "commit", count)


def messages_of(store: Store, session: Session) -> Sequence[MessageView]:
    return store.reader.conversation(session.id)[1]


def waiting_count(group: GroupCommit) -> int:
    return len(group._waiting)  # pyright: ignore[reportPrivateUsage]  nothing else tells it


def all_waiting(
    store: Store, pool: ThreadPoolExecutor, tasks: Sequence[Callable[[], object]]
) -> list[Future[object]]:
    """Begin tasks that write once each; back when the first leads and all others wait for it.

    The store is to be `busy`.
    """
    group = store.writes
    futures = [pool.submit(tasks[0])]
    # It has taken its own, and nobody else's.
    until(lambda: group._leader is not None and not waiting_count(group))  # pyright: ignore[reportPrivateUsage]
    futures += [pool.submit(task) for task in tasks[1:]]
    until(lambda: waiting_count(group) == len(tasks) - 1)
    return futures


def test_what_comes_while_others_commit_is_committed_together(sqlite_store: Store) -> None:
    sessions = [sqlite_store.open_session() for _ in range(WRITERS)]

    def task(session: Session) -> Callable[[], object]:
        return lambda: session.add_message("user", "hello")

    with ThreadPoolExecutor(WRITERS) as pool, counted_commits(sqlite_store) as commits:
        with busy(sqlite_store):
            futures = all_waiting(sqlite_store, pool, [task(session) for session in sessions])
            assert not any(future.done() for future in futures)
        for future in futures:
            future.result()
    assert len(commits) == 2
    for session in sessions:
        assert len(messages_of(sqlite_store, session)) == 1
    check_evidence(sqlite_store)


def test_a_key_that_is_taken_does_not_undo_what_others_commit_with_it(
    sqlite_store: Store,
) -> None:
    sessions = [sqlite_store.open_session() for _ in range(4)]

    def task(session: Session, key: str) -> Callable[[], object]:
        return lambda: session.record(BASH, made(), idempotency_key=key)

    tasks = [task(sessions[0], "a"), task(sessions[1], "a"), task(sessions[0], "a")]
    tasks += [task(session, str(session.id)) for session in sessions]
    with ThreadPoolExecutor(len(tasks)) as pool, counted_commits(sqlite_store) as commits:
        with busy(sqlite_store):
            futures = all_waiting(sqlite_store, pool, tasks)
        first, conflict, same, *others = futures
        assert isinstance(conflict.exception(), IdempotencyConflictError)
        assert first.result() == same.result()
        assert len({str(other.result()) for other in others}) == len(sessions)
    assert len(commits) == 2
    assert sqlite_store.reader.counts().invocations == {"success": 5}
    check_evidence(sqlite_store)


def test_one_that_is_refused_does_not_keep_the_others_from_it(sqlite_store: Store) -> None:
    good = [sqlite_store.open_session() for _ in range(WRITERS)]
    closed = sqlite_store.open_session()
    closed.close()

    def task(session: Session) -> Callable[[], object]:
        return lambda: session.add_message("user", "hello")

    tasks = [task(session) for session in (*good[:6], closed, *good[6:])]
    with ThreadPoolExecutor(len(tasks)) as pool:
        with busy(sqlite_store):
            futures = all_waiting(sqlite_store, pool, tasks)
        refused = [future for future in futures if future.exception() is not None]
    assert len(refused) == 1
    with pytest.raises(SessionClosedError, match=str(closed.id)):
        refused[0].result()
    for session in good:
        assert len(messages_of(sqlite_store, session)) == 1
    check_evidence(sqlite_store)


def test_of_two_ends_of_one_call_in_one_transaction_one_is_told(sqlite_store: Store) -> None:
    session = sqlite_store.open_session()
    invocation = session.start(ToolCall(tool_name="Bash"))
    key, again = invocation._key, plan_start(sqlite_store, invocation.call, None, None)  # pyright: ignore[reportPrivateUsage]
    other = Invocation(sqlite_store, session, key, again)
    output = command_output(invocation, b"out\n")
    tasks: list[Callable[[], object]] = [lambda: session.add_message("user", "first")]
    tasks += [partial(one.finish, output) for one in (invocation, other)]
    with ThreadPoolExecutor(3) as pool:
        with busy(sqlite_store):
            futures = all_waiting(sqlite_store, pool, tasks)
        errors = [future.exception() for future in futures]
    assert sorted(map(str, map(type, errors))) == sorted(
        map(str, [type(None), type(None), InvocationFinishedError])
    )
    assert sqlite_store.reader.invocation(invocation.id).summary.state == "success"


@pytest.mark.parametrize("ended", [SystemExit, KeyboardInterrupt, ValueError])
def test_what_ends_one_thread_is_nothing_to_the_others(
    sqlite_store: Store, ended: type[BaseException]
) -> None:
    session = sqlite_store.open_session()

    def raising(_: Connection) -> None:
        raise ended

    def end() -> type[BaseException] | None:
        try:
            sqlite_store.writes.run(Write(raising))
        except BaseException as error:  # noqa: BLE001  that is what is asked
            return type(error)
        return None

    tasks: list[Callable[[], object]] = [end, *[lambda: session.add_message("user", "hello")] * 3]
    for first in (0, 1):  # as the leader, and as one of those who wait
        tasks = tasks[first:] + tasks[:first]
        with ThreadPoolExecutor(4) as pool:
            with busy(sqlite_store):
                futures = all_waiting(sqlite_store, pool, tasks)
            results = [future.result(60) for future in futures]
        assert ended in results
    assert len(messages_of(sqlite_store, session)) == 6
    session.add_message("user", "goes on")


def test_one_that_leaves_while_it_waits_is_not_committed_behind_its_back(
    sqlite_store: Store,
) -> None:
    session, group = sqlite_store.open_session(), sqlite_store.writes
    write = Write(lambda _: None)
    done: list[str] = []

    def wait() -> None:
        try:
            group.run(write)
        except TimeoutError:
            done.append("left")

    waiting = threading.Thread(target=wait)
    with ThreadPoolExecutor(1) as pool:
        with busy(sqlite_store):
            (future,) = all_waiting(sqlite_store, pool, [lambda: session.add_message("user", "a")])
            waiting.start()
            until(lambda: waiting_count(group) == 1)
            _raise_in(waiting, TimeoutError)
            write.turn.set()  # the thread takes notice when it runs again
            waiting.join(60)
            assert (done, waiting_count(group), write.is_uncertain) == (["left"], 0, False)
        future.result(60)
    session.add_message("user", "goes on")


def _raise_in(thread: threading.Thread, error: type[BaseException]) -> None:
    assert thread.ident is not None
    name, kind = ctypes.c_ulong(thread.ident), ctypes.py_object(error)
    assert ctypes.pythonapi.PyThreadState_SetAsyncExc(name, kind) == 1


def test_each_is_told_as_soon_as_its_own_record_is_durable(sqlite_store: Store) -> None:
    session = sqlite_store.open_session()
    newcomer = threading.Event()

    def stay(_: Connection) -> None:
        assert newcomer.wait(60)

    tasks: list[Callable[[], object]] = [lambda: session.add_message("user", "x")] * WRITERS
    with ThreadPoolExecutor(WRITERS + 1) as pool:
        with busy(sqlite_store):
            futures = all_waiting(
                sqlite_store, pool, [*tasks, lambda: sqlite_store.writes.run(Write(stay))]
            )
        try:
            futures[0].result(60)  # which led, and what comes after it stays for long
            assert not any(future.done() for future in futures[1:])
        finally:
            newcomer.set()
        for future in futures:
            future.result(60)
    assert len(messages_of(sqlite_store, session)) == WRITERS


def test_a_record_that_is_made_while_its_thread_leads_waits_for_nobody(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "BUSY_TIMEOUT_S", 0.2)
    sqlite_store.close()
    group = sqlite_store.writes

    def records(_: Connection) -> None:
        group.run(Write(lambda _: None))

    with ThreadPoolExecutor(1) as pool:
        # The database is its own, and it is told so instead of waiting for itself.
        assert isinstance(pool.submit(group.run, Write(records)).exception(60), UnavailableError)
        pool.submit(group.run, Write(lambda _: None)).result(60)


@pytest.mark.parametrize("on_unavailable", ["raise"])
def test_a_signal_handler_that_records_while_its_thread_does_is_told(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "BUSY_TIMEOUT_S", 0.2)
    sqlite_store.close()
    session = sqlite_store.open_session()
    told: list[str] = []

    def handle(*_: object) -> None:
        try:
            session.add_message("system", "stopped")
        except UnavailableError as error:
            told.append(str(error))

    before = signal.signal(signal.SIGUSR1, handle)
    try:
        sqlite_store.writes.run(Write(lambda _: os.kill(os.getpid(), signal.SIGUSR1)))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert len(told) == 1
    assert "locked" in told[0]
    session.add_message("system", "goes on")


@contextmanager
def noted_deadlines() -> Generator[list[float]]:
    """Until when those who wanted the turn in the block were going to wait for it."""
    deadlines: list[float] = []
    turn = WriteTurns.turn

    def noting(turns: WriteTurns, deadline: float) -> AbstractContextManager[None]:
        deadlines.append(deadline)
        return turn(turns, deadline)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(WriteTurns, "turn", noting)
        yield deadlines


@pytest.mark.parametrize("on_unavailable", ["raise"])
def test_where_the_store_is_away_all_are_told_at_once(sqlite_store: Store) -> None:
    session, gone = sqlite_store.open_session(), threading.Event()
    database = Path(str(sqlite_store.database.target))

    def stay(_: Connection) -> None:
        assert gone.wait(60)

    first: Callable[[], object] = lambda: sqlite_store.writes.run(Write(stay))  # noqa: E731
    tasks: list[Callable[[], object]] = [lambda: session.add_message("user", "hello")] * WRITERS
    with ThreadPoolExecutor(WRITERS + 1) as pool:
        futures = all_waiting(sqlite_store, pool, [first, *tasks])
        with noted_deadlines() as attempts:
            sqlite_store.database.close()
            database.rename(database.with_name("away.db"))
            gone.set()
            errors = [future.exception(60) for future in futures[1:]]
        futures[0].result(60)
    database.with_name("away.db").rename(database)
    assert {str(error) for error in errors} == {f"database {database}: it cannot be opened"}
    # One attempt for all of them; each has an error of its own, since raising one writes into it.
    assert len(attempts) == 1
    assert len(set(map(id, errors))) == WRITERS
    assert messages_of(sqlite_store, session) == []


@pytest.mark.parametrize("on_unavailable", ["raise"])
def test_nobody_waits_longer_because_others_waited_before_it(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    longest = 5.0
    monkeypatch.setattr(connections, "BUSY_TIMEOUT_S", longest)
    session = sqlite_store.open_session()
    sqlite_store.close()  # connections are made anew, with the shorter wait
    tasks: list[Callable[[], object]] = [lambda: session.add_message("user", "hello")] * WRITERS
    with (
        ThreadPoolExecutor(WRITERS) as pool,
        busy(sqlite_store),
        noted_deadlines() as deadlines,
    ):
        futures = all_waiting(sqlite_store, pool, tasks)
        all_there = time.monotonic()
        errors = [future.exception(60) for future in futures]
    assert all(isinstance(error, UnavailableError) for error in errors)
    assert deadlines
    assert max(deadlines) <= all_there + longest
    assert messages_of(sqlite_store, session) == []


def test_one_whose_time_is_up_goes_though_another_leads(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    group, gone = sqlite_store.writes, threading.Event()
    wrote: list[str] = []
    late = Write(lambda _: wrote.append("late"))

    def stay(_: Connection) -> None:
        assert gone.wait(60)

    with ThreadPoolExecutor(2) as pool:
        try:
            (leads,) = all_waiting(sqlite_store, pool, [lambda: group.run(Write(stay))])
            monkeypatch.setattr(connections, "BUSY_TIMEOUT_S", 0.1)
            error = pool.submit(group.run, late).exception(30)
            assert isinstance(error, UnavailableError)
            assert "it is locked by another process" in str(error)
        finally:
            gone.set()
        leads.result(60)
    assert (late.is_uncertain, wrote, waiting_count(group)) == (False, [], 0)


def test_one_whose_time_is_up_leaves_the_others_waiting(sqlite_store: Store) -> None:
    group, gone = sqlite_store.writes, threading.Event()
    wrote: list[str] = []

    def stay(_: Connection) -> None:
        assert gone.wait(60)

    def fail(_: Connection) -> None:
        wrote.append("in vain")
        raise UnavailableError("others are in the way")

    late = Write(fail)
    tasks: list[Callable[[], object]] = [
        lambda: group.run(Write(stay)),
        lambda: group.run(late),
        lambda: group.run(Write(lambda _: wrote.append("patient"))),
        lambda: group.run(Write(lambda _: wrote.append("as patient"))),
    ]
    with ThreadPoolExecutor(len(tasks)) as pool:
        futures = all_waiting(sqlite_store, pool, tasks[:2])
        futures += [pool.submit(task) for task in tasks[2:]]
        until(lambda: waiting_count(group) == 3)
        late.deadline = time.monotonic()
        gone.set()
        assert str(futures[1].exception(60)) == "others are in the way"
        for patient in (futures[0], *futures[2:]):
            patient.result(60)
    assert sorted(wrote) == ["as patient", "in vain", "patient"]
    assert not late.is_uncertain


def test_the_main_thread_commits_for_nobody_else(sqlite_store: Store) -> None:
    """A signal ends what the main thread does, at any moment."""
    group, threads = sqlite_store.writes, set[threading.Thread]()

    def note(_: Connection) -> None:
        threads.add(threading.current_thread())

    with ThreadPoolExecutor(WRITERS) as pool:
        futures = [pool.submit(group.run, Write(note)) for _ in range(WRITERS)]
        for _ in range(WRITERS):
            group.run(Write(lambda _: None))
        for future in futures:
            future.result()
    assert threading.main_thread() not in threads


def test_an_interrupt_of_the_main_thread_leaves_nothing_and_keeps_nobody_waiting(
    sqlite_store: Store,
) -> None:
    session = sqlite_store.open_session()

    def interrupted(connection: Connection) -> None:
        connection.execute(text("SELECT 1"))
        raise KeyboardInterrupt

    write = Write(interrupted)
    with pytest.raises(KeyboardInterrupt):
        sqlite_store.writes.run(write)
    assert not write.is_uncertain
    with ThreadPoolExecutor(1) as pool:
        pool.submit(session.add_message, "user", "hello").result()
    assert len(messages_of(sqlite_store, session)) == 1


def test_a_child_of_a_fork_does_not_wait_for_its_parents_threads(
    sqlite_store: Store, tmp_path: Path
) -> None:
    session = sqlite_store.open_session()
    with ThreadPoolExecutor(2) as pool:
        with busy(sqlite_store):
            tasks: list[Callable[[], object]] = [lambda: session.add_message("user", "a")] * 2
            futures = all_waiting(sqlite_store, pool, tasks)
            child = os.fork()
            if not child:
                try:
                    group = sqlite_store.writes
                    run = ThreadPoolExecutor(1).submit(group._has_its_own)  # pyright: ignore[reportPrivateUsage]
                    (tmp_path / "child").write_text(f"{run.result(60)} {waiting_count(group)}")
                finally:
                    os._exit(0)
            os.waitpid(child, 0)
        for future in futures:
            future.result()
    assert (tmp_path / "child").read_text() == "False 0"


def test_on_a_server_writers_do_not_wait_for_each_other(postgres_store: Store) -> None:
    sessions = [postgres_store.open_session() for _ in range(2)]
    group, both = postgres_store.writes, threading.Barrier(2, timeout=60)

    def meet(_: Connection) -> None:
        both.wait()

    with ThreadPoolExecutor(2) as pool:
        for future in [pool.submit(group.run, Write(meet)) for _ in sessions]:
            future.result()


def test_many_recorders_lose_nothing_and_keep_each_chain(store: Store) -> None:
    recorders, each = 16, 4

    def record(number: int) -> Session:
        session = store.open_session()
        for n in range(each):
            run_command(session, b"recorder %d call %d\n" % (number, n))
        return session

    with ThreadPoolExecutor(recorders) as pool:
        sessions = list(pool.map(record, range(recorders)))
    for session in sessions:
        assert store.reader.session(session.id).invocation_count == each
    check_evidence(store)
