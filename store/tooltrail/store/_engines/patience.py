"""Beginning to write where SQLite says at once that others are in the way.

Mostly it waits for them by itself, as long as a connection was told to. It does not where it fears
a deadlock, or while another process recovers the log; nor does it know how long its caller has
waited already. What fails then has written nothing, so it is tried again for as long as is left.
"""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TypeVar

from sqlalchemy import Connection, RootTransaction
from sqlalchemy.exc import OperationalError

from tooltrail.store._engines import sqlite_connections as _sqlite

T = TypeVar("T")

PAUSE_S = 0.01
"""Seconds between two attempts."""

_MOST = 0.9
"""Share of `BUSY_TIMEOUT_S` that may be left before SQLite is told that it is less."""


@contextmanager
def begun(connection: Connection, deadline: float) -> Generator[None]:
    """A transaction of that connection that was begun by then; committed when the block ends.

    Args:
        connection: to either engine.
        deadline: by `time.monotonic`; a server has its own.

    Raises:
        OperationalError: SQLite's, since others are in the way still.
    """
    with _begin(connection, deadline):
        yield


def patiently(action: Callable[[], T], deadline: float) -> T:
    """Do something that either fails or is done, again until then while others are in the way.

    Raises:
        OperationalError: SQLite's.
    """
    while True:
        try:
            return action()
        except OperationalError as error:
            if not _sqlite.is_in_the_way(error.orig) or time.monotonic() >= deadline:
                raise
        time.sleep(PAUSE_S)


def _begin(connection: Connection, deadline: float) -> RootTransaction:
    left = max(0.0, deadline - time.monotonic())
    is_shorter = connection.dialect.name == "sqlite" and left < _sqlite.BUSY_TIMEOUT_S * _MOST
    if is_shorter:
        _tell(connection, left)
    try:
        return patiently(connection.begin, deadline)
    finally:
        if is_shorter:
            _tell(connection, _sqlite.BUSY_TIMEOUT_S)


def _tell(connection: Connection, seconds: float) -> None:
    """Tell SQLite how long to wait; by the driver, since SQLAlchemy would begin a transaction."""
    connection.connection.cursor().execute(f"PRAGMA busy_timeout = {round(seconds * 1000)}")
