"""Invocations that are started and ended in two steps, whether or not their store is there.

What cannot be written now goes to the outbox of the store: a start with its place in the spool, an
end with the surfaces that its caller is handed back. So the store has either of them later, in
order and once, whatever it had of the other.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from tooltrail.artifacts import release_spool_folder, remove_spool_folder, sync_folder
from tooltrail.records import (
    CompleteOutput,
    EndUncertainError,
    Postponed,
    StartUncertainError,
    StreamRecord,
    UnavailableError,
)
from tooltrail.store._outbox.kept_calls import WAITS, kept_end, kept_start, told_of
from tooltrail.store._outbox.known_invocations import find_known_invocation
from tooltrail.store._recording.ending import Ending
from tooltrail.store._recording.interruption import interrupted_output
from tooltrail.store._recording.starting import Started
from tooltrail.store.entries import CallEnded, Entry
from tooltrail.store.finished import Finished
from tooltrail.store.invocation import Invocation
from tooltrail.store.on_unavailable import SessionAwayError

if TYPE_CHECKING:
    from tooltrail.store.recorder import Session
    from tooltrail.store.store import Store


class Place(NamedTuple):
    """Where a call is started.

    Attributes:
        session: that it is of.
        alone: where it takes place, when the session is for it alone; None otherwise.
    """

    session: "Session"
    alone: Mapping[str, str | int] | None = None


def begin(
    store: "Store",
    plan: Callable[[], Started],
    attempt: Callable[[Started], "RunningInvocation"],
    away: Callable[[Started], Place],
) -> Invocation:
    """Record a start, or keep it for later.

    Args:
        store: where to.
        plan: makes what is to be written.
        attempt: writes it.
        away: says where it belongs when that cannot be done.

    Raises:
        StartUncertainError: it may be recorded, and cannot be kept.
        TooltrailError: see `Session.start`.
    """
    unanswered: list[Started] = []
    claimed: list[UUID] = []

    def attempt_it() -> Invocation:
        started = plan()
        try:
            return attempt(started)
        except StartUncertainError:
            unanswered.append(started)
            raise

    def instead() -> tuple[Entry, Invocation]:
        # The same once more, when the store may have it; else it begins only now.
        started = unanswered[-1] if unanswered else plan()
        place = away(started)
        if store.fallback.choice == "outbox":
            # Before anybody can look for it, and durable as its line will be.
            sync_folder(store.owner.claim(started.id).parent)
            claimed.append(started.id)
        entry = kept_start(started.beginning, place.session.id, place.alone)
        return entry, RunningInvocation(store, place.session, 0, started)

    try:
        invocation = store.fallback.run(attempt_it, instead)
    except UnavailableError:
        _forget(store, claimed, [one.id for one in unanswered])
        raise
    _forget(store, claimed, [invocation.id, *(one.id for one in unanswered)])
    return invocation


def _forget(store: "Store", claimed: Iterable[UUID], begun: Collection[UUID]) -> None:
    """Give up what was claimed for starts that are kept nowhere.

    Not where something interrupts them, whose lines may be durable: a repair sees to that.
    """
    for name in claimed:
        if name not in begun:
            remove_spool_folder(store.spool / str(name))


class RunningInvocation(Invocation):
    """An invocation whose program runs it, and ends it although its store be away."""

    def __init__(self, store: "Store", session: "Session", key: int, started: Started) -> None:
        """Take a start that is recorded, or is kept; then its key is 0."""
        super().__init__(store, session, key, started)
        self._started = started
        self._unanswered: Ending | None = None

    def finish(self, output: CompleteOutput) -> Finished:
        """See `Invocation.finish`."""
        self._refuse_other_tool(output)
        return self._end_or_keep(lambda: super(RunningInvocation, self).finish(output), output)

    def interrupt(self, reason: str, partial_output: Sequence[StreamRecord] = ()) -> Finished:
        """See `Invocation.interrupt`."""
        streams = tuple(partial_output)
        output = interrupted_output(self.call.tool_name, reason, streams)
        return self._end_or_keep(
            lambda: super(RunningInvocation, self).interrupt(reason, streams), output, streams
        )

    def _end_or_keep(
        self,
        end: Callable[[], Finished],
        output: CompleteOutput,
        streams: tuple[StreamRecord, ...] | None = None,
    ) -> Finished:
        """Record an end, or keep it for later."""
        if self._is_finished:
            raise self._finished_already()
        if self._unanswered is not None:
            known = self._unanswered.rows.outcome.document
            self._unanswered = self._unanswered if known == output.to_json() else None
        kept: list[CallEnded] = []

        def attempt() -> Finished:
            self._find_row()
            return end()

        def instead() -> tuple[Entry, Finished]:
            ending = self._unanswered or self._planned_away(output, streams)
            kept.append(kept_end(self._started.beginning, self._session.id, ending))
            return kept[-1], told_of(self._store.fallback, ending)

        finished = self._store.fallback.run(attempt, instead)
        if finished.recorded_in != "store":
            self._leave(kept[-1] if finished.recorded_in == "outbox" else None)
        return finished

    def _find_row(self) -> None:
        """Find in the store what was started while it was away.

        Raises:
            SessionAwayError: it is not there yet.
            UnavailableError: the store cannot be asked.
        """
        if self._key:
            return
        with self._store.database.read() as connection:
            known = find_known_invocation(connection, self.id)
        if known is None:
            raise SessionAwayError(f"the start of invocation {self.id} is not in the store yet")
        self._session = self._session.found(known.session_key, known.session_id)
        self._key = known.key

    def _planned_away(
        self, output: CompleteOutput, streams: tuple[StreamRecord, ...] | None
    ) -> Ending:
        return self._planned(
            output, output.streams if streams is None else streams, Postponed(WAITS)
        )

    def _commit(self, ending: Ending) -> None:
        try:
            super()._commit(ending)
        except EndUncertainError:
            self._unanswered = ending
            raise

    def _leave(self, entry: CallEnded | None) -> None:
        """Leave in the spool what an entry refers to there, and nothing else."""
        self._is_finished, self._attempt = True, None
        if entry is not None and any(stream.spooled is not None for stream in entry.all_streams()):
            # Where it cannot be removed, it goes with this process.
            with suppress(UnavailableError):
                release_spool_folder(self.spool)
        else:
            remove_spool_folder(self.spool)
