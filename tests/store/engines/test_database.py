"""Transactions on both databases: snapshots, locks, lost connections and forks."""

import os
import signal
import time
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.empty_databases import empty_database
from tests.support.killing import end_of, fork
from tests.support.postgres import fresh_database, mortal_server

from tooltrail.records import InvalidRecordError, UnavailableError
from tooltrail.store.engines import postgres, sqlite
from tooltrail.store.engines.connection import Connection
from tooltrail.store.engines.database import Database, ensure_wal
from tooltrail.store.engines.sqlite_library import sqlite3
from tooltrail.store.engines.targets import parse_target
from tooltrail.store.ingest.durable import make_durable


@pytest.fixture
def opened(database: str) -> Iterator[Database]:
    made = empty_database(database)
    ensure_wal(made)
    with made.write() as connection:
        connection.run("CREATE TABLE things (key INTEGER PRIMARY KEY, name TEXT)")
    yield made
    made.close()


def add(connection: Connection, *names: str) -> None:
    connection.insert("things", [{"key": hash(one) % 1_000_000, "name": one} for one in names])


def names(database: Database) -> list[str]:
    with database.read() as connection:
        return [name for (name,) in connection.query("SELECT name FROM things ORDER BY name")]


@pytest.mark.both_engines
def test_what_a_block_writes_is_seen_when_it_ends(opened: Database) -> None:
    with opened.write() as connection:
        add(connection, "one", "two")
        assert connection.execute("UPDATE things SET name = 'three' WHERE name = ?", ("two",)) == 1
    assert names(opened) == ["one", "three"]


@pytest.mark.both_engines
def test_a_block_that_fails_leaves_no_trace(opened: Database) -> None:
    def fail_halfway() -> None:
        with opened.write() as connection:
            add(connection, "half")
            raise KeyError

    with pytest.raises(KeyError):
        fail_halfway()
    assert names(opened) == []


@pytest.mark.both_engines
def test_a_read_sees_one_snapshot(opened: Database) -> None:
    with opened.read() as connection:
        assert connection.query("SELECT * FROM things") == []
        with opened.write() as other:
            add(other, "meanwhile")
        assert connection.query("SELECT * FROM things") == []
    assert names(opened) == ["meanwhile"]


@pytest.mark.both_engines
def test_rows_are_inserted_once_where_that_is_asked(opened: Database) -> None:
    for _ in range(2):
        with opened.write() as connection:
            connection.insert_once("things", [{"key": 1, "name": "100 % of one?"}])
    assert names(opened) == ["100 % of one?"]
    with pytest.raises(InvalidRecordError), opened.write() as connection:
        connection.insert("things", [{"key": 1, "name": "two"}])


@pytest.mark.both_engines
def test_a_query_of_many_values_is_asked_in_parts(opened: Database) -> None:
    with opened.write() as connection:
        connection.insert("things", [{"key": n, "name": str(n)} for n in range(2_000)])
    with opened.read() as connection:
        found = connection.query_each("SELECT key FROM things WHERE key IN (?)", list(range(1_500)))
    assert len(found) == 1_500


def test_a_missing_file_is_made_only_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "trail.db"
    missing = Database(parse_target(path))
    with pytest.raises(UnavailableError, match="cannot be opened"), missing.read():
        pass
    assert not path.exists()


def test_wal_mode_waits_until_others_unlock_a_new_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = empty_database(str(tmp_path / "new.db"))
    other = sqlite.connect(tmp_path / "new.db")
    other.execute("BEGIN IMMEDIATE")

    def unlock(_seconds: float) -> None:
        other.execute("ROLLBACK")

    monkeypatch.setattr(time, "sleep", unlock)
    ensure_wal(made)
    with made.read() as connection:
        assert connection.query_one("PRAGMA journal_mode") == ("wal",)
    made.close()
    other.close()


