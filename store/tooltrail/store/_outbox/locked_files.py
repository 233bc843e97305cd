"""Files of an outbox that any process appends lines to, each under the `flock` of its file."""

import errno
import os
import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tooltrail.artifacts._local import sync_folder
from tooltrail.store._outbox.flocks import lock, opened
from tooltrail.store._outbox.journal_lines import add_line, whole_end, write_at

_ATTEMPTS = 1000
"""Times that a file may be sealed or removed between its opening and its locking."""

_thread = threading.local()
"""Whether this thread has a file locked, or waits for that."""


@contextmanager
def locked(path: Path) -> Generator[int]:
    """A file that is locked and still has its name, made where it is not there.

    Opened for each append, since a fork would share the lock of one that stays open. A signal that
    interrupts this to record something would wait for its own thread: it is refused.

    Raises:
        OSError: whatever the file system says.
    """
    if getattr(_thread, "is_locking", False):
        raise OSError(errno.EDEADLK, os.strerror(errno.EDEADLK), str(path))
    _thread.is_locking = True
    try:
        with _locked(path) as descriptor:
            yield descriptor
    finally:
        _thread.is_locking = False


def append_line(descriptor: int, path: Path, data: bytes) -> int:
    """Append a line to a file that is locked, durably; its size afterwards.

    Raises:
        OSError: whatever the file system says; then nothing was added.
    """
    end = whole_end(descriptor)
    if end == 0:
        # First, so that a file with a line in it has a name that is durable, whoever is killed.
        for folder in (path.parent, path.parent.parent):
            with suppress(FileNotFoundError):
                sync_folder(folder)
    return add_line(descriptor, data, end)


def write_durably(path: Path, data: bytes) -> None:
    """Write a whole file, whose name is for the caller to make durable.

    Raises:
        OSError: whatever the file system says.
    """
    with opened(path) as descriptor:
        os.ftruncate(descriptor, 0)
        write_at(descriptor, data, 0)
        os.fsync(descriptor)


@contextmanager
def _locked(path: Path) -> Generator[int]:
    for _ in range(_ATTEMPTS):
        with ExitStack() as stack:
            try:
                descriptor = stack.enter_context(opened(path))
            except FileNotFoundError:
                continue  # the folder went, since all in it was delivered
            lock(descriptor)
            if _has_name(descriptor, path):
                yield descriptor
                return
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(path))


def _has_name(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
