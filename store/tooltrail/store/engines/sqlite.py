"""Connections to an SQLite file, and how much room there is on its disk."""

import os
from pathlib import Path
from typing import Final
from urllib.parse import quote

from tooltrail.store.engines.sqlite_library import sqlite3

BUSY_TIMEOUT_S: Final = 30.0
"""Seconds that a transaction waits for the lock of another process."""

PAGE_BYTES: Final = 2048
"""Page size of a new file. Rows with texts of some KiB waste half a page on average."""

_WAL_BYTES: Final = 64 * 1024 * 1024
"""Bytes to which the WAL file shrinks when it begins anew."""

SIDE_FILES_BYTES: Final = 64 * 1024
"""Room below which SQLite may fail to make the files beside a database: 32 KiB are for its index
of the log alone."""


def connect(path: Path, *, is_migration: bool = False) -> sqlite3.Connection:
    """A connection that is set up, to a file that exists.

    Commits survive the end of the program; `make_durable` makes them survive a power cut.

    Args:
        path: of the file.
        is_migration: whether tables are rebuilt, which must not delete child rows.

    Raises:
        sqlite3.Error: as SQLite says it.
    """
    connection = sqlite3.connect(
        _uri(path),
        uri=True,
        timeout=BUSY_TIMEOUT_S,
        isolation_level=None,
        check_same_thread=False,
    )
    if not is_migration:
        # Without it, INSERT OR REPLACE would delete rows behind the append-only triggers.
        connection.execute("PRAGMA recursive_triggers = ON")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
    return connection


def _uri(path: Path) -> str:
    # Not rwc: opening a missing store must not leave an empty file. `immutable` is for a folder in
    # which SQLite cannot make the shared memory file that WAL mode needs. No other process can
    # write there either, and the main file has everything.
    has_wal, folder = path.with_name(f"{path.name}-wal").exists(), path.parent
    has_room = os.access(folder, os.W_OK) and not is_below(folder, SIDE_FILES_BYTES)
    mode = "rw" if has_wal or has_room else "ro&immutable=1"
    return f"file:{quote(os.fsencode(path))}?mode={mode}"


def free_bytes(folder: Path) -> int | None:
    """Bytes that may be written to the disk of a folder; None when it cannot be asked."""
    try:
        status = os.statvfs(folder)
    except OSError:
        return None
    return status.f_bavail * status.f_frsize


def is_below(folder: Path, size: int) -> bool:
    """Whether less than so many bytes are free; False when that cannot be found out."""
    free = free_bytes(folder)
    return free is not None and free < size
