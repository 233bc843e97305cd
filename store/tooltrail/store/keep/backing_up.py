"""Copies the database of a store into one file while other programs record and ingest.

The backup interface of SQLite copies in steps, within a read transaction. So the copy is one
snapshot, blocks no other program, and can be interrupted. Without the transaction, SQLite would
restart after each commit of another program.

The file has a temporary name, and is locked, while it is written. It gets its final name when it
is complete and on the disk. The next backup to the same path removes what a killed backup left.
"""

import errno
import fcntl
import os
from collections.abc import Callable, Generator
from contextlib import closing, contextmanager
from pathlib import Path
from urllib.parse import quote
from uuid import UUID

from tooltrail.artifacts import PRIVATE_FILE, sync_path
from tooltrail.journal.owners import try_lock
from tooltrail.records.errors import DiskFullError, InvalidRecordError, UnavailableError, check_type
from tooltrail.records.frozen import Frozen
from tooltrail.store.engines.connection import Connection
from tooltrail.store.engines.failures import damage_if_unreadable
from tooltrail.store.engines.sqlite import is_below
from tooltrail.store.engines.sqlite_library import sqlite3
from tooltrail.store.engines.targets import SqliteTarget, absolute_path, parse_target
from tooltrail.store.info import read_info, required_revision
from tooltrail.store.opening import open_existing
from tooltrail.store.roots import named_root, resolve_root

_STEP_PAGES = 1_024
"""Pages per step, between two calls of `OnBytes`: 4 MiB, a few milliseconds."""

_SIDE_FILES = ("-wal", "-shm", "-journal")
"""Suffixes of files that SQLite treats as parts of a database, even of another database."""

_FULL = "database or disk is full"


class Backup(Frozen):
    """A finished backup.

    Attributes:
        size: size of the file in bytes.
        artifacts: root of the artifacts of the store, which are not in the backup.
    """

    path: str
    size: int
    revision: str
    store_id: UUID
    artifacts: str


OnBytes = Callable[[int, int], None]
"""Called after each step with the copied and the total bytes. An exception ends the backup, and its
file is removed."""


def back_up_store(
    database: str | Path,
    path: str | Path,
    *,
    artifacts: str | None = None,
    on_progress: OnBytes | None = None,
) -> Backup:
    """Copy a snapshot of the database of a store, of any schema revision.

    Safe beside any number of ingesters and readers. The WAL of the database grows by their writes
    until the copy is finished. The file survives a power cut. Uses constant memory. Facts that wait
    in the journal are not in the copy; `Store.ingest` moves them into the database before.

    Args:
        database: the file of a store.
        path: the file to create, which only its owner may read.
        artifacts: the current artifact root, if the root has moved.
        on_progress: see `OnBytes`.

    Raises:
        InvalidRecordError: `path` exists, and is not changed; or no file can have that name, or the
            store is on a server.
        DiskFullError: there is not enough space for the copy.
        StoreNotFoundError, DamageError, UnavailableError: see `open_store`.
        UnavailableError: the file cannot be created, or another backup is writing it.
    """
    target = parse_target(database)
    if not isinstance(target, SqliteTarget):
        raise InvalidRecordError(
            f"{target} is on a server, whose own tools make backups: pg_dump --format=custom "
            "--file=TARGET, and pg_restore"
        )
    check_type("path", path, str, Path)
    wanted = absolute_path(path)
    if not wanted.name:
        raise InvalidRecordError(f"no file can have the name {str(path)!r}")
    with (
        closing(open_existing(target)) as opened,
        opened.snapshot() as connection,
        _new_file(wanted) as part,
    ):
        # The first read determines the snapshot. Only these two reads are about rows.
        with damage_if_unreadable(target):
            revision = required_revision(connection)
            info = read_info(connection)
        _copy(connection, part, on_progress)
    root = info.artifact_root if artifacts is None else named_root(artifacts)
    return Backup(
        path=str(wanted),
        size=wanted.stat().st_size,
        revision=revision,
        store_id=info.id,
        artifacts=resolve_root(target, root),
    )


def _copy(connection: Connection, part: Path, on_progress: OnBytes | None) -> None:
    source = connection.driver
    assert isinstance(source, sqlite3.Connection)
    (page_size,) = source.execute("PRAGMA page_size").fetchone()

    def tell(_status: int, remaining: int, total: int) -> None:
        if on_progress is not None:
            on_progress((total - remaining) * page_size, total * page_size)

    try:
        uri = f"file:{quote(os.fsencode(part))}?mode=rw"
        with closing(sqlite3.connect(uri, uri=True, isolation_level=None)) as copy:
            # The file is not read before it is complete and synced.
            copy.execute("PRAGMA journal_mode = OFF")
            copy.execute("PRAGMA synchronous = OFF")
            source.backup(copy, pages=_STEP_PAGES, progress=tell)
    except sqlite3.Error as error:
        # Not every library has a code for a failed copy. This message belongs to one code only.
        if str(error) == _FULL or is_below(part.parent, _STEP_PAGES * page_size):
            raise DiskFullError(f"{part.parent}: the disk is full") from error
        raise UnavailableError(f"the backup cannot be made in {part.parent}: {error}") from error


@contextmanager
def _new_file(path: Path) -> Generator[Path]:
    """A temporary file, which gets the name `path` if the block ends without an error.

    If another program creates a file at `path` just before the rename, that file is replaced.
    Raises `UnavailableError` if another backup is writing the temporary file.
    """
    part = path.with_name(f".{path.name}.part")
    flags = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
    with _translated(path):
        _refuse_existing(path)
        descriptor = os.open(part, flags, PRIVATE_FILE)
    try:
        with _translated(path):
            if not (try_lock(descriptor, fcntl.LOCK_EX) and _is_at(descriptor, part)):
                raise UnavailableError(f"another backup is being made there: {part}")
            # A killed backup may have left the file.
            os.fchmod(descriptor, PRIVATE_FILE)
            os.ftruncate(descriptor, 0)
        try:
            yield part
            with _translated(path):
                os.fsync(descriptor)
                if not _is_at(descriptor, part):
                    raise UnavailableError(
                        f"backup {path} cannot be made: another program removed {part}"
                    )
                _refuse_existing(path)
                part.rename(path)
                sync_path(path.parent)
        finally:
            # Only while it is locked: afterwards it may belong to another backup.
            if _is_at(descriptor, part):
                part.unlink()
    finally:
        os.close(descriptor)


def _is_at(descriptor: int, path: Path) -> bool:
    """Whether an open file is still the file at `path`."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def _refuse_existing(path: Path) -> None:
    for name in (path, *(path.with_name(path.name + suffix) for suffix in _SIDE_FILES)):
        if os.path.lexists(name):
            raise InvalidRecordError(f"{name} is there already; nothing was overwritten")


@contextmanager
def _translated(path: Path) -> Generator[None]:
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise DiskFullError(f"{path.parent}: the disk is full") from error
        raise UnavailableError(f"backup {path} cannot be made: {error.strerror}") from error
