"""The condition of a store: waiting, rejected and lost data, and free disk space."""

from contextlib import suppress
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import UUID

from tooltrail.journal import has_frames, read_journal
from tooltrail.journal.clock import now
from tooltrail.journal.ends import peek_hint
from tooltrail.journal.segments import JOURNAL_FOLDER
from tooltrail.records.digests import Digest
from tooltrail.records.errors import DamageError, UnavailableError
from tooltrail.records.frozen import Frozen
from tooltrail.store.engines.connection import Connection
from tooltrail.store.engines.sqlite import free_bytes
from tooltrail.store.engines.targets import SqliteTarget
from tooltrail.store.info import read_info
from tooltrail.store.ingest.places import find_place
from tooltrail.store.read.columns import Columns, View, damage_of, make_view
from tooltrail.store.read.rows import Sql, fetch, sum_of

if TYPE_CHECKING:
    from tooltrail.store.store import Store

_LISTED: Final = 100
"""Most rejected facts and waiting artifacts that are listed; all are counted."""

_COUNTS: Final = {
    # The partial index has the condition `state <> 'success'`.
    "open_count": "count(*) FROM invocations WHERE state <> 'success' AND state = 'started'",
    "rejected_count": "count(n) FROM rejected_facts",
    "damaged_count": "count(*) - count(n) FROM rejected_facts",
    "pending_count": "count(*) FROM pending_artifacts",
    "pending_bytes": f"{sum_of('size')} FROM pending_artifacts",
    "lossy_count": "count(*) FROM streams WHERE loss_reason IS NOT NULL",
    "lost_bytes": f"{sum_of('produced_size - size')} FROM streams WHERE loss_reason IS NOT NULL",
}
_REJECTED: Final = Columns(
    "rejected_facts: n subject_id reason rejected_at", optional=("journals: id",)
)
_PENDING: Final = Columns(
    "pending_artifacts: digest role size reason noticed_at", optional=("journals: id host spool",)
)
_JOURNAL: Final = Columns("journals: key id host spool branch_of entry_count ingested_at")

_COUNTED: Final = f"SELECT {', '.join(f'(SELECT {one})' for one in _COUNTS.values())}"


class JournalState(Frozen):
    """One journal that was ingested.

    Attributes:
        host: host name of the machine that had it at the last commit.
        spool: the spool on that machine.
        branch_of: id of the journal from which it branched off when the folder was restored.
        entry_count: number of its facts in the ledger.
        ingested_at: time of the commit of the last fact.
        damage: the damaged values of its row, which are replaced; None if there are none.
    """

    id: UUID
    host: str
    spool: str
    branch_of: UUID | None
    entry_count: int
    ingested_at: datetime
    damage: str | None


class RejectedFact(Frozen):
    """A fact that could not be applied, or a damaged place of a journal.

    Attributes:
        n: its ledger entry; None for a damaged place, which has none.
        subject: id of the subject of the fact, if known.
        reason: one sentence.
    """

    journal: UUID | None
    n: int | None
    subject: UUID | None
    reason: str
    rejected_at: datetime


class PendingArtifact(Frozen):
    """Content that waits for the sink.

    Attributes:
        host: host name of the machine that has it.
        spool: the spool on that machine.
        noticed_at: since when it waits.
    """

    digest: Digest
    role: str
    size: int
    host: str | None
    spool: str | None
    reason: str
    noticed_at: datetime


class Condition(Frozen):
    """Problems of a store that need attention, and free space on the disks of this machine.

    Attributes:
        waiting_count: facts in the journal of this spool that are not ingested; None if the
            journal cannot be read.
        damaged_count: damaged places of journals, and journals that were cut off or replaced.
        rejected: the newest rejected facts and damaged places.
        pending_count: artifacts that wait for the sink.
        pending_bytes: bytes of these artifacts.
        pending: the artifacts that have waited longest.
        lossy_count: streams with bytes that were not kept, for example on a full disk.
        lost_bytes: number of these bytes.
        journals: every journal that was ingested.
        database_free_bytes: free bytes on the disk of an SQLite file; None for a server.
        spool_free_bytes: free bytes on the disk of the spool; None if unknown.
    """

    read_at: datetime
    waiting_count: int | None
    open_count: int
    rejected_count: int
    damaged_count: int
    rejected: tuple[RejectedFact, ...]
    pending_count: int
    pending_bytes: int
    pending: tuple[PendingArtifact, ...]
    lossy_count: int
    lost_bytes: int
    journals: tuple[JournalState, ...]
    database_free_bytes: int | None
    spool_free_bytes: int | None


def read_condition(store: "Store") -> Condition:
    """Read the condition of a store, from one snapshot. Ingests nothing.

    Raises:
        TooltrailError: see `Store.reader`.
    """
    store.check_revision()
    target, spool = store.database.target, store.spool
    file = target.path.parent if isinstance(target, SqliteTarget) else None
    with store.database.read() as connection:
        with suppress(DamageError):  # the condition needs no value of the row of the store
            read_info(connection)  # refuses a newer format
        counts = dict(zip(_COUNTS, connection.query(_COUNTED)[0], strict=True))
        return Condition(
            read_at=now(),
            waiting_count=_waiting_count(connection, spool / JOURNAL_FOLDER),
            rejected=_first_rows(connection, RejectedFact, _REJECTED, "rejected_facts", "key DESC"),
            pending=_first_rows(
                connection, PendingArtifact, _PENDING, "pending_artifacts", "noticed_at, digest"
            ),
            journals=_journals(connection),
            database_free_bytes=None if file is None else free_bytes(file),
            spool_free_bytes=free_bytes(spool),
            **{name: int(count or 0) for name, count in counts.items()},
        )


def _waiting_count(connection: Connection, folder: Path) -> int | None:
    try:
        place, end = find_place(connection, folder), peek_hint(folder)
        if place is None or not has_frames(folder, place.cursor):
            return 0
        cursor = place.cursor
        if end is not None and end.next_index > cursor.index:
            return end.next_index - cursor.index
        return sum(1 for _ in read_journal(folder, cursor))
    except (UnavailableError, DamageError):
        return None


def _first_rows(
    connection: Connection, view: type[View], columns: Columns, table: str, order: str
) -> tuple[View, ...]:
    """The first rows of a table whose rows name a journal."""
    select = Sql(
        f"SELECT {columns.sql} FROM {table}"  # noqa: S608  our own names
        f" LEFT JOIN journals ON journals.key = {table}.journal_key"
        f" ORDER BY {table}.{order} LIMIT ?",
        (_LISTED,),
    )
    return tuple(
        make_view(view, values, journal=values["id"], subject=values.get("subject_id"))
        for values, _ in map(columns.read, fetch(connection, select))
    )


def _journals(connection: Connection) -> tuple[JournalState, ...]:
    select = Sql(f"SELECT {_JOURNAL.sql} FROM journals ORDER BY key")  # noqa: S608  our own names
    rows = fetch(connection, select)
    return tuple(
        make_view(JournalState, values, damage=damage_of("journals", values["key"], problems))
        for values, problems in map(_JOURNAL.read, rows)
    )
