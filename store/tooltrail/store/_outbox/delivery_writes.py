"""Writes entries of an outbox into the store, those of one session in one transaction.

Each is known by its id, so that what was delivered before, or recorded by a commit that nobody
answered, is met and not written again.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING
from uuid import UUID

from sqlalchemy import Connection, select

from tooltrail.journal.clock import new_id, now
from tooltrail.records import InvalidRecordError, NotFoundError
from tooltrail.store._outbox.entry_plans import CallPlan
from tooltrail.store._outbox.reach import Reach
from tooltrail.store._outbox.started_entries import OpenCalls, StartPlan, ends_missing, opening_of
from tooltrail.store._reading.names import session_key
from tooltrail.store._recording import writes
from tooltrail.store._recording.keys import Taken, refuse_conflict, take
from tooltrail.store._recording.sessions import (
    MessageBodies,
    Opening,
    claim_session,
    open_once,
    put_versions,
    write_closed,
    write_message,
    write_opened,
)
from tooltrail.store._recording.whole import Whole, put_shared, write_rows
from tooltrail.store._recording.writes import Chain
from tooltrail.store.entries import (
    CallEnded,
    CallStarted,
    Entry,
    MessageAdded,
    SessionEnded,
    SessionOpened,
)
from tooltrail.store.environment import current_environment, environment_json
from tooltrail.store.tables import InvocationRow, MessageRow, SessionRow

if TYPE_CHECKING:
    from tooltrail.store.store import Store


@dataclass(slots=True)
class Told:
    """What became of some entries.

    Attributes:
        delivered_count: were written.
        known_count: were in the store before.
        notes: sentences about what is not where it was to be.
    """

    delivered_count: int = 0
    known_count: int = 0
    notes: list[str] = field(default_factory=list[str])

    def add(self, other: "Told") -> None:
        """Count what became of others, too."""
        self.delivered_count += other.delivered_count
        self.known_count += other.known_count
        self.notes += other.notes


class BatchWriter:
    """The write of entries of one session. Done again, it begins anew.

    Args:
        store: where to.
        session_id: of them, as far as that is known.
        entries: in their order.
        reach: the outboxes in which others of their sessions were looked for.
        plans: of those that are calls, by id.

    Attributes:
        joined: the session that theirs turned out to be when they were written, if that is another.
    """

    def __init__(
        self,
        store: "Store",
        session_id: UUID,
        entries: Sequence[Entry],
        reach: Reach,
        plans: dict[UUID, CallPlan],
    ) -> None:
        self._store = store
        self._session_id = session_id
        self._entries = entries
        self._reach = reach
        self._plans = plans
        self.joined: UUID | None = None
        self._chain: Chain | None = None
        self._own: Chain | None = None
        self._calls: list[Whole] = []
        self._bodies = {
            entry.id: MessageBodies.of(store, entry)
            for entry in entries
            if isinstance(entry, MessageAdded)
        }
        self._starts = {
            entry.id: StartPlan.of(entry) for entry in entries if isinstance(entry, CallStarted)
        }

    def write(self, connection: Connection) -> Told:
        """Write them within a transaction.

        Raises:
            TooltrailError: one of them is refused, or the store cannot be written.
        """
        told, self.joined, self._own, self._calls = Told(), None, None, []
        for plan in self._plans.values():
            plan.ensure_standing(connection, self._store)
        self._chain = _chain_of(connection, self._session_id)
        # After the lock, which whoever was committing one of them has held.
        there = entries_there(connection, self._entries)
        self._open_calls = OpenCalls(connection, self._entries)
        entries = [entry for entry in self._entries if entry.id not in there]
        if entries and isinstance(entries[0], SessionOpened):
            self._open(connection, entries[0], told)
            entries = entries[1:]
        name = self.joined or self._session_id
        entries = self._put_shared(connection, entries, name)
        for entry in entries:
            self._put(connection, entry, told)
        self._write_calls(connection)
        if self._own is not None:
            write_closed(connection, self._own, now(), "it was opened for what had no other")
        told.known_count = len(self._entries) - told.delivered_count
        return told

    def _put_shared(
        self, connection: Connection, entries: Sequence[Entry], session_id: UUID
    ) -> list[Entry]:
        """Write the keys of all and then what others may share, in one order for all writers.

        Args:
            connection: of the transaction.
            entries: that are not in the store.
            session_id: that they are of. A key names what the recorder would have recorded there.

        Returns:
            Those that are to be written; their keys name nothing else.
        """
        plans = [self._plans[entry.id] for entry in entries if isinstance(entry, CallEnded)]
        asked = [plan.claim_in(session_id) for plan in plans if plan.claim_in is not None]
        claims = {one.subject_id: one for one in asked}
        # For a closed session, too: they are written then, into one of their own.
        met = take(connection, list(claims.values())) if claims else {}
        for name, taken in met.items():
            refuse_conflict(claims[name], taken)
        left = [entry for entry in entries if entry.id not in met]
        calls = [self._plans[entry.id].whole for entry in left if isinstance(entry, CallEnded)]
        messages = [self._bodies[entry.id] for entry in left if isinstance(entry, MessageAdded)]
        texts = [body for message in messages for body in message.all()]
        starts = [self._starts[entry.id] for entry in left if isinstance(entry, CallStarted)]
        texts += [one.arguments for one in starts]
        put_shared(connection, calls, texts, [one.beginning for one in starts])
        put_versions(connection, messages)
        return left

    def _put(self, connection: Connection, entry: Entry, told: Told) -> None:
        """Write one; a session that has ended is as it should be."""
        match entry:
            case CallStarted():
                self._write_calls(connection)
                self._start(connection, entry, told)
            case CallEnded() if entry.id in self._open_calls:
                self._write_calls(connection)
                chains = (self._chain, self._own)
                self._open_calls.end(connection, self._plans[entry.id].whole, chains)
            case CallEnded():
                plan = self._plans[entry.id]
                self._open_chain(connection, plan.whole.beginning.at, told)
                self._calls.append(plan.whole)
            case MessageAdded():
                self._write_calls(connection)
                write_message(
                    connection,
                    self._open_chain(connection, entry.at, told),
                    message_id=entry.id,
                    created_at=entry.at,
                    role=entry.role,
                    bodies=self._bodies[entry.id],
                )
            case SessionEnded():
                self._write_calls(connection)
                if self._chain is None or self._chain.closed_at is not None:
                    return
                write_closed(connection, self._chain, entry.at)
            case _:
                raise InvalidRecordError("a session begins behind what is of it")
        told.delivered_count += 1

    def _start(self, connection: Connection, entry: CallStarted, told: Told) -> None:
        if entry.alone is not None and self._chain is None:
            self._chain = write_opened(connection, opening_of(entry))
        chain = self._open_chain(connection, entry.at, told)
        self._open_calls.start(connection, chain, self._starts[entry.id])

    def _write_calls(self, connection: Connection) -> None:
        """Write the calls that follow each other, all into the chain that is open."""
        chain = self._own or self._chain
        if self._calls and chain is not None:
            write_rows(connection, chain, self._calls)
        self._calls = []

    def _open(self, connection: Connection, entry: SessionOpened, told: Told) -> None:
        parent = self._parent(connection, entry, told)
        environment = environment_json(dict(entry.environment))
        opening = Opening(entry.id, entry.at, environment, entry.title, entry.agent, parent)
        key = entry.idempotency_key
        claimed = None if key is None else claim_session(key, opening)
        found = open_once(connection, opening, claimed)
        if isinstance(found, Taken):
            if claimed is not None:
                refuse_conflict(claimed, found)
            self.joined = found.subject_id
            self._chain = _chain_of(connection, found.subject_id)
        else:
            self._chain = found
            told.delivered_count += 1

    def _parent(
        self, connection: Connection, entry: SessionOpened, told: Told
    ) -> tuple[int, UUID] | None:
        if entry.parent is None:
            return None
        parent = self._reach.joined(entry.parent)
        try:
            return session_key(connection, parent), parent
        except NotFoundError as error:
            told.notes.append(
                f"session {entry.id} has no parent: {error}, and none waits in {self._reach}"
            )
            return None

    def _open_chain(self, connection: Connection, at: datetime, told: Told) -> Chain:
        """The chain of their session, or of one of their own where that takes no records."""
        if self._chain is not None and self._chain.closed_at is None:
            return self._chain
        if self._own is None:
            name = self._session_id
            why = "is not in the store" if self._chain is None else "is closed"
            environment = environment_json(current_environment())
            title = f"delivered late for session {name}"
            opening = Opening(new_id(), at, environment, title=title)
            self._own = write_opened(connection, opening)
            told.notes.append(
                f"session {name} {why}: what is of it is in session {opening.id}, of its own"
            )
        return self._own


def ids_there(connection: Connection, ids: Iterable[UUID]) -> set[UUID]:
    """Which of these the store has, as sessions, messages or invocations."""
    wanted = list(ids)
    found: set[UUID] = set()
    for table in (SessionRow, MessageRow, InvocationRow):
        found.update(connection.scalars(select(table.id).where(table.id.in_(wanted))))
    return found


def entries_there(connection: Connection, entries: Sequence[Entry]) -> set[UUID]:
    """Which of these the store has; an end of a call that was started, when it has that end."""
    found = ids_there(connection, [entry.id for entry in entries])
    ends = [entry for entry in entries if isinstance(entry, CallEnded) and entry.id in found]
    return found - ends_missing(connection, ends)


def _chain_of(connection: Connection, session_id: UUID) -> Chain | None:
    key = connection.scalar(select(SessionRow.key).where(SessionRow.id == session_id))
    return None if key is None else writes.lock_chain(connection, key, session_id)
