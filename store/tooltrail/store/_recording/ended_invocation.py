"""Recording a call that has ended already: its start, its end and its output in one transaction."""

import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import Connection

from tooltrail.artifacts import remove_spool_folder
from tooltrail.journal.clock import now
from tooltrail.records import (
    Digest,
    InvalidRecordError,
    Postponed,
    RecordUncertainError,
    ToolCall,
    UnavailableError,
    digest_of,
)
from tooltrail.store._engines.prepared import Row
from tooltrail.store._recording import writes
from tooltrail.store._recording.ending import Ending
from tooltrail.store._recording.keys import (
    Claim,
    Taken,
    claim,
    find_taken,
    find_taken_unlocked,
    refuse_conflict,
    take,
)
from tooltrail.store._recording.starting import Started, plan_start
from tooltrail.store._recording.whole import Whole, write_whole
from tooltrail.store.ended import EndedCall
from tooltrail.store.finished import Finished, as_recorded
from tooltrail.store.invocation import Invocation

if TYPE_CHECKING:
    from tooltrail.store.recorder import Session
    from tooltrail.store.store import Store

_EARLIEST = datetime(1970, 1, 1, tzinfo=UTC)
"""Before this no tool ran; such a time is a clock that was never set."""

_MOST_AHEAD = timedelta(days=1)
"""By which the clocks of two machines may differ."""


class EndedInvocation(Invocation):
    """An invocation of which the store knows nothing yet, and that has ended.

    Attributes:
        ended: what is known of it.
        claim: the key under which it is recorded once; None without one.
    """

    def __init__(
        self,
        store: "Store",
        session: "Session",
        ended: EndedCall,
        scratch: "Scratch | None" = None,
        known_as: "tuple[UUID, datetime] | None" = None,
    ) -> None:
        """Look at what is known; nothing is written.

        Args:
            store: where to.
            session: of that store.
            ended: what is known.
            scratch: what it shares with others, which whoever made it leaves; by default its own.
            known_as: the id that it has already, and when it was told at the latest.

        Raises:
            NotFoundError, InvalidRecordError: see `Session.record`.
        """
        _refuse_odd_times(ended)
        name, told_at = known_as or (None, None)
        started_at = ended.started_at or ended.finished_at or told_at
        started = plan_start(
            store, ended.call, ended.family, ended.policy, at=started_at, known_as=name
        )
        super().__init__(store, session, 0, started)
        self.ended = ended
        self.finished_at = ended.finished_at or told_at
        self.uncertain: Ending | None = None
        self.is_witnessed = None not in (ended.started_at, ended.finished_at)
        self.claim = self._claimed(ended, started)
        self._started = started
        self._arguments = writes.Body.of(ended.call.arguments_bytes)
        self._met: Taken | None = None
        self._scratch = scratch or Scratch(store, self.id)

    @property
    def spool(self) -> Path:
        return self._scratch.folder

    @property
    def session_id(self) -> UUID:
        """The session that it is of."""
        return self._session.id

    @property
    def started(self) -> Started:
        """How it began."""
        return self._started

    @property
    def is_long(self) -> bool:
        """Whether any of its output becomes an artifact, whatever is shown of it."""
        return any(stream.size > self._inline_bytes for stream in self.ended.output.streams)

    def _claimed(self, ended: EndedCall, started: Started) -> Claim | None:
        key = ended.idempotency_key
        if key is None:
            return None
        return claim(key, "invocation", self.id, self._content(ended, started), now())

    def _content(self, ended: EndedCall, started: Started) -> Row:
        output = digest_of(ended.output.to_json())
        times = (ended.started_at, ended.finished_at)
        return content_of(self._session.id, ended.call, started.family.name, output, times)

    def record(self) -> Finished:
        """Record it, or find it recorded; durable when this returns.

        Raises:
            NotFoundError, InvalidRecordError, DamageError, UnavailableError: see `Session.record`.
        """
        if self.claim is not None:
            # Asked first, so that what is there is neither made nor published anew.
            met = find_taken_unlocked(self._store.database, [self.claim]).get(self.id)
            if met is not None:
                return self.met(met)
        try:
            finished = self._end_whole(self.ended.output)
        finally:
            self._scratch.leave()
        return finished if self._met is None else self.met(self._met)

    def met(self, taken: Taken) -> Finished:
        """What was recorded under its key before.

        Raises:
            IdempotencyConflictError: that is something else.
            DamageError, UnavailableError: the store cannot be asked, or what it has is damaged.
        """
        self.refuse_conflict(taken)
        # By its key it is the call that is given now, which has what no row of it keeps; its title
        # is but another spelling of the arguments, and not a part of what the key stands for.
        call = self.ended.call.model_copy(update={"title": None})
        return as_recorded(self._store.reader, taken.subject_id, call)

    def refuse_conflict(self, taken: Taken) -> None:
        """Raise unless what its key names is the same.

        Raises:
            IdempotencyConflictError: it is something else.
        """
        if self.claim is not None:
            refuse_conflict(self.claim, taken)

    def planned(self) -> Ending:
        """Publish what becomes artifacts and make the surfaces; nothing is committed yet.

        Raises:
            InvalidRecordError, DamageError, UnavailableError: see `Session.record`.
        """
        output = self.ended.output
        self._refuse_other_tool(output)
        return self._planned(output, output.streams, None)

    def planned_away(self, reason: str) -> Ending:
        """The same without asking the store or the artifacts for anything.

        Raises:
            InvalidRecordError: see `Session.record`.
        """
        output = self.ended.output
        self._refuse_other_tool(output)
        return self._planned(output, output.streams, Postponed(reason))

    def whole(self, ending: Ending) -> Whole:
        """All that is to be written."""
        return Whole(self._started.beginning, self._arguments, ending.rows, ending.publisher)

    def ensure_standing(self, connection: Connection, ending: Ending) -> None:
        """See `ensure_standing` of `upkeep`.

        Raises:
            SinkGoneError: the sink was written, and is away by now.
            UnavailableError: the database cannot be asked.
        """
        self._ensure_standing(connection, ending)

    def _commit(self, ending: Ending) -> None:
        try:
            super()._commit(ending)
        except RecordUncertainError:
            self.uncertain = ending
            raise

    def _write(self, connection: Connection, ending: Ending) -> None:
        chain = writes.lock_chain(connection, self._session.key, self._session.id)
        claims = [] if self.claim is None else [self.claim]
        self._met = met_before(connection, chain, claims).get(self.id)
        if self._met is None:
            # Nothing was written before this, so that nobody's record comes to nothing by it.
            chain.refuse_if_closed()
            write_whole(connection, chain, [self.whole(ending)])

    def _uncertain(self, reason: str) -> RecordUncertainError:
        return uncertain(reason, [self.id])

    def _claim_spool(self) -> None:
        self._scratch.claim(self._refuse_closed)

    def _refuse_closed(self) -> None:
        # What is refused for sure when it is to be written is not published before. Should the
        # database be away, that is found out then, too, and is not the fault of the artifacts.
        with suppress(UnavailableError), self._store.database.read() as connection:
            writes.refuse_closed(connection, self._session.key, self._session.id)

    def _settled(self, finished: Finished) -> Finished:
        return finished


