"""One running tool as its recorder sees it: its output is captured, and its end is recorded.

What is acknowledged is durable: when `finish` returns, the three surfaces are in the store, and
every artifact that they refer to was durable before.
"""

import time
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from tooltrail.artifacts import (
    Capture,
    CapturedStream,
    CaptureLimits,
    check_path,
    release_spool_folder,
    remove_spool_folder,
)
from tooltrail.journal.clock import now
from tooltrail.records import (
    CompleteOutput,
    Digest,
    DiskFullError,
    EndUncertainError,
    InvalidRecordError,
    InvocationFinishedError,
    Postponed,
    StreamRecord,
    UnavailableError,
    project,
    render,
)
from tooltrail.store._engines.reserve import SMALL_RECORD
from tooltrail.store._recording import writes
from tooltrail.store._recording.committing import commit
from tooltrail.store._recording.ending import Ending
from tooltrail.store._recording.finishing import (
    FinishedRows,
    Outcome,
    inline_bodies,
    write_finished,
)
from tooltrail.store._recording.interruption import interrupted_output, with_unshown, without_room
from tooltrail.store._recording.publisher import StreamPublisher, refuse_false_digests
from tooltrail.store._recording.sessions import write_closed
from tooltrail.store._recording.starting import Started
from tooltrail.store._recording.upkeep import ensure_standing
from tooltrail.store.finished import Finished, find_recorded

if TYPE_CHECKING:
    from tooltrail.store.recorder import Session
    from tooltrail.store.store import Store


_NS_PER_MS = 1_000_000


class SinkGoneError(Exception):
    """The sink was written, and is away before the commit."""


