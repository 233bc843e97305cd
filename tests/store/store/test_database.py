"""Connections: the pragmas that durability rests on, snapshots, and who waits for whom."""

import threading
from contextlib import ExitStack
from pathlib import Path

import pytest
from sqlalchemy import Connection, event, insert, select, text
from tests.support.recording import run_command
from tests.support.rows import MOMENT
from tests.support.schema import upgraded

from tooltrail.records import InvalidRecordError, UnavailableError
from tooltrail.store import Durability, Store, create_store, open_store
from tooltrail.store._engines import sqlite_connections
from tooltrail.store._engines.database import open_database
from tooltrail.store._engines.postgres_connections import POOL_SIZE
from tooltrail.store._engines.sqlite_connections import JOURNAL_SIZE_LIMIT
from tooltrail.store._engines.targets import parse_target
from tooltrail.store.engines.sqlite_library import sqlite3
from tooltrail.store.tables import PolicyRow

PRAGMAS = {
    "synchronous": 3,  # EXTRA
    "journal_mode": "wal",
    "foreign_keys": 1,
    "recursive_triggers": 1,
    "journal_size_limit": JOURNAL_SIZE_LIMIT,
    "busy_timeout": 30_000,
}


def a_policy(name: str) -> dict[str, object]:
    return {"digest": name, "document": "{}", "created_at": MOMENT}


def add_policy(connection: Connection, name: str) -> None:
    connection.execute(insert(PolicyRow).values(a_policy(name)))


def policies(connection: Connection) -> list[str]:
    return list(connection.scalars(select(PolicyRow.digest).order_by(PolicyRow.digest)))


def test_every_connection_of_the_pool_is_durable_and_guarded(sqlite_store: Store) -> None:
    with ExitStack() as stack:
        for _ in range(10):
            connection = stack.enter_context(sqlite_store.database.read())
            found = {
                name: connection.exec_driver_sql(f"PRAGMA {name}").scalar_one() for name in PRAGMAS
            }
            assert found == PRAGMAS


@pytest.mark.parametrize(("level", "number"), [("full", 3), ("process", 1)])
def test_a_file_is_synced_as_its_durability_says(
    tmp_path: Path, level: Durability, number: int
) -> None:
    with create_store(tmp_path / "trail.db", durability=level) as store:
        store.open_session()
        with store.database.write() as connection:
            assert connection.exec_driver_sql("PRAGMA synchronous").scalar_one() == number


@pytest.mark.parametrize(("level", "answer"), [("full", "on"), ("process", "off")])
def test_a_server_answers_as_the_durability_says(
    postgres_url: str, tmp_path: Path, level: Durability, answer: str
) -> None:
    with (
        create_store(
            postgres_url,
            artifacts=str(tmp_path / "artifacts"),
            spool=tmp_path / "spool",
            durability=level,
        ) as store,
        store.database.write() as connection,
    ):
        assert connection.scalar(text("SHOW synchronous_commit")) == answer


def test_a_durability_that_there_is_not_is_refused(sqlite_store: Store) -> None:
    with pytest.raises(InvalidRecordError, match="no durability 'none'; there are full, process"):
        open_store(str(sqlite_store.database.target), durability="none")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]  that is what is tried


def test_the_journal_mode_lasts_in_the_file(sqlite_store: Store) -> None:
    path = str(sqlite_store.database.target)
    sqlite_store.close()
    with sqlite3.connect(path) as plain:
        assert plain.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    plain.close()


def test_a_write_begins_immediate_and_a_read_does_not(sqlite_store: Store) -> None:
    engine, told = sqlite_store.database.engine, list[str]()

    def trace(connection: sqlite3.Connection, *_: object) -> None:
        connection.set_trace_callback(told.append)

    event.listen(engine, "checkout", trace)
    with sqlite_store.database.write():
        pass
    with sqlite_store.database.read():
        pass
    event.remove(engine, "checkout", trace)
    assert [sql for sql in told if sql.startswith("BEGIN")] == ["BEGIN IMMEDIATE", "BEGIN"]


def test_nothing_can_be_written_through_a_read(store: Store) -> None:
    with (
        pytest.raises(UnavailableError, match="read-only"),
        store.database.read() as connection,
    ):
        add_policy(connection, "sneaked in")
    with store.database.write() as connection:
        add_policy(connection, "after it")
    with store.database.read() as connection:
        assert policies(connection) == ["after it"]


