"""Which process an invocation belongs to that is in the spool, and whether that process lives.

    <spool>/
    ├── owner-<store id>-<16 hex digits>        held with `flock` by the process that made it
    ├── <invocation id>.owner -> owner-…        a symbolic link, there before anything else
    └── <invocation id>/stdout.zst …            there from the first byte of a capture on

The lock says that a process lives, its number does not: numbers are used again. The system takes
the lock back however the process ends, and neither a program that it runs (`O_CLOEXEC`) nor its
fork, which closes its copy at once, keeps it. A link whose file is gone is of a dead owner, too.

One lock for a process and not one for each invocation, because a descriptor for each would use up
those of a runtime with a thousand calls at once. A link beside the folder and not a file in it,
because most calls capture nothing: a link is made and removed in 50 µs, while to remove a folder
that was made a moment before took 2 ms, for it waits for the journal of the file system. The price
of one lock: an invocation that its process forgot without finishing it counts as running until
that process ends.
"""

import contextlib
import errno
import fcntl
import os
import re
import secrets
import threading
import weakref
from collections.abc import Generator
from pathlib import Path
from uuid import UUID

from tooltrail.artifacts._local import make_durable_folders
from tooltrail.artifacts._private import PRIVATE_FILE
from tooltrail.records.errors import UnavailableError

LINK_SUFFIX = ".owner"
"""Ends the name of the link of an invocation."""

OWNER = re.compile(r"owner-(.+)-[0-9a-f]{16}")
"""Names of the files of owners; the group is the id of the store."""

_ATTEMPTS = 100
"""Races with a clean-up that a new owner may lose; each needs another clean-up."""


class SpoolOwner:
    """Marks invocations in a spool, so that other processes can see that theirs lives.

    Safe for threads. In a fork it begins anew: what was claimed before stays with the parent. What
    it holds is given back when nothing refers to it any more, and at the end of the process.
    """

    def __init__(self, spool: Path, store_id: str) -> None:
        """Prepare; nothing is created yet.

        Args:
            spool: the folder, made with mode 0700 when it is missing.
            store_id: of the store whose invocations are claimed.
        """
        self._spool = spool
        self._store_id = store_id
        self._held: _Held | None = None
        self._lock = threading.Lock()
        _owners.add(self)

    def claim(self, name: UUID | str) -> Path:
        """Say that an invocation is of this process; again is allowed.

        Args:
            name: of its folder: its id, unless its record was set aside.

        Returns:
            Its folder, which is not made.

        Raises:
            OSError: whatever the file system says.
        """
        # Durable, since what is set aside in it is to be, and is nowhere else.
        make_durable_folders(self._spool)
        folder = self._spool / str(name)
        with contextlib.suppress(FileExistsError):
            # For each record: to put a path together takes as long as to make the link.
            os.symlink(self._name(), f"{folder}{LINK_SUFFIX}")  # noqa: PTH211
        return folder

    def begin_anew(self) -> None:
        """Forget what is held, in a process that was forked."""
        self._lock = threading.Lock()
        held, self._held = self._held, None
        if held is not None:
            held.give_up()

    def _name(self) -> str:
        with self._lock:
            if self._held is None or not self._held.path.exists():
                self._held = _hold(self._spool, self._store_id)
            return self._held.path.name


def remove_dead_owners(spool: Path) -> None:
    """Delete the lock files of processes that have ended.

    Raises:
        UnavailableError: the spool cannot be read.
    """
    for name in filter(OWNER.fullmatch, names_in(spool)):
        with contextlib.suppress(OSError):
            descriptor = os.open(spool / name, os.O_RDONLY | os.O_CLOEXEC)
            try:
                # Held while it goes, so that a new owner that has yet to lock it finds it gone.
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                (spool / name).unlink()
            finally:
                os.close(descriptor)


@contextlib.contextmanager
def exclusive_spool(spool: Path) -> Generator[None]:
    """The block is the only one of its kind in this spool; waits for others to end.

    Raises:
        UnavailableError: the spool cannot be locked.
    """
    try:
        descriptor = os.open(spool, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise UnavailableError(f"spool {spool} cannot be opened: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError as error:
            raise UnavailableError(f"spool {spool} cannot be locked: {error.strerror}") from error
        yield
    finally:
        os.close(descriptor)


class _Held:
    """An owner's file and the descriptor that holds its lock."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self._end = weakref.finalize(self, _let_go, path, descriptor)

    def give_up(self) -> None:
        """Close a copy of the descriptor, which leaves file and lock to the process it is of."""
        self._end.detach()
        os.close(self._descriptor)


def _hold(spool: Path, store_id: str) -> _Held:
    for _ in range(_ATTEMPTS):
        path = spool / f"owner-{store_id}-{secrets.token_hex(8)}"
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, PRIVATE_FILE)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            # Before it was locked a clean-up may have taken it for one of a dead process.
            if path.exists():
                return _Held(path, descriptor)
        except BaseException:
            _let_go(path, descriptor)
            raise
        os.close(descriptor)
    raise OSError(errno.EBUSY, os.strerror(errno.EBUSY), str(spool))


def _let_go(path: Path, descriptor: int) -> None:
    with contextlib.suppress(OSError):
        path.unlink(missing_ok=True)
    os.close(descriptor)


def is_held(path: Path) -> bool:
    """Whether the process lives whose owner's file this is."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    except OSError:
        return True  # of another user: who cannot be asked is left alone
    try:
        # Shared, so that those who ask do not see each other.
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False


def names_in(spool: Path) -> list[str]:
    """What lies in a spool; nothing when there is none.

    Raises:
        UnavailableError: it cannot be read.
    """
    try:
        return os.listdir(spool)  # noqa: PTH208  names are all that is wanted
    except FileNotFoundError:
        return []
    except OSError as error:
        raise UnavailableError(f"spool {spool} cannot be read: {error.strerror}") from error


_owners: "weakref.WeakSet[SpoolOwner]" = weakref.WeakSet()


def _begin_anew() -> None:
    for owner in list(_owners):
        owner.begin_anew()


os.register_at_fork(after_in_child=_begin_anew)
