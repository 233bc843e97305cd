"""Doing once more what came to nothing on a server, and may fare better.

A server that is restarted is back after seconds, and of two transactions that wait for each other
it ends one. What failed so, and for sure wrote nothing, is done again after a pause; pauses grow,
and are random, so that many who failed together do not come back together.
"""

import time
from collections.abc import Callable, Iterator
from random import uniform
from typing import TypeVar

from sqlalchemy.exc import DBAPIError, OperationalError

from tooltrail.records import TooltrailError
from tooltrail.store._engines import sqlite_connections as _sqlite

T = TypeVar("T")

ATTEMPTS = 8
"""Of one job, with pauses of three to six seconds in all between them."""

_FIRST_PAUSE_S = 0.05
"""Seconds, at most; each further pause may be twice as long."""

_CONNECTION_CLASS = "08"
_ROLLED_BACK = {"40001", "40P01", "25P03", "25P04"}
"""SQLSTATEs of what the server has undone: serialization, deadlock, and a program or a transaction
that took too long."""

_PASSING = _ROLLED_BACK | {"55P03", "57P01", "57P02", "57P03", "57P05", "53300"}
"""Further: a lock that was not to be had; a server that is being stopped, has crashed, or is being
started; a connection that was not used for long; too many connections."""


def is_passing(error: BaseException) -> bool:
    """Whether a server may do another time what failed so; never so of a file.

    That says nothing of whether it was done: see `Write.is_uncertain`.
    """
    cause = error.__cause__
    if not isinstance(cause, DBAPIError):
        return False
    state: object = getattr(cause.orig, "sqlstate", "")
    if isinstance(state, str):
        return state in _PASSING or state.startswith(_CONNECTION_CLASS)
    # What libpq says itself has None: a connection that was lost, or was not to be had.
    return isinstance(cause, OperationalError)


def is_rolled_back(error: BaseException) -> bool:
    """Whether a server has said that it has undone the transaction, at its commit even."""
    cause = error.__cause__
    return isinstance(cause, DBAPIError) and getattr(cause.orig, "sqlstate", None) in _ROLLED_BACK


class Patience:
    """How long one job is tried. For one thread."""

    def __init__(self, deadline: float) -> None:
        """Begin to wait.

        Args:
            deadline: by `time.monotonic`, after which no attempt begins.
        """
        self._deadline = deadline
        self._pauses = self._make_pauses()

    @property
    def left_s(self) -> float:
        """Seconds until a caller has waited for as long as it has to."""
        return self._deadline - time.monotonic()

    def pause(self) -> bool:
        """Wait before the next attempt; False when there is to be none."""
        pause = next(self._pauses)
        if pause is None or pause >= self.left_s:
            return False
        time.sleep(pause)
        return True

    @staticmethod
    def _make_pauses() -> Iterator[float | None]:
        for number in range(ATTEMPTS - 1):
            yield _FIRST_PAUSE_S * 2**number * uniform(0.5, 1)  # noqa: S311  no secret
        yield None


def persistently(attempt: Callable[[], T]) -> T:
    """Do what either is done or fails and leaves nothing, again while a server may fare better.

    Args:
        attempt: a transaction of its own; of a commit that nobody answered it makes an error that
            is not passing.

    Raises:
        TooltrailError: that of the last attempt.
    """
    patience = Patience(time.monotonic() + _sqlite.BUSY_TIMEOUT_S)
    while True:
        try:
            return attempt()
        except TooltrailError as error:
            if not is_passing(error) or not patience.pause():
                raise
