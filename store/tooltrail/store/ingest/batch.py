"""Applies a batch of facts: turns each into rows, or into a rejected fact.

A call whose start and end are in the same batch becomes one row. Every frame becomes a ledger
entry, whether or not its fact can be applied. A fact is checked before any of it is stored: a
rejected fact leaves only its ledger entry and its bytes.

Ingesters of several machines insert the same bodies, tools and sessions. They insert in sorted
order, so that they cannot deadlock.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from operator import itemgetter
from typing import Any, Final, cast
from uuid import UUID

from tooltrail.journal import Frame, Gap
from tooltrail.journal.clock import now
from tooltrail.journal.invocation import SEEN
from tooltrail.records.canonical_json import decode
from tooltrail.records.digests import Digest
from tooltrail.records.errors import DamageError, InvalidRecordError
from tooltrail.records.fact_spelling import body_digests
from tooltrail.records.facts import (
    AnswerStarted,
    CallEnded,
    CallStarted,
    Fact,
    Maintenance,
    SessionClosed,
    SessionOpened,
)
from tooltrail.store.bodies import pack_fact, unpack_fact
from tooltrail.store.column_groups import ENDING, LATER_RECEIPT, OUTCOME
from tooltrail.store.engines.connection import Connection, Row
from tooltrail.store.engines.values import uuid_from
from tooltrail.store.ingest import rows
from tooltrail.store.ingest.known import (
    FIRST_SEQ,
    Call,
    Entry,
    Known,
    MessageFact,
    Session,
    load_known,
    take_seq,
)
from tooltrail.store.ingest.outcomes import Outcome, text_of
from tooltrail.store.ingest.preparing import Item

_NOT_COMPARED: Final = frozenset(
    {"at", "duration_ms", "environment", "owner", "policy", "shown", "title"}
)
"""Members that may differ between two facts with one id. They describe the recorder, not the call.
So a newer importer can import the same source again after an older one. If both facts have a
receipt that the model saw, the two receipts are compared."""

IDENTITY: Final = frozenset({"kind", "id", "session"})

_INSERTED_ONCE: Final = frozenset({"open_answers", "rejected_facts"})
"""Tables that may have a row already."""


def _assigned(columns: Iterable[str]) -> str:
    return ", ".join(f"{name} = ?" for name in columns)


_END_CALL: Final = f"UPDATE invocations SET {_assigned(ENDING)} WHERE key = ?"
_END_ANSWER: Final = "DELETE FROM open_answers WHERE message_id = ?"
_END_SURFACES: Final = (
    f"UPDATE surfaces SET {_assigned(OUTCOME)}, is_exact = is_exact AND ? WHERE invocation_key = ?"
)
_ADD_RECEIPT: Final = (
    f"UPDATE surfaces SET {_assigned(LATER_RECEIPT)}, cut_size = (SELECT i.output_size - ?"
    " FROM invocations AS i WHERE i.key = surfaces.invocation_key AND i.output_size > ?)"
    " WHERE invocation_key = ? AND receipt IS NULL AND renderer IS NULL"
)
"""A receipt that was erased keeps its renderer."""


def write_batch(
    connection: Connection,
    journal_key: int,
    items: Sequence[Item],
    bodies: Mapping[Digest, bytes] | None = None,
) -> int:
    """Write the rows of a batch: frames and gaps, in order.

    `bodies` has further bodies, which do not travel with a fact of the batch. Returns the number of
    facts that could not be applied, including damaged places. Raises `InvalidRecordError` if the
    database refuses the batch.
    """
    facts = [(one.fact, one.bodies) for one in items if one.fact is not None]
    batch = _Batch(connection, load_known(connection, facts), journal_key)
    for item in items:
        batch.apply(item)
    batch.bodies.update(bodies or {})
    batch.write()
    return batch.rejected_count


class _Batch:
    """Collects the rows of a batch.

    Attributes:
        bodies: bodies to store, by digest.
        rejected_count: facts that could not be applied, and damaged places.
    """

    def __init__(self, connection: Connection, known: Known, journal_key: int) -> None:
        self._connection = connection
        self._known = known
        self._journal_key = journal_key
        self._facts: dict[int, bytes] = {}
        self.bodies: dict[Digest, bytes] = {}
        self._new_sessions: dict[UUID, Row] = {}
        self._new_calls: dict[UUID, tuple[Row, Row]] = {}  # rows of `invocations` and `surfaces`
        self._rows: defaultdict[str, list[Row]] = defaultdict(list)
        self._changes: defaultdict[str, list[Sequence[object]]] = defaultdict(list)
        self._receipts: list[Sequence[object]] = []
        self.rejected_count = 0

    def apply(self, item: Item) -> None:
        """Apply one frame. A fact that cannot be applied becomes a rejected fact."""
        fact, problem = item.fact, item.problem
        subject = None if fact is None else self._connection.uuid(subject_of(fact))
        if isinstance(item.source, Frame):
            self._enter(item.source, fact, subject)
        if fact is not None and problem is None:
            try:
                self._apply_fact(item, fact)
            except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
                problem = str(error) or repr(error)
        if problem is not None:
            self._reject(item.source, problem, subject)

    def write(self) -> None:
        """Insert and update all rows."""
        connection = self._connection
        made = [rows.body_row(connection, *one) for one in sorted(self.bodies.items())]
        connection.insert_once("bodies", made)
        # If another machine has opened one since `load_known`, the database refuses the batch.
        connection.insert("sessions", [row for _, row in sorted(self._new_sessions.items())])
        tools = sorted(self._rows.pop("tools", []), key=itemgetter("digest"))
        connection.insert_once("tools", tools)
        for table, new in self._rows.items():
            insert = connection.insert_once if table in _INSERTED_ONCE else connection.insert
            insert(table, new)
        for sql, values in self._changes.items():
            connection.update(sql, values)
        connection.update(_ADD_RECEIPT, self._receipts)

    def _enter(self, frame: Frame, fact: Fact | None, subject: object) -> None:
        self._facts[frame.index] = frame.fact_json
        self._rows["ledger_entries"].append(
            {
                "journal_key": self._journal_key,
                "n": frame.index,
                "kind": "unknown" if fact is None else fact.kind,
                "subject_id": subject,
                "fact": pack_fact(frame.fact_json),
                "hash": frame.hash,
            }
        )

    def _reject(self, source: Frame | Gap, reason: str, subject: object) -> None:
        """Store the bytes of a fact that cannot be applied, or of a damaged place."""
        self.rejected_count += 1
        index, data = (
            (None, source.data)
            if isinstance(source, Gap)
            else (source.index, source.fact_json + source.packed_bodies)
        )
        self._rows["rejected_facts"].append(
            {
                "journal_key": self._journal_key,
                "n": index,
                "segment": source.segment,
                "segment_offset": source.offset,
                "subject_id": subject,
                "reason": self._connection.text(reason),
                "data": data,
                "rejected_at": self._connection.moment(now()),
            }
        )

    def _apply_fact(self, item: Item, fact: Fact) -> None:
        entry = Entry(self._journal_key, cast("Frame", item.source).index)
        match fact:
            case SessionOpened():
                self._apply_opened(fact, entry, item.bodies)
            case SessionClosed():
                self._apply_closed(fact, entry)
            case CallStarted():
                self._apply_started(fact, entry, item.bodies)
            case CallEnded():
                self._apply_ended(fact, entry, item.bodies, item.outcome)
            case AnswerStarted():
                self._apply_answer(fact, entry)
            case Maintenance():
                self._keep(item.bodies, fact.details)
            case _:
                self._apply_message(fact, entry, item.bodies)

    def _apply_opened(self, fact: SessionOpened, entry: Entry, bodies: rows.Bodies) -> None:
        stored = self._known.sessions.get(fact.session)
        if stored is not None and stored.opening is not None:
            self._refuse_other("session", fact.session, stored.opening, entry)
        else:
            opening = rows.opening_columns(self._connection, fact, entry)
            self._session_of(fact.session, fact.at).opening = entry
            self._change_session(fact.session, opening)
        # Also of a repeated opening: calls of the same program name this environment, too.
        self._keep(bodies, fact.environment, is_needed=False)

    def _apply_closed(self, fact: SessionClosed, entry: Entry) -> None:
        closing = rows.closing_columns(self._connection, fact, entry)
        session = self._session_of(fact.session, fact.at)
        if not session.is_closed:  # only the first close counts
            session.is_closed = True
            self._change_session(fact.session, closing)

    def _apply_message(self, fact: MessageFact, entry: Entry, bodies: rows.Bodies) -> None:
        stored = self._known.messages.get(fact.id)
        if stored is not None:
            self._refuse_other("message", fact.id, stored, entry)
            return
        made = rows.message_rows(self._connection, fact, bodies)
        created_at = self._connection.moment(fact.at)
        self._keep(bodies, *body_digests(fact))
        session = self._session_of(fact.session, fact.at)
        self._known.messages[fact.id] = entry
        key, message_id = next(self._known.new_keys["messages"]), self._connection.uuid(fact.id)
        self._rows["messages"].append(
            {
                "key": key,
                "session_key": session.key,
                "id": message_id,
                "seq": take_seq(self._connection, session),
                **made.columns,
                "created_at": created_at,
                "journal_key": self._journal_key,
                "entry": entry.n,
            }
        )
        self._rows["tools"] += made.tools
        for table, children in made.children.items():
            above = {"message_key": key}
            if table != "tool_offers":
                above["session_key"] = session.key
            self._rows[table] += [{**above, **child} for child in children]
        if fact.id in self._known.open_answers:
            self._known.open_answers.discard(fact.id)
            self._changes[_END_ANSWER].append((message_id,))

    def _apply_answer(self, fact: AnswerStarted, entry: Entry) -> None:
        if fact.id not in self._known.messages:
            self._known.open_answers.add(fact.id)
            self._rows["open_answers"].append(
                {
                    "message_id": self._connection.uuid(fact.id),
                    "journal_key": entry.journal_key,
                    "entry": entry.n,
                }
            )

    def _apply_started(self, fact: CallStarted, entry: Entry, bodies: rows.Bodies) -> None:
        known = self._known.calls.get(fact.id)
        if known is not None:
            self._refuse_other("call", fact.id, known.start, entry)
            return
        if fact.arguments not in bodies:
            raise InvalidRecordError(f"body {fact.arguments} is missing")
        text, is_exact = text_of(bodies[fact.arguments])
        row = rows.start_row(self._connection, fact, entry)
        session = self._session_of(fact.session, fact.at)
        # A call is evidence even if its policy or environment was lost with a damaged frame.
        self._keep(bodies, fact.policy, fact.environment, is_needed=False)
        if not is_exact:
            self._keep(bodies, fact.arguments)
        key = next(self._known.new_keys["invocations"])
        call = Call(key, fact.session, fact.family, fact.policy, start=entry, end=None)
        self._known.calls[fact.id] = call
        place = {"seq": take_seq(self._connection, session), "is_late": session.is_closed}
        invocation = {"key": key, "session_key": session.key, **row, **place, **rows.NO_END}
        surfaces = {
            "invocation_key": key,
            "arguments": text,
            **rows.NO_OUTCOME,
            "is_exact": is_exact,
        }
        self._new_calls[fact.id] = (invocation, surfaces)
        self._rows["invocations"].append(invocation)
        self._rows["surfaces"].append(surfaces)

    def _apply_ended(
        self, fact: CallEnded, entry: Entry, bodies: rows.Bodies, outcome: Outcome | None
    ) -> None:
        call = self._known.calls.get(fact.id)
        if call is None:
            raise InvalidRecordError(f"no call {fact.id} was started")
        if call.session != fact.session:
            raise InvalidRecordError(f"call {fact.id} is of session {call.session}")
        if call.end is not None:
            self._refuse_other("call", fact.id, call.end, entry)
            self._add_receipt(fact, call.key, entry, bodies)
            return
        if outcome is None:
            raise InvalidRecordError(f"nothing is known of how call {fact.id} ended")
        ending = rows.end_columns(self._connection, fact, outcome.shown.omissions, entry)
        texts = rows.surface_columns(self._connection, outcome, ending["output_size"])
        children = rows.outcome_rows(self._connection, call.key, outcome)
        call.end = entry
        self.bodies.update(outcome.bodies)
        self._keep(bodies, fact.extras, is_needed=False)
        for table, some in children.items():
            self._rows[table] += some
        if fact.id in self._new_calls:
            invocation, surfaces = self._new_calls[fact.id]
            invocation.update(ending)
            surfaces.update(texts, is_exact=surfaces["is_exact"] and outcome.is_exact)
            return
        self._changes[_END_CALL].append((*ending.values(), call.key))
        self._changes[_END_SURFACES].append((*texts.values(), outcome.is_exact, call.key))

    def _add_receipt(self, fact: CallEnded, key: int, entry: Entry, bodies: rows.Bodies) -> None:
        """Add what the model saw to a call that a hook recorded before its transcript was read."""
        if fact.source is not None and fact.receipt is not None:
            text, is_exact = text_of(bodies[fact.receipt])
            if not is_exact:
                self._keep(bodies, fact.receipt)
            size = len(text.encode())
            self._receipts.append((text, SEEN, 0, *entry, size, size, key))

    def _session_of(self, session_id: UUID, at: datetime) -> Session:
        """The session of a fact. A session that the store does not know begins with this fact."""
        session = self._known.sessions.get(session_id)
        if session is None:
            key = next(self._known.new_keys["sessions"])
            self._new_sessions[session_id] = {
                "key": key,
                "id": self._connection.uuid(session_id),
                "opened_at": self._connection.moment(at),
                "journal_key": self._journal_key,
            }
            session = Session(key, opening=None, is_closed=False, next_seq=FIRST_SEQ)
            self._known.sessions[session_id] = session
        return session

    def _change_session(self, session_id: UUID, columns: Row) -> None:
        sql = f"UPDATE sessions SET {_assigned(columns)} WHERE id = ?"
        self._changes[sql].append((*columns.values(), self._connection.uuid(session_id)))

    def _keep(self, bodies: rows.Bodies, *digests: Digest | None, is_needed: bool = True) -> None:
        """Store bodies of a fact, all or none.

        Raises `InvalidRecordError` if a needed body neither travels with the fact nor is stored.
        """
        named = [one for one in digests if one is not None]
        stored = (bodies, self.bodies, self._known.bodies)
        for digest in named if is_needed else ():
            if not any(digest in some for some in stored):
                raise InvalidRecordError(f"body {digest} is missing")
        self.bodies.update((one, bodies[one]) for one in named if one in bodies)

    def _refuse_other(self, what: str, subject: UUID, stored: Entry, entry: Entry) -> None:
        """Raise `InvalidRecordError` if two facts with one id differ."""
        differing = differing_members(self._fact_at(stored), self._fact_at(entry))
        if differing:
            journal = "SELECT id FROM journals WHERE key = ?"
            ((found,),) = self._connection.query(journal, (stored.journal_key,))
            raise InvalidRecordError(
                f"{what} {subject} is recorded already, as entry {stored.n:,} of journal "
                f"{uuid_from(found)}, with other content: {', '.join(differing)}"
            )

    def _fact_at(self, entry: Entry) -> bytes:
        if entry.journal_key == self._journal_key and entry.n in self._facts:
            return self._facts[entry.n]
        sql = "SELECT fact FROM ledger_entries WHERE journal_key = ? AND n = ?"
        found = self._connection.query(sql, entry)
        try:
            return unpack_fact(found[0][0]) if found else b"{}"
        except DamageError as error:
            raise InvalidRecordError(f"entry {entry.n:,} cannot be compared: {error}") from error


def subject_of(fact: Fact) -> UUID:
    """The id of the subject of a fact, as in its ledger entry."""
    return fact.session if isinstance(fact, SessionOpened | SessionClosed) else fact.id


def differing_members(before_json: bytes, now_json: bytes) -> list[str]:
    """The members in which a fact contradicts an earlier fact with the same id."""
    before, now = (cast("dict[str, Any]", decode(one)) for one in (before_json, now_json))
    for stream in (*before.get("streams", ()), *now.get("streams", ())):
        stream.pop("spooled", None)  # where its recorder kept the bytes
    if "source" in now:
        # An importer finds what a hook or an older importer recorded, in other words.
        return sorted(name for name in IDENTITY if before.get(name) != now.get(name))
    # A program that opens a session by name alone gives fewer members than the first opener.
    names = now.keys() if now["kind"] == "session.opened" else before.keys() | now.keys()
    differing = [name for name in names - _NOT_COMPARED if before.get(name) != now.get(name)]
    first, second = (one.get("shown", {}) for one in (before, now))
    is_seen = first.get("renderer") == second.get("renderer") == SEEN
    if is_seen and first.get("receipt") != second.get("receipt"):
        differing.append("seen")
    return sorted(differing)
