"""What becomes of a record while its store cannot be reached.

| `on_unavailable` | what the recorder gets | the record |
|---|---|---|
| `outbox`, the default | what it would have got | waits in the spool, and is delivered later |
| `raise` | `UnavailableError` | is still in the hands of who called |
| `drop_and_count` | what it would have got | is dropped, and the drop is counted in the spool |

That a store is away says nothing of one that was never seen from here, is not at head, is damaged,
or lets nobody in by the words that are given: these are raised at once, whatever was chosen.

While something waits, whoever records delivers it first, so that the order is kept; where that
cannot be done now, the record is put behind it. Nobody tries to reach a store again until a while
after it was found to be away.

Where drops are counted, a session that could not be opened is opened by the first call that finds
the store again. One that nobody can open any more goes on to be dropped.
"""

import logging
from collections.abc import Callable
from contextlib import suppress
from time import monotonic, sleep
from typing import TYPE_CHECKING, Literal, TypeVar, get_args
from uuid import UUID
from weakref import WeakValueDictionary

from tooltrail.records import (
    AccessRefusedError,
    DiskFullError,
    EndUncertainError,
    InvalidRecordError,
    RecordUncertainError,
    StartUncertainError,
    UnavailableError,
)
from tooltrail.store._outbox.pauses import Pause
from tooltrail.store._outbox.reach import Reach
from tooltrail.store.entries import Entry
from tooltrail.store.outbox import Outbox
from tooltrail.store.spools import user_spools

if TYPE_CHECKING:
    from tooltrail.store.recorder import Session
    from tooltrail.store.store import Store

OnUnavailable = Literal["outbox", "raise", "drop_and_count"]
_CHOICES: tuple[OnUnavailable, ...] = get_args(OnUnavailable)

_AT_ONCE_S = 1.0
"""Seconds of delivery that one record pays for."""

_OTHERS_WAIT_S, _LOOK_S = 0.25, 0.01
"""Seconds that a record waits while another delivers, and between two looks. Without it many who
record would put more behind what waits than is delivered meanwhile, and never be done with it."""

_log = logging.getLogger(__name__)
T = TypeVar("T")


class SessionAwayError(UnavailableError):
    """The store is there, and has not the session, or the start, that a record is of."""


def checked_choice(name: str) -> OnUnavailable:
    """The same, when there is such a choice.

    Raises:
        InvalidRecordError: there is none.
    """
    for known in _CHOICES:
        if name == known:
            return known
    raise InvalidRecordError(f"no on_unavailable {name!r}; there are {', '.join(_CHOICES)}")


