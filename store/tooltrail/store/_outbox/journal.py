"""A file of whole lines that any number of processes append to, and the folder around it.

    <spool>/outbox-<store id>/
    ├── waiting/            there only while something waits, so that one `stat` tells
    │   ├── journal         what is appended to
    │   └── sealed-…        what was, in the order of the numbers; being delivered, or about to be
    ├── delivering          held with `flock` by the one process that delivers, which signs it
    ├── joined/<id> -> <id> sessions that turned out to be others, by their idempotency keys
    └── …                   what is not delivered: see `put_away`

A line (see `journal_lines`) is appended under the `flock` of the file and durable when `append`
returns. Imports nothing heavy, for whoever only appends.
"""

import fcntl
import os
import re
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tooltrail.artifacts._local import make_durable_folders, sync_folder
from tooltrail.store._outbox.flocks import holder_of, lock, opened, sign
from tooltrail.store._outbox.journal_lines import Line, iter_lines, whole_end
from tooltrail.store._outbox.locked_files import append_line, locked
from tooltrail.store.spools import WAITING_FOLDER

MOST_BYTES = 16 << 20
"""Bytes after which a journal is sealed and a new one begun: what one killed delivery repeats."""

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
        self.waiting = folder / WAITING_FOLDER
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
        path = self.waiting / _JOURNAL
        with locked(path) as descriptor:
            size = append_line(descriptor, path, data)
            if size >= MOST_BYTES:
                # What is appended is durable. Whoever delivers seals what was not sealed here.
                with suppress(OSError):
                    self._seal()

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

    def iter_lines(self) -> Iterator[Line]:
        """The lines of what waits, the oldest first; what is delivered meanwhile may be left out.

        Raises:
            OSError: the folder or a file cannot be read.
        """
        read: set[str] = set()
        gone: set[str] = set()
        while files := [path for path in self.files() if path.name not in read]:
            for path in files:
                try:
                    yield from iter_lines(path, is_ended=self.is_sealed(path))
                except FileNotFoundError:
                    # It was delivered meanwhile, or has another name since it was sealed.
                    if path.name in gone:
                        read.add(path.name)
                    gone.add(path.name)
                    break
                read.add(path.name)
            else:
                return

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
        with locked(path) as descriptor:
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
