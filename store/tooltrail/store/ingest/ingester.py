"""The ingester: moves the facts of one journal into the database, each exactly once.

    read frames behind the cursor → project and render → publish artifacts
    → one transaction: ledger, rows, cursor → delete what is no longer needed

Rows and cursor are committed together. So an ingester that is killed, or that loses the answer to a
COMMIT, reads the cursor and knows. One ingester works on a journal at a time; the ingesters of many
machines work side by side.
"""

import fcntl
import os
import socket
from collections.abc import Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

from tooltrail.artifacts import ArtifactArchive
from tooltrail.journal import (
    Cursor,
    Frame,
    Gap,
    Position,
    cursor_behind,
    delete_segments,
    has_frames,
    read_journal,
    read_journal_id,
    sync_segment,
)
from tooltrail.records import FamilyRegistry, InvalidRecordError, UnavailableError
from tooltrail.records.digests import ALGORITHM, Digest
from tooltrail.records.facts import CallEnded, CallStarted, Fact, StreamFact
from tooltrail.store import schema
from tooltrail.store._clock import now
from tooltrail.store._engines.database import Database
from tooltrail.store._recording.bodies import decode_body
from tooltrail.store.ingest.batch import Batch, Item
from tooltrail.store.ingest.known import load_known
from tooltrail.store.ingest.native import Native
from tooltrail.store.ingest.outcomes import Beginning, OutcomeMaker
from tooltrail.store.ingest.publishing import Published, SpooledStreams

JOURNAL: Final = "journal"
"""Folder of the spool with the journal."""

_LOCK: Final = "ingest.lock"
BATCH_FRAMES: Final = 512
BATCH_BYTES: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class Ingested:
    """What one run of the ingester did.

    Attributes:
        frame_count: facts that are in the database now.
        rejected_count: those of them that could not be applied, and damaged places.
        pending_count: streams that wait for the sink.
    """

    frame_count: int = 0
    rejected_count: int = 0
    pending_count: int = 0

    def __add__(self, other: "Ingested") -> "Ingested":
        return Ingested(
            self.frame_count + other.frame_count,
            self.rejected_count + other.rejected_count,
            self.pending_count + other.pending_count,
        )