class Fallback:
    """How one open store records while it cannot be reached. Safe to share between threads.

    Attributes:
        choice: what becomes of records.
        outbox: where they wait.
        uncounted: drops that could not even be counted on disk yet.
        unopened: the sessions of this process that were dropped when they were to be opened.
        reason: why the last record went there; empty as long as none has.
        pause: before the store is tried again.
    """

    def __init__(self, store: "Store", choice: OnUnavailable) -> None:
        self._store = store
        self.choice = choice
        self.outbox = Outbox.of(store.spool, store.info.id)
        self.uncounted = 0
        self.unopened: WeakValueDictionary[UUID, Session] = WeakValueDictionary()
        self.reason = ""
        self.pause = Pause()
        self._has_recorded = False

    def run(self, attempt: Callable[[], T], instead: Callable[[], tuple[Entry, T]]) -> T:
        """Record something, or keep it for later.

        Args:
            attempt: records it.
            instead: makes of it what is kept, and what the caller gets.

        Raises:
            UnavailableError: it cannot be kept either; or it is not to be.
            AccessRefusedError: the store was opened while it was away, and lets nobody in.
            TooltrailError: what `attempt` or `instead` raises otherwise.
        """
        if not self.catch_up():
            # Where it cannot be put behind what waits it comes before that, rather than to nothing.
            with suppress(UnavailableError):
                return self.put(instead, None)
        began = monotonic()
        try:
            self._store.confirm()
            made = attempt()
        except UnavailableError as error:
            if self.is_to_raise(error):
                raise
            self.note_failure(error, began)
            return self.put(instead, error)
        self.note_success()
        return made

    def put(self, instead: Callable[[], tuple[Entry, T]], why: UnavailableError | None) -> T:
        """Keep something for later, or drop it.

        Raises:
            UnavailableError: it cannot be kept either.
        """
        reason = self._reason() if why is None else str(why)
        try:
            entry, given = instead()
            if self.choice == "drop_and_count":
                self._drop(entry, reason)
            else:
                self.outbox.append(entry)
        except OSError as error:
            folder = self.outbox.journal.folder
            told = f"{reason}; nor can it be kept in {folder}: {error.strerror}"
            raise _of_its_kind(why, told) from error
        self.reason = reason
        return given

    def catch_up(self) -> bool:
        """Deliver what waits, as far as that can be done now; whether to record at once then."""
        is_time = self.pause.is_over()
        if not self.outbox.is_waiting():
            return self.choice == "raise" or is_time
        if is_time and self._deliver() and self.choice == "outbox":
            self._wait_for_others()
        if self.choice == "outbox":
            return not self.outbox.is_waiting()
        return self.choice == "raise" or is_time

    def is_to_raise(self, error: UnavailableError) -> bool:
        """Whether who records is told of it, and nothing is kept."""
        return self.choice == "raise" or self._is_misled(error)

    def _is_misled(self, error: UnavailableError) -> bool:
        """Whether this process may not record, and never could, so that no time helps.

        A user, a password or a right that did before is missed as a server would be.
        """
        return isinstance(error, AccessRefusedError) and not self._has_recorded

    def _reason(self) -> str:
        """Why a record was not tried."""
        if self.outbox.is_waiting():
            return "records wait that came before it"
        return "the store was away a moment ago"

    def _wait_for_others(self) -> None:
        deadline = monotonic() + _OTHERS_WAIT_S
        while self.outbox.is_waiting() and monotonic() < deadline:
            sleep(_LOOK_S)

    def _deliver(self) -> bool:
        """Deliver what waits, as far as one record pays for it; whether another does so just now.

        Raises:
            AccessRefusedError: the store was opened while it was away, and lets nobody in.
        """
        from tooltrail.store._outbox.delivering import deliver  # noqa: PLC0415  it records, too

        began = monotonic()
        try:
            self._store.confirm()
        except UnavailableError as error:
            if self._is_misled(error):
                raise
            self.note_failure(error, began)
            return False
        others = self._outboxes()
        done = deliver(self._store, self.outbox, others=others, wait=False, seconds=_AT_ONCE_S)
        for kept in done.kept:
            _log.warning("not delivered: %s; kept in %s", kept.reason, kept.kept_in)
        for note in done.notes:
            _log.debug("delivered: %s", note)
        if done.failure:
            _log.debug("records wait in the outbox: %s", done.failure)
        if done.failure and not done.is_under_way:
            self.pause.lengthen(began)
        else:
            # The store is there, so the next to record goes on with what is left.
            self.pause.end()
        return done.is_under_way and not done.is_own

    def is_awaited(self, session: UUID) -> bool:
        """Whether a session that the store has not may still come there, or was dropped."""
        if self.choice == "drop_and_count":
            try:
                if self.outbox.was_dropped(session):
                    return True
            except OSError:
                # Nobody can tell, and nothing is to be raised.
                return True
        return Reach(self.outbox, self._outboxes()).has_beginning(session)

    def _outboxes(self) -> list[Outbox]:
        """Those of the store that a recorder looks into."""
        from tooltrail.store.backlog import find_outboxes  # noqa: PLC0415  it opens stores, too

        return find_outboxes(self._store, also=user_spools())

    def is_missed(self, session: UUID) -> bool:
        """Whether drops are counted, and a session that the store has not may be one, or waits."""
        if self.choice != "drop_and_count":
            return False
        try:
            return self.outbox.is_waiting() or self.outbox.was_dropped(session)
        except OSError:
            # Nobody can tell, and nothing is to be raised.
            return True

    def note_success(self) -> None:
        """Something was recorded: the store is there, and lets this process in."""
        self._has_recorded = True
        self.pause.end()

    def note_failure(self, why: UnavailableError, began: float) -> None:
        """Do not try again at once, unless it is one session alone that is away.

        Args:
            why: it came to nothing.
            began: by `time.monotonic`, when the attempt did.
        """
        if not isinstance(why, SessionAwayError):
            self.pause.lengthen(began)

    def _drop(self, entry: Entry, reason: str) -> None:
        try:
            self.outbox.count_dropped(entry, reason)
        except OSError as error:
            self.uncounted += 1
            _log.warning(
                "%d records dropped that could not be counted: %s", self.uncounted, error.strerror
            )


def _of_its_kind(why: UnavailableError | None, told: str) -> UnavailableError:
    """An error that says more, and still what its caller may do next."""
    match why:
        case StartUncertainError():
            return StartUncertainError(told, invocation_id=why.invocation_id, folder=why.folder)
        case EndUncertainError():
            return EndUncertainError(told, invocation_id=why.invocation_id)
        case RecordUncertainError():
            return RecordUncertainError(told, invocation_ids=why.invocation_ids)
        case DiskFullError():
            return DiskFullError(told)
        case _:
            return UnavailableError(told)
