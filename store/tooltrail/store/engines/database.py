"""A database of either engine, with transactions for reading and for writing."""

import os
import time
import weakref
from collections.abc import Generator
from contextlib import AbstractContextManager, contextmanager, suppress
from typing import Final

from tooltrail.records.errors import UnavailableError
from tooltrail.store.engines import sqlite
from tooltrail.store.engines.connection import Connection, DriverConnection
from tooltrail.store.engines.failures import damage_if_unreadable, is_locked, translated_errors
from tooltrail.store.engines.targets import SqliteTarget, Target

_MOST_IDLE: Final = 8
"""Most idle connections that are kept for later transactions."""

_PAUSE_S: Final = 0.01
"""Seconds between two attempts to change a locked file."""

_READ: Final = ("BEGIN", "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
_WRITE: Final = ("BEGIN IMMEDIATE", "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
"""How a write begins on SQLite and on PostgreSQL. An SQLite transaction that reads before it writes
could fail; one of PostgreSQL must see commits made while it waited for a lock."""


class Database:
    """A database. Does not connect before the first transaction.

    Safe to share between threads. A forked child cannot use it: the child opens the store again.
    No transaction may be open at a fork, see `_close_idle_connections`.
    Every transaction raises the errors of `translated_errors`.

    Attributes:
        target: the file or the server.
    """

    def __init__(self, target: Target) -> None:
        self.target: Final = target
        self._idle: list[DriverConnection] = []
        self._pid = os.getpid()
        _DATABASES[id(self)] = self

    @property
    def is_server(self) -> bool:
        """Whether the database is on a server."""
        return not isinstance(self.target, SqliteTarget)

    def write(self) -> AbstractContextManager[Connection]:
        """One transaction. It is committed at the end of the block, or rolled back on an error."""
        return self._transaction(_WRITE, "COMMIT")

    @contextmanager
    def read(self) -> Generator[Connection]:
        """One read-only snapshot of the database. A stored value that cannot be read is damage."""
        with damage_if_unreadable(self.target), self.snapshot() as connection:
            yield connection

    def snapshot(self) -> AbstractContextManager[Connection]:
        """Like `read`, for a block that does more than read; see `damage_if_unreadable`."""
        return self._transaction(_READ, "ROLLBACK")

    @contextmanager
    def autocommit(self) -> Generator[Connection]:
        """A connection on which every statement is a separate transaction."""
        self._refuse_fork()
        driver = self._connect()
        connection = Connection(self.target, driver)
        try:
            yield connection
        finally:
            connection.close()
            self._give_back(driver)

    def close(self) -> None:
        """Close idle connections. The database can still be used afterwards."""
        if self._pid == os.getpid():
            while (driver := self._take_idle()) is not None:
                _close(driver)

    @contextmanager
    def _transaction(self, begin: tuple[str, str], end: str) -> Generator[Connection]:
        driver = self._begun(begin[self.is_server])
        try:
            yield Connection(self.target, driver)
            with translated_errors(self.target):
                driver.cursor().execute(end)
        except BaseException:
            self._roll_back(driver)
            raise
        self._give_back(driver)

    def _begun(self, begin: str) -> DriverConnection:
        """A connection inside a transaction. A lost idle connection is replaced."""
        self._refuse_fork()
        while True:
            driver = self._take_idle()
            is_new = driver is None
            if driver is None:
                driver = self._connect()
            try:
                with translated_errors(self.target):
                    driver.cursor().execute(begin)
            except BaseException as error:
                _close(driver)
                if is_new or not isinstance(error, UnavailableError) or not self.is_server:
                    raise
            else:
                return driver

    def _refuse_fork(self) -> None:
        if self._pid != os.getpid():
            raise UnavailableError(
                f"database {self.target}: this process was forked after the store was opened; "
                "open the store again in this process"
            )

    def _take_idle(self) -> DriverConnection | None:
        # Without a lock, which another thread could hold at a fork. A `pop` is atomic.
        try:
            return self._idle.pop()
        except IndexError:
            return None

    def _connect(self) -> DriverConnection:
        with translated_errors(self.target):
            if isinstance(self.target, SqliteTarget):
                return sqlite.connect(self.target.path)
            from tooltrail.store.engines import postgres  # noqa: PLC0415  not for SQLite

            return postgres.connect(self.target)

    def _roll_back(self, driver: DriverConnection) -> None:
        """Roll back a failed transaction, or close the connection if that fails."""
        try:
            driver.cursor().execute("ROLLBACK")
        except Exception:  # noqa: BLE001  the first error is raised
            _close(driver)
        else:
            self._give_back(driver)

    def _give_back(self, driver: DriverConnection) -> None:
        if len(self._idle) < _MOST_IDLE and not getattr(driver, "closed", False):
            self._idle.append(driver)
        else:
            _close(driver)


def ensure_wal(database: Database) -> None:
    """Put an SQLite file into WAL mode, which lasts. Does nothing for a server."""
    if database.is_server:
        return
    deadline = time.monotonic() + sqlite.BUSY_TIMEOUT_S
    with database.autocommit() as connection:
        while True:
            try:
                if connection.query_one("PRAGMA journal_mode") != ("wal",):
                    # Only has an effect on an empty file.
                    connection.query(f"PRAGMA page_size = {sqlite.PAGE_BYTES}")
                    connection.query("PRAGMA journal_mode = WAL")
            except UnavailableError as error:
                # SQLite waits for a lock in transactions, and not for this one.
                if time.monotonic() >= deadline or not is_locked(error):
                    raise
                time.sleep(_PAUSE_S)
            else:
                return


def _close(driver: DriverConnection) -> None:
    with suppress(Exception):  # the connection is no longer needed
        driver.close()


_DATABASES: Final = weakref.WeakValueDictionary[int, Database]()


def _close_idle_connections() -> None:
    """Close the idle connections of all databases before a fork.

    A child inherits what SQLite knows of an open file, but not the locks. SQLite would take no lock
    when the child opens the file again, and another process could damage the database. If nobody
    else has a file open, SQLite then writes its WAL back, which takes some milliseconds.
    """
    for reference in _DATABASES.valuerefs():  # a copy, while other threads make databases
        if (database := reference()) is not None:
            database.close()


os.register_at_fork(before=_close_idle_connections)
