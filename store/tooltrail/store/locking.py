"""The lock between ingesters and maintenance: ingesters share it, maintenance has it alone.

Recorders never take the lock: they append to a journal.
"""

import fcntl
import os
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from tooltrail.records.errors import TooltrailError, UnavailableError
from tooltrail.store.engines.database import Database
from tooltrail.store.engines.targets import SqliteTarget

_LOCK: Final = 0x696E67
"""First half of the advisory lock of PostgreSQL ("ing" in ASCII); the schema is the second."""


@contextmanager
def ingest_lock(database: Database, *, exclusive: bool = False) -> Generator[Callable[[], None]]:
    """Hold the ingest lock of a store.

    Waits for it: on SQLite as long as it takes, on PostgreSQL half a minute (`lock_timeout`).

    The block gets a function that raises `UnavailableError` once the lock is lost, which it is with
    the connection to a server. Maintenance asks before each step that cannot be undone.

    On SQLite it is a lock on a file beside the database; on PostgreSQL an advisory lock of a
    session, which a pooler that shares sessions between transactions does not support.

    Args:
        database: of the store.
        exclusive: whether to keep all ingesters out, for maintenance.

    Raises:
        UnavailableError: the lock file cannot be opened, the server cannot be reached, or others
            held the lock for too long.
    """
    target = database.target
    if isinstance(target, SqliteTarget):
        with _flock(target.path.with_name(f"{target.path.name}-ingest.lock"), exclusive=exclusive):
            yield lambda: None  # the lock of a file lasts as long as the file is open
        return
    kind = "" if exclusive else "_shared"
    with database.autocommit() as connection:
        lock = "(?, hashtext(current_schema()))"
        connection.query(f"SELECT pg_advisory_lock{kind}{lock}", (_LOCK,))
        try:
            yield lambda: connection.run("SELECT 1")
        finally:
            with suppress(TooltrailError):  # the lock went with a lost connection
                connection.query(f"SELECT pg_advisory_unlock{kind}{lock}", (_LOCK,))


@contextmanager
def _flock(path: Path, *, exclusive: bool) -> Generator[None]:
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        descriptor = os.open(path, flags, 0o600)
    except OSError as error:
        raise UnavailableError(f"lock {path} cannot be opened: {error.strerror}") from error
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        yield
    finally:
        os.close(descriptor)
