"""Applies a batch of facts: turns each into rows, or into a rejected fact.

A call whose start and end are in the same batch becomes one row. Every frame becomes a ledger
entry, whether or not its fact can be applied. A fact is checked before anything of it is kept: one
that is rejected leaves its ledger entry and its bytes, and nothing else.
"""

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final, cast
from uuid import UUID

from tooltrail.journal import Gap
from tooltrail.records.canonical_json import decode
from tooltrail.records.digests import Digest
from tooltrail.records.errors import InvalidRecordError
from tooltrail.records.facts import (
    AnswerStarted,
    CallEnded,
    CallStarted,
    Fact,
    Maintenance,
    SessionClosed,
    SessionOpened,
    ToolsOffered,
    body_digests,
)
from tooltrail.store.column_groups import OPENING
from tooltrail.store.engines.connection import Connection, Row
from tooltrail.store.ingest import rows
from tooltrail.store.ingest.collected import Collected, End, NewMessage, Start, next_place
from tooltrail.store.ingest.known import Call, Entry, Known, MessageFact, Session
from tooltrail.store.ingest.outcomes import Beginning, text_of
from tooltrail.store.ingest.preparing import Item
from tooltrail.store.packed_facts import pack_fact, unpack_fact

_NOT_COMPARED: Final = frozenset(
    {"at", "duration_ms", "environment", "owner", "policy", "shown", "title"}
)
"""Members that may differ between two facts with one id. They describe the recorder, not the call.
So a newer importer can import again what an older one recorded."""


