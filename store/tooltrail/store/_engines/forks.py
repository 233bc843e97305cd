"""What a fork of the process does to connections.

SQLite asks the system for one lock of each kind in a process, however many connections share it,
and keeps in memory that it has it. A forked child has that memory and none of the locks. So a child
that wrote to a file its parent had open was seen to lose all of it: the parent closed the store,
held itself to be the last, and took away the log to which the child went on writing.

Therefore no connection to a file is open while the process forks: idle ones are closed, those in
use are waited for, and whoever wants one waits for the fork. Where somebody does not end in time
the child may not use that file any more. A child leaves connections to a server to its parent.
"""

import ctypes
import os
import threading
import weakref
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast

if TYPE_CHECKING:  # not wanted by those who read a file without SQLAlchemy
    from sqlalchemy import Engine, QueuePool

WAIT_S = 1.0
"""Seconds for which a fork waits for other threads. A write takes milliseconds; a long report may
read for minutes, and who forks beside it seldom means to use the store in the child."""

_FileId = tuple[int, int]
"""Device and inode."""


@dataclass(frozen=True, eq=False, slots=True)
class _Use:
    """A connection that may be open.

    Attributes:
        file: of the database.
        thread: that wanted it.
    """

    file: Path
    thread: int


class _Forks:
    """The connections of this process to files, and its forks. Safe to share between threads."""

    def __init__(self) -> None:
        # Both can be taken again by their own thread, in which a signal may come at any moment, and
        # whoever handles it may record something or fork.
        self._one_at_a_time = threading.RLock()
        self._changed = threading.Condition(threading.RLock())
        self._uses: set[_Use] = set()
        self._is_forking = False
        self._forker: int | None = None
        self._engines: weakref.WeakKeyDictionary[Engine, Path | None] = weakref.WeakKeyDictionary()
        self.inherited: frozenset[_FileId] = frozenset()
        """Files on which SQLite cannot be used here."""

    def add(self, engine: "Engine", file: Path | None) -> None:
        """See to the idle connections of an engine; `file` is None for a server."""
        with self._changed:
            self._engines[engine] = file

    def begin(self, file: Path) -> _Use:
        """Use a file, unless the process is just forking; then as soon as it has."""
        use = _Use(file, threading.get_ident())
        with self._changed:
            while self._is_forking and not self._may_pass(use.thread):
                self._changed.wait()
            self._uses.add(use)
        return use

    def end(self, use: _Use) -> None:
        """Be done with it."""
        with self._changed:
            self._uses.discard(use)
            if self._is_forking:
                self._changed.notify_all()

    def before(self) -> None:
        """Have no connection open, or as few as can be."""
        self._one_at_a_time.acquire()
        with self._changed:
            self._is_forking, self._forker = True, threading.get_ident()
            # Its own it would wait for in vain.
            self._changed.wait_for(self._is_unused_by_others, WAIT_S)
            # One that has a connection in use keeps its pool, to which that comes back: it would be
            # open, and nobody would know, in another one.
            in_use = {None, *(use.file for use in self._uses)}
            engines = [engine for engine, file in self._engines.items() if file not in in_use]
        for engine in engines:
            engine.dispose()

    def after_in_parent(self) -> None:
        """Let everybody go on."""
        with self._changed:
            self._is_forking, self._forker = False, None
            self._changed.notify_all()
        # An interrupt may have ended the wait for it.
        with suppress(RuntimeError):
            self._one_at_a_time.release()

    def after_in_child(self) -> None:
        """Begin anew, but for the files that were in use."""
        self._one_at_a_time = threading.RLock()
        self._changed = threading.Condition(threading.RLock())
        files = {use.file for use in self._uses}
        for engine, file in list(self._engines.items()):
            # A program in C may fork without a word before.
            pool = cast("QueuePool", engine.pool)
            if file is not None and (file in files or pool.checkedin()):
                files.add(file)
                _keep_for_ever(pool)
            engine.dispose(close=False)
        self.inherited |= frozenset(filter(None, map(_file_id, files)))
        self._uses = set()
        self._is_forking, self._forker = False, None

    def _may_pass(self, thread: int) -> bool:
        """Whether a thread that waited for the fork would wait for itself.

        The one that forks, in the handler of a signal or another hook; and one that has a
        connection already, for which the fork waits.
        """
        return thread == self._forker or any(use.thread == thread for use in self._uses)

    def _is_unused_by_others(self) -> bool:
        me = threading.get_ident()
        return all(use.thread == me for use in self._uses)


_forks = _Forks()


@contextmanager
def no_fork(file: Path) -> Generator[None]:
    """While the block lasts, which may have a connection to a file open, the process does not fork.

    Unless it does so in this thread, or the block takes longer than `WAIT_S`. Can be nested.
    """
    use = _forks.begin(file)
    try:
        yield
    finally:
        _forks.end(use)


def prepare_for_forks(engine: "Engine", file: Path | None) -> None:
    """See to the idle connections of an engine when the process forks.

    Args:
        engine: that has them.
        file: to which they are; None for a server.
    """
    _forks.add(engine, file)


def refusal(file: Path) -> str | None:
    """Why this process must not open a file by SQLite; None when it may."""
    if _forks.inherited and _file_id(file) in _forks.inherited:
        return (
            "it was being used while this process was forked, and SQLite cannot share it then; "
            "start the process anew instead, with multiprocessing by 'spawn' or 'forkserver'"
        )
    return None


def _keep_for_ever(pool: "QueuePool") -> None:
    """Let what it has, or gets back, never be closed, not even at the end of the program.

    SQLite would hold a connection of the parent for the last one, and take the log away.
    """
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(pool))


def _file_id(file: Path) -> _FileId | None:
    try:
        found = file.stat()
    except OSError:
        return None
    return found.st_dev, found.st_ino


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_forks.before,
        after_in_parent=_forks.after_in_parent,
        after_in_child=_forks.after_in_child,
    )
