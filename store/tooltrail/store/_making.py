"""Making a store: its database and the mark of its artifact root, in steps that may end anywhere.

The mark stands before the store is committed, so that no store is without one. Whose it is has been
decided before that: the first transaction commits the id and the root of the store that is being
made, in a table of its own, which the one that makes the store drops. So `init` after one that was
killed finds that id in the database and goes on with the same mark, and no mark ever gives way to
another store. Nothing else could tell an unfinished one from that of a living store: two databases
may be at the same path of two machines, and two stores in two schemas of one database. For another
root it takes the old mark back and begins anew, since a mark of which nobody knows stays for good.
That it was put is committed, too: where it is not then, the disk is not there on which it is. A
process that is killed between the two leaves a mark of which that is not known; only when its disk
is away before `init` is run again, and another root is named, does it stay.

Each step has the lock of the database, as has what takes them back after a failure.
"""

from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple, Self
from uuid import UUID

from sqlalchemy import (
    Boolean,
    Column,
    Connection,
    MetaData,
    Table,
    Text,
    Uuid,
    insert,
    inspect,
    select,
    update,
)

from tooltrail.artifacts import PRIVATE_FILE, ArtifactSink, make_durable_folders, open_sink
from tooltrail.journal.clock import new_id
from tooltrail.records import (
    InvalidRecordError,
    StoreExistsError,
    TooltrailError,
    UnavailableError,
)
from tooltrail.store._engines.database import Database, open_database
from tooltrail.store._engines.targets import SqliteTarget, Target
from tooltrail.store._roots.mark_names import mark_path
from tooltrail.store._roots.marks import mark_root, unmark_root
from tooltrail.store._roots.remembered import resolve_root
from tooltrail.store._schema.revision import lock_schema, migrate_within, read_revision
from tooltrail.store.info import FORMAT
from tooltrail.store.tables import StoreInfoRow

_ATTEMPT = Table(
    "store_being_made",
    MetaData(),
    Column("id", Uuid(), nullable=False),
    Column("artifact_root", Text(), nullable=False),
    Column("is_marked", Boolean(), nullable=False),
)
"""One row while a store is being made; no store has this table."""


class _Attempt(NamedTuple):
    """A store that is being made.

    Attributes:
        store_id: its id.
        root: its artifact root, as it is to remember it.
    """

    store_id: UUID
    root: str


def make_store(target: Target, root: str) -> None:
    """Make the database of a store, and mark its artifact root.

    What fails leaves nothing, as far as it can be taken back. What stays, then or after a kill, is
    what the next call for the same database goes on from, or takes back when it names another root.

    Args:
        target: the database.
        root: artifact root, as the store is to remember it.

    Raises:
        StoreExistsError: there is a store already; it is left as it is.
        InvalidRecordError: the root is that of another store, or cannot be what was named.
        UnavailableError: the database or the root cannot be reached or written, nor can another
            root from which a mark is to be taken back; or another process gave up making this
            store at the same time, or began anew.
    """
    file = _DatabaseFile.made(target.path) if isinstance(target, SqliteTarget) else None
    # Without turns, whose file would stay when the store comes to nothing.
    database = open_database(target, foreign_keys=False, turns=False)
    try:
        with _or_else(lambda: _remove_empty(database, file)):
            attempt, sink = _begin(database, root)
        with _or_else(lambda: _take_back(database, file, attempt, sink)):
            complete(database, file, attempt, sink)
        database.ensure_wal()
    finally:
        database.close()


def is_there(path: Path) -> bool:
    """Whether there is a database file.

    Raises:
        InvalidRecordError: there is a folder.
        UnavailableError: it cannot be found out.
    """
    try:
        if path.is_dir():
            raise InvalidRecordError(f"{path} is a folder; a database is a file")
        return path.exists()
    except OSError as error:
        raise UnavailableError(f"database {path} cannot be opened: {error.strerror}") from error


@dataclass(frozen=True, slots=True)
class _DatabaseFile:
    """The file of a database, known again by its inode.

    Attributes:
        path: of the file.
        inode: its device and number.
        is_new: whether it was made here, so that it may be removed.
    """

    path: Path
    inode: tuple[int, int]
    is_new: bool

    @classmethod
    def made(cls, path: Path) -> Self:
        """Make an empty file, unless there is one."""
        was_there = is_there(path)
        try:
            if not was_there:
                # SQLite sees to the name of the file, and to that of nothing above it.
                make_durable_folders(path.parent)
                # SQLite would make the file readable for everybody, and its WAL after its example.
                path.touch(mode=PRIVATE_FILE)
            return cls(path, _inode(path), not was_there)
        except OSError as error:
            raise UnavailableError(f"database {path} cannot be made: {error.strerror}") from error

    def is_in_place(self) -> bool:
        """Whether the path still leads to this file."""
        with suppress(OSError):
            return _inode(self.path) == self.inode
        return False

    def remove(self) -> None:
        """Remove the file, if it is in its place. The caller has a lock of the database.

        Who waits for the lock meanwhile finds that it is not in its place any more.
        """
        if self.is_in_place():
            self.path.unlink()


@contextmanager
def _or_else(take_back: Callable[[], None]) -> Generator[None]:
    """Take back what the block has done, when it fails."""
    try:
        yield
    except BaseException:
        # What cannot be taken back now is gone on from later.
        with suppress(TooltrailError, OSError):
            take_back()
        raise


