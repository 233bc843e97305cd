"""The log of an SQLite file grows while somebody reads for long, and shrinks when nobody does."""

from collections.abc import Generator, Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from pathlib import Path
from threading import Event, Thread

import pytest
from sqlalchemy import Connection, event
from tests.support.evidence import check_evidence
from tests.support.processes import run_python
from tests.support.template_stores import make_store

from tooltrail.store import Store
from tooltrail.store._engines import log_limit
from tooltrail.store._engines import sqlite_connections as connections
from tooltrail.store._engines.log_limit import LogLimit
from tooltrail.store._engines.sqlite import sqlite3

MIB = 1024 * 1024
LIMIT = 8 * MIB


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Store]:
    """A store whose log is to stay short; with a table for what is of no store."""
    monkeypatch.setattr(connections, "JOURNAL_SIZE_LIMIT", LIMIT)
    with make_store(tmp_path / "trail.db") as made:
        with made.database.write() as connection:
            connection.exec_driver_sql("CREATE TABLE filled (data)")
        yield made


def write(store: Store, size: int = MIB) -> None:
    with store.database.write() as connection:
        connection.exec_driver_sql(f"INSERT INTO filled VALUES (zeroblob({size}))")


def log_size(store: Store) -> int:
    return Path(f"{store.database.target}-wal").stat().st_size


@contextmanager
def a_reader(store: Store) -> Generator[None]:
    """Somebody who sees the store as it is now."""
    with store.database.read() as connection:
        connection.exec_driver_sql("SELECT count(*) FROM filled").scalar()
        yield


def test_a_reader_that_stays_lets_the_log_grow_until_it_goes(store: Store) -> None:
    with a_reader(store):
        while log_size(store) < 3 * LIMIT:
            write(store)
    for _ in range(2):
        write(store, 1)
    assert log_size(store) <= LIMIT
    store.open_session()
    check_evidence(store)


def test_for_a_reader_that_stays_writers_wait_once_in_a_while(store: Store) -> None:
    waited: list[int] = []

    def note(connection: sqlite3.Connection, *_: object) -> None:
        connection.set_trace_callback(
            lambda sql: waited.append(log_size(store)) if "wal_checkpoint" in sql else None
        )

    event.listen(store.database.engine, "checkout", note)
    with a_reader(store):
        while log_size(store) < 3 * LIMIT:
            write(store)
    event.remove(store.database.engine, "checkout", note)
    assert 1 <= len(waited) <= 3
    assert all(later - earlier > LIMIT for earlier, later in pairwise(waited))


def test_readers_that_never_leave_a_gap_do_not_keep_the_log(store: Store) -> None:
    """Each is quick; at no moment is there none."""
    begun, over = Event(), Event()

    def read() -> None:
        with ExitStack() as stack:
            stack.enter_context(a_reader(store))
            begun.set()
            while not over.is_set():
                later = ExitStack()
                later.enter_context(a_reader(store))
                stack.close()
                stack.push(later)

    thread = Thread(target=read)
    thread.start()
    begun.wait()
    try:
        sizes = [log_size(store)]
        while sizes[-1] == max(sizes) < 20 * LIMIT:
            write(store)
            sizes.append(log_size(store))
    finally:
        over.set()
        thread.join()
    assert sizes[-1] == 0


def test_a_log_that_is_not_there_is_not_too_long(store: Store, tmp_path: Path) -> None:
    limit = LogLimit(tmp_path / "gone.db")
    assert limit.size() == 0
    with store.database.engine.connect() as connection:
        limit.hold(connection, 0)
        assert not connection.in_transaction()
    write(store)


WAITED = """
import sys
from sqlalchemy import event
from tooltrail.store import open_store
from tooltrail.store._engines import sqlite_connections as connections

connections.JOURNAL_SIZE_LIMIT = int(sys.argv[2])
with open_store(sys.argv[1]) as store:
    def note(connection, *_):
        connection.set_trace_callback(lambda sql: print(sql) if "wal_checkpoint" in sql else None)

    event.listen(store.database.engine, "checkout", note)
    for size in sys.argv[3:]:
        with store.database.write() as connection:
            connection.exec_driver_sql(f"INSERT INTO filled VALUES (zeroblob({size}))")
"""


def waits_of_another_process(store: Store, *sizes: int) -> int:
    """How often one that writes transactions of such sizes waits for readers."""
    written = map(str, (LIMIT, *sizes))
    return run_python(WAITED, str(store.database.target), *written)[0].count("wal_checkpoint")


def test_each_new_process_does_not_wait_for_the_same_reader_again(store: Store) -> None:
    with a_reader(store):
        write(store, LIMIT + MIB)  # which has waited in vain
        assert waits_of_another_process(store, 1, 1, 1) == 0
        assert waits_of_another_process(store, LIMIT, 1) == 1
        assert waits_of_another_process(store, 1, 1) == 0


def test_a_log_that_ends_at_the_limit_is_not_too_long(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with a_reader(store):
        write(store)
        size = log_size(store)
        monkeypatch.setattr(connections, "JOURNAL_SIZE_LIMIT", size)
        emptied: list[Connection] = []
        monkeypatch.setattr(log_limit, "_empty", emptied.append)
        limit = LogLimit(Path(str(store.database.target)))
        with store.database.autocommit() as connection:
            limit.hold(connection, 0)
            assert emptied == []
            monkeypatch.setattr(connections, "JOURNAL_SIZE_LIMIT", size - 1)
            limit.hold(connection, size)
            assert emptied == []
            limit.hold(connection, size - 1)
            assert emptied == [connection]