def content_of(
    session_id: UUID,
    call: ToolCall,
    family: str,
    output: Digest,
    times: tuple[datetime | None, datetime | None],
) -> Row:
    """What makes two calls with one key the same.

    All that says what was called and what came of it, in which session. Times as they were given,
    since those that were not are of the moment of recording. Not the budgets, nor what was shown:
    those are of the program that records, and a later version of an importer must meet what an
    earlier one has recorded. Nor the title, which is but another spelling of the arguments.
    """
    started_at, finished_at = times
    asked: Row = {}
    if call.message_id is not None:
        asked = {"message": str(call.message_id), "position": call.position}
    return {
        **asked,
        "session": str(session_id),
        "call_id": call.call_id,
        "tool_name": call.tool_name,
        "arguments": digest_of(call.arguments_bytes),
        "family": family,
        "output": output,
        "started_at": _spelled(started_at),
        "finished_at": _spelled(finished_at),
    }


class Scratch:
    """A folder of the spool in which what is in memory becomes artifacts.

    Safe to share between threads until it is left.

    Attributes:
        is_claimed: whether it is in use.
        folder: where it is, once it is.
    """

    def __init__(self, store: "Store", name: UUID) -> None:
        self._owner = store.owner
        self._name = name
        self._lock = threading.Lock()
        self.is_claimed = False
        self.folder = store.spool / str(name)

    def claim(self, before: Callable[[], None] = lambda: None) -> None:
        """Say that it is of this process, so that no repair clears it; again is allowed.

        Args:
            before: called before the first time alone, which comes to nothing when that raises.
        """
        with self._lock:
            if self.is_claimed:
                return
            before()
            self.is_claimed = True
            # Where nothing can be written, that is found out when something is to be published.
            with suppress(OSError):
                self._owner.claim(self._name)

    def leave(self) -> None:
        """Remove it, and whatever there is in it."""
        if self.is_claimed:
            remove_spool_folder(self.folder)
            self.is_claimed = False


def met_before(
    connection: Connection, chain: writes.Chain, claims: Sequence[Claim]
) -> dict[UUID, Taken]:
    """Take the keys of records that are about to be written; see `take`.

    A session that is closed takes no records, and what it has may be asked for all the same.
    """
    if not claims:
        return {}
    return (take if chain.closed_at is None else find_taken)(connection, claims)


def uncertain(reason: str, ids: Sequence[UUID]) -> RecordUncertainError:
    """The error of a commit that nobody answered."""
    which = f"invocation {ids[0]}" if len(ids) == 1 else f"{len(ids)} invocations from {ids[0]} on"
    message = f"{reason}; whether {which} is recorded is not known"
    return RecordUncertainError(message, invocation_ids=ids)


def _spelled(moment: datetime | None) -> str | None:
    return None if moment is None else moment.astimezone(UTC).isoformat()


def _refuse_odd_times(ended: EndedCall) -> None:
    """Raise for times that cannot be those of a call.

    Raises:
        InvalidRecordError: one has no zone or is far off, or the end is before the start.
    """
    latest = now() + _MOST_AHEAD
    for name, moment in (("started_at", ended.started_at), ("finished_at", ended.finished_at)):
        if moment is None:
            continue
        if moment.utcoffset() is None:
            raise InvalidRecordError(f"{name} has no time zone: {moment}")
        if not _EARLIEST <= moment <= latest:
            raise InvalidRecordError(f"{name} is far off: {moment}")
    if ended.started_at and ended.finished_at and ended.finished_at < ended.started_at:
        raise InvalidRecordError(
            f"finished_at is before started_at: {ended.finished_at}, {ended.started_at}"
        )
