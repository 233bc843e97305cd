"""A file of whole lines that any number of processes append to, and the folder around it.

    <spool>/outbox-<store id>/
    ├── waiting/            there only while something waits, so that one `stat` tells
    │   ├── journal         what is appended to
    │   └── sealed-…        what was, in the order of the numbers; being delivered, or about to be
    ├── delivering          held with `flock` by the one process that delivers, which signs it
    ├── dropped             a line for each record that was dropped and counted
    ├── joined/<id> -> <id> sessions that turned out to be others, by their idempotency keys
    └── kept/               lines that cannot be delivered, each with the reason beside it

A line (see `_journal_lines`) is appended under the `flock` of the file and durable when `append`
returns. Imports nothing heavy, for whoever only appends.
"""

import errno
import fcntl
import os
import re
import threading
from collections.abc import Generator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from tooltrail.artifacts._local import make_durable_folders, sync_folder
from tooltrail.records.digests import digest_of
from tooltrail.store._flocks import holder_of, lock, opened, sign
from tooltrail.store._journal_lines import add_line, whole_end, write_at

MOST_BYTES = 16 << 20
"""Bytes after which a journal is sealed and a new one begun: what one killed delivery repeats."""

_ATTEMPTS = 1000
"""Times that a file may be sealed or removed between its opening and its locking."""

_thread = threading.local()
"""Whether this thread has a file locked, or waits for that."""

_JOURNAL = "journal"
_SEALED = "sealed-"
_SEALED_NAME = re.compile(rf"{_SEALED}[0-9]+")


