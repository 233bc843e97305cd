"""Connections to an SQLite file, on a disk that may be full.

In WAL mode even a reader needs two files beside the database, and on a full disk they cannot be
made. SQLite does without the larger one, its index of the log, for a connection that has the
database for itself; so where nothing else works a connection is made that has, and it lasts for
one transaction. Somebody else who is connected is noticed by SQLite, as ever.

On a disk that is nearly full the log is brought into the database after each commit: then the same
few pages of it serve all commits, and what room there is goes into records.
"""

import os
import time
from contextlib import suppress
from pathlib import Path
from random import uniform
from urllib.parse import quote

from tooltrail.records import UnavailableError
from tooltrail.store._engines.disk import SIDE_FILES_BYTES, free_bytes, is_below
from tooltrail.store._engines.forks import refusal
from tooltrail.store._engines.sqlite import sqlite3

BUSY_TIMEOUT_S = 30.0
"""Seconds that a writer waits for others; 50 ms was measured to fail under eight writers."""

JOURNAL_SIZE_LIMIT = 64 * 1024 * 1024
"""Bytes to which the WAL file shrinks when it begins anew; above, readers are waited for."""

LOCKED = "it is locked by another process"
"""What is said of a database to whoever has waited long enough, be it for another thread."""

_PRIMARY_CODE = 0xFF
_IN_THE_WAY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_PROTOCOL)
"""Result codes; the second is what SQLite says when others recover the log again and again."""

_PAUSE_S = 0.02
"""Seconds, at most, before the database is claimed again."""

TIGHT_BYTES = 4 * 1024 * 1024
"""Free bytes below which the log is emptied at once: as many as it grows to by itself."""


class LoneConnection(sqlite3.Connection):
    """One that nobody can connect beside; to be closed after one transaction."""


def connect(
    path: Path, *, create: bool, foreign_keys: bool, synchronous: str
) -> sqlite3.Connection:
    """A connection that is set up, to a file that is there unless it may be made.

    Args:
        path: of the file.
        create: whether it may be made.
        foreign_keys: whether they are enforced.
        synchronous: when SQLite waits for the disk, in its own word.

    Raises:
        sqlite3.Error: as SQLite says it.
        UnavailableError: this process must not open it, see `forks`.
    """
    refused = refusal(path)
    if refused is not None:
        raise UnavailableError(f"database {path}: {refused}")
    connection = _opened(path, create=create)
    if is_below(path.parent, SIDE_FILES_BYTES) and not _can_read(connection):
        connection.close()
        connection = _alone(path, create=create)
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    # Without it, INSERT OR REPLACE would delete rows behind the append-only triggers.
    connection.execute("PRAGMA recursive_triggers = ON")
    connection.execute(f"PRAGMA journal_size_limit = {JOURNAL_SIZE_LIMIT}")
    connection.execute(f"PRAGMA foreign_keys = {'ON' if foreign_keys else 'OFF'}")
    if is_below(path.parent, TIGHT_BYTES) and _log_fits(connection, path):
        connection.execute("PRAGMA wal_autocheckpoint = 1")
    return connection


def _alone(path: Path, *, create: bool) -> sqlite3.Connection:
    """A connection that has the database for itself, once others have gone.

    While it waited for them it would hold what it has; two would wait for each other, until both
    gave up. So it lets go, and claims the database again a random moment later.
    """
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while True:
        connection = _opened(path, create=create, kind=LoneConnection)
        try:
            connection.execute("PRAGMA busy_timeout = 0")
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("PRAGMA schema_version")
        except sqlite3.Error as error:
            connection.close()
            if not is_in_the_way(error) or time.monotonic() >= deadline:
                raise
        else:
            connection.execute(f"PRAGMA busy_timeout = {round(BUSY_TIMEOUT_S * 1000)}")
            return connection
        time.sleep(uniform(0, _PAUSE_S))  # noqa: S311  no secret


def is_in_the_way(error: BaseException | None) -> bool:
    """Whether SQLite says that others use what it needs, so that a retry may help."""
    code: object = getattr(error, "sqlite_errorcode", None)
    return isinstance(code, int) and code & _PRIMARY_CODE in _IN_THE_WAY


def _opened(
    path: Path, *, create: bool, kind: type[sqlite3.Connection] = sqlite3.Connection
) -> sqlite3.Connection:
    return sqlite3.connect(
        _uri(path, create=create),
        uri=True,
        timeout=BUSY_TIMEOUT_S,
        isolation_level=None,
        check_same_thread=False,
        factory=kind,
    )


def _can_read(connection: sqlite3.Connection) -> bool:
    try:
        connection.execute("PRAGMA schema_version")
    except sqlite3.OperationalError:
        return False
    return True


def _log_fits(connection: sqlite3.Connection, path: Path) -> bool:
    """Whether the database can grow by what the log adds to it; a part of that helps nobody."""
    with suppress(sqlite3.Error, OSError):
        (pages,) = connection.execute("PRAGMA page_count").fetchone()
        (size,) = connection.execute("PRAGMA page_size").fetchone()
        return int(pages) * int(size) - path.stat().st_size <= (free_bytes(path.parent) or 0)
    return False


def _uri(path: Path, *, create: bool) -> str:
    if create:
        mode = "rwc"
    elif os.access(path.parent, os.W_OK) or path.with_name(f"{path.name}-wal").exists():
        # Not rwc, so that opening a store that is not there does not leave an empty file.
        mode = "rw"
    else:
        # In a folder that cannot be written SQLite could not make the shared memory file that WAL
        # mode needs. Nobody else can write there either, and all of it is in the main file.
        mode = "ro&immutable=1"
    return f"file:{quote(os.fsencode(path))}?mode={mode}"
