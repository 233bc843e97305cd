"""Connections to a PostgreSQL server: who waits how long, and what is noticed when one is gone.

A record takes milliseconds. So each connection begins with limits of that size: for one statement,
and for a program that holds the locks of a transaction and stands still. What may take longer,
reading and maintenance, lifts them for its own transaction with its first statement. That statement
also finds out whether the connection is still there, so none has to be asked before each use: where
it was lost nothing was done yet, and another one is taken. A server that stands still itself keeps
no limit; it is given up by who waits for a record, or for that first statement.

To the driver all connections have no transaction but those that are begun here, and in `pipelines`
in words of our own: SQLAlchemy would set it to something else and back for every transaction, and a
connection whose setting back is interrupted is lost to the pool.

Whatever the URL says for itself stands.
"""

import time
from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar, cast

from sqlalchemy import (
    URL,
    Connection,
    Engine,
    RootTransaction,
    TextClause,
    create_engine,
    event,
    text,
)
from sqlalchemy.exc import DBAPIError

from tooltrail.records import InvalidRecordError, UnavailableError
from tooltrail.store._engines import sqlite_connections as _sqlite
from tooltrail.store._engines.bounded_pool import BoundedPool, placed
from tooltrail.store._engines.driver_errors import raised_as_ever
from tooltrail.store._engines.execution_options import NO_TRANSACTION, READ_ONLY
from tooltrail.store._engines.pipelines import (
    LIMIT,
    TRANSACTION_TIMEOUT_S,
    can_pipeline,
    is_pipelined,
    pipelined,
    wait_for_sqlalchemy,
)

if TYPE_CHECKING:
    from tooltrail.store._engines.impatient_psycopg import ImpatientConnection

T = TypeVar("T")

CONNECT_TIMEOUT_S = 10
"""Seconds that a server may take to accept a connection."""

POOL_SIZE = 16
"""Connections of one open store at most. More were not faster with 64 threads, and a server has
100 for everybody unless it is told otherwise."""

PLACE_TIMEOUT_S = _sqlite.BUSY_TIMEOUT_S
"""Seconds that somebody waits for one of them."""

STATEMENT_TIMEOUT_S = 2 * _sqlite.BUSY_TIMEOUT_S
"""Seconds that one statement of a record may take, of which it may wait half for locks."""

IDLE_TIMEOUT_S = _sqlite.BUSY_TIMEOUT_S / 2
"""Seconds that a program may stand still within a record; then the server ends its transaction, so
that those who wait for its locks go on within the time that they wait."""

ANSWER_TIMEOUT_S = 5
"""Seconds after which a server is given up that has not said that its limit is over."""

_WRITING = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
"""Whatever the server's default: after a lock was waited for, what its holder has committed must be
seen."""

_READING = "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY"

_STATEMENT = "statement_timeout"
_IDLE = "idle_in_transaction_session_timeout"

