"""Applies a batch of facts: turns them into rows, and inserts the rows table by table.

A call whose start and end are in the same batch becomes one row. Every frame becomes a ledger
entry, whether or not its fact can be applied.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple, cast
from uuid import UUID

from sqlalchemy import Table

from tooltrail.journal import Frame, Gap
from tooltrail.records.canonical_json import decode
from tooltrail.records.digests import EMPTY, Digest
from tooltrail.records.errors import InvalidRecordError
from tooltrail.records.facts import (
    CallEnded,
    CallStarted,
    Fact,
    Maintenance,
    SessionClosed,
    SessionOpened,
    body_digests,
)
from tooltrail.store import schema
from tooltrail.store.ingest import rows
from tooltrail.store.ingest.known import (
    FIRST_SEQ,
    Call,
    Known,
    Message,
    MessageFact,
    Session,
    next_seq,
)
from tooltrail.store.ingest.native import Native, Row
from tooltrail.store.ingest.outcomes import Beginning, Outcome, text_of

_NOT_COMPARED: Final = frozenset(
    {"at", "duration_ms", "environment", "owner", "policy", "shown", "title"}
)
"""Members that may differ between two facts of one id: they belong to whoever recorded the fact,
and a later version of an importer must meet what an earlier one recorded."""


class Item(NamedTuple):
    """One frame of a batch, read and prepared.

    Attributes:
        frame: as it stands in the journal.
        fact: of the frame; None where it cannot be read.
        bodies: that travel with the fact.
        outcome: of a `call.ended`.
        problem: why the fact cannot be applied; None where nothing is known against it.
    """

    frame: Frame
    fact: Fact | None
    bodies: Mapping[Digest, bytes]
    outcome: Outcome | None = None
    problem: str | None = None


class Batch:
    """Rows of a batch, in one transaction.

    Args:
        native: the connection.
        known: what the store knows of the ids in the batch.
        journal_key: of the journal that is read.
        at: now.
    """

    def __init__(self, native: Native, known: Known, journal_key: int, at: datetime) -> None:
        self._native = native
        self._known = known
        self._journal_key = journal_key
        self._at = at
        self._rows: dict[Table, list[Row]] = defaultdict(list)
        self._bodies: dict[Digest, bytes] = {}
        self._ended: list[_End] = []
        self._facts: dict[int, bytes] = {}
        self._new_sessions: dict[UUID, Row] = {}
        self._opened: list[Row] = []
        self._closed: list[Row] = []
        self._new_calls: dict[UUID, _Start] = {}
        self._new_messages: list[_Entry] = []
        self.rejected_count = 0

    def apply(self, item: Item) -> None:
        """Apply one frame. A fact that cannot be applied becomes a rejected fact."""
        frame, fact = item.frame, item.fact
        self._facts[frame.index] = frame.fact_json
        self._rows[schema.ledger_entries].append(self._ledger_row(frame, fact))
        problem = item.problem
        if fact is not None and problem is None:
            try:
                self._apply_fact(item, fact)
            except (LookupError, TypeError, ValueError) as error:
                problem = str(error) or repr(error)
        if problem is not None:
            row = self._rejected(frame.segment, frame.offset, problem)
            row["data"] = frame.fact_json + frame.packed_bodies
            row["n"] = frame.index
            row["subject_id"] = None if fact is None else self._native.uuid(subject_of(fact))

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
            case Maintenance():
                self._keep(item, fact.details)
            case _:
                self._apply_message(item, fact)

    def reject_gap(self, gap: Gap) -> None:
        """Keep the damaged bytes of a journal."""
        self._rejected(gap.segment, gap.offset, gap.reason)["data"] = gap.data

    def write(self) -> None:
        """Insert and update all rows."""
        native = self._native
        native.insert_once(
            schema.bodies, [rows.body_row(native, *one) for one in self._bodies.items()]
        )
        self._write_sessions()
        self._write_messages()
        self._write_calls()
        for table, new in self._rows.items():
            write = native.insert_once if table in _SHARED else native.insert
            write(table, new)

    def _ledger_row(self, frame: Frame, fact: Fact | None) -> Row:
        return {
            "journal_key": self._journal_key,
            "n": frame.index,
            "kind": "unknown" if fact is None else fact.kind,
            "subject_id": None if fact is None else self._native.uuid(subject_of(fact)),
            "fact": frame.fact_json.decode("utf-8", "backslashreplace"),
            "hash": frame.hash,
        }

    def _rejected(self, segment: int, offset: int, reason: str) -> Row:
        """A new row of `rejected_facts`, to be completed."""
        self.rejected_count += 1
        row: Row = {
            "journal_key": self._journal_key,
            "n": None,
            "segment": segment,
            "segment_offset": offset,
            "subject_id": None,
            "reason": self._native.text(reason),
            "data": b"",
            "rejected_at": self._native.moment(self._at),
        }
        self._rows[schema.rejected_facts].append(row)
        return row

    def _session_of(self, session_id: UUID, at: datetime) -> Session:
        """The session of a fact. One that nobody has seen yet begins with it."""
        session = self._known.sessions.get(session_id)
        if session is None:
            session = Session(None, session_id, at, is_opened=False, is_closed=False)
            self._known.sessions[session_id] = session
            self._new_sessions[session_id] = {
                "id": self._native.uuid(session_id),
                **dict.fromkeys(rows.OPENING),
                "opened_at": self._native.moment(at),
                "journal_key": self._journal_key,
            }
        return session

    def _place_in(self, session: Session) -> int:
        if not session.next_seq:
            is_new = session.key is None
            session.next_seq = (
                FIRST_SEQ if is_new else next_seq(self._native, cast("int", session.key))
            )
        seq = session.next_seq
        session.next_seq += 1
        return seq

    def _apply_opened(self, item: Item, fact: SessionOpened) -> None:
        session = self._session_of(fact.session, fact.at)
        if session.is_opened:
            self._refuse_other("session", fact.session, self._opening_of(session), item.frame)
            return
        session.is_opened = True
        self._keep(item, fact.environment)
        opening = rows.opening_columns(self._native, fact, item.frame.index)
        row = self._new_sessions.get(fact.session)
        if row is None:
            self._opened.append({**opening, "id": self._native.uuid(fact.session)})
        else:
            row.update(opening)

    def _opening_of(self, session: Session) -> bytes:
        found = self._new_sessions.get(session.id)
        if found is not None:
            return self._facts[found["entry"]]
        opened = [one for one in self._opened if one["id"] == self._native.uuid(session.id)]
        if opened:
            return self._facts[opened[0]["entry"]]
        places = self._native.query(
            "SELECT journal_key, entry FROM sessions WHERE id = ?",
            (self._native.uuid(session.id),),
        )
        return self._stored_fact(*places[0])

    def _apply_closed(self, item: Item, fact: SessionClosed) -> None:
        session = self._session_of(fact.session, fact.at)
        if session.is_closed:
            return  # closed twice is closed
        session.is_closed = True
        native = self._native
        self._closed.append(
            {
                "id": native.uuid(fact.session),
                "closed_at": native.moment(fact.at),
                "close_reason": native.text(fact.reason),
                "close_entry": item.frame.index,
            }
        )

    def _apply_message(self, item: Item, fact: MessageFact) -> None:
        known = self._known.messages.get(fact.id)
        if known is not None:
            stored = self._fact_at(known.journal_key, known.entry)
            self._refuse_other("message", fact.id, stored, item.frame)
            return
        self._keep(item, *body_digests(fact))
        made = rows.message_rows(self._native, fact, item.bodies)
        self._rows[schema.tools] += made.tools
        session = self._session_of(fact.session, fact.at)
        self._known.messages[fact.id] = Message(self._journal_key, item.frame.index)
        row: Row = {
            "id": self._native.uuid(fact.id),
            "seq": self._place_in(session),
            **made.columns,
            "created_at": self._native.moment(fact.at),
            "journal_key": self._journal_key,
            "entry": item.frame.index,
        }
        self._new_messages.append(_Entry(session, row, made.children))

    def _apply_started(self, item: Item, fact: CallStarted) -> None:
        known = self._known.calls.get(fact.id)
        if known is not None:
            stored = self._fact_at(known.journal_key, known.start_entry)
            self._refuse_other("call", fact.id, stored, item.frame)
            return
        if fact.arguments not in item.bodies:
            raise InvalidRecordError(f"body {fact.arguments} is missing")
        self._keep(item, fact.policy, fact.environment, is_needed=False)
        session = self._session_of(fact.session, fact.at)
        beginning = Beginning(fact.tool_name, fact.family, fact.policy)
        self._known.calls[fact.id] = Call(
            key=None,
            session=fact.session,
            beginning=beginning,
            is_ended=False,
            start_entry=item.frame.index,
            end_entry=None,
            journal_key=self._journal_key,
        )
        text, is_exact = text_of(item.bodies[fact.arguments])
        if not is_exact:
            self._keep(item, fact.arguments)
        row = rows.start_row(self._native, fact, item.frame.index, text)
        row |= {
            "seq": self._place_in(session),
            "journal_key": self._journal_key,
            "is_late": session.is_closed,
        }
        surfaces: Row = {"arguments": text, **rows.NO_SURFACES, "is_exact": is_exact}
        self._new_calls[fact.id] = _Start(session, row, surfaces, None)

    def _apply_ended(self, item: Item, fact: CallEnded) -> None:
        call = self._known.calls.get(fact.id)
        if call is None:
            raise InvalidRecordError(f"no call {fact.id} was started")
        if call.session != fact.session:
            raise InvalidRecordError(f"call {fact.id} is of session {call.session}")
        if call.is_ended:
            entry = call.end_entry if call.end_entry is not None else -1
            self._refuse_other("call", fact.id, self._fact_at(call.journal_key, entry), item.frame)
            return
        if item.outcome is None:
            raise InvalidRecordError(f"nothing is known of how call {fact.id} ended")
        call.is_ended, call.end_entry = True, item.frame.index
        self._bodies.update(item.outcome.bodies)
        end = _End(call, fact, item.outcome, item.frame.index)
        started = self._new_calls.get(fact.id)
        if started is None:
            self._ended.append(end)
        else:
            self._new_calls[fact.id] = started._replace(end=end)

    def _keep(self, item: Item, *digests: Digest | None, is_needed: bool = True) -> None:
        """Store bodies of a fact. One that is not needed may be in the store already."""
        for digest in digests:
            if digest is None:
                continue
            if digest in item.bodies:
                self._bodies[digest] = item.bodies[digest]
            elif is_needed and digest != EMPTY:
                raise InvalidRecordError(f"body {digest} is missing")

    def _fact_at(self, journal_key: int, entry: int) -> bytes:
        if journal_key == self._journal_key and entry in self._facts:
            return self._facts[entry]
        return self._stored_fact(journal_key, entry)

    def _stored_fact(self, journal_key: int, entry: int) -> bytes:
        found = self._native.query(
            "SELECT fact FROM ledger_entries WHERE journal_key = ? AND n = ?", (journal_key, entry)
        )
        return str(found[0][0]).encode() if found else b"{}"

    def _refuse_other(self, what: str, subject: UUID, stored: bytes, frame: Frame) -> None:
        """Raise unless two facts of one id say the same.

        Raises:
            InvalidRecordError: they differ.
        """
        before, now = compared_members(stored), compared_members(frame.fact_json)
        if before == now:
            return
        differing = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
        raise InvalidRecordError(
            f"{what} {subject} is recorded already, with other content: {', '.join(differing)}"
        )

    def _write_sessions(self) -> None:
        native = self._native
        native.insert_once(schema.sessions, list(self._new_sessions.values()))
        native.update(
            "UPDATE sessions SET name = ?, parent_id = ?, title = ?, agent = ?, environment = ?,"
            " entry = ? WHERE id = ? AND entry IS NULL",
            [tuple(row.values()) for row in self._opened],
        )
        found = native.query_each(
            "SELECT id, key FROM sessions WHERE id IN (?)",
            [row["id"] for row in self._new_sessions.values()],
        )
        for session_id, key in found:
            self._known.sessions[native.read_uuid(session_id)].key = key
        native.update(
            "UPDATE sessions SET closed_at = ?, close_reason = ?, close_entry = ?"
            " WHERE id = ? AND closed_at IS NULL",
            [
                (row["closed_at"], row["close_reason"], row["close_entry"], row["id"])
                for row in self._closed
            ],
        )

    def _write_messages(self) -> None:
        keys = self._next_keys(schema.messages, len(self._new_messages))
        for key, entry in zip(keys, self._new_messages, strict=True):
            row = {"key": key, "session_key": entry.session.key, **entry.row}
            self._rows[schema.messages].append(row)
            for table, children in entry.children.items():
                owner: Row = {"message_key": key}
                if table is not schema.tool_offers:
                    owner["session_key"] = entry.session.key
                self._rows[table] += [{**owner, **child} for child in children]

    def _write_calls(self) -> None:
        keys = self._next_keys(schema.invocations, len(self._new_calls))
        for key, start in zip(keys, self._new_calls.values(), strict=True):
            row = {"key": key, "session_key": start.session.key, **start.row, **rows.NO_END}
            surfaces = {"invocation_key": key, **start.surfaces}
            if start.end is not None:
                row |= self._end_columns(start.end)
                surfaces |= rows.surface_columns(self._native, start.end.outcome)
                surfaces["is_exact"] = surfaces["is_exact"] and start.end.outcome.is_exact
                self._add_children(key, start.end.outcome)
            self._rows[schema.invocations].append(row)
            self._rows[schema.surfaces].append(surfaces)
        self._write_ends()

    def _write_ends(self) -> None:
        """End calls that an earlier batch started."""
        ends, texts = list[Sequence[object]](), list[Sequence[object]]()
        for end in self._ended:
            key = cast("int", end.call.key)
            ends.append((*self._end_columns(end).values(), key))
            surfaces = rows.surface_columns(self._native, end.outcome)
            texts.append((*surfaces.values(), end.outcome.is_exact, key))
            self._add_children(key, end.outcome)
        columns = ", ".join(f"{name} = ?" for name in rows.ENDING)
        self._native.update(f"UPDATE invocations SET {columns} WHERE key = ?", ends)
        columns = ", ".join(f"{name} = ?" for name in rows.NO_SURFACES)
        self._native.update(
            f"UPDATE surfaces SET {columns}, is_exact = is_exact AND ? WHERE invocation_key = ?",
            texts,
        )

    def _end_columns(self, end: "_End") -> Row:
        return rows.end_columns(self._native, end.fact, end.outcome.omissions, end.entry)

    def _add_children(self, key: int, outcome: Outcome) -> None:
        for table, children in rows.outcome_rows(self._native, key, outcome).items():
            self._rows[table] += children

    def _next_keys(self, table: Table, count: int) -> list[int]:
        """Keys for new rows; on PostgreSQL other ingesters take some at the same time."""
        if not count:
            return []
        if self._native.is_sqlite:
            ((last,),) = self._native.query(f"SELECT max(key) FROM {table.name}")
            return list(range((last or 0) + 1, (last or 0) + 1 + count))
        found = self._native.query(
            f"SELECT nextval(pg_get_serial_sequence('{table.name}', 'key'))"
            " FROM generate_series(1, ?)",
            (count,),
        )
        return [key for (key,) in found]


class _Entry(NamedTuple):
    """A message that is to be inserted, with the rows that refer to it."""

    session: Session
    row: Row
    children: Mapping[Table, list[Row]]


class _End(NamedTuple):
    """The end of a call that is to be written."""

    call: Call
    fact: CallEnded
    outcome: Outcome
    entry: int


class _Start(NamedTuple):
    """A call that this batch starts; `end` where it ends it, too."""

    session: Session
    row: Row
    surfaces: Row
    end: _End | None


_SHARED: Final = frozenset({schema.tools, schema.rejected_facts})
"""Tables whose rows may be there already."""


def subject_of(fact: Fact) -> UUID:
    """The id of what a fact is about, as its ledger entry has it."""
    return fact.session if isinstance(fact, SessionOpened | SessionClosed) else fact.id


def compared_members(fact_json: bytes) -> dict[str, Any]:
    """What two facts of one id must have in common."""
    members = cast("dict[str, Any]", decode(fact_json))
    return {name: value for name, value in members.items() if name not in _NOT_COMPARED}
