"""Files that are locked with `flock` while they are used, in a process that may fork.

Such a lock belongs to what was opened and not to who opened it: a fork has it, too, as long as it
has a copy of the descriptor, and can give it up for its parent. So a child closes what the other
threads of its parent had open. What the thread that forks had open, in the handler of a signal for
instance, leads nowhere in the child, which may still go on with it.
"""

import errno
import fcntl
import os
import platform
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager, suppress
from pathlib import Path

from tooltrail.artifacts._local import make_durable_folders
from tooltrail.artifacts._private import PRIVATE_FILE

MOST_WAIT_S = 30.0
"""Seconds that a lock is waited for. Its holder needs milliseconds, or has been stopped; one that
delivers may need longer, and goes on then."""

_FIRST_PAUSE_S = 0.0005
_LONGEST_PAUSE_S = 0.01

_STOPPED = ("T", "t")
"""States of a process in `/proc`: by a signal, or by a debugger."""

_FLAGS = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC


class _Descriptors:
    """The descriptors of this process, each with the thread that has opened it."""

    def __init__(self) -> None:
        # One that its own thread can take again: a signal may come while it is held.
        self._lock = threading.RLock()
        self._threads: dict[int, int] = {}

    def open(self, path: Path) -> int:
        with self._lock:
            descriptor = os.open(path, _FLAGS, PRIVATE_FILE)
            self._threads[descriptor] = threading.get_ident()
        return descriptor

    def close(self, descriptor: int) -> None:
        # By hand, since a program in C that forked may have a copy. Where the lock is not this
        # process's own it leads nowhere by now.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        with self._lock:
            del self._threads[descriptor]
            os.close(descriptor)

    def before_fork(self) -> None:
        self._lock.acquire()

    def after_in_parent(self) -> None:
        self._lock.release()

    def after_in_child(self) -> None:
        self._lock = threading.RLock()
        mine = threading.get_ident()
        for descriptor, thread in list(self._threads.items()):
            if thread == mine:
                _lead_nowhere(descriptor)
            else:
                del self._threads[descriptor]
                os.close(descriptor)


_descriptors = _Descriptors()


@contextmanager
def opened(path: Path) -> Generator[int]:
    """A file of this process alone, made with its folders where it is not there; not locked yet.

    Raises:
        OSError: whatever the file system says.
    """
    try:
        descriptor = _descriptors.open(path)
    except FileNotFoundError:
        make_durable_folders(path.parent)
        descriptor = _descriptors.open(path)
    try:
        yield descriptor
    finally:
        _descriptors.close(descriptor)


def lock(descriptor: int) -> None:
    """Lock a file that others lock for moments.

    By asking again and again, since who waits for the system's answer waits without an end.

    Raises:
        OSError: whatever the file system says; `TimeoutError` when it was not to be had.
    """
    deadline, pause = time.monotonic() + MOST_WAIT_S, _FIRST_PAUSE_S
    while True:
        try:
            return fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            if time.monotonic() >= deadline:
                raise TimeoutError(errno.ETIMEDOUT, "its lock was not to be had") from error
        time.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE_S)


def sign(descriptor: int) -> None:
    """Let others know who has a file locked that holds nothing else; see `holder_of`."""
    # On a full disk nobody is told.
    with suppress(OSError):
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, f"{os.getpid()} {platform.node()}".encode(), 0)


def holder_of(path: Path) -> str:
    """Who signed a file last, in words for people."""
    with suppress(OSError, ValueError):
        number, _, host = path.read_text().partition(" ")
        return _described(int(number), host)
    return "another process"


def _described(number: int, host: str) -> str:
    if host != platform.node():
        return f"process {number} on {host}"
    with suppress(OSError):
        # Behind the name, which may hold anything.
        state = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0]
        if state in _STOPPED:
            return f"process {number}, which is stopped (`kill -CONT {number}` lets it go on),"
    return f"process {number}"


def _lead_nowhere(descriptor: int) -> None:
    """Without giving up the lock, and so that nothing can be made durable by it."""
    nowhere = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    os.dup2(nowhere, descriptor, inheritable=False)
    os.close(nowhere)


if hasattr(os, "register_at_fork"):
    os.register_at_fork(
        before=_descriptors.before_fork,
        after_in_parent=_descriptors.after_in_parent,
        after_in_child=_descriptors.after_in_child,
    )