def _begin(database: Database, root: str) -> tuple[_Attempt, ArtifactSink]:
    """Decide the id of the store, durably, or take over that of an attempt that was killed."""
    target = database.target
    while True:
        with database.write() as connection:
            _refuse_existing(connection, target)
            before = _attempted(connection)
            if before is None or before.root == root:
                sink = open_sink(resolve_root(target, root), create=True)
                return before or _begin_anew(connection, root), sink
            # Committed before anything else is done, which may fail: the mark is gone by then.
            # Who still makes the store there sees that the attempt is not its own any more.
            _unmark_other(connection, target, before)
            _ATTEMPT.drop(connection)


def _begin_anew(connection: Connection, root: str) -> _Attempt:
    attempt = _Attempt(new_id(), root)
    _ATTEMPT.create(connection)
    connection.execute(
        insert(_ATTEMPT).values(id=attempt.store_id, artifact_root=root, is_marked=False)
    )
    return attempt


def _unmark_other(connection: Connection, target: Target, before: _Attempt) -> None:
    """Take back the mark of an attempt at another root, before the attempt is forgotten.

    Raises:
        UnavailableError: that root cannot be reached, or the mark cannot be removed.
    """
    root = resolve_root(target, before.root)
    try:
        sink = open_sink(root)
        if connection.scalar(select(_ATTEMPT.c.is_marked)):
            _refuse_unmarked(sink, before.store_id)
        unmark_root(sink, before.store_id)
    except (InvalidRecordError, UnavailableError) as error:
        raise UnavailableError(
            f"a store that was not finished is in {target}, and its mark in its artifact root "
            f"{root} cannot be taken back: {error}. Make that root reachable, or name it again, or "
            "when it is gone for good drop the table store_being_made of the database"
        ) from error


def _refuse_unmarked(sink: ArtifactSink, store_id: UUID) -> None:
    mark = mark_path(store_id)
    if not sink.exists(mark):
        raise UnavailableError(
            f"the file {mark} was put there and is not there (is a disk not mounted?)"
        )


def complete(
    database: Database, file: _DatabaseFile | None, attempt: _Attempt, sink: ArtifactSink
) -> None:
    """Mark the root, and commit the store in the transaction that ends the attempt."""
    target = database.target
    with database.write() as connection:
        _refuse_lost(connection, target, file, attempt)
        scratch = None if file is None else file.path.parent
        mark_root(sink, attempt.store_id, target.place, scratch)
        connection.execute(update(_ATTEMPT).values(is_marked=True))
    with database.write() as connection:
        _refuse_lost(connection, target, file, attempt)
        migrate_within(connection, target)
        _ATTEMPT.drop(connection)
        connection.execute(
            insert(StoreInfoRow).values(
                key=1,
                id=attempt.store_id,
                format=FORMAT,
                artifact_root=attempt.root,
                created_at=datetime.now(UTC),
            )
        )


def _refuse_lost(
    connection: Connection, target: Target, file: _DatabaseFile | None, attempt: _Attempt
) -> None:
    """Raise unless the store is still this one's to make."""
    _refuse_existing(connection, target)
    is_in_place = file is None or file.is_in_place()
    if not is_in_place or _attempted(connection) != attempt:
        raise UnavailableError(
            f"another process gave up making a store in {target} meanwhile, or began anew; "
            "try again"
        )


def _take_back(
    database: Database, file: _DatabaseFile | None, attempt: _Attempt, sink: ArtifactSink
) -> None:
    """Remove the mark, the attempt and the file, unless there is a store.

    There is when only the answer was lost, or another process has finished it. One that took the
    attempt back, and may have begun another one, has not seen a mark that was put since, by one who
    had lost the lock with its connection. The id is nobody's then, and no store can come to have
    it. In a file nobody loses the lock; but another file may have taken its place.

    Raises:
        TooltrailError, OSError: some of it is left.
    """
    with database.write() as connection:
        lock_schema(connection)
        is_known = _attempted(connection) == attempt
        if not is_known and (file is not None or _is_made(connection, attempt)):
            return
        # Before the attempt, which alone says whose it is.
        unmark_root(sink, attempt.store_id)
        if not is_known:
            return
        if file is not None and file.is_new:
            file.remove()
        else:
            _ATTEMPT.drop(connection)


def _is_made(connection: Connection, attempt: _Attempt) -> bool:
    if read_revision(connection) is None:
        return False
    return connection.scalar(select(StoreInfoRow.id)) == attempt.store_id


def _remove_empty(database: Database, file: _DatabaseFile | None) -> None:
    """Remove a file in which nothing was begun.

    By a read transaction, since on a full disk none can begin that writes to an empty file. While
    it lasts nobody can commit, so what is empty stays so until it is removed.
    """
    if file is not None and file.is_new:
        with database.read() as connection:
            if not inspect(connection).get_table_names():
                file.remove()


def _refuse_existing(connection: Connection, target: Target) -> None:
    lock_schema(connection)
    if read_revision(connection) is not None:
        raise StoreExistsError(f"there is a store in {target} already")


def _attempted(connection: Connection) -> _Attempt | None:
    """The store that is being made."""
    if not inspect(connection).has_table(_ATTEMPT.name):
        return None
    return _Attempt(*connection.execute(select(_ATTEMPT.c.id, _ATTEMPT.c.artifact_root)).one())


def _inode(path: Path) -> tuple[int, int]:
    status = path.stat()
    return status.st_dev, status.st_ino
