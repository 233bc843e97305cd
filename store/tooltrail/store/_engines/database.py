"""A connection to either engine, with transactions that mean what they say.

On SQLite writers take turns, and every write transaction begins IMMEDIATE, since one that reads
first and writes later can livelock. A read transaction waits for nobody's turn, and sees one
snapshot on both engines. What a commit survives is decided when the database is opened
(`durability`).
"""

import time
from collections.abc import Callable, Generator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial

from sqlalchemy import Connection, Engine, QueuePool, create_engine, event
from sqlalchemy.pool import ConnectionPoolEntry

from tooltrail.store._engines import sqlite_connections as _sqlite
from tooltrail.store._engines.driver_errors import raised_as_ever
from tooltrail.store._engines.execution_options import NO_TRANSACTION, READ_ONLY
from tooltrail.store._engines.failures import damage_if_unreadable, translated_errors
from tooltrail.store._engines.forks import no_fork, prepare_for_forks
from tooltrail.store._engines.log_limit import LogLimit
from tooltrail.store._engines.patience import begun, patiently
from tooltrail.store._engines.postgres_connections import (
    hurried,
    postgres_engine,
    unbegun,
    unhurried,
)
from tooltrail.store._engines.prepared import driver_of
from tooltrail.store._engines.sqlite import sqlite3
from tooltrail.store._engines.targets import PostgresTarget, SqliteTarget, Target
from tooltrail.store._engines.turns import WriteTurns
from tooltrail.store.durability import Durability

_QUERY_ONLY = "tooltrail_query_only"
"""What a connection was last set to; not known of a new one."""

_SYNCHRONOUS: Mapping[Durability, str] = {"full": "EXTRA", "process": "NORMAL"}
"""`EXTRA` is `FULL` for a log, and more before there is one: the commit of a file without a log is
that its journal is removed, and with `FULL` a loss of power may bring that back."""

_SYNCHRONOUS_COMMIT: Mapping[Durability, str] = {"full": "on", "process": "off"}


@dataclass(frozen=True)
class Database:
    """An engine and where it points.

    Safe to share between threads, and with a forked child, which gets connections of its own; see
    `forks` for the one whose parent was using a file just then.

    Attributes:
        target: which database.
        engine: its connections.
        turns: of those who write to it, where they have to take some.
        log: what SQLite writes first, where it is to be kept short.
    """

    target: Target
    engine: Engine
    turns: WriteTurns | None = None
    log: LogLimit | None = None

    @contextmanager
    def write(
        self, deadline: float | None = None, *, is_brief: bool = False
    ) -> Generator[Connection]:
        """One transaction that is durable when the block ends, or leaves no trace.

        Args:
            deadline: by `time.monotonic`, until when others are waited for; by default as long as
                `BUSY_TIMEOUT_S`. A server has its own.
            is_brief: whether a server may end it when it takes longer than a record should, and
                no statement is spent on finding out whether the connection is still there.

        Raises:
            UnavailableError, DamageError, InvalidRecordError: see `translated_errors`.
        """
        if deadline is None:
            deadline = time.monotonic() + _sqlite.BUSY_TIMEOUT_S
        with (
            translated_errors(self.target),
            # Before there is a connection, which may be one that keeps others out.
            nullcontext() if self.turns is None else self.turns.turn(deadline),
            self._begun(deadline, is_brief=is_brief) as connection,
        ):
            yield connection

    @contextmanager
    def _begun(self, deadline: float, *, is_brief: bool) -> Generator[Connection]:
        if self.is_server:
            with hurried(self.engine) if is_brief else unhurried(self.engine, {}) as connection:
                yield connection
            return
        with self._connected() as connection:
            with begun(connection, deadline):
                before = 0 if self.log is None else self.log.size()
                yield connection
            if self.log is not None:
                self.log.hold(connection, before)

    @contextmanager
    def read(self) -> Generator[Connection]:
        """One snapshot of the store; nothing can be written through it.

        Raises:
            UnavailableError, DamageError: see `translated_errors`.
        """
        with self.reading(), self._reader() as connection:
            yield connection

    @contextmanager
    def snapshot(self) -> Generator[Connection]:
        """As `read`, for a block that does more than read, whose errors are its own.

        What it reads it reads within `reading`.

        Raises:
            UnavailableError, DamageError: see `translated_errors`; before the block.
        """
        with ExitStack() as stack:
            with self.reading():
                connection = stack.enter_context(self._reader())
            yield connection

    @contextmanager
    def reading(self) -> Generator[None]:
        """Tell what goes wrong while rows are read, and nothing else is done, in our own words.

        Raises:
            UnavailableError, DamageError: see `translated_errors`.
        """
        with translated_errors(self.target), damage_if_unreadable(self.target):
            yield

    @contextmanager
    def _reader(self) -> Generator[Connection]:
        options = {READ_ONLY: True}
        if self.is_server:
            with unhurried(self.engine, options) as connection:
                yield connection
            return
        with (
            self._connected() as connection,
            # Within the block, since to set them may fail on a connection that was lost.
            connection.execution_options(**options).begin(),
        ):
            yield connection

    @property
    def is_server(self) -> bool:
        """Whether it is reached by way of a network, and does more than one thing at a time."""
        return self.engine.dialect.name == "postgresql"

    @contextmanager
    def autocommit(self) -> Generator[Connection]:
        """A connection on which every statement is a transaction of its own.

        Raises:
            UnavailableError, DamageError: see `translated_errors`.
        """
        with (
            translated_errors(self.target),
            unbegun(self.engine) if self.is_server else self._connected() as connection,
        ):
            yield connection.execution_options(**{NO_TRANSACTION: True})

    @contextmanager
    def _connected(self) -> Generator[Connection]:
        with self._no_fork(), self.engine.connect() as connection:
            yield connection

    def _no_fork(self) -> AbstractContextManager[None]:
        if isinstance(self.target, SqliteTarget):
            return no_fork(self.target.path)
        return nullcontext()

    def ensure_wal(self) -> None:
        """Put an SQLite file into WAL mode, which lasts; nothing to do for a server.

        Raises:
            UnavailableError: the file cannot be written.
        """
        if self.is_server:
            return
        deadline = time.monotonic() + _sqlite.BUSY_TIMEOUT_S
        with self.autocommit() as connection:
            if connection.exec_driver_sql("PRAGMA journal_mode").scalar() != "wal":
                patiently(lambda: connection.exec_driver_sql("PRAGMA journal_mode = WAL"), deadline)

    def close(self) -> None:
        """Give all connections back."""
        with self._no_fork():
            self.engine.dispose()
        if self.turns is not None:
            self.turns.close()


