"""The locks on ingestion. Recorders never take them: they only append to a journal.

Each journal has one ingester at a time. Ingesters hold the ingest lock of a store in shared mode,
maintenance holds it exclusively.
"""

import fcntl
import os
import time
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final

from tooltrail.journal.frames import Cursor
from tooltrail.journal.owners import try_lock
from tooltrail.journal.reading import furthest_end, has_frames
from tooltrail.records.errors import TooltrailError, UnavailableError, unavailable_if_failing
from tooltrail.store.engines.database import Database
from tooltrail.store.engines.targets import SqliteTarget
from tooltrail.store.ingest.places import Place, find_place

_LOCK: Final = f"({0x696E67}, hashtext(current_schema()))"
"""The advisory lock on PostgreSQL: "ing" in ASCII, and the schema."""

_FILLED: Final = "journals, ledger_entries, bodies, sessions, messages, invocations"
"""Tables of PostgreSQL into which most facts go."""

_INTERVAL_S: Final = 0.005
"""Seconds between two attempts to lock a journal: about the time of a short batch."""


@contextmanager
def ingest_lock(database: Database, *, exclusive: bool = False) -> Generator[Callable[[], None]]:
    """Hold the ingest lock of a store; with `exclusive`, exclude all ingesters, for maintenance.

    Waits for the lock: on SQLite without limit, on PostgreSQL half a minute (`lock_timeout`).

    Yields a function that raises `UnavailableError` if the lock is lost, as it is with the
    connection to a server. Maintenance calls it before each step that cannot be undone.

    On SQLite the lock is a lock on a file beside the database. On PostgreSQL it is an advisory lock
    of a session: a pooler that shares sessions between transactions does not support it.

    Raises `UnavailableError` if the lock file cannot be opened, the server cannot be reached, or
    other processes held the lock for too long.
    """
    target = database.target
    if isinstance(target, SqliteTarget):
        with _lock_file(_ingest_lock_path(target)) as descriptor:
            fcntl.flock(descriptor, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
            yield lambda: None  # a file lock lasts while the file is open
        return
    kind = "" if exclusive else "_shared"
    with database.autocommit() as connection:
        connection.query(f"SELECT pg_advisory_lock{kind}{_LOCK}")
        try:
            yield lambda: connection.run("SELECT 1")
        finally:
            with suppress(TooltrailError):  # the lock went with a lost connection
                connection.query(f"SELECT pg_advisory_unlock{kind}{_LOCK}")


def wait_until_free(database: Database, wait_s: float) -> None:
    """Wait up to `wait_s` until facts can be ingested.

    Raises:
        UnavailableError: maintenance runs, or another program holds a lock on the database.
    """
    target, deadline = database.target, time.monotonic() + wait_s
    if not isinstance(target, SqliteTarget):
        with database.write() as connection:
            connection.run(f"SET LOCAL lock_timeout = {int(wait_s * 1000) or 1}")
            connection.query(f"SELECT pg_advisory_xact_lock_shared{_LOCK}")
            connection.run(f"LOCK TABLE {_FILLED} IN ROW EXCLUSIVE MODE")
        return
    with _lock_file(_ingest_lock_path(target)) as descriptor:
        while not try_lock(descriptor, fcntl.LOCK_SH):
            if time.monotonic() >= deadline:
                raise UnavailableError(f"maintenance of {target} runs, such as `tooltrail gc`")
            time.sleep(_INTERVAL_S)
    rest_s = max(0.0, deadline - time.monotonic())
    with closing(Database(target)) as other, other.autocommit() as connection:
        connection.run(f"PRAGMA busy_timeout = {int(rest_s * 1000)}")
        connection.run("BEGIN IMMEDIATE")


@contextmanager
def journal_lock(
    database: Database, folder: Path, *, is_required: bool, wait_s: float
) -> Generator[Place | None]:
    """Hold the lock on the ingestion of a journal, and yield None.

    If the lock is not required, yields the place instead as soon as another ingester has committed
    everything that the journal held at the time of the call. Raises `UnavailableError` if the
    cursor does not move for `wait_s`.
    """
    with _lock_file(folder / "ingest.lock") as descriptor:
        if is_required:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield None
        else:
            yield _lock_or_pass(database, folder, descriptor, wait_s)


def _lock_or_pass(database: Database, folder: Path, descriptor: int, wait_s: float) -> Place | None:
    end, last, moved_at = furthest_end(folder), Cursor(), time.monotonic()
    while True:
        if try_lock(descriptor, fcntl.LOCK_EX):
            return None
        with database.read() as connection:
            place = find_place(connection, folder)
        if place is not None and place.notice is None:
            if place.cursor.offsets >= end or not has_frames(folder, place.cursor):
                return place
            if place.cursor != last:
                last, moved_at = place.cursor, time.monotonic()
        if time.monotonic() - moved_at > wait_s:
            raise UnavailableError(f"another program ingests {folder}, and has not finished")
        time.sleep(_INTERVAL_S)


def _ingest_lock_path(target: SqliteTarget) -> Path:
    return target.path.with_name(f"{target.path.name}-ingest.lock")


@contextmanager
def _lock_file(path: Path) -> Generator[int]:
    """The descriptor of a file, created if missing. Raises `UnavailableError`."""
    flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
    with unavailable_if_failing(f"lock {path} cannot be opened"):
        descriptor = os.open(path, flags, 0o600)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
