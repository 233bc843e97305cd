"""Writes that are committed together when they come together.

A commit takes as long as the disk needs to make it durable, however much it holds. So while one is
under way whoever wants to write waits, and the first of those then leads: it commits for all of
them. One recorder alone has a transaction for itself and no other thread in between, and many share
the waits for the disk. Each is told how its own write went, whatever became of the others'.

The main thread has transactions of its own: it is the one that signals interrupt, at any moment and
even to record something, and nobody else's record may hang on that. So has whoever records while it
leads. PostgreSQL groups commits itself, and a transaction that held the locks of many sessions
would only be in the way of others; there each write has a transaction of its own as well, and is
done again where it came to nothing and may fare better (`_engines.persistence`).
"""

import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

from sqlalchemy import Connection

from tooltrail.records import DiskFullError, TooltrailError, UnavailableError
from tooltrail.store._engines import sqlite_connections as _sqlite
from tooltrail.store._engines.database import Database
from tooltrail.store._engines.persistence import Patience, is_passing, is_rolled_back
from tooltrail.store._engines.pipelines import answered
from tooltrail.store._engines.postgres_connections import limit_lock_wait

MOST = 256
"""Writes in one transaction, so that other processes do not wait for long."""

T = TypeVar("T")


class Write(Generic[T]):
    """What one caller wants to have written, and what became of it.

    Attributes:
        deadline: by `time.monotonic`, until when it waits for others; counted from when it came.
        turn: set when it is settled, and when it is to lead.
        is_settled: whether it is known how it went.
        is_uncertain: whether it may be in the store although it raised an error.
    """

    def __init__(self, job: Callable[[Connection], T]) -> None:
        """Keep what is to be done.

        Args:
            job: called within a transaction, by whichever thread; and again in another one when
                the first came to nothing. What else it does than to write must bear to be done
                twice.
        """
        self._job = job
        self._made: tuple[T] | None = None
        self._error: BaseException | None = None
        self.deadline = 0.0
        self.turn = threading.Event()
        self.is_settled = False
        self.is_uncertain = False

    def execute(self, connection: Connection) -> None:
        """Do it within a transaction."""
        self._made = (self._job(connection),)

    def settle(self, error: BaseException | None) -> None:
        """Keep how it went, and tell whoever waits for it."""
        self._error = error
        self.is_settled = True
        self.turn.set()

    def result(self) -> T:
        """What the job returned, or the error of the write."""
        if self._error is not None:
            raise self._error
        if self._made is None:
            raise AssertionError("a write was asked for its result before it was done")
        return self._made[0]