def test_wal_mode_is_given_up_when_the_file_stays_locked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = empty_database(str(tmp_path / "new.db"))
    other = sqlite.connect(tmp_path / "new.db")
    other.execute("BEGIN IMMEDIATE")
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_S", 0.0)
    with pytest.raises(UnavailableError, match="locked by another process"):
        ensure_wal(made)
    made.close()
    other.close()


def test_a_file_that_is_locked_is_unavailable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "trail.db"
    monkeypatch.setattr(sqlite, "BUSY_TIMEOUT_S", 0.05)
    waiting = empty_database(str(path))
    ensure_wal(waiting)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN IMMEDIATE")
    with pytest.raises(UnavailableError, match="it is locked by another process"), waiting.write():
        pass
    holder.execute("ROLLBACK")
    holder.close()
    with waiting.write():
        pass
    waiting.close()


def test_an_idle_connection_that_the_server_ended_is_replaced(postgres_url: str) -> None:
    database, killer = (Database(parse_target(postgres_url)) for _ in range(2))
    with database.read() as connection:
        ((backend,),) = connection.query("SELECT pg_backend_pid()")
    with killer.write() as connection:
        connection.query("SELECT pg_terminate_backend(?)", (backend,))
    with database.read() as connection:
        assert connection.query("SELECT 1") == [(1,)]
    database.close()
    killer.close()


@contextmanager
def standing_still(database: Database) -> Generator[None]:
    """The process of the server that serves the idle connection does nothing."""
    with database.read() as connection:
        ((process,),) = connection.query("SELECT pg_backend_pid()")
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


def test_a_server_that_stands_still_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres, "ANSWER_TIMEOUT_S", 5.0)
    with mortal_server() as server, fresh_database(server.url) as url:
        database = Database(parse_target(url))
        with standing_still(database), database.read() as connection:
            # The idle connection was given up, and a new one works.
            assert connection.query("SELECT 1") == [(1,)]
        database.close()


def test_commits_that_were_made_durable_survive_a_crash_of_the_server() -> None:
    with mortal_server() as server, fresh_database(server.url) as url:
        database = Database(parse_target(url))
        with database.write() as connection:
            connection.run("CREATE TABLE things (key INTEGER PRIMARY KEY, name TEXT)")
        # By itself, the server writes its log to the disk after a fraction of a second.
        for _ in range(5):
            with database.write() as connection:
                add(connection, "one")
            make_durable(database)
            server.stop()
            server.start()
            with database.write() as connection:
                assert connection.execute("DELETE FROM things") == 1
        database.close()


@pytest.mark.both_engines
def test_a_forked_child_is_told_to_open_the_store_again(opened: Database) -> None:
    reading, writing = os.pipe()

    def read() -> None:
        for begin in (opened.read, opened.write, opened.autocommit):
            with pytest.raises(UnavailableError) as error, begin():
                pass
            os.write(writing, f"{error.value}\n".encode())

    assert end_of(fork(read)) == 0
    os.close(writing)
    with os.fdopen(reading) as said:
        assert said.read().count("open the store again in this process\n") == 3
    assert names(opened) == []


@pytest.mark.both_engines
def test_a_child_that_opens_the_database_again_keeps_what_it_writes_when_its_parent_closes(
    opened: Database,
) -> None:
    parent, child = os.pipe(), os.pipe()

    def write() -> None:
        again = Database(opened.target)
        assert names(again) == ["before"]
        os.write(child[1], b"read")
        assert os.read(parent[0], 6) == b"closed"
        with again.write() as connection:
            add(connection, "of the child")
        os.write(child[1], b"wrote")
        os.read(parent[0], 3)  # the connection of the child is still open

    with opened.write() as connection:
        add(connection, "before")
    forked = fork(write)
    assert os.read(child[0], 4) == b"read"
    opened.close()
    os.write(parent[1], b"closed")
    assert os.read(child[0], 5) == b"wrote"
    seen = names(opened)
    os.write(parent[1], b"end")
    assert end_of(forked) == 0
    assert seen == ["before", "of the child"]
    for descriptor in (*parent, *child):
        os.close(descriptor)
