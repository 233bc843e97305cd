"""Room on the database's disk that is given up when there is none left.

On a full disk SQLite can neither commit nor delete. A file that holds some room and nothing else is
removed then, so that the end of what runs can still be recorded. It is made anew by the next
session that begins when there is room again.
"""

import os
from contextlib import suppress
from pathlib import Path

RESERVE_BYTES = 1024 * 1024
"""Room for some ten records of ordinary size."""

_SUFFIX = "-reserve"
_PRIVATE = 0o600


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
        with suppress(OSError):
            if _free_bytes(self._path.parent) < 4 * RESERVE_BYTES:
                return
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
            descriptor = os.open(self._path, flags, _PRIVATE)
            try:
                # Not sparse: what is not allocated cannot be given up.
                os.write(descriptor, bytes(RESERVE_BYTES))
            finally:
                os.close(descriptor)

    def release(self) -> None:
        """Give the room up."""
        if self._path is not None:
            with suppress(OSError):
                self._path.unlink()


def _free_bytes(folder: Path) -> int:
    status = os.statvfs(folder)
    return status.f_bavail * status.f_frsize
