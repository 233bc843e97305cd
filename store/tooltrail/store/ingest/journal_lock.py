"""The lock on the ingestion of a journal: one ingester at a time.

A caller that only needs the present facts in the database does not need the lock itself. While
another ingester holds it, the caller waits until that one has passed the present end.
"""

import fcntl
import os
import time
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from tooltrail.journal import Cursor, furthest_end, has_frames, read_journal_id
from tooltrail.records import UnavailableError
from tooltrail.store.engines.database import Database
from tooltrail.store.ingest.behind import find_cursor

_NAME: Final = "ingest.lock"
_INTERVAL_S: Final = 0.005
"""Seconds between two attempts; a short batch takes about as long."""


@contextmanager
def journal_lock(
    database: Database, folder: Path, *, is_required: bool
) -> Generator[Cursor | None]:
    """Hold the lock for a block, and yield None.

    Unless the lock is required, yields the cursor instead as soon as another ingester has committed
    everything that was in the journal when this began.

    Raises:
        UnavailableError: the lock cannot be opened, or the database cannot be read.
    """
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        descriptor = os.open(folder / _NAME, flags, 0o600)
    except OSError as error:
        raise UnavailableError(f"journal {folder} cannot be ingested: {error.strerror}") from error
    try:
        if is_required:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield None
        else:
            yield _lock_or_pass(database, folder, descriptor)
    finally:
        os.close(descriptor)


def _lock_or_pass(database: Database, folder: Path, descriptor: int) -> Cursor | None:
    end = furthest_end(folder)
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            pass
        else:
            return None
        cursor, journal = Cursor(), read_journal_id(folder)
        if journal is not None:
            with database.read() as connection:
                _, cursor = find_cursor(connection, journal)
        if cursor.offsets >= end or not has_frames(folder, cursor):
            return cursor
        time.sleep(_INTERVAL_S)
