"""Recording many calls that have ended: in order, a batch in each transaction, at bounded memory.

A batch that does not go in as a whole, since one of its calls is refused, or the disk is full, or
the artifacts went away, comes to nothing; then its calls are recorded one by one, up to that one.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING

from sqlalchemy import Connection

from tooltrail.journal.clock import new_id
from tooltrail.records import RecordUncertainError, TooltrailError, UnavailableError
from tooltrail.store._engines.persistence import persistently
from tooltrail.store._outbox.kept_calls import kept_call
from tooltrail.store._reading.collector import collector_paused
from tooltrail.store._recording import writes
from tooltrail.store._recording.committing import answered_commit
from tooltrail.store._recording.ended_invocation import (
    EndedInvocation,
    Scratch,
    met_before,
    uncertain,
)
from tooltrail.store._recording.ending import Ending
from tooltrail.store._recording.group_commit import is_refusal
from tooltrail.store._recording.keys import Claim, Taken, find_taken_unlocked
from tooltrail.store._recording.side_by_side import Task, in_order
from tooltrail.store._recording.whole import Whole, write_whole
from tooltrail.store.ended import EndedCall, RecordedCalls
from tooltrail.store.finished import Finished
from tooltrail.store.invocation import SinkGoneError

if TYPE_CHECKING:
    from tooltrail.store.recorder import Session
    from tooltrail.store.store import Store

MOST = 256
"""Calls in one transaction, so that other processes do not wait for long."""

MOST_BYTES = 8 << 20
"""Bytes of arguments and output after which no further call comes into a batch."""

OnDurable = Callable[[Finished], object]


@dataclass
class _One:
    """One call of a batch.

    Attributes:
        invocation: as which it is recorded.
        ending: what is to be written; None when its key is known to name something already.
        met: that.
    """

    invocation: EndedInvocation
    ending: Ending | None = None
    met: Taken | None = None

    def refuse_conflict(self) -> None:
        """Raise when its key names something else.

        Raises:
            IdempotencyConflictError: it does.
        """
        if self.met is not None:
            self.invocation.refuse_conflict(self.met)


class BatchRecorder:
    """Records calls into one session. One thread.

    Args:
        store: where to.
        session: of that store.
        on_durable: called for each call when it is durable, in their order.
    """

    def __init__(self, store: "Store", session: "Session", on_durable: OnDurable | None) -> None:
        self._store = store
        self._session = session
        self._on_durable = on_durable
        self._recorded_count = 0
        self._known_count = 0
        self._waiting_count = 0
        self._is_telling = False

    def record(self, calls: Iterable[EndedCall]) -> RecordedCalls:
        """Record calls; see `Session.record_many`."""
        for batch in _batches(calls):
            self._record_batch(batch)
        return RecordedCalls(self._recorded_count, self._known_count, self._waiting_count)

    def _record_batch(self, calls: Sequence[EndedCall]) -> None:
        """Record a batch, or keep for later what cannot be recorded now."""
        fallback = self._store.fallback
        some: list[_One] = []
        why: UnavailableError | None = None
        before = self._recorded_count + self._known_count
        is_tried = bool(calls) and fallback.catch_up()
        if is_tried:
            began = monotonic()
            try:
                self._record_now(calls, some)
            except UnavailableError as error:
                if self._is_telling or fallback.is_to_raise(error):
                    raise
                fallback.note_failure(error, began)
                why = error
            else:
                fallback.note_success()
        done = self._recorded_count + self._known_count - before
        for place in range(done, len(calls)):
            try:
                self._keep(calls[place], some[place] if place < len(some) else None, why)
            except UnavailableError:
                if is_tried or self._is_telling:
                    raise
                # It cannot be put behind what waits; see `Fallback.run`.
                self._record_now(calls[place:], [])
                break

    def _keep(self, call: EndedCall, one: _One | None, why: UnavailableError | None) -> None:
        """Keep a call for later, and tell of it."""
        invocation = (
            EndedInvocation(self._store, self._session, call) if one is None else (one.invocation)
        )
        if one is not None and isinstance(why, RecordUncertainError) and one.met is None:
            invocation.uncertain = invocation.uncertain or one.ending
        finished = self._store.fallback.put(
            lambda: kept_call(self._store.fallback, invocation), why
        )
        self._waiting_count += 1
        self._tell_of(finished)

    def _record_now(self, calls: Sequence[EndedCall], some: list[_One]) -> None:
        self._session.resolve()
        scratch = Scratch(self._store, new_id())
        try:
            with collector_paused():
                failure = self._plan(calls, scratch, some)
            # What came before it is recorded all the same.
            self._commit(some)
        finally:
            scratch.leave()
        if failure is not None:
            raise failure

    def _plan(
        self,
        calls: Sequence[EndedCall],
        scratch: Scratch,
        some: list[_One],
    ) -> Exception | None:
        """Make what is to be written of calls; the error of the first that is not right."""
        failure: Exception | None = None
        try:
            for call in calls:
                some.append(_One(EndedInvocation(self._store, self._session, call, scratch)))  # noqa: PERF401  those before an error count
        except Exception as error:  # noqa: BLE001  raised when what came before is recorded
            failure = error
        known = find_taken_unlocked(self._store.database, _claims(some))
        for one in some:
            one.met = known.get(one.invocation.id)
        tasks = [_planning(one) for one in some]
        with closing(in_order(tasks, self._store.archive.concurrent_puts)) as endings:
            for place, one in enumerate(some):
                try:
                    one.ending = next(endings)
                except Exception as error:  # noqa: BLE001  the same
                    del some[place:]
                    return error
        return failure

    def _commit(self, some: Sequence[_One]) -> None:
        """Record them, in one transaction if that can be.

        Raises:
            TooltrailError: that of the first that cannot be recorded, when all before it are.
        """
        if all(one.met is not None for one in some):
            for one in some:
                one.refuse_conflict()
                self._tell(one, None)
            return
        try:
            persistently(partial(self._in_one, some))
        except (TooltrailError, SinkGoneError) as error:
            if isinstance(error, TooltrailError) and not is_refusal(error):
                raise
            for one in some:
                self._tell(one, one.invocation.record())
        else:
            for one in some:
                self._tell(one, None if one.met or not one.ending else one.ending.told())

    def _in_one(self, some: Sequence[_One]) -> None:
        with answered_commit(self._store.database, partial(_uncertain, some)) as connection:
            self._write(connection, some)

    def _write(self, connection: Connection, some: Sequence[_One]) -> None:
        for one in some:
            if one.ending is not None and one.ending.needs_sink:
                one.invocation.ensure_standing(connection, one.ending)
        chain = writes.lock_chain(connection, self._session.key, self._session.id)
        met = met_before(connection, chain, _claims(some))
        whole: list[Whole] = []
        for one in some:
            one.met = met.get(one.invocation.id)
            one.refuse_conflict()
            if one.met is None and one.ending is not None:
                whole.append(one.invocation.whole(one.ending))
        if whole:
            chain.refuse_if_closed()
            with collector_paused():
                write_whole(connection, chain, whole)

    def _tell(self, one: _One, finished: Finished | None) -> None:
        """Count a call that is durable and tell of it; by None that it was recorded before."""
        if finished is None and one.met is not None and self._on_durable is not None:
            finished = one.invocation.met(one.met)
        if finished is not None and finished.invocation_id == one.invocation.id:
            self._recorded_count += 1
        else:
            self._known_count += 1
        if finished is not None:
            self._tell_of(finished)

    def _tell_of(self, finished: Finished) -> None:
        if self._on_durable is not None:
            # What this raises is not about the store.
            self._is_telling = True
            self._on_durable(finished)
            self._is_telling = False


def _planning(one: _One) -> Task[Ending | None]:
    """Make what is to be written of a call; nothing of one that is known."""
    if one.met is not None:
        return Task(lambda: None, is_waiting=False)
    return Task(one.invocation.planned, one.invocation.is_long)


def _uncertain(some: Sequence[_One], reason: str) -> UnavailableError:
    """The error of a commit that nobody answered, of those whose key named nothing before."""
    ids = [one.invocation.id for one in some if one.met is None]
    return uncertain(reason, ids) if ids else UnavailableError(reason)


def _claims(some: Sequence[_One]) -> list[Claim]:
    return [one.invocation.claim for one in some if one.invocation.claim is not None]


def _batches(calls: Iterable[EndedCall]) -> Generator[list[EndedCall]]:
    """The calls in lists, in their order; also what came before an error of whoever gives them."""
    batch: list[EndedCall] = []
    size = 0
    try:
        for call in calls:
            batch.append(call)
            size += len(call.call.arguments_raw) + sum(one.size for one in call.output.streams)
            if len(batch) == MOST or size >= MOST_BYTES:
                yield batch
                batch, size = [], 0
    except Exception:
        yield batch
        raise
    yield batch
