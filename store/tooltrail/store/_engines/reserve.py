"""Room on the database's disk that is given up when there is none left.

On a full disk SQLite can neither commit nor delete. A file that holds some room and nothing else is
removed then, so that the end of what runs can still be recorded, and so that `gc` and `repair` can
work. These, and the next session that begins, make it anew when there is room again. It gets its
name when it is whole, and one of another size counts for nothing.
"""

import os
from contextlib import suppress
from pathlib import Path

from tooltrail.artifacts import PRIVATE_FILE
from tooltrail.store._engines.disk import is_below

RESERVE_BYTES = 1024 * 1024
"""Room for some two hundred records of up to `SMALL_RECORD` bytes, see `sqlite_connections`."""

SMALL_RECORD = 4096
"""Bytes of documents and bodies up to which a record is written whole in that room: about what the
record of an error takes, which would stand for it."""

_SUFFIX = "-reserve"
_PART = ".part"


class DiskReserve:
    """The file beside one database file. Safe for threads and processes, which share it."""

    def __init__(self, database: Path | None) -> None:
        """Prepare; nothing is created yet. A server's disk, None, is not ours to reserve."""
        self._database = database
        self._path = None if database is None else database.with_name(database.name + _SUFFIX)

    def hold(self) -> None:
        """Make the file, unless it is there or the disk is too full for it.

        Without it a full disk is reported, as without this class; so no failure is worth a word.
        """
        if self._path is None or self._is_held():
            return
        if not self._is_there() or is_below(self._path.parent, 4 * RESERVE_BYTES):
            return
        try:
            self._write(self._path)
        except OSError:
            self.release()

    def is_needed(self) -> bool:
        """Whether there is less room on the disk than the file holds, or would."""
        return self._path is not None and is_below(self._path.parent, RESERVE_BYTES)

    def is_given_up(self) -> bool:
        """Whether what little room there is on the disk is all that there is."""
        return self._path is not None and not self._is_held() and self.is_needed()

    def size(self) -> int:
        """Bytes that the file takes; 0 while there is none, or it cannot be asked."""
        with suppress(OSError):
            return 0 if self._path is None else self._path.stat().st_size
        return 0

    def is_out_of_reach(self) -> bool:
        """Whether no room is held back, and there is too little to do so."""
        if self._path is None or self._is_held():
            return False
        return is_below(self._path.parent, 4 * RESERVE_BYTES)

    def release(self) -> None:
        """Give the room up."""
        if self._path is not None:
            for path in (self._path, _part_of(self._path)):
                with suppress(OSError):
                    path.unlink()

    def _is_there(self) -> bool:
        """Whether the disk is there on which the database is, and not what it is mounted on."""
        with suppress(OSError):
            return self._database is not None and self._database.exists()
        return False

    def _is_held(self) -> bool:
        with suppress(OSError):
            return self._path is not None and self._path.stat().st_size == RESERVE_BYTES
        return False

    def _write(self, path: Path) -> None:
        # One name for all processes, so that what a killed one left is written over.
        part = _part_of(path)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        with os.fdopen(os.open(part, flags, PRIVATE_FILE), "wb") as file:
            # Neither sparse nor compressible: what is not allocated cannot be given up.
            file.write(os.urandom(RESERVE_BYTES))
            file.flush()
            os.fsync(file.fileno())
        with suppress(FileNotFoundError):  # another process was faster
            part.replace(path)


def _part_of(path: Path) -> Path:
    return path.with_name(path.name + _PART)