class Invocation:
    """One running tool. Its captures may be used by different threads, `finish` by one.

    Made by `Session.start`.

    Attributes:
        is_witnessed: whether the program that ran it sees its end, and so how long it took.
        may_wait: whether its end is recorded although its output cannot be stored yet.
        closing_reason: why its session ends with it, when that is not as it was to be.
        finished_at: when it ended; None for when that is recorded.
    """

    is_witnessed = True
    may_wait = True
    closing_reason: str | None = None
    finished_at: datetime | None = None

    def __init__(self, store: "Store", session: "Session", key: int, started: Started) -> None:
        self._store = store
        self._session = session
        self._key = key
        self._captured: dict[Digest, CapturedStream] = {}
        self._is_finished = False
        self._attempt: Finished | None = None
        self.id = started.id
        self.call = started.call
        self.family = started.family
        self._roles: set[str] = set()
        self.policy = started.policy
        applied = started.policy.applied_to(started.call.tool_name)
        self._inline_bytes = applied.inline_bytes
        self._stream_bytes = applied.stream_bytes
        self.started_at = started.at
        self._begun_ns = time.monotonic_ns()

    @property
    def is_recorded(self) -> bool:
        """Whether the store is known to have its start; False while that waits in the outbox."""
        return self._key != 0

    @property
    def spool(self) -> Path:
        """The folder of this invocation's output while it is being captured."""
        return self._store.spool / str(self.id)

    def capture(self, role: str) -> Capture:
        """A writer for one stream of this invocation, of any length, at constant memory.

        Hand what its `close` gives to `captured`.

        Raises:
            InvalidRecordError: the role cannot name a file of the spool, or has a capture already.
        """
        check_path(f"{role}.zst")
        if role in self._roles:
            raise InvalidRecordError(
                f"stream {role!r} of invocation {self.id} has a capture already"
            )
        self._roles.add(role)
        return Capture(
            role,
            self.spool / f"{role}.zst",
            edge_bytes=self.policy.edge_bytes,
            inline_bytes=self._inline_bytes,
            frame_size=self._store.archive.frame_size,
            limits=CaptureLimits(self._stream_bytes, self._store.limits.free_bytes),
            claim=partial(self._store.owner.claim, self.id),
        )

    def captured(self, stream: CapturedStream) -> StreamRecord:
        """Take a closed capture; the record that it gives goes into the complete output."""
        self._captured[stream.record.digest] = stream
        return stream.record

    def finish(self, output: CompleteOutput) -> Finished:
        """Record the end: publish artifacts, then commit all surfaces in one transaction.

        On a full disk the room that is held back for that is used. So that it serves for many, only
        a record of up to `SMALL_RECORD` bytes is written whole there; of any other the end is an
        error of kind `low_disk_space` that names what could not be recorded. Its captured output
        becomes artifacts, or waits in the spool for `repair`; what is in memory alone is not kept.

        The spool of this invocation is removed when everything is durable, and left when not.

        While the database is away the end waits in the outbox, where there is one, and
        `Finished.recorded_in` says so; the receipt is that which will be stored.

        After any `UnavailableError` it may be called again. After an `EndUncertainError` that asks
        first what is recorded: where that is this output after all, it is handed back what was
        recorded then, with the receipt of that time.

        Raises:
            InvocationFinishedError: it was finished before, or was ended otherwise; nothing is
                changed.
            InvalidRecordError: the output is of another tool or not of its family, or the bytes of
                a stream are not at hand or not those of its digest.
            DamageError: a spool file was cut since it was captured, or the session has no ledger
                head; nothing was recorded.
            EndUncertainError: the database went away at a moment at which the end may be recorded
                all the same.
            UnavailableError: the database cannot be written now; `DiskFullError` when there is no
                room for any record. While the sink cannot be written the record is finished, and
                its output waits in the spool: see `Finished.postponed`.
        """
        try:
            return self._end_whole(output)
        except DiskFullError as error:
            small, streams = without_room(output, self._captured, str(error))
            return self._end(small, streams)

    def _end_whole(self, output: CompleteOutput) -> Finished:
        """Record an end; a small one in the room that is held back, where there is no other.

        Raises:
            DiskFullError: there is no room for it.
        """
        self._refuse_other_tool(output)
        if not self._store.reserve.is_given_up():
            with suppress(DiskFullError):
                return self._end(output, output.streams)
            self._store.make_room()
        return self._end(output, output.streams, most=SMALL_RECORD)

    def _refuse_other_tool(self, output: CompleteOutput) -> None:
        if output.tool_name != self.call.tool_name:
            raise InvalidRecordError(
                f"invocation {self.id} is of {self.call.tool_name!r}, not of {output.tool_name!r}"
            )

    def interrupt(self, reason: str, partial_output: Sequence[StreamRecord] = ()) -> Finished:
        """Record that the call was interrupted, and what it had printed until then.

        A failure has no result that could carry streams, so these belong to the complete output
        alone: its error names them by digest, and neither the canonical result nor the receipt
        shows any of them.

        Args:
            reason: why, in one sentence.
            partial_output: what was captured, each role once.

        Raises:
            InvocationFinishedError, InvalidRecordError, DamageError, UnavailableError: see
                `finish`.
        """
        streams = tuple(partial_output)
        output = interrupted_output(self.call.tool_name, reason, streams)
        with suppress(DiskFullError):
            return self._end(output, streams)
        self._store.make_room()
        return self._end(output, streams)

    def _end(
        self, output: CompleteOutput, streams: tuple[StreamRecord, ...], most: int | None = None
    ) -> Finished:
        """Record an end with its streams, whether or not the sink stays until it is committed.

        Raises:
            DiskFullError: there is no room, or the record would take more than `most` bytes.
        """
        if self._attempt is not None:
            recorded = self._find_recorded(output, self._attempt)
            if recorded is not None:
                return self._settled(recorded)
            self._attempt = None
        try:
            return self._record_end(output, streams, None, most)
        except SinkGoneError as error:
            away = Postponed(str(error))
        return self._record_end(output, streams, away, most)

    def _record_end(
        self,
        output: CompleteOutput,
        streams: tuple[StreamRecord, ...],
        away: Postponed | None,
        most: int | None,
    ) -> Finished:
        """As `_end`; with `away` the sink is not asked, since it is that."""
        if self._is_finished:
            # Asked before the spool is, which the first finish removed.
            raise self._finished_already()
        ending = self._planned(output, streams, away)
        if most is not None and ending.rows.size > most:
            raise DiskFullError(
                f"the disk is nearly full: of {ending.rows.size:,} bytes no more than {most:,} "
                "are written"
            )
        try:
            self._commit(ending)
        except EndUncertainError:
            self._attempt = ending.told()
            raise
        return self._settled(ending.told())

    def _planned(
        self,
        output: CompleteOutput,
        streams: tuple[StreamRecord, ...],
        away: Postponed | None,
    ) -> Ending:
        """Publish what becomes artifacts and make the surfaces; nothing is committed yet.

        Raises:
            InvalidRecordError, DamageError, UnavailableError: see `finish`.
        """
        refuse_false_digests(streams)
        family = self._store.families.of_output(output, self.family)
        measured_ms = (time.monotonic_ns() - self._begun_ns) // _NS_PER_MS
        seen = self._store.upkeep  # before the archive and before anything is published
        publisher = StreamPublisher(
            self._store.archive,
            self._captured,
            self.spool,
            away,
            claim=self._claim_spool,
        )
        projection = project(output, family, self.policy, publisher)
        if output.error is not None:
            projection = with_unshown(projection, streams, self.policy, publisher)
        for stream in streams:
            if stream.size > self._inline_bytes or stream.content is None:
                publisher.publish(stream)
        if publisher.away is not None and away is None and self._store.has_moved(seen):
            return self._planned(output, streams, None)
        if publisher.away is not None and not self.may_wait:
            raise UnavailableError(publisher.away.reason)
        receipt = render(projection.canonical, family, self.policy)
        rows = FinishedRows(
            id=self.id,
            started_at=self.started_at,
            is_witnessed=self.is_witnessed,
            outcome=Outcome.of(output),
            streams=streams,
            projection=projection,
            receipt=receipt,
            bodies=inline_bodies(streams, receipt, publisher),
            finished_at=self.finished_at,
            measured_ms=measured_ms if self.finished_at is None else None,
        )
        postponed = tuple(stream for stream in streams if publisher.postponed_reason(stream))
        state, canonical = output.final_state, projection.canonical
        finished = Finished(self.id, self.call, state, canonical, receipt, postponed)
        return Ending(rows, publisher, seen, finished)

    def _claim_spool(self) -> None:
        """Called before anything is put there to be published; `start` has done so already."""

    def _commit(self, ending: Ending) -> None:
        def write(connection: Connection) -> None:
            if ending.needs_sink:
                self._ensure_standing(connection, ending)
            self._write(connection, ending)

        commit(self._store.writes, write, self._uncertain)

    def _uncertain(self, reason: str) -> UnavailableError:
        message = f"{reason}; whether the end of invocation {self.id} is recorded is not known"
        return EndUncertainError(message, invocation_id=self.id)

    def _find_recorded(self, output: CompleteOutput, attempt: Finished) -> Finished | None:
        """See `find_recorded`; for sure, when whoever is committing has come to an end."""
        with self._store.database.write() as connection:
            # A server may commit yet what a client asked for that was cut off.
            writes.lock_chain(connection, self._session.key, self._session.id)
        return find_recorded(self._store.reader, output, attempt)

    def _settled(self, finished: Finished) -> Finished:
        """Leave in the spool what waits there, and nothing else."""
        self._is_finished, self._attempt = True, None
        if finished.postponed:
            # Whoever repairs the spool may store it from now on, this process among them.
            with suppress(UnavailableError):
                release_spool_folder(self.spool)
        else:
            remove_spool_folder(self.spool)
        return finished

    def _write(self, connection: Connection, ending: Ending) -> None:
        session = self._session
        chain = writes.lock_chain(connection, session.key, session.id)
        if not write_finished(connection, chain, self._key, ending.rows, ending.publisher):
            raise self._finished_already()
        if session.only_call == self.id and chain.closed_at is None:
            write_closed(connection, chain, now(), self.closing_reason)

    def _ensure_standing(self, connection: Connection, ending: Ending) -> None:
        try:
            ensure_standing(connection, self._store, ending.publisher, ending.seen)
        except UnavailableError as error:
            if not ending.publisher.published:
                raise  # what else there is to ask is the database
            raise SinkGoneError(str(error)) from error

    def _finished_already(self) -> InvocationFinishedError:
        return InvocationFinishedError(f"invocation {self.id} is finished already")
