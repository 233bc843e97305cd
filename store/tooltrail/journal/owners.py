"""Owner locks: the process of a running tool call, and whether that process is alive.

    <spool>/owners/<name>.lock        held with `flock` by the process that created it

A process holds one lock for all its calls, and `call.started` names it. The system releases the
lock when the process ends for any reason. A child that inherits the descriptor keeps the lock,
since a command that outlives its recorder is still running.
"""

import contextlib
import fcntl
import os
import re
import threading
from pathlib import Path
from typing import Final

from tooltrail.artifacts.private_files import make_durable_folders
from tooltrail.journal.forks import resets_in_child
from tooltrail.records.errors import unavailable_if_failing

FOLDER_NAME: Final = "owners"
_NAME: Final = r"[0-9a-f]{32}"


class Owner:
    """The owner lock of this process. Safe for threads; a forked child creates its own lock.

    Attributes:
        descriptor: holds the lock, for a child to inherit; -1 before `name`.
    """

    descriptor = -1
    _name: str | None = None

    def __init__(self, spool: Path) -> None:
        """Prepare. No file is created yet."""
        self.spool = spool
        self.reset()
        resets_in_child.add(self)

    def name(self) -> str:
        """The name of the lock. The first call acquires the lock.

        Raises `UnavailableError` if the spool cannot be written.
        """
        with self._mutex:
            if self._name is None:
                with unavailable_if_failing(f"spool {self.spool} cannot be created or written"):
                    self._name = self._lock()
            return self._name

    def release(self) -> None:
        """Release the lock and remove its file. Calls that have not ended count as interrupted."""
        with self._mutex:
            if self._name is not None:
                remove_owner(self.spool, self._name)
                self._close()
                self._name = None

    def _close(self) -> None:
        # A fork or an interrupt between the statements must not close the descriptor twice.
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)

    def _lock(self) -> str:
        folder = self.spool / FOLDER_NAME
        make_durable_folders(folder)
        name = os.urandom(16).hex()
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC | os.O_NOFOLLOW
        self._close()  # left by a failed attempt
        self.descriptor = os.open(_path(self.spool, name), flags, 0o600)
        # No other process knows the file yet, so the lock is free.
        fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return name

    def reset(self) -> None:
        """Begin without a lock. In a forked child, the lock belongs to the parent."""
        self._close()
        self._mutex, self._name = threading.Lock(), None

    def __del__(self) -> None:
        self._close()  # no code holds this owner, so its calls cannot end


def is_alive(spool: Path, name: str) -> bool:
    """Whether the process that created an owner lock, or a child that inherited it, is alive.

    False if the name is not a valid name of an owner lock. Raises `UnavailableError` if the file
    cannot be opened or locked.
    """
    if re.fullmatch(_NAME, name) is None:
        return False
    path = _path(spool, name)
    with (
        unavailable_if_failing(f"owner lock {path} cannot be opened or locked"),
        contextlib.suppress(FileNotFoundError),
    ):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        try:
            return not try_lock(descriptor, fcntl.LOCK_SH)
        finally:
            os.close(descriptor)
    return False


def try_lock(descriptor: int, kind: int) -> bool:
    """Lock a file unless another program has a conflicting lock; return whether it is locked."""
    with contextlib.suppress(BlockingIOError):
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
        return True
    return False


def remove_owner(spool: Path, name: str) -> None:
    """Remove the lock file of an owner."""
    if re.fullmatch(_NAME, name) is not None:
        with contextlib.suppress(OSError):
            _path(spool, name).unlink()


def _path(spool: Path, name: str) -> Path:
    return spool / FOLDER_NAME / f"{name}.lock"
