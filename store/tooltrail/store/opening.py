"""Functions that open and create a store: constructors only assign."""

import os
from contextlib import closing, suppress
from pathlib import Path
from types import NoneType
from typing import Final, Unpack

from tooltrail.journal.segments import JOURNAL_FOLDER
from tooltrail.records.errors import (
    DamageError,
    InvalidRecordError,
    StoreNotFoundError,
    UnavailableError,
    check_type,
)
from tooltrail.store.engines.database import Database
from tooltrail.store.engines.failures import is_no_database
from tooltrail.store.engines.targets import (
    SqliteTarget,
    Target,
    absolute_path,
    is_there,
    parse_target,
)
from tooltrail.store.info import refuse_other, required_revision
from tooltrail.store.roots import default_spool, named_root
from tooltrail.store.store import Store, StoreOptions

_LEVELS: Final = (None, "process", "journal", "store")


def open_store(
    database: str | Path,
    *,
    spool: str | Path | None = None,
    create: bool = True,
    **options: Unpack[StoreOptions],
) -> Store:
    """Open a store. A missing store is created when it is first needed.

        with open_store("trail.db") as store:
            print(store.reader.invocations(limit=20))

    Connects to nothing yet: a program can record while the database is unreachable. The first read
    or ingest raises the errors of `Store.info`.

    Args:
        database: a file path, `sqlite:///PATH` or `postgresql://…`.
        artifacts: folder or URL of the artifact root, for a new store or if the root has moved.
            For `trail.db` it defaults to `trail.db-artifacts` beside the file.
        spool: local folder of the journal and of output that is being captured. Default:
            `trail.db-spool` beside `trail.db`, else a folder in the user's state folder.
        policy: the budgets of new records. Default: the budgets of each family.
        families: the tool families. Default: all built-in families.
        acknowledge: what an acknowledged record survives: `process` the end of this program,
            `journal` a power cut of this machine, `store` the loss of this machine. Default:
            `journal`, or `store` if the database is a server.
        strict: whether `acknowledge="store"` raises if the database cannot be reached in time.
            Otherwise such a record is acknowledged as `journal` (`Finished.acknowledged`).
        free_bytes: bytes that captures leave free on the disk of the spool. Default: 1/1000 of the
            disk, at most 64 MiB.
        create: whether a missing store is created.

    Raises:
        InvalidRecordError: `database` does not name an SQLite file or a PostgreSQL server; an
            argument has a wrong type; `acknowledge` is none of the three values; or `create` is
            True, the spool has no journal yet, and the file belongs to another application.
        DamageError: `create` is True, the spool has no journal yet, and the file is no database.
        TypeError: there is no such option.
        StoreNotFoundError: there is no such file, and `create` is False.
    """
    check_type("create", create, bool)
    _refuse_wrong(spool, options)
    artifacts = options.get("artifacts")
    # Absolute paths, since the program may change its current folder.
    options["artifacts"] = named_root(artifacts) if artifacts else None
    target = parse_target(database)
    opened = Database(target) if create else open_existing(target)
    folder = absolute_path(spool) if spool else default_spool(target)
    if create:
        refuse_other_file(target, folder)
    return Store(opened, folder, options, creates=create)


def create_store(
    database: str | Path, *, spool: str | Path | None = None, **options: Unpack[StoreOptions]
) -> Store:
    """Create a store and open it. For the arguments see `open_store`.

    Raises:
        StoreExistsError: there is a store already; it is not changed.
        InvalidRecordError: the database or the artifact root cannot be used as named, or the root
            belongs to another store.
        UnavailableError: the database or the artifact root cannot be reached or written.
    """
    from tooltrail.store.creating import create  # noqa: PLC0415  once in the life of a store

    _refuse_wrong(spool, options)
    target = parse_target(database)
    folder = absolute_path(spool) if spool else default_spool(target)
    create(target, options.pop("artifacts", None) or None, folder)
    return open_store(database, spool=folder, create=False, **options)


def _refuse_wrong(spool: object, options: StoreOptions) -> None:
    for unknown in options.keys() - StoreOptions.__annotations__:
        raise TypeError(f"a store has no option {unknown}")
    check_type("spool", spool, str, Path, NoneType)
    check_type("artifacts", options.get("artifacts"), str, Path, NoneType)
    check_type("strict", options.get("strict", False), bool)
    check_type("free_bytes", free_bytes := options.get("free_bytes"), int, NoneType)
    if free_bytes is not None and free_bytes < 0:
        raise InvalidRecordError(f"free_bytes is a number of bytes, not {free_bytes}")
    level = options.get("acknowledge")
    if level not in _LEVELS:
        raise InvalidRecordError(f"acknowledge is process, journal or store, not {level!r}")


def open_existing(target: Target) -> Database:
    """Open an existing database, with a store of any revision.

    Raises:
        StoreNotFoundError: there is no file.
        InvalidRecordError: the path is a pipe or a device.
        UnavailableError: the parent folder cannot be read.
    """
    if not is_there(target):
        raise StoreNotFoundError(
            f"no store at {target}; record something first, or create one with `tooltrail init`"
        )
    return Database(target)


def refuse_other_file(target: Target, spool: Path) -> None:
    """Raise `InvalidRecordError` for a file of another program, `DamageError` for no database.

    Checks the file before the first record, which would create a spool beside it. A database that
    cannot be read is not refused: it hinders no record.
    """
    if os.path.exists(spool / JOURNAL_FOLDER):  # noqa: PTH110  never raises, unlike `Path.exists`
        return
    # Only SQLite opens the file: closing it would drop all locks of this process on it.
    with suppress(UnavailableError):
        try:
            if isinstance(target, SqliteTarget) and is_there(target):
                with closing(Database(target)) as database, database.read() as connection:
                    refuse_other(connection, InvalidRecordError)
        except DamageError as error:
            if is_no_database(error):
                raise


def store_revision(database: str | Path) -> str:
    """The schema revision of a store, at head or not.

    Raises:
        StoreNotFoundError: there is no store.
        DamageError, UnavailableError: the database cannot be read.
    """
    with closing(open_existing(parse_target(database))) as opened, opened.read() as connection:
        return required_revision(connection)