class Journal:
    """The folder of one outbox. Safe to share between threads, processes and their forks.

    Attributes:
        folder: where it is; made with mode 0700 by the first append.
        waiting: the folder in it that is there while something waits.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.waiting = folder / "waiting"
        self.dropped = folder / "dropped"
        self._delivering = folder / "delivering"

    def is_waiting(self) -> bool:
        """Whether there is anything to deliver, by one `stat`.

        Raises:
            OSError: nobody can tell.
        """
        try:
            self.waiting.stat()
        except FileNotFoundError:
            return False
        return True

    def append(self, data: bytes) -> None:
        """Add a line that is to be delivered; durable when this returns.

        Args:
            data: canonical JSON, which has no newline.

        Raises:
            OSError: whatever the file system says; then nothing was added.
        """
        with self._opened(self.waiting / _JOURNAL) as descriptor:
            size = self._add(descriptor, data)
            if size >= MOST_BYTES:
                # What is appended is durable. Whoever delivers seals what was not sealed here.
                with suppress(OSError):
                    self._seal()

    def count_dropped(self, data: bytes) -> None:
        """Add a line to the count of what was dropped; durable when this returns.

        Raises:
            OSError: whatever the file system says.
        """
        with self._opened(self.dropped) as descriptor:
            self._add(descriptor, data)

    def files(self) -> list[Path]:
        """What waits, the oldest file first; the journal itself comes last.

        Raises:
            OSError: the folder cannot be read; one that is not there is empty.
        """
        try:
            names = os.listdir(self.waiting)  # noqa: PTH208  names are all that is wanted
        except FileNotFoundError:
            return []
        sealed = sorted(filter(_SEALED_NAME.fullmatch, names))
        last = [_JOURNAL] if _JOURNAL in names else []
        return [self.waiting / name for name in (*sealed, *last)]

    @contextmanager
    def delivering(self, *, wait: bool) -> Generator[bool]:
        """Be the only one that delivers; gives False when another process is.

        Args:
            wait: for that one, half a minute at most.

        Raises:
            OSError: the folder cannot be written.
        """
        with opened(self._delivering) as descriptor:
            try:
                if wait:
                    lock(descriptor)
                else:
                    fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except (BlockingIOError, TimeoutError):
                yield False
                return
            sign(descriptor)
            yield True

    def deliverer(self) -> str:
        """Who delivers, or did last, in words for people."""
        return holder_of(self._delivering)

    def seal(self) -> list[Path]:
        """The files to deliver, in their order, to which nobody appends any more.

        The journal becomes one of them when there is no other, so that attempts that come to
        nothing do not leave a file each.

        Raises:
            OSError: whatever the file system says.
        """
        path = self.waiting / _JOURNAL
        if (sealed := self._sealed()) or not path.exists():
            # Looked at again: who appends may have sealed it since.
            return sealed or self._sealed()
        with self._opened(path) as descriptor:
            if whole_end(descriptor):
                self._seal()
            else:
                path.unlink()
        return self._sealed()

    def remove(self, sealed: Path) -> None:
        """Forget a file that was delivered, and the folder when it was the last.

        Raises:
            OSError: whatever the file system says.
        """
        sealed.unlink()
        sync_folder(self.waiting)
        self.tidy()

    def tidy(self) -> None:
        """Remove the folder of what waits when nothing does."""
        with suppress(OSError):
            self.waiting.rmdir()

    def keep(self, raw: bytes, reason: str) -> Path:
        """Put a line away that cannot be delivered, durably; the file it is in.

        Raises:
            OSError: whatever the file system says.
        """
        kept = self.folder / "kept"
        make_durable_folders(kept)
        # Named by its content: a delivery that was killed puts it into the same place again.
        name = digest_of(raw).removeprefix("sha256:")[:32]
        _write_durably(kept / f"{name}.reason", reason.encode("utf-8", "backslashreplace") + b"\n")
        _write_durably(kept / name, raw + b"\n")
        sync_folder(kept)
        return kept / name

    def kept_count(self) -> int:
        """How many lines were put away.

        Raises:
            OSError: the folder cannot be read.
        """
        try:
            names = os.listdir(self.folder / "kept")  # noqa: PTH208  the same
        except FileNotFoundError:
            return 0
        return sum("." not in name for name in names)

    def join(self, session: str, other: str) -> None:
        """Remember that a session is another one, durably.

        Raises:
            OSError: whatever the file system says.
        """
        folder = self.folder / "joined"
        make_durable_folders(folder)
        with suppress(FileExistsError):
            (folder / session).symlink_to(other)
        sync_folder(folder)

    def joined(self, session: str) -> str:
        """The session that one turned out to be, or the same."""
        try:
            return os.readlink(self.folder / "joined" / session)  # noqa: PTH115  a name, no path
        except OSError:
            return session

    def _add(self, descriptor: int, data: bytes) -> int:
        """Append a line to a file that is locked; its size afterwards."""
        end = whole_end(descriptor)
        if end == 0:
            # First, so that a file with a line in it has a name that is durable, whoever is killed.
            for folder in (self.waiting, self.folder):
                with suppress(FileNotFoundError):
                    sync_folder(folder)
        return add_line(descriptor, data, end)

    def _seal(self) -> None:
        """Give the journal, which is locked, the number behind the last one."""
        numbers = [int(path.name.removeprefix(_SEALED)) for path in self._sealed()]
        # By a number and not by a time: clocks are set back.
        sealed = self.waiting / f"{_SEALED}{max(numbers, default=0) + 1:012d}"
        (self.waiting / _JOURNAL).rename(sealed)

    def _sealed(self) -> list[Path]:
        return [path for path in self.files() if self.is_sealed(path)]

    @staticmethod
    def is_sealed(path: Path) -> bool:
        """Whether one of the files is one to which nobody appends any more."""
        return path.name != _JOURNAL

    @contextmanager
    def _opened(self, path: Path) -> Generator[int]:
        """A file that is locked and still has its name, made where it is not there.

        Opened for each append, since a fork would share the lock of one that stays open. A signal
        that interrupts this to record something would wait for its own thread: it is refused.
        """
        if getattr(_thread, "is_locking", False):
            raise OSError(errno.EDEADLK, os.strerror(errno.EDEADLK), str(path))
        _thread.is_locking = True
        try:
            with self._locked(path) as descriptor:
                yield descriptor
        finally:
            _thread.is_locking = False

    @contextmanager
    def _locked(self, path: Path) -> Generator[int]:
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


def _write_durably(path: Path, data: bytes) -> None:
    with opened(path) as descriptor:
        os.ftruncate(descriptor, 0)
        write_at(descriptor, data, 0)
        os.fsync(descriptor)


def _has_name(descriptor: int, path: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(descriptor), path.stat())
    except FileNotFoundError:
        return False