def open_database(
    target: Target,
    *,
    create: bool = False,
    foreign_keys: bool = True,
    durability: Durability = "full",
    turns: bool = True,
) -> Database:
    """An engine for a target; nothing is contacted yet.

    Args:
        target: which database.
        create: whether a missing SQLite file may be made.
        foreign_keys: off for migrations alone, whose table rebuilds would delete child rows.
        durability: what a commit survives.
        turns: whether writers take turns at an SQLite file, for which another file is made.

    Raises:
        UnavailableError: the driver for PostgreSQL is not installed.
        InvalidRecordError: a server's URL says what cannot be.
    """
    if isinstance(target, PostgresTarget):
        opened = Database(target, postgres_engine(target.url, _SYNCHRONOUS_COMMIT[durability]))
    else:
        connect = partial(
            _sqlite.connect,
            target.path,
            create=create,
            foreign_keys=foreign_keys,
            synchronous=_SYNCHRONOUS[durability],
        )
        taken = WriteTurns(target.path) if turns else None
        opened = Database(target, _sqlite_engine(connect), taken, LogLimit(target.path))
    file = target.path if isinstance(target, SqliteTarget) else None
    prepare_for_forks(opened.engine, file)
    return opened


def _sqlite_engine(connect: Callable[[], sqlite3.Connection]) -> Engine:
    engine = create_engine(
        "sqlite://",
        module=sqlite3,
        creator=connect,
        poolclass=QueuePool,
        # As many as are wanted at once: whoever has the turn to write keeps all other processes
        # out, and must not wait meanwhile for those who read in its own.
        max_overflow=-1,
        hide_parameters=True,
    )

    @event.listens_for(engine, "checkin")
    def make_way(connection: object, record: ConnectionPoolEntry) -> None:  # pyright: ignore[reportUnusedFunction]  registered by the decorator
        if isinstance(connection, _sqlite.LoneConnection):
            record.invalidate()

    @event.listens_for(engine, "begin")
    def begin(connection: Connection) -> None:  # pyright: ignore[reportUnusedFunction]  registered by the decorator
        if connection.get_execution_options().get(NO_TRANSACTION, False):
            return
        reading = connection.get_execution_options().get(READ_ONLY, False)
        if connection.info.pop(_QUERY_ONLY, None) is not reading:
            connection.exec_driver_sql(f"PRAGMA query_only = {'ON' if reading else 'OFF'}")
        connection.info[_QUERY_ONLY] = reading
        begin = "BEGIN" if reading else "BEGIN IMMEDIATE"
        with raised_as_ever(connection, begin):
            # By the driver, in a sixth of the time.
            driver_of(connection).execute(begin, [])

    return engine
