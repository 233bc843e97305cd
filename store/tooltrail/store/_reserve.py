"""Room on the database's disk that is given up when there is none left.

On a full disk SQLite can neither commit nor delete. A file that holds some room and nothing else is
removed then, so that the end of what runs can still be recorded, and so that `gc` and `repair` can
work. These, and the next session that begins, make it anew when there is room again.
"""

import os
from contextlib import suppress
from pathlib import Path

from tooltrail.artifacts import PRIVATE_FILE
from tooltrail.store._disk import is_below

RESERVE_BYTES = 1024 * 1024
"""Room for some two hundred records of up to `SMALL_RECORD` bytes, see `_sqlite_connections`."""

SMALL_RECORD = 4096
"""Bytes of documents and bodies up to which a record is written whole in that room: about what the
record of an error takes, which would stand for it."""

_SUFFIX = "-reserve"


class DiskReserve:
    """The file beside one database file. Safe for threads and processes, which share it."""

    def __init__(self, database: Path | None) -> None:
        """Prepare; nothing is created yet. A server's disk, None, is not ours to reserve."""
        self._path = None if database is None else database.with_name(database.name + _SUFFIX)

    def hold(self) -> None:
        """Make the file, unless it is there or the disk is too full for it.

        Without it a full disk is reported, as without this class; so no failure is worth a word.
        """
        if self._path is None or self._path.exists():
            return
        if is_below(self._path.parent, 4 * RESERVE_BYTES):
            return
        with suppress(OSError):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            with os.fdopen(os.open(self._path, flags, PRIVATE_FILE), "wb") as file:
                try:
                    # Neither sparse nor compressible: what is not allocated cannot be given up.
                    file.write(os.urandom(RESERVE_BYTES))
                    file.flush()
                except OSError:
                    self.release()
                    raise

    def is_needed(self) -> bool:
        """Whether there is less room on the disk than the file holds, or would."""
        return self._path is not None and is_below(self._path.parent, RESERVE_BYTES)

    def is_given_up(self) -> bool:
        """Whether what little room there is on the disk is all that there is."""
        return self._path is not None and not self._path.exists() and self.is_needed()

    def size(self) -> int:
        """Bytes that the file takes; 0 while there is none, or it cannot be asked."""
        with suppress(OSError):
            return 0 if self._path is None else self._path.stat().st_size
        return 0

    def is_used_up(self) -> bool:
        """Whether the file is not there, and there is too little room to make it."""
        if self._path is None or self._path.exists():
            return False
        return is_below(self._path.parent, 4 * RESERVE_BYTES)

    def release(self) -> None:
        """Give the room up."""
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink()