def test_a_read_sees_one_snapshot(store: Store) -> None:
    with store.database.read() as connection:
        assert policies(connection) == []
        with store.database.write() as other:
            add_policy(other, "meanwhile")
        assert policies(connection) == []
    with store.database.read() as connection:
        assert policies(connection) == ["meanwhile"]


def test_a_write_that_fails_leaves_no_trace(store: Store) -> None:
    def fail_halfway() -> None:
        with store.database.write() as connection:
            add_policy(connection, "half")
            raise KeyError

    with pytest.raises(KeyError):
        fail_halfway()
    with store.database.read() as connection:
        assert policies(connection) == []


def test_a_write_is_seen_by_a_new_connection_as_soon_as_its_block_ends(
    store: Store, database: str
) -> None:
    with store.database.write() as connection:
        add_policy(connection, "one")
    other = open_database(parse_target(database))
    with other.read() as connection:
        assert policies(connection) == ["one"]
    other.close()


def test_a_database_that_is_locked_is_unavailable(
    sqlite_store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = str(sqlite_store.database.target)
    holder = sqlite3.connect(path, isolation_level=None)
    holder.execute("BEGIN EXCLUSIVE")
    monkeypatch.setattr(sqlite_connections, "BUSY_TIMEOUT_S", 0.05)
    with open_store(path, on_unavailable="raise") as store:  # readers do not mind
        with pytest.raises(UnavailableError, match=f"{path}: it is locked by another process"):
            store.open_session()
        holder.execute("ROLLBACK")
        run_command(store.open_session(), b"works again\n")
    holder.close()


def test_a_row_that_is_locked_too_long_is_unavailable(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    upgraded(postgres_url)
    monkeypatch.setattr(sqlite_connections, "BUSY_TIMEOUT_S", 0.05)
    holder, waiter = (open_database(parse_target(postgres_url)) for _ in range(2))
    with holder.write() as held:
        held.execute(text("LOCK TABLE policies"))
        with (
            pytest.raises(UnavailableError, match="lock timeout"),
            waiter.write() as connection,
        ):
            add_policy(connection, "too late")
    for database in (holder, waiter):
        database.close()


def test_a_pool_that_is_used_up_is_unavailable(postgres_store: Store) -> None:
    pool = postgres_store.database.engine.pool
    pool._timeout = 0.01  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]  no public way to wait less than the default
    with ExitStack() as stack:
        for _ in range(POOL_SIZE):
            stack.enter_context(postgres_store.database.read())
        with pytest.raises(UnavailableError, match="all connections are in use"):
            stack.enter_context(postgres_store.database.read())
    assert postgres_store.reader.counts().invocations == {}


def test_one_who_writes_to_a_file_waits_for_none_who_reads(sqlite_store: Store) -> None:
    pool = sqlite_store.database.engine.pool
    pool._timeout = 0.01  # type: ignore[attr-defined]  # pyright: ignore[reportAttributeAccessIssue]  no public way to wait less than the default
    with ExitStack() as stack:
        for _ in range(40):
            snapshot = stack.enter_context(sqlite_store.database.read())
            assert snapshot.scalar(text("SELECT count(*) FROM sessions")) == 0
        sqlite_store.open_session()
    assert sqlite_store.reader.counts().sessions == 1


def test_a_store_is_shared_between_threads(store: Store) -> None:
    failures: list[BaseException] = []

    def record() -> None:
        try:
            session = store.open_session()
            run_command(session, b"from a thread\n")
            store.reader.conversation(session.id)
        except BaseException as error:  # noqa: BLE001  handed to the test's own thread
            failures.append(error)

    threads = [threading.Thread(target=record) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert store.reader.counts().sessions == 4


def test_a_missing_file_is_made_only_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "trail.db"
    opened = open_database(parse_target(path))
    with pytest.raises(UnavailableError, match="cannot be opened"), opened.read():
        pass
    assert not path.exists()
    made = open_database(parse_target(path), create=True)
    with made.read():
        pass
    assert path.exists()
    for database in (opened, made):
        database.close()


def test_a_server_that_restarts_is_found_again(postgres_url: str) -> None:
    database = open_database(parse_target(postgres_url))
    with database.read() as connection:
        backend = connection.scalar(text("SELECT pg_backend_pid()"))
    killer = open_database(parse_target(postgres_url))
    with killer.write() as connection:
        connection.execute(text("SELECT pg_terminate_backend(:pid)"), {"pid": backend})
    with database.read() as connection:
        assert connection.scalar(text("SELECT 1")) == 1
    for opened in (database, killer):
        opened.close()
