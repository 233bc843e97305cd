"""The condition of a store: waiting, rejected and lost data, and free disk space."""

from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final
from uuid import UUID

from tooltrail.journal import has_frames, read_journal, read_journal_id
from tooltrail.journal.clock import now
from tooltrail.journal.ends import peek_hint
from tooltrail.journal.segments import JOURNAL_FOLDER
from tooltrail.records.digests import Digest
from tooltrail.records.errors import DamageError, UnavailableError
from tooltrail.store.engines.connection import Connection
from tooltrail.store.engines.sqlite import free_bytes
from tooltrail.store.engines.targets import SqliteTarget
from tooltrail.store.engines.values import digest_from, moment_of, uuid_from
from tooltrail.store.ingest.behind import find_cursor

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
    "pending_bytes": "sum(size) FROM pending_artifacts",
    "lossy_count": "count(*) FROM streams WHERE loss_reason IS NOT NULL",
    "lost_bytes": "sum(produced_size - size) FROM streams WHERE loss_reason IS NOT NULL",
}
_COUNTED: Final = f"SELECT {', '.join(f'(SELECT {one})' for one in _COUNTS.values())}"


@dataclass(frozen=True, slots=True)
class JournalState:
    """One journal that was ingested.

    Attributes:
        host: host name of the machine that had it at the last commit.
        spool: the spool on that machine.
        branch_of: id of the journal from which it branched off when the folder was restored.
        entry_count: number of its facts in the ledger.
        ingested_at: time of the commit of the last fact.
    """

    id: UUID
    host: str
    spool: str
    branch_of: UUID | None
    entry_count: int
    ingested_at: datetime


@dataclass(frozen=True, slots=True)
class RejectedFact:
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


@dataclass(frozen=True, slots=True)
class PendingArtifact:
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


@dataclass(frozen=True, slots=True)
class Condition:
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
        TooltrailError: see `Store.info`.
    """
    _ = store.info
    target, spool = store.database.target, store.spool
    file = target.path.parent if isinstance(target, SqliteTarget) else None
    with store.database.read() as connection:
        counts = dict(zip(_COUNTS, connection.query(_COUNTED)[0], strict=True))
        return Condition(
            read_at=now(),
            waiting_count=_waiting_count(connection, spool / JOURNAL_FOLDER),
            rejected=_rejected(connection),
            pending=_pending(connection),
            journals=_journals(connection),
            database_free_bytes=None if file is None else free_bytes(file),
            spool_free_bytes=free_bytes(spool),
            **{name: int(count or 0) for name, count in counts.items()},
        )


def _waiting_count(connection: Connection, folder: Path) -> int | None:
    try:
        journal = read_journal_id(folder)
        if journal is None:
            return 0
        _, cursor = find_cursor(connection, journal)
        end = peek_hint(folder)
        if not has_frames(folder, cursor):
            return 0
        if end is not None and end.next_index > cursor.index:
            return end.next_index - cursor.index
        return sum(1 for _ in read_journal(folder, cursor))
    except (UnavailableError, DamageError):
        return None


def _rejected(connection: Connection) -> tuple[RejectedFact, ...]:
    rows = connection.query(
        "SELECT j.id, r.n, r.subject_id, r.reason, r.rejected_at FROM rejected_facts r"
        " LEFT JOIN journals j ON j.key = r.journal_key ORDER BY r.key DESC LIMIT ?",
        (_LISTED,),
    )
    return tuple(
        RejectedFact(_uuid(journal), n, _uuid(subject), reason, moment_of(at))
        for journal, n, subject, reason, at in rows
    )


def _pending(connection: Connection) -> tuple[PendingArtifact, ...]:
    rows = connection.query(
        "SELECT p.digest, p.role, p.size, j.host, j.spool, p.reason, p.noticed_at"
        " FROM pending_artifacts p LEFT JOIN journals j ON j.key = p.journal_key"
        " ORDER BY p.noticed_at, p.digest LIMIT ?",
        (_LISTED,),
    )
    return tuple(
        PendingArtifact(digest_from(digest), role, size, host, spool, reason, moment_of(at))
        for digest, role, size, host, spool, reason, at in rows
    )


def _journals(connection: Connection) -> tuple[JournalState, ...]:
    rows = connection.query(
        "SELECT id, host, spool, branch_of, entry_count, ingested_at FROM journals ORDER BY key"
    )
    return tuple(
        JournalState(uuid_from(one), host, spool, _uuid(branch_of), count, moment_of(at))
        for one, host, spool, branch_of, count, at in rows
    )


def _uuid(value: object) -> UUID | None:
    return None if value is None else uuid_from(value)
