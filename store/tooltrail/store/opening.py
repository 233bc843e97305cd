"""Creating, opening and upgrading a store: the functions that do work, so constructors need not."""

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path

from sqlalchemy import insert

from tooltrail.artifacts import PRIVATE_FILE, PRIVATE_FOLDER, ArtifactArchive, defer_sink, open_sink
from tooltrail.records import (
    FamilyRegistry,
    InvalidRecordError,
    Policy,
    SchemaMismatchError,
    StoreExistsError,
    StoreNotFoundError,
    UnavailableError,
    default_families,
    default_policy,
)
from tooltrail.store._clock import new_id
from tooltrail.store._database import Database, open_database
from tooltrail.store._mark_names import mark_path
from tooltrail.store._root_marks import mark_root, unmark_root
from tooltrail.store._roots import named_root, remembered_root, resolve_root
from tooltrail.store._schema import (
    check_revision,
    lock_schema,
    migrate,
    migrate_within,
    read_revision,
)
from tooltrail.store._targets import SqliteTarget, Target, parse_target
from tooltrail.store._upkeep import Upkeep, read_upkeep
from tooltrail.store.info import FORMAT, StoreInfo, read_info
from tooltrail.store.limits import StoreLimits
from tooltrail.store.store import Store
from tooltrail.store.tables import StoreInfoRow

_SPOOL_FOLDER = "spool"


def create_store(
    database: str | Path,
    *,
    artifacts: str | None = None,
    spool: Path | None = None,
    policy: Policy | None = None,
    families: FamilyRegistry | None = None,
    limits: StoreLimits | None = None,
) -> Store:
    """Make a new store and open it. The schema and the store's row appear together or not at all.

    Args:
        database: a file path, `sqlite:///PATH` or `postgresql://…`.
        artifacts: folder or URL of the artifact root. For SQLite it defaults to `artifacts` beside
            the database file and is remembered relative to it, so that both can move together.
        spool: local folder for output that is being captured; beside the database by default.
        policy: the budgets of new records; each family's own by default.
        families: the tool families; all built-in ones by default.
        limits: how much is kept of what tools print; all that the disk takes by default.

    Raises:
        StoreExistsError: there is a store already; it is left as it is.
        InvalidRecordError: the database or the artifact root cannot be what was named, or the root
            is that of another store.
        UnavailableError: the database or the artifact root cannot be reached or written.
    """
    target = parse_target(database)
    root = remembered_root(target, artifacts)
    _refuse_file(resolve_root(target, root))
    is_new = _make_private_file(target)
    opened = open_database(target, create=True, foreign_keys=False)
    try:
        with opened.write() as connection, _taken_back(target, is_new=is_new):
            lock_schema(connection)
            if read_revision(connection) is not None:
                raise StoreExistsError(f"there is a store in {target} already")
            store_id, sink = new_id(), open_sink(resolve_root(target, root), create=True)
            # Before the commit, so that there is no store without it.
            mark_root(sink, store_id, target.place, _folder_of(target))
            try:
                migrate_within(connection, target)
                connection.execute(
                    insert(StoreInfoRow).values(
                        key=1,
                        id=store_id,
                        format=FORMAT,
                        artifact_root=root,
                        created_at=datetime.now(UTC),
                    )
                )
            except BaseException:
                unmark_root(sink, store_id)
                raise
        opened.ensure_wal()
    finally:
        opened.close()
    return open_store(database, spool=spool, policy=policy, families=families, limits=limits)


def open_store(
    database: str | Path,
    *,
    artifacts: str | None = None,
    spool: Path | None = None,
    policy: Policy | None = None,
    families: FamilyRegistry | None = None,
    limits: StoreLimits | None = None,
) -> Store:
    """Open a store that is there.

    Its artifacts are asked for when they are first needed, so that while they are away everything
    else can be read, and records can be made whose output waits in the spool.

    Args:
        database: as for `create_store`.
        artifacts: where the artifact root is now, when it is not where the store remembers it.
        spool: as for `create_store`.
        policy: the budgets of new records; each family's own by default.
        families: the tool families; all built-in ones by default.
        limits: how much is kept of what tools print; all that the disk takes by default.

    Raises:
        StoreNotFoundError: there is no store here.
        SchemaMismatchError: the store is of another revision than this program's.
        DamageError: the database file is damaged.
        InvalidRecordError: the artifact root cannot be what was named.
        UnavailableError: the database cannot be reached.
    """
    target = parse_target(database)
    opened = open_existing(target)
    try:
        info, upkeep = _checked_info(opened)
        root = info.artifact_root if artifacts is None else named_root(artifacts)
        sink = defer_sink(resolve_root(target, root), mark=mark_path(info.id))
    except BaseException:
        opened.close()
        raise
    chosen = families or default_families()
    return Store(
        database=opened,
        archive=ArtifactArchive(sink),
        info=info,
        upkeep=upkeep,
        spool=spool or spool_folder(database),
        policy=default_policy(chosen) if policy is None else policy,
        families=chosen,
        limits=limits or StoreLimits(),
    )


