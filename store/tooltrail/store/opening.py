"""Creating and opening a store: the functions that do work, so constructors need not."""

import os
from collections.abc import Generator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import NamedTuple

from tooltrail.artifacts import ArtifactArchive, defer_sink
from tooltrail.records import (
    AccessRefusedError,
    DamageError,
    FamilyRegistry,
    InvalidRecordError,
    Policy,
    SchemaMismatchError,
    StoreNotFoundError,
    UnavailableError,
    default_families,
    default_policy,
)
from tooltrail.store._engines.database import Database, open_database
from tooltrail.store._engines.targets import SqliteTarget, Target, parse_target
from tooltrail.store._making import is_there, make_store
from tooltrail.store._outbox.known_stores import recall, remember
from tooltrail.store._recording.upkeep import Upkeep, read_upkeep
from tooltrail.store._roots.mark_names import mark_path
from tooltrail.store._roots.remembered import named_root, remembered_root, resolve_root
from tooltrail.store._schema.revision import check_revision, required_revision
from tooltrail.store.durability import Durability, checked_durability
from tooltrail.store.info import FORMAT, StoreInfo, read_info
from tooltrail.store.limits import StoreLimits
from tooltrail.store.on_unavailable import OnUnavailable, checked_choice
from tooltrail.store.spools import SPOOL_FOLDER, user_spool
from tooltrail.store.store import Store


def create_store(
    database: str | Path,
    *,
    artifacts: str | None = None,
    spool: Path | None = None,
    policy: Policy | None = None,
    families: FamilyRegistry | None = None,
    limits: StoreLimits | None = None,
    durability: Durability = "full",
    on_unavailable: OnUnavailable = "outbox",
) -> Store:
    """Make a new store and open it. The schema and the store's row appear together or not at all.

    When it was killed, the next call for the same database goes on where it ended.

    Args:
        database: a file path, `sqlite:///PATH` or `postgresql://…`.
        artifacts: folder or URL of the artifact root. For SQLite it defaults to `artifacts` beside
            the database file and is remembered relative to it, so that both can move together.
        spool: local folder for output that is being captured; beside the database by default.
        policy: the budgets of new records; each family's own by default.
        families: the tool families; all built-in ones by default.
        limits: how much is kept of what tools print; all that the disk takes by default.
        durability: what records survive once they are acknowledged: `full` the loss of power,
            `process` the end of the program alone; see `tooltrail.store.durability`.
        on_unavailable: what becomes of a record when the database is away: `outbox` keeps it in the
            spool to be delivered later, `raise` an error, `drop_and_count` counts it alone; see
            `tooltrail.store.on_unavailable`.

    Raises:
        StoreExistsError: there is a store already; it is left as it is.
        InvalidRecordError: the database or the artifact root cannot be what was named, the root
            is that of another store, or there is no such durability.
        UnavailableError: the database or the artifact root cannot be reached or written.
    """
    checked_durability(durability)
    checked_choice(on_unavailable)
    target = parse_target(database)
    root = remembered_root(target, artifacts)
    _refuse_file(resolve_root(target, root))
    make_store(target, root)
    store = open_store(
        database,
        spool=spool,
        policy=policy,
        families=families,
        limits=limits,
        durability=durability,
        on_unavailable=on_unavailable,
    )
    if on_unavailable != "raise":
        remember(store.spool, target, store.info)
    return store


def open_store(
    database: str | Path,
    *,
    artifacts: str | None = None,
    spool: Path | None = None,
    policy: Policy | None = None,
    families: FamilyRegistry | None = None,
    limits: StoreLimits | None = None,
    durability: Durability = "full",
    on_unavailable: OnUnavailable = "outbox",
) -> Store:
    """Open a store that is there.

    Its artifacts are asked for when they are first needed, so that while they are away everything
    else can be read, and records can be made whose output waits in the spool.

    Unless an error is to be raised, a store that was made or recorded to before, with this spool,
    is opened even while its database is away, be it a file that went with its disk. What is checked
    here is then checked as soon as it is back, and the first to record or read meets the errors
    below.

    Args:
        database: as for `create_store`.
        artifacts: where the artifact root is now, when it is not where the store remembers it.
        spool: as for `create_store`.
        policy: the budgets of new records; each family's own by default.
        families: the tool families; all built-in ones by default.
        limits: how much is kept of what tools print; all that the disk takes by default.
        durability: what records survive once they are acknowledged: `full` the loss of power,
            `process` the end of the program alone; see `tooltrail.store.durability`.
        on_unavailable: what becomes of a record when the database is away: `outbox` keeps it in the
            spool to be delivered later, `raise` an error, `drop_and_count` counts it alone; see
            `tooltrail.store.on_unavailable`.

    Raises:
        StoreNotFoundError: there is no store here.
        SchemaMismatchError: the store is of another revision than this program's.
        DamageError: the database file is damaged.
        InvalidRecordError: the artifact root cannot be what was named, or there is no such
            durability.
        UnavailableError: the database cannot be reached, or is a file that is gone though a store
            is known there; and nothing is known of it here, or `on_unavailable` is to raise an
            error. `AccessRefusedError` when it is there and lets nobody in by this URL.
    """
    checked_choice(on_unavailable)
    target, place = parse_target(database), spool or spool_folder(database)
    checked_durability(durability)
    known = None if on_unavailable == "raise" else recall(place, target)
    opened = _connected(target, known, place, durability)
    try:
        met = _met(opened, known)
        info = met.info
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
        upkeep=met.upkeep,
        spool=place,
        policy=default_policy(chosen) if policy is None else policy,
        families=chosen,
        limits=limits or StoreLimits(),
        on_unavailable=on_unavailable,
        check=None if met.is_there else partial(_confirm, place, follows=artifacts is None),
    )