_KEEPALIVES: Mapping[str, int] = {
    "keepalives_idle": 10,
    "keepalives_interval": 5,
    "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}
"""A network that is dead is noticed after 25 seconds, and after 20 by who has sent something; the
last is in milliseconds."""

PREPARE_THRESHOLD = 1
"""Executions on one connection after which a statement is prepared: what comes twice comes often,
and a program that makes one record needs no preparation."""

_THRESHOLD = "prepare_threshold"
"""Not libpq's but psycopg's: after how many executions a statement is prepared on the server."""


def postgres_engine(url: URL, synchronous_commit: str) -> Engine:
    """The connections to a server; nothing is contacted yet.

    Args:
        url: of the database, for psycopg.
        synchronous_commit: when the server answers a commit, in its own word.

    Raises:
        UnavailableError: the driver is not installed.
        InvalidRecordError: a member of the URL's query cannot be what it says.
    """
    arguments = {
        **_KEEPALIVES,
        "connect_timeout": CONNECT_TIMEOUT_S,
        "application_name": "tooltrail",
    }
    arguments = {name: value for name, value in arguments.items() if name not in url.query}
    options = f"{_options(synchronous_commit)} {_named_options(url)}".strip()
    try:
        engine = create_engine(
            url.difference_update_query([_THRESHOLD]),
            connect_args={**arguments, **_prepared_after(url), "options": options},
            isolation_level="AUTOCOMMIT",
            hide_parameters=True,
            # All are kept: a connection takes longer to make than a record.
            poolclass=BoundedPool,
            pool_size=POOL_SIZE,
            # So that few connections serve few threads, and the others are at rest.
            pool_use_lifo=True,
        )
    except ModuleNotFoundError as error:
        raise UnavailableError(
            "PostgreSQL needs psycopg, which is not installed: pip install 'tooltrail[postgres]'"
        ) from error
    wait_for_sqlalchemy(engine)
    event.listen(engine, "do_connect", _connect)
    event.listen(engine, "begin", _begin_as_asked)
    return engine


@contextmanager
def hurried(engine: Engine) -> Generator[Connection]:
    """A transaction that takes no longer than a record should.

    Args:
        engine: of a server.

    Raises:
        DBAPIError: the server cannot be reached, or does not answer.
    """
    with (
        placed(engine, PLACE_TIMEOUT_S) as connection,
        _limited(connection),
        pipelined(connection) if can_pipeline(connection) else connection.begin(),
    ):
        yield connection


def _limited(connection: Connection) -> AbstractContextManager[None]:
    """A little more time for the answers than a server gives a record by itself."""
    named = _named_options(connection.engine.url)
    if _STATEMENT in named or LIMIT in named:
        return nullcontext()
    limit_s = TRANSACTION_TIMEOUT_S if can_pipeline(connection) else STATEMENT_TIMEOUT_S
    return _given_up(connection, limit_s + ANSWER_TIMEOUT_S)


@contextmanager
def unhurried(engine: Engine, options: Mapping[str, Any]) -> Generator[Connection]:
    """A transaction that may take as long as it needs, on a connection that is there.

    Args:
        engine: of a server.
        options: of its execution.

    Raises:
        DBAPIError: the server cannot be reached.
    """
    begin = partial(_begin, options=options, lift=_lifting(engine.url))
    with ExitStack() as stack:
        connection, transaction = _there(engine, stack, begin)
        with transaction:
            yield connection


@contextmanager
def unbegun(engine: Engine) -> Generator[Connection]:
    """A connection that is there, and has no transaction yet.

    Raises:
        DBAPIError: the server cannot be reached.
    """
    with ExitStack() as stack:
        connection, _ = _there(engine, stack, lambda asked: asked.execute(_STILL_THERE))
        connection.rollback()
        yield connection


def limit_lock_wait(connection: Connection, seconds: float) -> None:
    """Let a transaction wait for locks no longer than that, nor than it would have."""
    connection.execute(_LIMIT_WAIT, {"most": max(1, round(seconds * 1000))})


def _there(
    engine: Engine, stack: ExitStack, ask: Callable[[Connection], T]
) -> tuple[Connection, T]:
    """A connection, and what comes of asking it something first."""
    connection = stack.enter_context(placed(engine, PLACE_TIMEOUT_S))
    try:
        return connection, _asked(connection, ask)
    except DBAPIError as error:
        if not error.connection_invalidated:
            raise
    # The server has ended it while nobody used it; the others of its time go with it.
    stack.close()
    connection = stack.enter_context(placed(engine, PLACE_TIMEOUT_S))
    return connection, _asked(connection, ask)


def _asked(connection: Connection, ask: Callable[[Connection], T]) -> T:
    with _given_up(connection, CONNECT_TIMEOUT_S):
        return ask(connection)


@contextmanager
def _given_up(connection: Connection, after_s: float) -> Generator[None]:
    """Wait for the answers within the block so many seconds in all, and then for none."""
    driver = cast("ImpatientConnection", connection.connection.driver_connection)
    driver.deadline = time.monotonic() + after_s
    try:
        yield
    finally:
        driver.deadline = None


def _begin(connection: Connection, options: Mapping[str, Any], lift: TextClause) -> RootTransaction:
    transaction = connection.execution_options(**options).begin()
    connection.execute(lift)
    return transaction


def _connect(
    _dialect: object, _entry: object, arguments: Sequence[Any], named: Mapping[str, Any]
) -> "ImpatientConnection":
    from tooltrail.store._engines.impatient_psycopg import (  # noqa: PLC0415  comes with the extra `postgres`
        ImpatientConnection,
    )

    return ImpatientConnection.connect(*arguments, **named)


def _begin_as_asked(connection: Connection) -> None:
    options = connection.get_execution_options()
    if options.get(NO_TRANSACTION, False) or is_pipelined(connection):
        return
    begin = _READING if options.get(READ_ONLY, False) else _WRITING
    with raised_as_ever(connection, begin):
        # By the driver, since SQLAlchemy would ask for a transaction first.
        connection.connection.cursor().execute(begin)


def _options(synchronous_commit: str) -> str:
    limits = {
        "lock_timeout": _sqlite.BUSY_TIMEOUT_S,
        _STATEMENT: STATEMENT_TIMEOUT_S,
        _IDLE: IDLE_TIMEOUT_S,
    }
    settings: dict[str, object] = {"timezone": "UTC", "synchronous_commit": synchronous_commit}
    settings |= {name: round(seconds * 1000) for name, seconds in limits.items()}
    return " ".join(f"-c {name}={value}" for name, value in settings.items())


def _named_options(url: URL) -> str:
    """Of two equal options the server takes the last."""
    return " ".join(_all_of(url, "options"))


def _all_of(url: URL, name: str) -> Sequence[str]:
    return url.normalized_query.get(name, ())


def _lifting(url: URL) -> TextClause:
    named = _named_options(url)
    lifted = [
        f"set_config('{name}', '0', true)" for name in (_STATEMENT, _IDLE) if name not in named
    ]
    return text(f"SELECT {', '.join(lifted) or 1}")


def _prepared_after(url: URL) -> dict[str, int | None]:
    """`prepare_threshold=none` is for poolers that give each transaction another connection."""
    found = _all_of(url, _THRESHOLD)
    if not found:
        return {_THRESHOLD: PREPARE_THRESHOLD}
    if found[-1].lower() == "none":
        return {_THRESHOLD: None}
    if not found[-1].isascii() or not found[-1].isdigit():
        raise InvalidRecordError(f"{_THRESHOLD} is a number or none, not {found[-1]!r}")
    return {_THRESHOLD: int(found[-1])}


_STILL_THERE = text("SELECT 1")
_LIMIT_WAIT = text(
    "SELECT set_config('lock_timeout', CAST(:most AS TEXT), true) FROM pg_settings"
    " WHERE name = 'lock_timeout'"
    " AND (setting = '0' OR CAST(setting AS BIGINT) > CAST(:most AS BIGINT))"
)
"""The setting is in milliseconds, 0 for no limit."""