class GroupCommit:
    """The writes of one open store. Safe to share between threads; each process has its own.

    While nobody leads nobody waits; whoever has led hands over to the first that does. It waits for
    other processes as long as it may itself, which is for longer than those behind it have waited:
    they go on waiting then, each for `BUSY_TIMEOUT_S` at most.
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self._is_grouping = not database.is_server
        self._lock = threading.Lock()
        self._waiting: deque[Write[Any]] = deque()
        self._leader: Write[Any] | None = None
        self._leading = threading.local()
        _groups.add(self)

    def run(self, write: Write[T]) -> T:
        """Do it; durable when this returns.

        Raises:
            UnavailableError, DamageError, InvalidRecordError: see `Database.write`.
            Exception: whatever its own job raised; then nothing of it was written.
        """
        write.deadline = time.monotonic() + _sqlite.BUSY_TIMEOUT_S
        if self._is_grouping and not self._has_its_own():
            self._run_with_others(write)
        else:
            self._by_itself(write)
            write.settle(None)
        return write.result()

    def forget_others(self) -> None:
        """Let a forked child begin without what the threads of its parent were about to do."""
        self._lock = threading.Lock()
        self._waiting.clear()
        self._leader = None
        self._leading = threading.local()

    def _has_its_own(self) -> bool:
        is_leading = getattr(self._leading, "now", False)
        return is_leading or threading.current_thread() is threading.main_thread()

    def _run_with_others(self, write: Write[Any]) -> None:
        try:
            with self._lock:
                self._waiting.append(write)
                if self._leader is None:
                    self._leader = write
                    write.turn.set()
            if not write.turn.wait(max(0.0, write.deadline - time.monotonic())):
                self._give_up(write)
            write.turn.wait()
            if not write.is_settled:
                self._lead()
        finally:
            self._leave(write)

    def _lead(self) -> None:
        with self._lock:
            taken = [self._waiting.popleft() for _ in range(min(MOST, len(self._waiting)))]
        self._leading.now = True
        try:
            self._commit(taken)
        finally:
            self._leading.now = False
            with self._lock:
                left = [it for it in taken if not it.is_settled and it not in self._waiting]
            for write in left:
                write.settle(UnavailableError("the thread that was committing it was ended"))

    def _give_up(self, write: Write[Any]) -> None:
        """Its time is up: settle it, unless it is being committed or about to be."""
        with self._lock:
            if write in self._waiting and write is not self._leader:
                self._waiting.remove(write)
                write.settle(
                    UnavailableError(f"database {self._database.target}: {_sqlite.LOCKED}")
                )

    def _leave(self, write: Write[Any]) -> None:
        """Go, with or without an answer; nobody waits for one who has gone."""
        with self._lock:
            if write in self._waiting:
                self._waiting.remove(write)
            elif not write.is_settled:
                write.is_uncertain = True  # another thread is about to commit it
            if self._leader is write:
                self._leader = self._waiting[0] if self._waiting else None
                if self._leader is not None:
                    self._leader.turn.set()

    def _commit(self, writes: Sequence[Write[Any]]) -> None:
        """Do them in one transaction, or each in its own when one of them, or all, did not fit."""
        try:
            self._in_one(writes)
        except BaseException as error:  # noqa: BLE001  each of those who wait is told
            if len(writes) == 1:
                writes[0].settle(error)
            elif is_refusal(error):
                for write in writes:
                    self._commit([write])
            else:
                self._tell(writes, error)
        else:
            for write in writes:
                write.settle(None)

    def _tell(self, writes: Sequence[Write[Any]], error: BaseException) -> None:
        """That the store is away; but who may wait longer does so, when it was a matter of time."""
        with self._lock:
            now = time.monotonic()
            is_late = now >= writes[0].deadline
            later = [it for it in writes if is_late and it.deadline > now and not it.is_uncertain]
            self._waiting.extendleft(reversed(later))
        for write in writes:
            if write not in later:
                # Each raises its own: a traceback belongs to one thread.
                write.settle(_another(error))

    def _by_itself(self, write: Write[Any]) -> None:
        """Do it in a transaction of its own; again where a server has for sure not done it."""
        patience, left_s = Patience(write.deadline), None
        while True:
            try:
                return self._in_one([write], left_s)
            except TooltrailError as error:
                if write.is_uncertain or not is_passing(error) or not patience.pause():
                    raise
            left_s = patience.left_s

    def _in_one(self, writes: Sequence[Write[Any]], left_s: float | None = None) -> None:
        try:
            with self._database.write(writes[0].deadline, is_brief=True) as connection:
                if left_s is not None:
                    limit_lock_wait(connection, left_s)
                for write in writes:
                    write.execute(connection)
                answered(connection)
                for write in writes:
                    write.is_uncertain = True
        except TooltrailError as error:
            if is_refusal(error):
                for write in writes:
                    write.is_uncertain = False
            raise


def is_refusal(error: BaseException) -> bool:
    """Whether a write that failed so has come to nothing for sure, and others may fare better."""
    is_answered = isinstance(error, DiskFullError) or not isinstance(error, UnavailableError)
    return is_answered or is_rolled_back(error)


def _another(error: BaseException) -> UnavailableError:
    another = UnavailableError(str(error))
    another.__cause__ = error
    return another


_groups: weakref.WeakSet[GroupCommit] = weakref.WeakSet()


def _forget_others() -> None:
    for group in list(_groups):
        group.forget_others()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_others)
