"""The ingester: moves the facts of one journal into the database, each exactly once.

    read frames behind the cursor → project and render → publish artifacts
    → one transaction: ledger, rows, cursor → delete what is no longer needed

Rows and cursor are committed together. So an ingester that is killed, or that loses the answer to a
COMMIT, reads the cursor and knows. One ingester works on a journal at a time; the ingesters of many
machines work side by side.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from uuid import UUID

from tooltrail.artifacts import ArtifactArchive
from tooltrail.journal import (
    Cursor,
    Frame,
    Gap,
    JournalLog,
    Position,
    delete_segments,
    furthest_end,
    has_frames,
    read_journal,
    read_journal_id,
    sync_segment,
)
from tooltrail.journal.clock import now
from tooltrail.journal.segments import JOURNAL_FOLDER, segment_numbers
from tooltrail.records import FamilyRegistry, InvalidRecordError, UnavailableError
from tooltrail.records.facts import CallEnded, body_digests
from tooltrail.store.engines.connection import Connection
from tooltrail.store.engines.database import Database
from tooltrail.store.ingest.artifact_rows import write_pending, write_stored
from tooltrail.store.ingest.batch import Batch
from tooltrail.store.ingest.cursors import (
    WHOLE_JOURNAL,
    CursorMovedError,
    Place,
    find_place,
    lock_place,
    move_place,
)
from tooltrail.store.ingest.durable import make_durable
from tooltrail.store.ingest.journal_lock import journal_lock
from tooltrail.store.ingest.known import load_known
from tooltrail.store.ingest.outcomes import OutcomeMaker
from tooltrail.store.ingest.pending_artifacts import PendingArtifacts
from tooltrail.store.ingest.preparing import Item, Prepared, Preparer, frames_of
from tooltrail.store.ingest.publishing import Published, SpooledStreams
from tooltrail.store.ingest.recovery import Recovery
from tooltrail.store.locking import ingest_lock

_USES: Final = ("streams", "invocation_artifacts")
BATCH_FRAMES: Final = 512
BATCH_BYTES: Final = 8 << 20


@dataclass(frozen=True, slots=True)
class Ingested:
    """What one run of the ingester did.

    Attributes:
        frame_count: facts that are in the database now.
        rejected_count: those of them that could not be applied, and damaged places.
        pending_count: artifacts that began to wait for the sink.
        published_count: artifacts that waited and are in the sink now.
        recovered_count: calls and answers that were ended because their program had died.
    """

    frame_count: int = 0
    rejected_count: int = 0
    pending_count: int = 0
    published_count: int = 0
    recovered_count: int = 0

    def __add__(self, other: "Ingested") -> "Ingested":
        return Ingested(
            self.frame_count + other.frame_count,
            self.rejected_count + other.rejected_count,
            self.pending_count + other.pending_count,
            self.published_count + other.published_count,
            self.recovered_count + other.recovered_count,
        )


class Ingester:
    """Ingests the journal of one spool. Safe to share between threads and processes.

    Args:
        database: where rows go.
        archive: where artifacts go.
        spool: the folder with the journal and the captured streams.
        families: the tool families, for calls whose result nobody was shown.
        prepare: is called under the ingest lock before facts are read.
    """

    def __init__(
        self,
        database: Database,
        archive: ArtifactArchive,
        spool: Path,
        families: FamilyRegistry,
        prepare: Callable[[], object] | None = None,
    ) -> None:
        self._database = database
        self._prepare = prepare
        self._confirm: Callable[[], object] = bool  # does nothing
        self._spool = spool
        self._folder = spool / JOURNAL_FOLDER
        self._streams = SpooledStreams(spool, archive)
        self._preparer = Preparer(database, OutcomeMaker(families, self._streams))
        self._waiting = PendingArtifacts(database, self._streams)
        self._recovery = Recovery(database, spool, JournalLog(self._folder))
        self._cursor: Cursor | None = None

    def ingest(self, *, thoroughly: bool = False) -> Ingested:
        """Move every fact that was appended before this call into the database.

        Calls and answers whose program died are ended, and artifacts that wait for the sink are
        published. When nothing was appended since the last run of this ingester, nothing is looked
        at. While another ingester works on the journal, this one only waits until the other one has
        committed these facts.

        Args:
            thoroughly: whether to look for dead programs and waiting artifacts in any case.

        Raises:
            UnavailableError: the database, the spool or a spooled stream cannot be used now.
                What was committed before stays.
            DamageError: the database is damaged, or no segment of the journal has a head.
        """
        is_first = self._cursor is None
        if (
            self._cursor is not None
            and not thoroughly
            and not has_frames(self._folder, self._cursor)
        ):
            return Ingested()
        if not self._folder.is_dir():
            return Ingested()
        try:
            with journal_lock(self._database, self._folder, is_required=thoroughly) as passed:
                if passed is not None:
                    self._cursor = passed
                    return Ingested()
                with ingest_lock(self._database) as self._confirm:
                    if self._prepare is not None:
                        self._prepare()
                    is_thorough = thoroughly or is_first
                    return self._ingest_locked(is_thorough=is_thorough, at_once=thoroughly)
        except UnavailableError:
            if not self._database.is_server:
                # SQLite keeps a connection read-only that it opened while the disk was.
                self._database.close()
            raise

    def _ingest_locked(self, *, is_thorough: bool, at_once: bool) -> Ingested:
        journal = read_journal_id(self._folder)
        if journal is None:
            return Ingested()
        done, place = self._ingest_to_end(journal)
        if place.key is not None:
            done += self._end_dead(journal, place.key)
            done += Ingested(published_count=self._waiting.publish(place.key, at_once=at_once))
            if is_thorough:
                self._waiting.sweep(place.key)
        return done

    def is_past(self, position: Position) -> bool:
        """Whether this ingester committed everything up to a position."""
        cursor = self._cursor
        return cursor is not None and cursor.index > position.index

    def rejections(self, positions: Sequence[Position]) -> list[str]:
        """Why facts at these positions were rejected; empty when none was.

        Raises:
            UnavailableError: the database cannot be read.
        """
        return self._reasons(
            "SELECT reason FROM rejected_facts WHERE journal_key = {key} AND n IN (?)", positions
        )

    def pending_reason(self, positions: Sequence[Position]) -> str | None:
        """Why output of facts at these positions is not in the sink yet; None when all of it is.

        Raises:
            UnavailableError: the database cannot be read.
        """
        used = (
            "EXISTS (SELECT 1 FROM {table} AS u"
            " WHERE u.invocation_key = i.key AND u.digest = p.digest)"
        )
        either = " OR ".join(used.replace("{table}", one) for one in _USES)
        reasons = self._reasons(
            "SELECT p.reason FROM pending_artifacts AS p JOIN invocations AS i"
            " ON i.end_journal_key = p.journal_key WHERE p.journal_key = {key}"
            f" AND ({either}) AND i.end_entry IN (?)",
            positions,
        )
        return reasons[0] if reasons else None

    def _reasons(self, sql: str, positions: Sequence[Position]) -> list[str]:
        journal = read_journal_id(self._folder)
        if journal is None:
            return []
        with self._database.read() as connection:
            name = connection.uuid(journal)
            row = connection.query_one(
                "SELECT key FROM journals WHERE id = ? OR branch_of = ? ORDER BY key DESC",
                (name, name),
            )
            if row is None:
                return []
            rows = connection.query_each(
                sql.replace("{key}", str(int(row[0]))), [one.index for one in positions]
            )
        return [str(reason) for (reason,) in rows]

    def _ingest_to_end(self, journal: UUID) -> tuple[Ingested, Place]:
        """Ingest what the journal holds now. Facts appended later may be left for the next run."""
        done, end = Ingested(), furthest_end(self._folder)
        while True:
            place = self._find_place(journal)
            if place.is_cut:
                done += self._report(place)
                break
            try:
                for items in _batches(read_journal(self._folder, place.cursor)):
                    did, place = self._ingest_items(place, self._preparer.prepare(items))
                    done += did
                    self._delete_segments(place)
                    if place.cursor.offsets >= end:
                        break
            except CursorMovedError:
                continue  # a transaction whose answer was lost was committed after all
            self._delete_segments(place)
            break
        self._cursor = place.cursor
        return done, place

    def _find_place(self, journal: UUID) -> Place:
        with self._database.read() as connection:
            return find_place(connection, self._folder, journal)

    def _ingest_items(self, place: Place, items: Sequence[Prepared]) -> tuple[Ingested, Place]:
        """Ingest a batch; one that the database refuses is split until the culprit is alone."""
        problem = ""
        # The second time for what another machine recorded meanwhile.
        for _ in range(2):
            try:
                return self._write(place, items)
            except InvalidRecordError as error:
                problem = str(error)
        if len(items) == 1:
            refused = [one._replace(problem=problem) for one in frames_of(items)]
            return self._write(place, refused or items)
        middle = len(items) // 2
        first, place = self._ingest_items(place, items[:middle])
        second, place = self._ingest_items(place, items[middle:])
        return first + second, place

    def _write(self, place: Place, items: Sequence[Prepared]) -> tuple[Ingested, Place]:
        """Commit a batch.

        Raises:
            InvalidRecordError: the database refuses the batch, or a spooled stream is missing.
            CursorMovedError: the journal was ingested to another place.
        """
        frames = frames_of(items)
        published = self._publish(frames)
        for segment in {
            one.segment if isinstance(one, Gap) else one.frame.segment for one in items
        }:
            # The cursor must never be ahead of what survives a power cut.
            sync_segment(self._folder, segment)
        behind = place.behind(one if isinstance(one, Gap) else one.frame for one in items)
        with self._database.write() as connection:
            key = lock_place(connection, place, self._spool)
            batch = self._batch(connection, key, frames)
            if place.notice is not None:
                batch.reject_gap(Gap(*WHOLE_JOURNAL, b"", place.notice, place.cursor))
            for one in items:
                if isinstance(one, Gap):
                    batch.reject_gap(one)
                else:
                    batch.apply(one)
            batch.keep(published.unsent.items())
            batch.write()
            write_stored(connection, published.stored.values(), now())
            write_pending(connection, key, published.waiting.values(), now())
            move_place(connection, key, behind)
            # Without the lock, an artifact that was published may be deleted already.
            self._confirm()
        self._waiting.discard(key, batch.ended)
        done = Ingested(len(frames), batch.rejected_count, len(published.waiting))
        return done, behind.with_key(key)

    def _batch(self, connection: Connection, key: int, frames: Sequence[Item]) -> Batch:
        facts = [one.fact for one in frames if one.fact is not None]
        absent = [
            digest
            for one in frames
            if one.fact is not None and not isinstance(one.fact, CallEnded)
            for digest in body_digests(one.fact)
            if digest not in one.bodies
        ]
        return Batch(connection, load_known(connection, facts, absent), key, now())

    def _publish(self, frames: Sequence[Item]) -> Published:
        news = [one for one in frames if one.outcome is not None and one.problem is None]
        spooled = [
            stream
            for one in news
            if isinstance(one.fact, CallEnded)
            for stream in one.fact.all_streams
            if stream.spooled is not None
        ]
        attached = [
            record for one in news if one.outcome is not None for record in one.outcome.attached
        ]
        return self._streams.publish(spooled, attached) if spooled or attached else Published()

    def _report(self, place: Place) -> Ingested:
        """Enter what is wrong with a journal, once."""
        with self._database.write() as connection:
            batch = self._batch(connection, lock_place(connection, place, self._spool), [])
            batch.reject_gap(Gap(*WHOLE_JOURNAL, b"", place.notice or "", place.cursor))
            batch.write()
        return Ingested(rejected_count=1)

    def _end_dead(self, journal: UUID, journal_key: int) -> Ingested:
        """End the calls and answers whose program died."""
        dead = self._recovery.find_dead(journal_key)
        if not dead:
            return Ingested()
        # A program may have appended an end just before it died.
        done, _ = self._ingest_to_end(journal)
        count = self._recovery.end(journal_key, dead)
        more, _ = self._ingest_to_end(journal)
        self._recovery.remove_owners(journal_key, dead)
        return done + more + Ingested(recovered_count=count)

    def _delete_segments(self, place: Place) -> None:
        """Delete the segments that are ingested to their end."""
        numbers = segment_numbers(self._folder)
        if numbers and numbers[0] < place.cursor.segment:
            make_durable(self._database)
            delete_segments(self._folder, before=place.cursor.segment)


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