def upgrade_store(database: str | Path) -> tuple[str, str]:
    """Bring a store's schema to head.

    Returns:
        The revision before and after.

    Raises:
        StoreNotFoundError: there is no store here.
        SchemaMismatchError: the store is of a revision that this program does not know.
        DamageError, UnavailableError: see `open_store`.
    """
    before = store_revision(database)
    opened = open_existing(parse_target(database), foreign_keys=False)
    try:
        migrate(opened)
    finally:
        opened.close()
    return before, store_revision(database)


def store_revision(database: str | Path) -> str:
    """The schema revision of a store, head or not.

    Raises:
        StoreNotFoundError, DamageError, UnavailableError: see `open_store`.
    """
    target = parse_target(database)
    opened = open_existing(target)
    try:
        with opened.read() as connection:
            revision = read_revision(connection)
    finally:
        opened.close()
    if revision is None:
        raise StoreNotFoundError(f"no store in {target}; create one with `tooltrail init`")
    return revision


def open_existing(target: Target, *, foreign_keys: bool = True) -> Database:
    """Connect to a database that is there.

    Raises:
        StoreNotFoundError: a database file that is not there.
        InvalidRecordError: a folder.
        UnavailableError: it cannot be found out whether it is.
    """
    if isinstance(target, SqliteTarget) and not _is_there(target.path):
        raise StoreNotFoundError(f"no store at {target}; create one with `tooltrail init`")
    return open_database(target, foreign_keys=foreign_keys)


def spool_folder(database: str | Path) -> Path:
    """Where captured output waits: beside a database file, else in the user's state folder."""
    target = parse_target(database)
    if isinstance(target, SqliteTarget):
        return target.path.parent / _SPOOL_FOLDER
    return user_spool()


def user_spool() -> Path:
    """The spool in the user's state folder (XDG Base Directory Specification).

    Raises:
        InvalidRecordError: the user has no home folder.
    """
    try:
        state = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    except RuntimeError as error:
        raise InvalidRecordError(
            "there is no home folder for the spool; name one (--spool)"
        ) from error
    return Path(state) / "tooltrail" / _SPOOL_FOLDER


def _checked_info(database: Database) -> tuple[StoreInfo, Upkeep]:
    with database.read() as connection:
        check_revision(connection, database.target)
        info = read_info(connection)
        upkeep = read_upkeep(connection)
    if info.format > FORMAT:
        raise SchemaMismatchError(
            f"the store in {database.target} has format {info.format}, "
            f"this program reads up to {FORMAT}; use the program that wrote it",
            found=str(info.format),
            expected=str(FORMAT),
        )
    return info, upkeep


def _is_there(path: Path) -> bool:
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


def _folder_of(target: Target) -> Path | None:
    return target.path.parent if isinstance(target, SqliteTarget) else None


def _refuse_file(root: str) -> None:
    """Raise for an artifact root that is a file: no time makes a folder of it.

    Raises:
        InvalidRecordError: it is one.
    """
    path = root.removeprefix("file://")
    if "://" not in path and os.path.isfile(path):  # noqa: PTH113  raises nothing, whatever the name
        raise InvalidRecordError(f"{path} is a file; an artifact root is a folder or a URL")


def _make_private_file(target: Target) -> bool:
    """Make the empty file of a database, and say whether it was not there."""
    if not isinstance(target, SqliteTarget) or _is_there(target.path):
        return False
    try:
        target.path.parent.mkdir(mode=PRIVATE_FOLDER, parents=True, exist_ok=True)
        # SQLite would make the file readable for everybody, and its WAL after its example.
        is_new = not os.path.lexists(target.path)
        target.path.touch(mode=PRIVATE_FILE)
    except OSError as error:
        raise UnavailableError(f"database {target} cannot be made: {error.strerror}") from error
    return is_new


@contextmanager
def _taken_back(target: Target, *, is_new: bool) -> Generator[None]:
    """Remove the file that was made, when the block fails; it is still empty then.

    The block has the lock of the database. Who waits for that meanwhile to create a store finds
    none in the end, and says so.
    """
    try:
        yield
    except BaseException:
        if is_new and isinstance(target, SqliteTarget):
            with suppress(OSError):
                if not target.path.stat().st_size:
                    target.path.unlink()
        raise