class Ingester:
    """Ingests the journal of one spool. Safe to share between threads and processes.

    Args:
        database: where rows go.
        archive: where artifacts go.
        spool: the folder with the journal and the captured streams.
        families: the tool families, for calls whose result nobody was shown.
    """

    def __init__(
        self,
        database: Database,
        archive: ArtifactArchive,
        spool: Path,
        families: FamilyRegistry,
    ) -> None:
        self._database = database
        self._spool = spool
        self._folder = spool / JOURNAL
        self._streams = SpooledStreams(spool, archive)
        self._maker = OutcomeMaker(families, self._streams)
        self._cursor: Cursor | None = None

    def ingest(self) -> Ingested:
        """Move every fact that was appended before this call into the database.

        Raises:
            UnavailableError: the database, the spool or a spooled stream cannot be used now.
                What was committed before stays.
            DamageError: the database is damaged.
        """
        if self._cursor is not None and not has_frames(self._folder, self._cursor):
            return Ingested()
        done = Ingested()
        with self._locked():
            journal = read_journal_id(self._folder)
            if journal is None:
                return done
            cursor = self._read_cursor(journal)
            for items in _batches(read_journal(self._folder, cursor)):
                done += self._ingest_items(journal, items)
                self._cursor = cursor_behind(items[-1])
                delete_segments(self._folder, before=self._cursor.segment)
            self._cursor = self._cursor or cursor
        return done

    @property
    def folder(self) -> Path:
        """Folder of the journal."""
        return self._folder

    def is_past(self, position: Position) -> bool:
        """Whether this ingester committed everything up to a position."""
        cursor = self._cursor
        return cursor is not None and cursor.index > position.index

    def _ingest_items(self, journal: UUID, items: Sequence[Frame | Gap]) -> Ingested:
        """Ingest a batch; one that the database refuses is split until the culprit is alone."""
        prepared = self._prepare(items)
        try:
            return self._write(journal, items, prepared)
        except InvalidRecordError as error:
            if len(items) == 1:
                refused = [one._replace(problem=str(error)) for one in prepared]
                return self._write(journal, items, refused)
        middle = len(items) // 2
        first = self._ingest_items(journal, items[:middle])
        return first + self._ingest_items(journal, items[middle:])

    def _prepare(self, items: Sequence[Frame | Gap]) -> list[Item]:
        """Read the facts, and make what is written of ended calls."""
        read = [_read_frame(one) for one in items if isinstance(one, Frame)]
        beginnings = self._beginnings(read)
        return [self._with_outcome(one, beginnings) for one in read]

    def _beginnings(self, read: Sequence[Item]) -> dict[UUID, Beginning]:
        """How the ended calls of a batch began, and their policies."""
        found: dict[UUID, Beginning] = {}
        for one in read:
            if isinstance(one.fact, CallStarted):
                fact = one.fact
                found[fact.id] = Beginning(fact.tool_name, fact.family, fact.policy)
                self._learn(fact.policy, one.bodies.get(fact.policy))
        ended = [
            one.fact.id
            for one in read
            if isinstance(one.fact, CallEnded) and one.fact.shown is None
        ]
        missing = [name for name in ended if name not in found]
        wanted = {found[name].policy for name in ended if name in found}
        if missing or any(not self._maker.knows_policy(one) for one in wanted):
            self._look_up(missing, found, wanted)
        return found

    def _look_up(
        self, missing: list[UUID], found: dict[UUID, Beginning], wanted: set[Digest]
    ) -> None:
        with self._database.read() as connection:
            native = Native(connection)
            rows = native.query_each(
                "SELECT id, tool_name, family, policy FROM invocations WHERE id IN (?)",
                [native.uuid(one) for one in missing],
            )
            for name, tool_name, family, policy in rows:
                digest = Digest(f"{ALGORITHM}:{bytes(policy).hex()}")
                found[native.read_uuid(name)] = Beginning(tool_name, family, digest)
                wanted.add(digest)
            unknown = [one for one in wanted if not self._maker.knows_policy(one)]
            bodies = native.query_each(
                "SELECT digest, size, encoding, data FROM bodies WHERE digest IN (?)",
                [native.sha(one) for one in unknown],
            )
            native.close()
        for digest, size, encoding, data in bodies:
            name = Digest(f"{ALGORITHM}:{bytes(digest).hex()}")
            self._learn(name, decode_body(name, size, encoding, data))

    def _learn(self, digest: Digest, document: bytes | None) -> None:
        if document is None or self._maker.knows_policy(digest):
            return
        try:
            self._maker.learn_policy(digest, document)
        except InvalidRecordError:
            return  # the calls that need the policy are rejected, with their bytes

    def _with_outcome(self, item: Item, beginnings: dict[UUID, Beginning]) -> Item:
        fact = item.fact
        if not isinstance(fact, CallEnded) or item.problem is not None:
            return item
        beginning = beginnings.get(fact.id, Beginning("", "", Digest("")))
        try:
            outcome = self._maker.outcome(fact, item.bodies, beginning)
        except (LookupError, TypeError, ValueError) as error:
            return item._replace(problem=str(error) or repr(error))
        return item._replace(outcome=outcome)

    def _write(
        self, journal: UUID, items: Sequence[Frame | Gap], prepared: Sequence[Item]
    ) -> Ingested:
        published = self._publish(prepared)
        for segment in {one.segment for one in items}:
            # The cursor must never be ahead of what survives a power cut.
            sync_segment(self._folder, segment)
        with self._database.write() as connection:
            native = Native(connection)
            key = self._journal_key(native, journal)
            facts: list[Fact] = [one.fact for one in prepared if one.fact is not None]
            batch = Batch(native, load_known(native, facts), key, now())
            for gap in items:
                if isinstance(gap, Gap):
                    batch.reject_gap(gap)
            for one in prepared:
                batch.apply(one)
            batch.write()
            self._write_published(native, published, key)
            self._move_cursor(native, key, cursor_behind(items[-1]), len(prepared))
            native.close()
        self._streams.discard(
            [str(one.fact.id) for one in prepared if isinstance(one.fact, CallEnded)],
            published.pending,
        )
        return Ingested(len(prepared), batch.rejected_count, len(published.pending))

    def _publish(self, prepared: Sequence[Item]) -> Published:
        spooled = list[StreamFact]()
        hidden = [
            record
            for one in prepared
            if one.outcome is not None and one.problem is None
            for record in one.outcome.hidden
        ]
        for one in prepared:
            if isinstance(one.fact, CallEnded) and one.problem is None:
                spooled += [stream for stream in one.fact.streams if stream.spooled is not None]
        return self._streams.publish(spooled, hidden)

    def _write_published(self, native: Native, published: Published, journal_key: int) -> None:
        at = native.moment(now())
        native.insert_once(
            schema.artifacts,
            [
                {
                    "digest": native.sha(one.digest),
                    "size": one.size,
                    "stored_size": one.stored_size,
                    "line_count": one.line_count,
                    "created_at": at,
                }
                for one in published.stored.values()
            ],
        )
        native.insert_once(
            schema.pending_artifacts,
            [
                {
                    "digest": native.sha(digest),
                    "journal_key": journal_key,
                    "spooled": native.text(one.stream.spooled),
                    "role": native.text(one.stream.role),
                    "size": one.stream.size,
                    "reason": native.text(one.reason),
                    "noticed_at": at,
                }
                for digest, one in published.pending.items()
            ],
        )
        native.insert_once(
            schema.bodies,
            [
                {"digest": native.sha(digest), "size": len(data), "encoding": "raw", "data": data}
                for digest, data in published.unsent.items()
            ],
        )

    def _journal_key(self, native: Native, journal: UUID) -> int:
        """The row of the journal, locked. A journal that nobody knows is entered."""
        at = native.moment(now())
        native.insert_once(
            schema.journals,
            [
                {
                    "id": native.uuid(journal),
                    "host": native.text(socket.gethostname()),
                    "spool": native.text(str(self._spool)),
                    "entry_count": 0,
                    "head": None,
                    "segment": Cursor().segment,
                    "segment_offset": Cursor().offset,
                    "created_at": at,
                    "ingested_at": at,
                }
            ],
        )
        lock = "" if native.is_sqlite else " FOR UPDATE"
        rows = native.query(f"SELECT key FROM journals WHERE id = ?{lock}", (native.uuid(journal),))
        return int(rows[0][0])

    def _move_cursor(self, native: Native, key: int, cursor: Cursor, count: int) -> None:
        native.update(
            "UPDATE journals SET entry_count = entry_count + ?, head = ?, segment = ?,"
            " segment_offset = ?, ingested_at = ? WHERE key = ?",
            [(count, cursor.hash, cursor.segment, cursor.offset, native.moment(now()), key)],
        )

    def _read_cursor(self, journal: UUID) -> Cursor:
        """Where the next frame to ingest is, as the database says."""
        with self._database.read() as connection:
            native = Native(connection)
            rows = native.query(
                "SELECT j.segment, j.segment_offset, j.head, max(l.n) FROM journals AS j"
                " LEFT JOIN ledger_entries AS l ON l.journal_key = j.key WHERE j.id = ?"
                " GROUP BY j.key, j.segment, j.segment_offset, j.head",
                (native.uuid(journal),),
            )
            native.close()
        if not rows:
            return Cursor()
        segment, offset, head, last = rows[0]
        index = 0 if last is None else last + 1
        is_first = last is None and head is None
        return Cursor(segment, offset, index, Cursor().hash if is_first else head)

    @contextmanager
    def _locked(self) -> Generator[None]:
        """One ingester at a time; others wait."""
        if not self._folder.is_dir():
            yield  # nothing was recorded, so there is nothing to lock
            return
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        try:
            descriptor = os.open(self._folder / _LOCK, flags, 0o600)
        except OSError as error:
            raise UnavailableError(
                f"journal {self._folder} cannot be ingested: {error.strerror}"
            ) from error
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _batches(items: Iterator[Frame | Gap]) -> Iterator[list[Frame | Gap]]:
    batch, size = list[Frame | Gap](), 0
    for one in items:
        batch.append(one)
        size += one.end - one.offset if isinstance(one, Frame) else len(one.data)
        if len(batch) >= BATCH_FRAMES or size >= BATCH_BYTES:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


def _read_frame(frame: Frame) -> Item:
    try:
        return Item(frame, frame.fact, frame.bodies())
    except InvalidRecordError as error:
        return Item(frame, None, {}, problem=str(error))
