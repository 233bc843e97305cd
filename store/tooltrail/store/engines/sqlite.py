"""Connections to an SQLite file, and the free space on its disk."""

import os
from pathlib import Path
from typing import Final
from urllib.parse import quote

from tooltrail.store.engines.sqlite_library import sqlite3

BUSY_TIMEOUT_S: Final = 30.0
"""Seconds that a transaction waits for the lock of another process."""

PAGE_BYTES: Final = 2048
"""Page size of a new file. Rows with texts of a few KiB waste half a page on average."""

_WAL_BYTES: Final = 64 * 1024 * 1024
"""Bytes to which the WAL file is truncated when it restarts."""

SIDE_FILES_BYTES: Final = 64 * 1024
"""Free bytes below which SQLite may fail to create the files beside a database: the WAL index alone
needs 32 KiB."""


def connect(path: Path, *, is_migration: bool = False) -> sqlite3.Connection:
    """Open a connection to an existing file, with all settings.

    Commits survive the end of the program; `make_durable` makes them survive a power cut.
    With `is_migration`, tables are rebuilt, which must not delete child rows.
    """
    # Not rwc: opening a missing store must not create an empty file. `immutable` is for a folder in
    # which SQLite cannot create the shared memory file that WAL mode needs. No other process can
    # write there either, and the main file is complete.
    has_wal, folder = path.with_name(f"{path.name}-wal").exists(), path.parent
    has_room = os.access(folder, os.W_OK) and not is_below(folder, SIDE_FILES_BYTES)
    mode = "rw" if has_wal or has_room else "ro&immutable=1"
    uri = f"file:{quote(os.fsencode(path))}?mode={mode}"
    connection = sqlite3.connect(
        uri, uri=True, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    if not is_migration:
        # Otherwise INSERT OR REPLACE would delete rows without firing the append-only triggers.
        connection.execute("PRAGMA recursive_triggers = ON")
    connection.execute("PRAGMA synchronous = NORMAL")
    connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
    return connection


def free_bytes(folder: Path) -> int | None:
    """Free bytes on the disk of a folder; None if unknown."""
    try:
        status = os.statvfs(folder)
    except OSError:
        return None
    return status.f_bavail * status.f_frsize


def is_below(folder: Path, size: int) -> bool:
    """Whether less than `size` bytes are free; False if unknown."""
    free = free_bytes(folder)
    return free is not None and free < size
