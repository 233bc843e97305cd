"""Statements that a server gets without the answer to the one before being waited for.

A record is some fifteen statements, and each answer that is waited for is a way to the server and
back. So they go off as they come, the first with BEGIN; what is waited for is what is read, and
once everything before the commit is asked for: what failed until then came to nothing for sure.

A program that is stopped in between stands still without the server calling it idle, so the whole
transaction has a limit besides. A server before 17 has no such limit, and is asked one by one.
"""

import sys
from collections.abc import Generator
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from typing import Protocol, cast

from sqlalchemy import Connection, Engine, event

from tooltrail.store._engines.driver_errors import interruption_behind, raised_as_ever

_PIPELINE = "tooltrail_pipeline"
"""Where a connection keeps that of its transaction."""

TRANSACTION_TIMEOUT_S = 20
"""Seconds that a record may take, so that those who wait for its locks go on within the time that
they wait; more than a program may stand still between two statements. Who is put out since it
waits itself makes its record again."""

LIMIT = "transaction_timeout"
_LIMITED_SINCE = (17,)
"""The version of PostgreSQL that brought it."""

_BEGIN = "BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE"
_SET_LIMIT = f"SET LOCAL {LIMIT} = '{TRANSACTION_TIMEOUT_S}s'"


class _Pipeline(Protocol):
    def sync(self) -> None: ...


class _Driver(Protocol):
    """What a connection of ours by psycopg has beyond PEP 249."""

    @property
    def is_at_rest(self) -> bool: ...

    def execute(self, sql: str, /, *, prepare: bool) -> object: ...

    def pipeline(self) -> AbstractContextManager[_Pipeline]: ...


def can_pipeline(connection: Connection) -> bool:
    """Whether it is to a server that ends a transaction which takes too long."""
    dialect = connection.dialect
    return dialect.name == "postgresql" and (dialect.server_version_info or ()) >= _LIMITED_SINCE


@contextmanager
def pipelined(connection: Connection) -> Generator[None]:
    """A transaction whose errors may be told by a later statement than that which failed.

    Who interrupts it gets the interruption back, whatever the driver makes of a pipeline that ends
    anywhere, and the connection is given up: the server undoes what was not committed. So is one
    that cannot be asked anything after an error, before the pool would ask it to roll back.

    Args:
        connection: without a transaction, of a driver that begins none; see `can_pipeline`.

    Raises:
        DBAPIError: the server cannot be reached, or refused something.
    """
    handled = sys.exception()
    # Asked first, since one that is lost would be made anew.
    driver = cast("_Driver", connection.connection.driver_connection)
    try:
        with _begun(connection, driver):
            yield
    except BaseException as error:
        interruption = interruption_behind(error, handled)
        if interruption is not None or not driver.is_at_rest:
            connection.invalidate()
        if interruption is None or interruption is error:
            raise
        raise interruption from error


@contextmanager
def _begun(connection: Connection, driver: _Driver) -> Generator[None]:
    kept = connection.info
    with raised_as_ever(connection, "COMMIT"), ExitStack() as stack:
        kept[_PIPELINE] = stack.enter_context(_quietly(driver, connection))
        # Of a connection that is lost there is no `info` any more.
        stack.callback(kept.pop, _PIPELINE, None)
        driver.execute(_BEGIN, prepare=False)
        if LIMIT not in str(connection.engine.url.query.get("options", "")):
            driver.execute(_SET_LIMIT, prepare=False)
        yield
        driver.execute("COMMIT", prepare=False)


@contextmanager
def _quietly(driver: _Driver, connection: Connection) -> Generator[_Pipeline]:
    """A pipeline of psycopg that does not print what goes wrong after an error."""
    failure: BaseException | None = None
    try:
        with driver.pipeline() as pipeline:
            try:
                yield pipeline
            except BaseException as error:  # noqa: BLE001  raised below
                failure = error
    except connection.dialect.loaded_dbapi.Error:
        if failure is None:
            raise
    if failure is not None:
        raise failure


def many_at_once(connection: Connection) -> AbstractContextManager[object]:
    """A pipeline for `executemany`, which would make one of its own, and print what goes wrong."""
    if connection.dialect.name != "postgresql" or is_pipelined(connection):
        return nullcontext()
    return _quietly(cast("_Driver", connection.connection.driver_connection), connection)


def is_pipelined(connection: Connection) -> bool:
    """Whether what is executed on it is not waited for."""
    return _PIPELINE in connection.info


def answered(connection: Connection) -> None:
    """Wait until a server has answered everything; nothing to do where that was waited for.

    Raises:
        DBAPIError: the server refused something.
    """
    if is_pipelined(connection):
        with raised_as_ever(connection, "SYNC"):
            _wait(connection)


def wait_for_sqlalchemy(engine: Engine) -> None:
    """Have what SQLAlchemy executes answered at once, since it looks at the answer."""

    @event.listens_for(engine, "after_cursor_execute")
    def wait(connection: Connection, *_: object) -> None:  # pyright: ignore[reportUnusedFunction]  registered by the decorator
        _wait(connection)


def _wait(connection: Connection) -> None:
    pipeline: _Pipeline | None = connection.info.get(_PIPELINE)
    # The driver's manual does not name the queue; without it an answer too many is asked for.
    if pipeline is not None and getattr(pipeline, "result_queue", True):
        pipeline.sync()
