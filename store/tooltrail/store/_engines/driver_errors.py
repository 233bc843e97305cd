"""Errors of a driver that was called without SQLAlchemy, as SQLAlchemy would have raised them.

And what they came of, where that was no error.
"""

from collections.abc import Generator
from contextlib import contextmanager
from typing import Any, cast

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError


@contextmanager
def raised_as_ever(connection: Connection, sql: str) -> Generator[None]:
    """Turn the driver's errors into those that SQLAlchemy raises."""
    try:
        yield
    except connection.dialect.loaded_dbapi.Error as error:
        raise as_raised(error, connection, sql) from error


def as_raised(error: Exception, connection: Connection, sql: str) -> BaseException:
    """A driver's error as SQLAlchemy raises it; a connection that it ended is used no more."""
    dialect = connection.dialect
    is_lost = dialect.is_disconnect(cast("Any", error), connection.connection, None)
    if is_lost:
        connection.invalidate(error)
    return DBAPIError.instance(
        sql,
        None,
        error,
        dialect.loaded_dbapi.Error,
        hide_parameters=True,
        connection_invalidated=is_lost,
        dialect=dialect,
    )


def interruption_behind(
    error: BaseException | None, handled: BaseException | None
) -> BaseException | None:
    """What is no error, a signal's for instance, of those that led to this one; None without one.

    Args:
        error: that came of it.
        handled: what the caller was about to handle already, which led to all that it did.
    """
    while error is not handled and isinstance(error, Exception):
        error = error.__context__
    return None if error is handled else error
