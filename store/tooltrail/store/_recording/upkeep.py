"""That what a record refers to stands in the artifact root when the record is committed.

Pruning deletes objects and relocation changes the root while others record, so an object that was
published a moment ago may be gone, or in the wrong place, before its reference is committed. Both
say so in the database first: every run has a row of `maintenance_runs` before it touches anything,
and deletes only while it holds off those who commit references. So whoever commits a reference

1. knows the upkeep of the store from before it published (`Store.upkeep`),
2. keeps deletions out for the rest of its transaction (`admit_no_pruning`), and
3. reads the upkeep again. When no run has begun since and none is pruning, nothing was deleted
   since the object was published, and one SELECT was all that it cost. Else it looks for each
   object in the root of now, and publishes anew what is not there.

`pruning` has the other half and the argument why the two together never leave a reference that
does not resolve.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self, cast

from sqlalchemy import Connection, Table, func, select, text

from tooltrail.records import DamageError
from tooltrail.store._recording.publisher import StreamPublisher
from tooltrail.store.tables import MaintenanceRunRow, StoreInfoRow

if TYPE_CHECKING:
    from tooltrail.store.store import Store

_REFERENCES_LOCK = 0x746F6F72
"""PostgreSQL advisory lock between those who commit references and those who delete."""


@dataclass(frozen=True, slots=True)
class Upkeep:
    """What was being done to the artifacts of a store at one moment.

    Attributes:
        artifact_root: as the store remembers it.
        last_run: the key of the newest maintenance run, 0 when there never was one.
        is_pruning: whether a run of `gc` is under way, or was killed and not yet closed.
    """

    artifact_root: str
    last_run: int
    is_pruning: bool

    @classmethod
    def unseen(cls, artifact_root: str) -> Self:
        """One older than any that a store has, so that nothing is relied on that was not seen."""
        return cls(artifact_root, -1, is_pruning=True)


def read_upkeep(connection: Connection) -> Upkeep:
    """The upkeep of now.

    Raises:
        DamageError: the store's own row is missing or damaged.
    """
    row = connection.execute(_UPKEEP).one_or_none()
    root: object = None if row is None else row.artifact_root
    if row is None or not isinstance(root, str):
        raise DamageError("the store's own row is damaged", path=StoreInfoRow.__tablename__)
    return Upkeep(root, row.last_run, bool(row.is_pruning))


def admit_no_pruning(connection: Connection) -> None:
    """Keep deletions out until the transaction ends; others who commit references come in.

    To be called before any row is locked: who holds a row and waits here could be waited for by
    one who is in here. On SQLite a write transaction is alone anyway.
    """
    if connection.dialect.name == "postgresql":
        connection.execute(_SHARED, {"lock": _REFERENCES_LOCK})


def admit_no_references(connection: Connection) -> None:
    """Keep those who commit references out until the transaction ends."""
    if connection.dialect.name == "postgresql":
        connection.execute(_EXCLUSIVE, {"lock": _REFERENCES_LOCK})


def ensure_standing(
    connection: Connection, store: "Store", publisher: StreamPublisher, seen: Upkeep
) -> None:
    """Make sure that everything published stands in the root until the transaction ends.

    Must come first in the transaction. What has to be published anew is, within the transaction:
    so nobody can come in between again, and it happens only when an object was pruned between two
    steps of one finish, or the root was changed.

    Args:
        connection: of the transaction that will commit references.
        store: whose artifacts.
        publisher: what was published.
        seen: the upkeep from before the first of it was published.

    Raises:
        UnavailableError: the root cannot be reached.
    """
    admit_no_pruning(connection)
    current = read_upkeep(connection)
    if current == seen and not current.is_pruning:
        return
    if current.artifact_root != seen.artifact_root:
        publisher.move_to(store.follow(current))
    publisher.republish_missing()
    store.upkeep = current


_RUNS = cast("Table[Any]", MaintenanceRunRow.__table__)
_INFO = cast("Table[Any]", StoreInfoRow.__table__)
_UPKEEP = select(
    _INFO.c.artifact_root,
    select(func.coalesce(func.max(_RUNS.c.key), 0)).scalar_subquery().label("last_run"),
    select(_RUNS.c.key)
    .where(_RUNS.c.finished_at.is_(None), _RUNS.c.kind == "gc")
    .exists()
    .label("is_pruning"),
)
_SHARED = text("SELECT pg_advisory_xact_lock_shared(:lock)")
_EXCLUSIVE = text("SELECT pg_advisory_xact_lock(:lock)")
