"""Writes that are committed together when they come together.

A commit takes as long as the disk needs to make it durable, however much it holds. So while one is
under way whoever wants to write waits, and the first of those then commits for all of them: one
recorder alone has a transaction for itself and no other thread in between, and many share the waits
for the disk. Each is told how its own write went, whatever became of the others'.

The main thread commits for itself alone: it is the one that signals interrupt, and nobody else's
record may hang on that. PostgreSQL groups commits itself, and a transaction that held the locks of
many sessions would only be in the way of others; there each write has a transaction of its own.
"""

import os
import threading
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection

from tooltrail.records import DiskFullError, TooltrailError, UnavailableError
from tooltrail.store._database import Database

MOST = 256
"""Writes in one transaction, so that other processes do not wait for long."""

T = TypeVar("T")


class Write(Generic[T]):
    """What one caller wants to have written, and what became of it.

    Attributes:
        is_uncertain: whether it may be in the store although it raised an error.
    """

    def __init__(self, job: Callable[[Connection], T]) -> None:
        """Keep what is to be done.

        Args:
            job: called within a transaction, by whichever thread; and again in another one when
                the first came to nothing. It changes nothing but the database.
        """
        self._job = job
        self._made: tuple[T] | None = None
        self._error: BaseException | None = None
        self.is_settled = False
        self.is_uncertain = False

    def execute(self, connection: Connection) -> None:
        """Do it within a transaction."""
        self._made = (self._job(connection),)

    def settle(self, error: BaseException | None) -> None:
        """Keep how it went."""
        self._error = error
        self.is_settled = True

    def result(self) -> T:
        """What the job returned, or the error of the write."""
        if self._error is not None:
            raise self._error
        if self._made is None:
            raise AssertionError("a write was asked for its result before it was done")
        return self._made[0]


class GroupCommit:
    """The writes of one open store. Safe to share between threads; each process has its own."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._is_grouping = database.engine.dialect.name == "sqlite"
        self._waiting: deque[Write[Any]] = deque()
        self._committing = threading.Lock()
        _groups.add(self)

    def run(self, write: Write[T]) -> T:
        """Do it; durable when this returns.

        Raises:
            UnavailableError, DamageError, InvalidRecordError: see `Database.write`.
            Exception: whatever its own job raised; then nothing of it was written.
        """
        if not self._is_grouping:
            self._commit([write])
        elif threading.current_thread() is threading.main_thread():
            with self._committing:
                self._commit([write])
        else:
            self._waiting.append(write)
            with self._committing:
                while not write.is_settled:
                    self._commit(self._taken())
        return write.result()

    def forget_others(self) -> None:
        """Let a forked child begin without what the threads of its parent were about to do."""
        self._waiting.clear()
        self._committing = threading.Lock()

    def _taken(self) -> list[Write[Any]]:
        return [self._waiting.popleft() for _ in range(min(MOST, len(self._waiting)))]

    def _commit(self, writes: Sequence[Write[Any]]) -> None:
        """Do them in one transaction, or each in its own when one of them, or all, did not fit."""
        try:
            self._in_one(writes)
        except Exception as error:  # noqa: BLE001  each of those who wait is told
            if len(writes) == 1:
                writes[0].settle(error)
            elif is_refusal(error):
                for write in writes:
                    self._commit([write])
            else:
                for write in writes:
                    # Each raises its own: a traceback belongs to one thread.
                    write.settle(_another(error))
        else:
            for write in writes:
                write.settle(None)

    def _in_one(self, writes: Sequence[Write[Any]]) -> None:
        try:
            with self._database.write() as connection:
                for write in writes:
                    write.execute(connection)
                for write in writes:
                    write.is_uncertain = True
        except TooltrailError as error:
            if is_refusal(error):
                for write in writes:
                    write.is_uncertain = False
            raise


def is_refusal(error: Exception) -> bool:
    """Whether a write that failed so has come to nothing for sure, and others may fare better."""
    return isinstance(error, DiskFullError) or not isinstance(error, UnavailableError)


def _another(error: Exception) -> UnavailableError:
    another = UnavailableError(str(error))
    another.__cause__ = error
    return another


_groups: weakref.WeakSet[GroupCommit] = weakref.WeakSet()


def _forget_others() -> None:
    for group in list(_groups):
        group.forget_others()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_others)
