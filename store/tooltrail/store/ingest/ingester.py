"""The ingester: moves the facts of one journal into the database, each exactly once.

    read frames behind the cursor → project and render → publish artifacts
    → one transaction: ledger, rows, cursor → delete what is no longer needed

One transaction commits rows and cursor. So after a kill, or a lost answer to a COMMIT, the cursor
shows what was committed. One ingester works on a journal at a time; the ingesters of many machines
work in parallel.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from operator import add
from pathlib import Path
from typing import Final

from tooltrail.artifacts import ArtifactArchive
from tooltrail.journal import (
    Cursor,
    Frame,
    Gap,
    JournalLog,
    delete_segments,
    furthest_end,
    has_frames,
    read_journal,
    remove_owner,
    sync_segment,
)
from tooltrail.journal.segments import JOURNAL_FOLDER, segment_numbers
from tooltrail.records import (
    DamageError,
    FamilyRegistry,
    InvalidRecordError,
    TooltrailError,
    UnavailableError,
)
from tooltrail.records.facts import AnswerStarted, CallEnded, CallStarted, MessageAdded
from tooltrail.records.frozen import Frozen
from tooltrail.store.engines.database import Database
from tooltrail.store.engines.failures import RESTORE
from tooltrail.store.ingest.batch import write_batch
from tooltrail.store.ingest.durable import make_durable
from tooltrail.store.ingest.outcomes import OutcomeMaker
from tooltrail.store.ingest.places import (
    WHOLE_JOURNAL,
    CursorMovedError,
    Place,
    find_dead,
    find_open,
    find_place,
    move_place,
)
from tooltrail.store.ingest.preparing import Item, prepare, read_item
from tooltrail.store.ingest.publishing import Publisher, folders_of, write_artifacts
from tooltrail.store.ingest.recovery import ending_entries
from tooltrail.store.locking import ingest_lock, journal_lock

BATCH_FRAMES: Final = 512
BATCH_BYTES: Final = 8 << 20


class Ingested(Frozen):
    """The result of one run of the ingester.

    Attributes:
        frame_count: facts that were ingested.
        rejected_count: facts that could not be applied, and damaged places.
        pending_count: new artifacts that wait for the sink.
        published_count: waiting artifacts that are in the sink now.
        recovered_count: calls and answers that were ended because their program had died.
    """

    frame_count: int = 0
    rejected_count: int = 0
    pending_count: int = 0
    published_count: int = 0
    recovered_count: int = 0

    def __add__(self, other: "Ingested") -> "Ingested":
        return Ingested(*map(add, self.as_dict().values(), other.as_dict().values()))


class Ingester:
    """Ingests the journal of one spool. Safe to share between threads and processes.

    Args:
        spool: the folder with the journal and the captured streams.
        families: the tool families, for calls whose fact does not say what was shown.
        prepare: called under the ingest lock before facts are read.
        follow: called after facts were ingested, to fill what is derived from them. Its errors are
            ignored, since readers find what is missing there.
    """

    def __init__(
        self,
        database: Database,
        archive: ArtifactArchive,
        spool: Path,
        families: FamilyRegistry,
        prepare: Callable[[], object] = bool,
        *,
        follow: Callable[[], object] = bool,
    ) -> None:
        self._database = database
        self._follow = follow
        self._prepare = prepare
        self._confirm: Callable[[], object] = bool  # does nothing
        self._spool = spool
        self._folder = spool / JOURNAL_FOLDER
        self._publisher = Publisher(database, archive, spool)
        self._maker = OutcomeMaker(families, self._publisher.read_spooled)
        self._log = JournalLog(self._folder)
        self._place: Place | None = None

    def ingest(
        self,
        *,
        thoroughly: bool = False,
        on_progress: Callable[[int], object] = bool,
        wait_s: float = math.inf,
    ) -> Ingested:
        """Move every fact that was appended before this call into the database.

        Also ends calls and answers whose program died, and publishes artifacts that wait for the
        sink. Does nothing if nothing was appended since the last run of this ingester, unless it
        works `thoroughly`. While another ingester works on the journal, this one only waits until
        the other one has committed these facts, or has committed nothing for `wait_s`. After an
        error, earlier commits of this run stay.

        `on_progress` is called after each batch with the number of facts that this run ingested.
        """
        place = self._place
        is_idle = place and not thoroughly and not has_frames(self._folder, place.cursor)
        if is_idle or not self._folder.is_dir():
            return Ingested()
        try:
            with journal_lock(
                self._database, self._folder, is_required=thoroughly, wait_s=wait_s
            ) as passed:
                if passed is not None:
                    self._place = passed
                    return Ingested()
                with ingest_lock(self._database) as self._confirm:
                    self._prepare()
                    return self._ingest_locked(on_progress, thoroughly=thoroughly)
        except UnavailableError:
            if not self._database.is_server:
                # A connection that SQLite opened on a read-only disk stays read-only.
                self._database.close()
            raise

    def _ingest_locked(self, on_progress: Callable[[int], object], *, thoroughly: bool) -> Ingested:
        is_first = self._place is None
        done, place = self._ingest_to_end(on_progress)
        if place is not None and place.key:
            done += self._end_dead(place.key)
            published_count = self._publisher.publish_pending(place, at_once=thoroughly)
            done += Ingested(published_count=published_count)
            if is_first or thoroughly:
                self._publisher.remove_folders(place)
            with suppress(TooltrailError):
                self._follow()
        return done

    def is_past(self, cursor: Cursor) -> bool:
        """Whether this ingester committed everything before a cursor."""
        return self._place is not None and self._place.cursor.index >= cursor.index

    def check_kept(self, cursors: Sequence[Cursor]) -> None:
        """Check that ingested facts were applied, and that all of their output is in the sink.

        Args:
            cursors: the cursor behind each fact.

        Raises:
            InvalidRecordError: one of the facts was rejected.
            UnavailableError: output waits for the sink.
        """
        if self._place is None:
            return
        key, indexes = self._place.key, [one.index - 1 for one in cursors]
        with self._database.read() as connection:
            rejected = connection.query_each(
                f"SELECT reason FROM rejected_facts WHERE journal_key = {key} AND n IN (?)", indexes
            )
            # The end of a call may be recorded again: the stored end has another entry, then.
            waiting = connection.query_each(
                "SELECT p.reason FROM ledger_entries AS l"
                " JOIN invocations AS i ON i.id = l.subject_id"
                " JOIN pending_artifacts AS p ON p.digest IN"
                " (SELECT digest FROM streams WHERE invocation_key = i.key UNION"
                " SELECT digest FROM invocation_artifacts WHERE invocation_key = i.key)"
                f" WHERE l.kind = 'call.ended' AND l.journal_key = {key} AND l.n IN (?)",
                indexes,
            )
        if rejected:
            raise InvalidRecordError(rejected[0][0])
        if waiting:
            raise UnavailableError(f"output waits for the artifact root: {waiting[0][0]}")

    def _ingest_to_end(
        self, on_progress: Callable[[int], object] = bool
    ) -> tuple[Ingested, Place | None]:
        """Ingest the facts in the journal. Facts appended later may wait for the next run."""
        done, end = Ingested(), furthest_end(self._folder)
        unmoved: Place | None = None
        while True:
            with self._database.read() as connection:
                place = find_place(connection, self._folder)
            if place is None:
                return done, None
            try:
                for sources in _batches(read_journal(self._folder, place.cursor)):
                    items = prepare(self._database, self._maker, sources)
                    did, place = self._ingest_items(place, items)
                    done += did
                    on_progress(done.frame_count)
                    self._delete_segments(place)
                    if place.cursor.offsets >= end:
                        break
                if place.notice is not None:  # the journal has no frames
                    did, place = self._write(place, [])
                    done += did
            except CursorMovedError:
                if place == unmoved:
                    problem = f"the row of journal {place.journal} is damaged; {RESTORE}"
                    raise DamageError(problem, path=str(self._folder)) from None
                unmoved = place  # a transaction whose answer was lost was committed after all
                continue
            self._delete_segments(place)
            self._place = place
            return done, place

    def _ingest_items(self, place: Place, items: Sequence[Item]) -> tuple[Ingested, Place]:
        """Ingest a batch. If the database refuses it, halve it until the refused frame is alone."""
        problem = ""
        # Retry once: another machine may have committed the same rows in between.
        for _ in range(2):
            try:
                return self._write(place, items)
            except InvalidRecordError as error:
                problem = str(error)
        if len(items) == 1:
            try:
                return self._write(place, [items[0]._replace(problem=problem)])
            except InvalidRecordError as error:
                # A rejected fact has no rows of its own, so damage of the database is in the way.
                message = f"journal {place.journal} cannot be ingested: {error}; {RESTORE}"
                raise DamageError(message, path=str(self._database.target)) from error
        middle = len(items) // 2
        first, place = self._ingest_items(place, items[:middle])
        second, place = self._ingest_items(place, items[middle:])
        return first + second, place

    def _write(self, place: Place, items: Sequence[Item]) -> tuple[Ingested, Place]:
        """Commit a batch.

        Raises:
            InvalidRecordError: the database refuses the batch, or a spooled stream is missing.
            CursorMovedError: another transaction moved the cursor.
        """
        made = [one.outcome for one in items if one.outcome is not None and one.problem is None]
        stored, waiting = self._publisher.publish(new for one in made for new in one.published)
        for segment in {one.source.segment for one in items}:
            # After a power cut, the cursor must never be ahead of the journal.
            sync_segment(self._folder, segment)
        unsent = {one.stream.digest: one.content for one in waiting if one.content is not None}
        notices = []
        if place.notice is not None:
            notices = [read_item(Gap(*WHOLE_JOURNAL, b"", place.notice, place.cursor))]
        with self._database.write() as connection:
            moved = move_place(connection, place, [one.source for one in items], self._spool)
            rejected_count = write_batch(connection, moved.key, [*notices, *items], unsent)
            write_artifacts(connection, moved.key, stored, waiting)
            # If the lock was lost, `prune` may have deleted a published artifact.
            self._confirm()
        facts = [one.fact for one in items if isinstance(one.fact, CallEnded | MessageAdded)]
        ended = {str(one.id) for one in facts}
        for one in facts:
            ended |= folders_of(one.all_streams) if isinstance(one, CallEnded) else set()
        self._publisher.remove_folders(moved, ended)
        frame_count = moved.entry_count - place.entry_count
        return Ingested(frame_count, rejected_count, len(waiting)), moved

    def _end_dead(self, journal_key: int) -> Ingested:
        """End the calls and answers whose program died."""
        with self._database.read() as connection:
            dead = find_dead(connection, self._spool, journal_key)
        if not dead:
            return Ingested()
        # A program may have appended an end just before it died.
        done, _ = self._ingest_to_end()
        ended = [fact for fact in self._find_open(journal_key) if fact.id in dead]
        for fact in ended:
            self._log.record(ending_entries(self._spool, fact))
        more, _ = self._ingest_to_end()
        for owner in {*dead.values()} - {one.owner for one in self._find_open(journal_key)}:
            remove_owner(self._spool, owner)
        return done + more + Ingested(recovered_count=len(ended))

    def _find_open(self, journal_key: int) -> list[CallStarted | AnswerStarted]:
        with self._database.read() as connection:
            return list(find_open(connection, journal_key))

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