def _connected(
    target: Target, known: StoreInfo | None, spool: Path, durability: Durability
) -> Database:
    """Connect to a database that is there, or will be again where a store is known to be.

    Raises:
        StoreNotFoundError, InvalidRecordError, UnavailableError: see `open_existing`.
    """
    if known is None:
        return open_existing(target, durability=durability, spool=spool)
    # Also to a file that went with its disk; a folder is none that comes back.
    if isinstance(target, SqliteTarget):
        with suppress(UnavailableError):
            is_there(target.path)
    return open_database(target, durability=durability)


@contextmanager
def database_to_check(database: str | Path) -> Generator[Database]:
    """The database of a store that is at head, though its own row be missing, or it be damaged.

    Raises:
        StoreNotFoundError, SchemaMismatchError, UnavailableError: see `open_store`.
    """
    opened = open_existing(parse_target(database))
    try:
        # What is damaged is for the check to say.
        with suppress(DamageError), opened.read() as connection:
            check_revision(connection, opened.target)
        with suppress(StoreNotFoundError, DamageError):
            _checked_info(opened)
        yield opened
    finally:
        opened.close()


def store_revision(database: str | Path) -> str:
    """The schema revision of a store, head or not.

    Raises:
        StoreNotFoundError, DamageError, UnavailableError: see `open_store`.
    """
    target = parse_target(database)
    opened = open_existing(target)
    try:
        with opened.read() as connection:
            return required_revision(connection, target)
    finally:
        opened.close()


def open_existing(
    target: Target,
    *,
    foreign_keys: bool = True,
    durability: Durability = "full",
    spool: Path | None = None,
) -> Database:
    """Connect to a database that is there.

    Args:
        target: which one.
        foreign_keys: see `open_database`.
        durability: the same.
        spool: in which a store may be remembered that was there; by default that beside the file.

    Raises:
        StoreNotFoundError: a database file that is not there.
        InvalidRecordError: a folder.
        UnavailableError: it cannot be found out whether it is; or it is not, and was.
    """
    if isinstance(target, SqliteTarget) and not is_there(target.path):
        known = recall(spool or target.path.parent / SPOOL_FOLDER, target)
        if known is None:
            raise StoreNotFoundError(f"no store at {target}; create one with `tooltrail init`")
        raise UnavailableError(
            f"database {target} is not there, which has store {known.id} (is a disk not mounted?)"
        )
    return open_database(target, foreign_keys=foreign_keys, durability=durability)


def spool_folder(database: str | Path) -> Path:
    """Where captured output waits: beside a database file, else in the user's state folder."""
    target = parse_target(database)
    if isinstance(target, SqliteTarget):
        return target.path.parent / SPOOL_FOLDER
    return user_spool()


class _Met(NamedTuple):
    """What a store knows about itself, from its database or from when it was last opened here."""

    info: StoreInfo
    upkeep: Upkeep
    is_there: bool


def _met(database: Database, known: StoreInfo | None) -> _Met:
    """Ask a store; where its database is away, what is known of it counts, if anything is.

    Raises:
        TooltrailError: see `open_store`.
    """
    try:
        return _Met(*_checked_info(database), is_there=True)
    except AccessRefusedError:
        raise
    except UnavailableError:
        if known is None:
            raise
    return _Met(known, Upkeep.unseen(known.artifact_root), is_there=False)


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


def _confirm(spool: Path, store: Store, *, follows: bool) -> None:
    """Do what was left undone when a store was opened from what was remembered of it."""
    target = store.database.target
    info, upkeep = _checked_info(store.database)
    if info.id != store.info.id:
        raise StoreNotFoundError(
            f"store {store.info.id} is not at {target} any more, where store {info.id} is now; "
            f"what waits in {store.fallback.outbox.journal.folder} is not of that one"
        )
    if follows and info.artifact_root != store.info.artifact_root:
        store.follow(upkeep)
    store.info, store.upkeep = info, upkeep
    remember(spool, target, info)


def _refuse_file(root: str) -> None:
    """Raise for an artifact root that is a file: no time makes a folder of it.

    Raises:
        InvalidRecordError: it is one.
    """
    path = root.removeprefix("file://")
    if "://" not in path and os.path.isfile(path):  # noqa: PTH113  raises nothing, whatever the name
        raise InvalidRecordError(f"{path} is a file; an artifact root is a folder or a URL")
