"""Writes that come together are committed together, and each is told how its own went."""

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import Connection, event, text
from tests.support.evidence import check_evidence
from tests.support.recording import run_command

from tooltrail.records import InvocationFinishedError, SessionClosedError, UnavailableError
from tooltrail.store import MessageView, Session, Store
from tooltrail.store import _sqlite_connections as connections
from tooltrail.store._group_commit import GroupCommit, Write

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
    """Begin tasks that write once each; back when one leads and all others wait for it."""
    futures = [pool.submit(task) for task in tasks]
    while waiting_count(store.writes) < len(tasks) - 1:
        time.sleep(0.001)
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
    group = sqlite_store.writes
    done: list[int] = []

    def first(connection: Connection) -> None:
        connection.execute(text("SELECT 1"))
        done.append(1)

    def second(_: Connection) -> None:
        raise InvocationFinishedError("invocation x is finished already")

    with ThreadPoolExecutor(3) as pool:
        with busy(sqlite_store):
            tasks = [lambda: group.run(Write(first))] * 2 + [lambda: group.run(Write(second))]
            futures = all_waiting(sqlite_store, pool, tasks)
        errors = [future.exception() for future in futures]
    assert [type(error) for error in errors] == [type(None), type(None), InvocationFinishedError]
    assert len(done) >= 2


def test_where_the_store_is_away_all_are_told_at_once(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "BUSY_TIMEOUT_S", 0.2)
    session = sqlite_store.open_session()
    sqlite_store.close()  # connections are made anew, with the shorter wait
    tasks: list[Callable[[], object]] = [lambda: session.add_message("user", "hello")] * WRITERS
    with ThreadPoolExecutor(WRITERS) as pool, busy(sqlite_store):
        errors = [future.exception() for future in all_waiting(sqlite_store, pool, tasks)]
    assert all(isinstance(error, UnavailableError) for error in errors)
    # Each has its own, since raising one writes into it.
    assert len(set(map(id, errors))) == WRITERS
    assert messages_of(sqlite_store, session) == []


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
                    is_free = group._committing.acquire(blocking=False)  # pyright: ignore[reportPrivateUsage]
                    (tmp_path / "child").write_text(f"{is_free} {waiting_count(group)}")
                finally:
                    os._exit(0)
            os.waitpid(child, 0)
        for future in futures:
            future.result()
    assert (tmp_path / "child").read_text() == "True 0"


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
