"""Moving a store's schema to another revision, up or down, each in one transaction.

A store is at the old revision or at the new one, whenever who moves it is killed; and of several
who move it at once each sees what the one before has left.
"""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Connection, column, create_engine, func, inspect, select, table, text

from tooltrail.migrations import HEAD_REVISION, VERSION_TABLE
from tooltrail.records import InvalidRecordError, SchemaMismatchError
from tooltrail.store._engines.targets import Target, parse_target
from tooltrail.store._schema.revision import (
    known_revisions,
    lock_schema,
    migrate_within,
    required_revision,
    revert_within,
)
from tooltrail.store.opening import open_existing
from tooltrail.store.tables import DERIVED


@dataclass(frozen=True, slots=True)
class Loss:
    """What a downgrade has no place for.

    Attributes:
        table: that it is in.
        column: that it is in; None when the whole table goes.
        count: rows of the table, or values of the column.
    """

    table: str
    column: str | None
    count: int

    def __str__(self) -> str:
        noun = "row" if self.column is None else "value"
        where = self.table if self.column is None else f"{self.table}.{self.column}"
        return f"{self.count:,} {noun}{'' if self.count == 1 else 's'} of {where}"


@dataclass(frozen=True, slots=True)
class Downgrade:
    """From which revision to which, and what is lost.

    Attributes:
        before: revision of the store.
        after: earlier revision, or the same, for which nothing is to be done.
        losses: without those that are empty.
    """

    before: str
    after: str
    losses: tuple[Loss, ...]


def upgrade_store(database: str | Path) -> tuple[str, str]:
    """Bring a store's schema to head.

    Any number of processes may do so at once: one does, and the others find it done.

    Returns:
        The revision before and after.

    Raises:
        StoreNotFoundError: there is no store here.
        SchemaMismatchError: the store is of a revision that this program does not know.
        DamageError, UnavailableError: see `open_store`.
    """
    target = parse_target(database)
    with _changing(target) as connection:
        before = required_revision(connection, target)
        migrate_within(connection, target)
    return before, HEAD_REVISION


def plan_downgrade(database: str | Path, revision: str) -> Downgrade:
    """What `downgrade_store` would do now; nothing is changed.

    Raises:
        InvalidRecordError: no revision has this name, or it is a later one.
        StoreNotFoundError, SchemaMismatchError, DamageError, UnavailableError: see `open_store`.
    """
    target = parse_target(database)
    opened = open_existing(target)
    try:
        with opened.read() as connection:
            return _planned(connection, target, revision)
    finally:
        opened.close()


def downgrade_store(database: str | Path, revision: str, *, lose_data: bool = False) -> Downgrade:
    """Bring a store's schema down to an earlier revision, for an earlier program.

    Args:
        database: as for `open_store`.
        revision: full name of one; never to before the first, which would be no store.
        lose_data: go on although there are rows or values that the earlier revision has no place
            for. They are deleted, evidence or not.

    Raises:
        InvalidRecordError: something would be lost, no revision has this name, or it is a later
            one. Nothing was changed.
        StoreNotFoundError, SchemaMismatchError, DamageError, UnavailableError: see `open_store`.
    """
    target = parse_target(database)
    with _changing(target) as connection:
        plan = _planned(connection, target, revision, lock=True)
        if plan.losses and not lose_data:
            raise InvalidRecordError(
                f"revision {revision} has no place for {', '.join(map(str, plan.losses))}; "
                "nothing was changed"
            )
        if plan.before != plan.after:
            revert_within(connection, target, revision)
    return plan


@contextmanager
def _changing(target: Target) -> Generator[Connection]:
    """A transaction in which nobody else moves the schema, without foreign keys."""
    opened = open_existing(target, foreign_keys=False)
    try:
        with opened.write() as connection:
            lock_schema(connection)
            yield connection
    finally:
        opened.close()


def _planned(
    connection: Connection, target: Target, revision: str, *, lock: bool = False
) -> Downgrade:
    before = required_revision(connection, target)
    known = known_revisions()
    if before not in known:
        raise SchemaMismatchError(
            f"the store in {target} is at revision {before}, which this program does not know",
            found=before,
            expected=HEAD_REVISION,
        )
    if revision not in known:
        raise InvalidRecordError(f"no revision is named {revision!r}; there are {_listed(known)}")
    if known.index(revision) > known.index(before):
        raise InvalidRecordError(
            f"revision {revision} is later than {before}, of which the store in {target} is; "
            "`tooltrail db upgrade` goes there"
        )
    gone = _gone(_columns_at(before, target), _columns_at(revision, target))
    if lock:
        _lock(connection, {name for name, _ in gone})
    losses = (Loss(name, part, _count(connection, name, part)) for name, part in gone)
    return Downgrade(before, revision, tuple(loss for loss in losses if loss.count))


_Columns = dict[str, set[str]]


def _columns_at(revision: str, target: Target) -> _Columns:
    """The tables of a revision with their columns, from an empty database in memory."""
    engine = create_engine("sqlite://")
    try:
        with engine.begin() as connection:
            migrate_within(connection, target, revision)
            found = inspect(connection)
            return {
                name: {str(one["name"]) for one in found.get_columns(name)}
                for name in found.get_table_names()
                if name != VERSION_TABLE
            }
    finally:
        engine.dispose()


def _gone(now: _Columns, then: _Columns) -> list[tuple[str, str | None]]:
    """Tables, and columns of those that stay, that are in one and not in the other."""
    gone: list[tuple[str, str | None]] = []
    for name in sorted(now.keys() - DERIVED):
        if name in then:
            gone.extend((name, part) for part in sorted(now[name] - then[name]))
        else:
            gone.append((name, None))
    return gone


def _lock(connection: Connection, names: set[str]) -> None:
    """Let nobody add to what is counted; on SQLite the transaction itself sees to that."""
    if connection.dialect.name == "postgresql":
        for name in sorted(names):
            connection.execute(text(f'LOCK TABLE "{name}" IN ACCESS EXCLUSIVE MODE'))


def _count(connection: Connection, name: str, part: str | None) -> int:
    found = table(name, column(part or ""))
    counted = func.count() if part is None else func.count(found.c[part])
    return connection.scalar(select(counted).select_from(found)) or 0


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names)
