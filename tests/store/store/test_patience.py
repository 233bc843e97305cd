"""What SQLite refuses at once is tried again, for as long as a caller was promised to wait."""

import time
from collections.abc import Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from tooltrail.store import Store
from tooltrail.store._engines import sqlite_connections as connections
from tooltrail.store._engines.database import Database, open_database
from tooltrail.store._engines.patience import patiently
from tooltrail.store._engines.sqlite import sqlite3
from tooltrail.store._engines.targets import parse_target

LONG = 60.0


@contextmanager
def busy(database: Database, *begin: str) -> Generator[sqlite3.Connection]:
    """Another program, which knows nothing of turns, is in a transaction."""
    other = sqlite3.connect(str(database.target), isolation_level=None)
    for statement in begin:
        other.execute(statement)
    try:
        yield other
    finally:
        other.rollback()
        other.close()


@contextmanager
def without_patience(database: Database) -> Generator[list[str]]:
    """SQLite itself waits for nobody; what it was asked to begin."""
    begun: list[str] = []
    hurried: list[sqlite3.Connection] = []

    def hurry(connection: sqlite3.Connection, *_: object) -> None:
        connection.execute("PRAGMA busy_timeout = 0")
        connection.set_trace_callback(begun.append)
        hurried.append(connection)

    event.listen(database.engine, "checkout", hurry)
    try:
        yield begun
    finally:
        event.remove(database.engine, "checkout", hurry)
        for connection in hurried:
            connection.set_trace_callback(None)


def until_twice(statement: str, statements: list[str]) -> None:
    while statements.count(statement) < 2:
        time.sleep(0.001)


def patience_of(database: Database) -> int:
    with database.read() as connection:
        told = connection.exec_driver_sql("PRAGMA busy_timeout").scalar_one()
    return int(told)


def test_a_write_that_is_refused_at_once_is_begun_again(sqlite_store: Store) -> None:
    sqlite_store.open_session()
    with without_patience(sqlite_store.database) as begun, ThreadPoolExecutor(1) as pool:
        with busy(sqlite_store.database, "BEGIN IMMEDIATE"):
            waiting = pool.submit(sqlite_store.open_session)
            until_twice("BEGIN IMMEDIATE", begun)
        waiting.result(LONG)
    assert sqlite_store.reader.counts().sessions == 2


def test_the_log_is_turned_on_as_soon_as_others_let_it(tmp_path: Path) -> None:
    """SQLite does not wait at all here: whoever writes could wait for who wants the log."""
    database = open_database(parse_target(tmp_path / "trail.db"), create=True)
    with database.autocommit() as connection:
        connection.exec_driver_sql("CREATE TABLE one (x)")
    begin = ("BEGIN IMMEDIATE", "INSERT INTO one VALUES (1)")
    with without_patience(database) as statements, ThreadPoolExecutor(1) as pool:
        with busy(database, *begin):
            waiting = pool.submit(database.ensure_wal)
            until_twice("PRAGMA journal_mode = WAL", statements)
        waiting.result(LONG)
    with database.read() as connection:
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"
    database.close()


def test_the_wait_for_a_turn_is_a_part_of_the_wait(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    sqlite_store.open_session()
    monkeypatch.setattr(connections, "BUSY_TIMEOUT_S", LONG)
    told: list[int] = []

    def note(connection: sqlite3.Connection, *_: object) -> None:
        # Between two looks at the time, as if the turn had come late.
        monkeypatch.setattr(connections, "BUSY_TIMEOUT_S", 10 * LONG)
        connection.set_trace_callback(
            lambda sql: told.append(int(sql.split()[-1])) if "busy_timeout" in sql else None
        )

    event.listen(sqlite_store.database.engine, "checkout", note)
    with sqlite_store.database.write():
        pass
    event.remove(sqlite_store.database.engine, "checkout", note)
    shorter, again = told
    assert 0 < shorter <= LONG * 1000
    assert again == 10 * LONG * 1000
    assert patience_of(sqlite_store.database) == again


@pytest.mark.parametrize("on_unavailable", ["raise"])
def test_no_write_begins_after_its_time(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    sqlite_store.open_session()
    before = patience_of(sqlite_store.database)
    with busy(sqlite_store.database, "BEGIN IMMEDIATE"):
        with without_patience(sqlite_store.database) as begun:
            monkeypatch.setattr(connections, "BUSY_TIMEOUT_S", 0.05)
            with pytest.raises(Exception, match="it is locked by another process"):
                sqlite_store.open_session()
        assert set(begun) >= {"BEGIN IMMEDIATE"}
    assert before == 30_000


def test_what_others_have_no_part_in_is_not_tried_again() -> None:
    tried: list[None] = []

    def action() -> None:
        tried.append(None)
        raise OperationalError("SELECT 1", {}, sqlite3.OperationalError("no such table: x"))

    with pytest.raises(OperationalError, match="no such table"):
        patiently(action, time.monotonic() + LONG)
    assert len(tried) == 1
