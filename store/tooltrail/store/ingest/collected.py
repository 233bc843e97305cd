"""The rows of a batch as they gather, and their way into the tables, in one order for everybody.

Ingesters of several machines insert the same bodies, tools and sessions. They insert them sorted,
so that no two wait for each other.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast
from uuid import UUID

from sqlalchemy import Table

from tooltrail.records.digests import Digest
from tooltrail.records.errors import InvalidRecordError
from tooltrail.records.facts import CallEnded
from tooltrail.store import schema
from tooltrail.store.ingest import rows
from tooltrail.store.ingest.known import FIRST_SEQ, Call, Entry, Session, next_seq
from tooltrail.store.ingest.native import Native, Row
from tooltrail.store.ingest.outcomes import Outcome


class NewMessage(NamedTuple):
    """A message to insert, with the rows that refer to it."""

    session: Session
    row: Row
    children: Mapping[Table, list[Row]]


class End(NamedTuple):
    """The end of a call to write."""

    call: Call
    fact: CallEnded
    outcome: Outcome
    entry: Entry


class Start(NamedTuple):
    """A call to insert; `end` where this batch ends it, too."""

    session: Session
    row: Row
    surfaces: Row
    end: End | None


@dataclass
class Collected:
    """Everything that a batch writes.

    Attributes:
        bodies: by digest.
        new_sessions: rows of sessions that nobody has seen yet, by id.
        opened: columns of sessions that this batch opens, by id.
        closed: columns of sessions that this batch closes, by id.
        messages: in the order of the journal.
        answers: entries of answers that begin, by id.
        ended_answers: ids of answers of earlier batches that have ended.
        starts: calls that begin, by id, in the order of the journal.
        ends: of calls that an earlier batch started.
        rows: everything else, by table.
    """

    bodies: dict[Digest, bytes] = field(default_factory=dict[Digest, bytes])
    new_sessions: dict[UUID, Row] = field(default_factory=dict[UUID, Row])
    opened: dict[UUID, Row] = field(default_factory=dict[UUID, Row])
    closed: dict[UUID, tuple[object, ...]] = field(default_factory=dict[UUID, tuple[object, ...]])
    messages: list[NewMessage] = field(default_factory=list[NewMessage])
    answers: dict[UUID, Entry] = field(default_factory=dict[UUID, Entry])
    ended_answers: list[UUID] = field(default_factory=list[UUID])
    starts: dict[UUID, Start] = field(default_factory=dict[UUID, Start])
    ends: list[End] = field(default_factory=list[End])
    rows: defaultdict[Table, list[Row]] = field(default_factory=lambda: defaultdict(list))

    def write(self, native: Native, sessions: Mapping[UUID, Session]) -> None:
        """Insert and update all rows.

        Args:
            native: the connection.
            sessions: all sessions that the rows belong to.

        Raises:
            InvalidRecordError: another machine recorded a session meanwhile.
        """
        made = [rows.body_row(native, *one) for one in sorted(self.bodies.items())]
        native.insert_once(schema.bodies, made)
        self._write_sessions(native, sessions)
        self._write_messages(native)
        self._write_answers(native)
        self._write_starts(native)
        self._write_ends(native)
        tools = {row["digest"]: row for row in reversed(self.rows.pop(schema.tools, []))}
        native.insert_once(schema.tools, [tools[one] for one in sorted(tools)])
        native.insert_once(schema.rejected_facts, self.rows.pop(schema.rejected_facts, []))
        for table, new in self.rows.items():
            native.insert(table, new)

    def _write_sessions(self, native: Native, sessions: Mapping[UUID, Session]) -> None:
        new = [self.new_sessions[one] for one in sorted(self.new_sessions)]
        native.insert_once(schema.sessions, new)
        found = native.query_each(
            "SELECT id, key, journal_key FROM sessions WHERE id IN (?)", [row["id"] for row in new]
        )
        for name, key, journal_key in found:
            session_id = native.read_uuid(name)
            if journal_key != self.new_sessions[session_id]["journal_key"]:
                raise InvalidRecordError(f"another machine opened session {session_id} meanwhile")
            sessions[session_id].key = key
        columns = ", ".join(f"{name} = ?" for name in rows.OPENING)
        native.update(
            f"UPDATE sessions SET {columns} WHERE id = ? AND entry IS NULL",
            [(*row.values(), native.uuid(one)) for one, row in self.opened.items()],
        )
        columns = ", ".join(f"{name} = ?" for name in rows.CLOSING)
        native.update(
            f"UPDATE sessions SET {columns} WHERE id = ? AND closed_at IS NULL",
            [(*values, native.uuid(one)) for one, values in self.closed.items()],
        )

    def _write_messages(self, native: Native) -> None:
        keys = _next_keys(native, schema.messages, len(self.messages))
        for key, new in zip(keys, self.messages, strict=True):
            row = {"key": key, "session_key": new.session.key, **new.row}
            self.rows[schema.messages].append(row)
            for table, children in new.children.items():
                owner: Row = {"message_key": key}
                if table is not schema.tool_offers:
                    owner["session_key"] = new.session.key
                self.rows[table] += [{**owner, **child} for child in children]

    def end_answer(self, message_id: UUID) -> None:
        """An answer that began in this batch or in an earlier one has ended."""
        if self.answers.pop(message_id, None) is None:
            self.ended_answers.append(message_id)

    def _write_answers(self, native: Native) -> None:
        begun: list[Row] = [
            {"message_id": native.uuid(one), "journal_key": entry.journal_key, "entry": entry.n}
            for one, entry in self.answers.items()
        ]
        native.insert_once(schema.open_answers, begun)
        native.update(
            "DELETE FROM open_answers WHERE message_id = ?",
            [(native.uuid(one),) for one in self.ended_answers],
        )

    def _write_starts(self, native: Native) -> None:
        keys = _next_keys(native, schema.invocations, len(self.starts))
        for key, start in zip(keys, self.starts.values(), strict=True):
            row = {"key": key, "session_key": start.session.key, **start.row, **rows.NO_END}
            surfaces = {"invocation_key": key, **start.surfaces}
            if start.end is not None:
                row |= _end_columns(native, start.end)
                surfaces |= rows.surface_columns(native, start.end.outcome)
                surfaces["is_exact"] = surfaces["is_exact"] and start.end.outcome.is_exact
                self._add_children(native, key, start.end.outcome)
            self.rows[schema.invocations].append(row)
            self.rows[schema.surfaces].append(surfaces)

    def _write_ends(self, native: Native) -> None:
        """End calls that an earlier batch started."""
        ends, texts = list[Sequence[object]](), list[Sequence[object]]()
        for end in self.ends:
            key = cast("int", end.call.key)
            ends.append((*_end_columns(native, end).values(), key))
            surfaces = rows.surface_columns(native, end.outcome)
            texts.append((*surfaces.values(), end.outcome.is_exact, key))
            self._add_children(native, key, end.outcome)
        columns = ", ".join(f"{name} = ?" for name in rows.ENDING)
        native.update(f"UPDATE invocations SET {columns} WHERE key = ?", ends)
        columns = ", ".join(f"{name} = ?" for name in rows.NO_SURFACES)
        native.update(
            f"UPDATE surfaces SET {columns}, is_exact = is_exact AND ? WHERE invocation_key = ?",
            texts,
        )

    def _add_children(self, native: Native, key: int, outcome: Outcome) -> None:
        for table, children in rows.outcome_rows(native, key, outcome).items():
            self.rows[table] += children


def next_place(native: Native, session: Session) -> int:
    """The place of the next entry of a session, which is taken."""
    if not session.next_seq:
        session.next_seq = FIRST_SEQ if session.key is None else next_seq(native, session.key)
    session.next_seq += 1
    return session.next_seq - 1


def _end_columns(native: Native, end: End) -> Row:
    return rows.end_columns(native, end.fact, end.outcome.omissions, end.entry)


def _next_keys(native: Native, table: Table, count: int) -> list[int]:
    """Keys for new rows; on PostgreSQL other ingesters take some at the same time."""
    if not count:
        return []
    if native.is_sqlite:
        ((last,),) = native.query(f"SELECT max(key) FROM {table.name}")
        return list(range((last or 0) + 1, (last or 0) + 1 + count))
    found = native.query(
        f"SELECT nextval(pg_get_serial_sequence('{table.name}', 'key')) FROM generate_series(1, ?)",
        (count,),
    )
    return [key for (key,) in found]
