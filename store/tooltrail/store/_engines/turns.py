"""Those who write to one SQLite file take turns.

SQLite lets write whoever asks at the right moment. Who has to wait asks again after pauses of up to
a tenth of a second, while others write again and again: waits of seconds were measured with eight
processes. So a write transaction first takes the lock of a file beside the database, for which the
system lets everybody wait who wants it, and wakes them as soon as it is free.

The lock says whose turn it is, and nothing else: what keeps writers apart is SQLite's own. Where no
such lock can be had, in a folder that cannot be written or on a file system without locks, all is
as it would be without this module.

A wait for the lock knows no end, since its holder may have been stopped. So a thread of its own
waits for it, and its caller for that thread as long as it likes. Whoever dies gives the lock back.
"""

import fcntl
import os
import stat
import threading
import time
import weakref
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from tooltrail.records import UnavailableError
from tooltrail.store._engines import sqlite_connections as _sqlite

LOCK_SUFFIX = "-lock"
"""Ends the name of the lock's file. Not the database itself: to close any descriptor of that gives
up SQLite's own locks."""

IDLE_S = 1.0
"""Seconds for which a thread stays that has nothing to wait for; to start one takes 0.1 ms."""

_READING_AND_WRITING = 0o666
_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
"""Neither is a program that is started given the lock, nor does a link or a pipe with the name of
the file lead anywhere."""


class WriteTurns:
    """The turns of one process at one database file. Safe to share between threads.

    A forked child has none of its parent's. The file of the lock is made with the first turn, for
    the same people as the database, and stays.
    """

    def __init__(self, database: Path) -> None:
        """Prepare; nothing is opened yet."""
        self._database = database
        # One that its own thread can take again, should an interrupt have come before the release.
        self._mine = threading.RLock()
        self._opened: _LockFile | None = None
        _turns.add(self)

    @contextmanager
    def turn(self, deadline: float) -> Generator[None]:
        """The block is the only one of its kind, in all processes that can lock the file.

        Not to be nested.

        Args:
            deadline: by `time.monotonic`, until when to wait for others.

        Raises:
            UnavailableError: it was not to be had until then.
        """
        mine = self._mine
        if not mine.acquire(timeout=_until(deadline)):
            raise self._locked()
        try:
            file = self._file()
            if file is None:
                yield
                return
            try:
                if not file.take(deadline):
                    raise self._locked()
                yield
            finally:
                # Without a call in between at which an interrupt could come, and by hand: a copy of
                # the descriptor, in a process that is being started, would keep a closed one's.
                try:
                    if file.descriptor >= 0:
                        fcntl.flock(file.descriptor, fcntl.LOCK_UN)
                except OSError:
                    pass
        finally:
            mine.release()

    def close(self) -> None:
        """Close the file as soon as nobody uses it; the next turn opens it again."""
        file, self._opened = self._opened, None
        if file is not None:
            file.end()

    def forget(self) -> None:
        """Begin anew, as a forked child: what its parent's threads hold is not its own."""
        self._mine = threading.RLock()
        self._opened = None

    def _file(self) -> "_LockFile | None":
        """The open file; None where there can be no lock."""
        file = self._opened
        if file is None or file.is_removed():
            self.close()
            descriptor = _open_lock(self._database)
            file = self._opened = None if descriptor is None else _LockFile(descriptor)
        return file

    def _locked(self) -> UnavailableError:
        return UnavailableError(f"database {self._database}: {_sqlite.LOCKED}")


class _LockFile:
    """The file of the lock, open. Closed when nobody refers to it any more.

    Attributes:
        descriptor: of the file; below 0 in a forked child, whose copy is closed.
    """

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self._close = weakref.finalize(self, os.close, descriptor)
        # What waits for the lock at the end of the program still uses it.
        self._close.atexit = False
        self._changed = threading.Condition()
        self._has_thread = False
        self._is_blocking = False
        self._is_wanted = False
        self._is_over = False
        _files.add(self)

    def take(self, deadline: float) -> bool:
        """Take the lock, in one thread at a time; whether it was to be had until then.

        True, too, where there is nothing to wait for, since the system has no such lock.
        """
        with self._changed:
            # A thread may still wait for one who has gone meanwhile; then it does so for this one.
            if not self._is_blocking and not self._must_wait():
                return True
            self._is_wanted = True
            try:
                return self._changed.wait_for(lambda: not self._is_blocking, _until(deadline))
            finally:
                self._is_wanted = False

    def is_removed(self) -> bool:
        """Whether no other process can find the file any more."""
        return os.fstat(self.descriptor).st_nlink == 0

    def end(self) -> None:
        """Let the thread go as soon as it has nothing to wait for."""
        with self._changed:
            self._is_over = True
            self._changed.notify_all()

    def give_up(self) -> None:
        """Close a copy of the descriptor, which leaves the lock to the process it is of."""
        self.descriptor = -1
        self._close()

    def _must_wait(self) -> bool:
        """Try it at once, and set the thread to wait for it where somebody else has it."""
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return self._is_thread_set()
        except OSError:
            pass
        return False

    def _is_thread_set(self) -> bool:
        self._is_blocking = True
        if self._has_thread:
            self._changed.notify_all()
            return True
        thread = threading.Thread(target=self._wait, name="tooltrail-turns", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # no more threads, or the end of the program
            self._is_blocking = False
            return False
        self._has_thread = True
        return True

    def _wait(self) -> None:
        """Wait for the lock, as often as somebody wants it; the work of the thread."""
        while True:
            with suppress(OSError):  # whoever wants it goes on without
                fcntl.flock(self.descriptor, fcntl.LOCK_EX)
            with self._changed:
                self._is_blocking = False
                self._changed.notify_all()
                if not self._is_wanted:
                    fcntl.flock(self.descriptor, fcntl.LOCK_UN)
                self._changed.wait_for(lambda: self._is_blocking or self._is_over, IDLE_S)
                if not self._is_blocking:
                    self._has_thread = False
                    return


def _open_lock(database: Path) -> int | None:
    """A descriptor of the file, which is made where there is none; None when that cannot be."""
    path = database.with_name(database.name + LOCK_SUFFIX)
    try:
        with suppress(FileExistsError):
            return _make_lock(path, database.stat())
        return os.open(path, _FLAGS | os.O_RDWR)
    except PermissionError:
        # Another user's file can be locked by whoever can read it.
        with suppress(OSError):
            return os.open(path, _FLAGS | os.O_RDONLY)
    except OSError:
        pass
    return None


def _make_lock(path: Path, database: os.stat_result) -> int:
    mode = stat.S_IMODE(database.st_mode) & _READING_AND_WRITING
    descriptor = os.open(path, _FLAGS | os.O_RDWR | os.O_CREAT | os.O_EXCL, mode)
    # As SQLite does with its own: a file of root would keep out the owner of the database. Others
    # can give it to its group, when it is one of theirs.
    owner = -1 if os.geteuid() else database.st_uid
    with suppress(OSError):
        os.fchown(descriptor, owner, database.st_gid)
    with suppress(OSError):
        # The umask, too, was that of whoever came first.
        os.fchmod(descriptor, mode)
    return descriptor


def _until(deadline: float) -> float:
    return max(0.0, deadline - time.monotonic())


_turns: weakref.WeakSet[WriteTurns] = weakref.WeakSet()
_files: weakref.WeakSet[_LockFile] = weakref.WeakSet()


def _forget_parent() -> None:
    """Leave a forked child's copies of what its parent holds."""
    for turns in list(_turns):
        turns.forget()
    for file in list(_files):
        file.give_up()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget_parent)