class Batch:
    """Rows of a batch, in one transaction.

    Attributes:
        rejected_count: facts that could not be applied, and damaged places.
        ended: the calls and the answers that this batch ends.

    Args:
        connection: the connection.
        known: what the store knows of the ids in the batch.
        journal_key: of the journal that is read.
        at: now.
    """

    def __init__(
        self, connection: Connection, known: Known, journal_key: int, at: datetime
    ) -> None:
        self._connection = connection
        self._known = known
        self._journal_key = journal_key
        self._at = at
        self._out = Collected()
        self._facts: dict[int, bytes] = {}
        self.rejected_count = 0
        self.ended: list[UUID] = []

    def apply(self, item: Item) -> None:
        """Apply one frame. A fact that cannot be applied becomes a rejected fact."""
        frame, fact = item.frame, item.fact
        self._facts[frame.index] = frame.fact_json
        subject = None if fact is None else self._connection.uuid(subject_of(fact))
        self._out.rows["ledger_entries"].append(
            {
                "journal_key": self._journal_key,
                "n": frame.index,
                "kind": "unknown" if fact is None else fact.kind,
                "subject_id": subject,
                "fact": pack_fact(frame.fact_json),
                "hash": frame.hash,
            }
        )
        problem = item.problem
        if fact is not None and problem is None:
            try:
                self._apply_fact(item, fact)
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                problem = str(error) or repr(error)
        if problem is not None:
            row = self._rejected(frame.segment, frame.offset, problem)
            row["data"] = frame.fact_json + frame.packed_bodies
            row["n"] = frame.index
            row["subject_id"] = subject

    def reject_gap(self, gap: Gap) -> None:
        """Keep the damaged bytes of a journal."""
        self._rejected(gap.segment, gap.offset, gap.reason)["data"] = gap.data

    def keep(self, bodies: Iterable[tuple[Digest, bytes]]) -> None:
        """Store bodies that no fact of the batch brings."""
        self._out.bodies.update(bodies)

    def write(self) -> None:
        """Insert and update all rows."""
        self._out.write(self._connection, self._known.sessions)

    def _apply_fact(self, item: Item, fact: Fact) -> None:
        match fact:
            case SessionOpened():
                self._apply_opened(item, fact)
            case SessionClosed():
                self._apply_closed(item, fact)
            case CallStarted():
                self._apply_started(item, fact)
            case CallEnded():
                self._apply_ended(item, fact)
            case AnswerStarted():
                self._apply_answer(item, fact)
            case Maintenance():
                self._keep(item, fact.details)
            case _:
                self._apply_message(item, fact)

    def _apply_opened(self, item: Item, fact: SessionOpened) -> None:
        session = self._known.sessions.get(fact.session)
        if session is not None and session.opening is not None:
            self._refuse_other("session", fact.session, session.opening, item)
            return
        opening = rows.opening_columns(self._connection, fact, self._entry_of(item))
        session = self._session_of(fact.session, fact.at)
        session.opening = self._entry_of(item)
        self._keep(item, fact.environment, is_needed=False)
        if fact.session in self._out.new_sessions:
            self._out.new_sessions[fact.session].update(opening)
        else:
            self._out.opened[fact.session] = opening

    def _apply_closed(self, item: Item, fact: SessionClosed) -> None:
        closing = rows.closing_values(self._connection, fact, self._entry_of(item))
        session = self._session_of(fact.session, fact.at)
        if not session.is_closed:  # closed twice is closed
            session.is_closed = True
            self._out.closed[fact.session] = closing

    def _apply_message(self, item: Item, fact: MessageFact) -> None:
        stored = self._known.messages.get(fact.id)
        if stored is not None:
            self._refuse_other("message", fact.id, stored, item)
            return
        named = body_digests(fact)
        if isinstance(fact, ToolsOffered):
            named = [one for one in named if one in item.bodies or not self._is_stored(one)]
        made = rows.message_rows(self._connection, fact, item.bodies)
        created_at = self._connection.moment(fact.at)
        self._keep(item, *named)
        session = self._session_of(fact.session, fact.at)
        self._known.messages[fact.id] = self._entry_of(item)
        self._out.rows["tools"] += made.tools
        row: Row = {
            "id": self._connection.uuid(fact.id),
            "seq": next_place(self._connection, session),
            **made.columns,
            "created_at": created_at,
            "journal_key": self._journal_key,
            "entry": item.frame.index,
        }
        self._out.messages.append(NewMessage(session, row, made.children))
        if fact.id in self._known.open_answers:
            self._known.open_answers.discard(fact.id)
            self._out.end_answer(fact.id)
            self.ended.append(fact.id)

    def _apply_answer(self, item: Item, fact: AnswerStarted) -> None:
        if fact.id not in self._known.messages:
            self._known.open_answers.add(fact.id)
            self._out.answers[fact.id] = self._entry_of(item)

    def _apply_started(self, item: Item, fact: CallStarted) -> None:
        known = self._known.calls.get(fact.id)
        if known is not None:
            self._refuse_other("call", fact.id, known.start, item)
            return
        if fact.arguments not in item.bodies:
            raise InvalidRecordError(f"body {fact.arguments} is missing")
        text, is_exact = text_of(item.bodies[fact.arguments])
        row = rows.start_row(self._connection, fact, self._entry_of(item))
        session = self._session_of(fact.session, fact.at)
        # A call whose policy or environment was lost with a damaged frame is evidence all the same.
        self._keep(item, fact.policy, fact.environment, is_needed=False)
        if not is_exact:
            self._keep(item, fact.arguments)
        self._known.calls[fact.id] = Call(
            key=None,
            session=fact.session,
            beginning=Beginning(fact.tool_name, fact.family, fact.policy),
            start=self._entry_of(item),
            end=None,
        )
        row |= {"seq": next_place(self._connection, session), "is_late": session.is_closed}
        surfaces: Row = {"arguments": text, **rows.NO_OUTCOME, "is_exact": is_exact}
        self._out.starts[fact.id] = Start(session, row, surfaces, None)

    def _apply_ended(self, item: Item, fact: CallEnded) -> None:
        call = self._known.calls.get(fact.id)
        if call is None:
            raise InvalidRecordError(f"no call {fact.id} was started")
        if call.session != fact.session:
            raise InvalidRecordError(f"call {fact.id} is of session {call.session}")
        if call.end is not None:
            self._refuse_other("call", fact.id, call.end, item)
            return
        if item.outcome is None:
            raise InvalidRecordError(f"nothing is known of how call {fact.id} ended")
        call.end = self._entry_of(item)
        self.ended.append(fact.id)
        self._out.bodies.update(item.outcome.bodies)
        end = End(call, fact, item.outcome, call.end)
        started = self._out.starts.get(fact.id)
        if started is None:
            self._out.ends.append(end)
        else:
            self._out.starts[fact.id] = started._replace(end=end)

    def _entry_of(self, item: Item) -> Entry:
        return Entry(self._journal_key, item.frame.index)

    def _session_of(self, session_id: UUID, at: datetime) -> Session:
        """The session of a fact. One that nobody has seen yet begins with it."""
        session = self._known.sessions.get(session_id)
        if session is None:
            session = Session(None, session_id, opening=None, is_closed=False)
            self._known.sessions[session_id] = session
            self._out.new_sessions[session_id] = {
                "id": self._connection.uuid(session_id),
                **dict.fromkeys(OPENING),
                "opened_at": self._connection.moment(at),
                "journal_key": self._journal_key,
            }
        return session

    def _is_stored(self, digest: Digest) -> bool:
        return digest in self._known.bodies or digest in self._out.bodies

    def _keep(self, item: Item, *digests: Digest | None, is_needed: bool = True) -> None:
        """Store bodies of a fact, all or none.

        Raises:
            InvalidRecordError: one that is needed neither travels with the fact nor is stored.
        """
        named = [one for one in digests if one is not None]
        for digest in named if is_needed else ():
            if digest not in item.bodies and not self._is_stored(digest):
                raise InvalidRecordError(f"body {digest} is missing")
        self._out.bodies.update((one, item.bodies[one]) for one in named if one in item.bodies)

    def _rejected(self, segment: int, offset: int, reason: str) -> Row:
        """A new row of `rejected_facts`, to be completed."""
        self.rejected_count += 1
        row: Row = {
            "journal_key": self._journal_key,
            "n": None,
            "segment": segment,
            "segment_offset": offset,
            "subject_id": None,
            "reason": self._connection.text(reason),
            "data": b"",
            "rejected_at": self._connection.moment(self._at),
        }
        self._out.rows["rejected_facts"].append(row)
        return row

    def _refuse_other(self, what: str, subject: UUID, entry: Entry, item: Item) -> None:
        """Raise unless two facts of one id say the same.

        Raises:
            InvalidRecordError: they differ.
        """
        differing = differing_members(self._fact_at(entry), item.frame.fact_json)
        if differing:
            raise InvalidRecordError(
                f"{what} {subject} is recorded already, as entry {entry.n:,} of journal "
                f"{entry.journal_key}, with other content: {', '.join(differing)}"
            )

    def _fact_at(self, entry: Entry) -> bytes:
        if entry.journal_key == self._journal_key and entry.n in self._facts:
            return self._facts[entry.n]
        found = self._connection.query(
            "SELECT fact FROM ledger_entries WHERE journal_key = ? AND n = ?", tuple(entry)
        )
        return unpack_fact(found[0][0]) if found else b"{}"


def subject_of(fact: Fact) -> UUID:
    """The id of what a fact is about, as its ledger entry has it."""
    return fact.session if isinstance(fact, SessionOpened | SessionClosed) else fact.id


def differing_members(before_json: bytes, now_json: bytes) -> list[str]:
    """The members by which a fact contradicts an earlier one of the same id."""
    before, now = (cast("dict[str, Any]", decode(one)) for one in (before_json, now_json))
    # A program that opens a session by its name alone says less than the one that opened it.
    names = now.keys() if now["kind"] == "session.opened" else before.keys() | now.keys()
    return sorted(name for name in names - _NOT_COMPARED if before.get(name) != now.get(name))
