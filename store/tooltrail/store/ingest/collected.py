"""The rows of a batch as they gather, and their way into the tables, in one order for everybody.

Ingesters of several machines insert the same bodies, tools and sessions. They insert them sorted,
so that no two wait for each other.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, cast
from uuid import UUID

from tooltrail.records.digests import Digest
from tooltrail.records.errors import InvalidRecordError
from tooltrail.records.facts import CallEnded
from tooltrail.store.column_groups import CLOSING, ENDING, OPENING, OUTCOME
from tooltrail.store.engines.connection import Connection, Row
from tooltrail.store.ingest import rows
from tooltrail.store.ingest.known import FIRST_SEQ, Call, Entry, Session, next_seq
from tooltrail.store.ingest.outcomes import Outcome


class NewMessage(NamedTuple):
    """A message to insert, with the rows that refer to it."""

    session: Session
    row: Row
    children: Mapping[str, list[Row]]


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
    rows: defaultdict[str, list[Row]] = field(default_factory=lambda: defaultdict(list))

    def write(self, connection: Connection, sessions: Mapping[UUID, Session]) -> None:
        """Insert and update all rows.

        Args:
            connection: the connection.
            sessions: all sessions that the rows belong to.

        Raises:
            InvalidRecordError: another machine recorded a session meanwhile.
        """
        made = [rows.body_row(connection, *one) for one in sorted(self.bodies.items())]
        connection.insert_once("bodies", made)
        self._write_sessions(connection, sessions)
        self._write_messages(connection)
        self._write_answers(connection)
        self._write_starts(connection)
        self._write_ends(connection)
        tools = {row["digest"]: row for row in reversed(self.rows.pop("tools", []))}
        connection.insert_once("tools", [tools[one] for one in sorted(tools)])
        connection.insert_once("rejected_facts", self.rows.pop("rejected_facts", []))
        for table, new in self.rows.items():
            connection.insert(table, new)

    def _write_sessions(self, connection: Connection, sessions: Mapping[UUID, Session]) -> None:
        new = [self.new_sessions[one] for one in sorted(self.new_sessions)]
        connection.insert_once("sessions", new)
        found = connection.query_each(
            "SELECT id, key, journal_key FROM sessions WHERE id IN (?)", [row["id"] for row in new]
        )
        for name, key, journal_key in found:
            session_id = connection.read_uuid(name)
            if journal_key != self.new_sessions[session_id]["journal_key"]:
                raise InvalidRecordError(f"another machine opened session {session_id} meanwhile")
            sessions[session_id].key = key
        columns = ", ".join(f"{name} = ?" for name in OPENING)
        connection.update(
            f"UPDATE sessions SET {columns} WHERE id = ? AND entry IS NULL",
            [(*row.values(), connection.uuid(one)) for one, row in self.opened.items()],
        )
        columns = ", ".join(f"{name} = ?" for name in CLOSING)
        connection.update(
            f"UPDATE sessions SET {columns} WHERE id = ? AND closed_at IS NULL",
            [(*values, connection.uuid(one)) for one, values in self.closed.items()],
        )

    def _write_messages(self, connection: Connection) -> None:
        keys = _next_keys(connection, "messages", len(self.messages))
        for key, new in zip(keys, self.messages, strict=True):
            row = {"key": key, "session_key": new.session.key, **new.row}
            self.rows["messages"].append(row)
            for table, children in new.children.items():
                owner: Row = {"message_key": key}
                if table != "tool_offers":
                    owner["session_key"] = new.session.key
                self.rows[table] += [{**owner, **child} for child in children]

    def end_answer(self, message_id: UUID) -> None:
        """An answer that began in this batch or in an earlier one has ended."""
        if self.answers.pop(message_id, None) is None:
            self.ended_answers.append(message_id)

    def _write_answers(self, connection: Connection) -> None:
        begun: list[Row] = [
            {"message_id": connection.uuid(one), "journal_key": entry.journal_key, "entry": entry.n}
            for one, entry in self.answers.items()
        ]
        connection.insert_once("open_answers", begun)
        connection.update(
            "DELETE FROM open_answers WHERE message_id = ?",
            [(connection.uuid(one),) for one in self.ended_answers],
        )

    def _write_starts(self, connection: Connection) -> None:
        keys = _next_keys(connection, "invocations", len(self.starts))
        for key, start in zip(keys, self.starts.values(), strict=True):
            row = {"key": key, "session_key": start.session.key, **start.row, **rows.NO_END}
            surfaces = {"invocation_key": key, **start.surfaces}
            if start.end is not None:
                row |= _end_columns(connection, start.end)
                surfaces |= rows.surface_columns(connection, start.end.outcome)
                surfaces["is_exact"] = surfaces["is_exact"] and start.end.outcome.is_exact
                self._add_children(connection, key, start.end.outcome)
            self.rows["invocations"].append(row)
            self.rows["surfaces"].append(surfaces)

    def _write_ends(self, connection: Connection) -> None:
        """End calls that an earlier batch started."""
        ends, texts = list[Sequence[object]](), list[Sequence[object]]()
        for end in self.ends:
            key = cast("int", end.call.key)
            ends.append((*_end_columns(connection, end).values(), key))
            surfaces = rows.surface_columns(connection, end.outcome)
            texts.append((*surfaces.values(), end.outcome.is_exact, key))
            self._add_children(connection, key, end.outcome)
        columns = ", ".join(f"{name} = ?" for name in ENDING)
        connection.update(f"UPDATE invocations SET {columns} WHERE key = ?", ends)
        columns = ", ".join(f"{name} = ?" for name in OUTCOME)
        connection.update(
            f"UPDATE surfaces SET {columns}, is_exact = is_exact AND ? WHERE invocation_key = ?",
            texts,
        )

    def _add_children(self, connection: Connection, key: int, outcome: Outcome) -> None:
        for table, children in rows.outcome_rows(connection, key, outcome).items():
            self.rows[table] += children


def next_place(connection: Connection, session: Session) -> int:
    """The place of the next entry of a session, which is taken."""
    if not session.next_seq:
        session.next_seq = FIRST_SEQ if session.key is None else next_seq(connection, session.key)
    session.next_seq += 1
    return session.next_seq - 1


def _end_columns(connection: Connection, end: End) -> Row:
    return rows.end_columns(connection, end.fact, end.outcome.omissions, end.entry)


def _next_keys(connection: Connection, table: str, count: int) -> list[int]:
    """Keys for new rows; on PostgreSQL other ingesters take some at the same time."""
    if not count:
        return []
    if connection.is_sqlite:
        ((last,),) = connection.query(f"SELECT max(key) FROM {table}")
        return list(range((last or 0) + 1, (last or 0) + 1 + count))
    found = connection.query(
        f"SELECT nextval(pg_get_serial_sequence('{table}', 'key')) FROM generate_series(1, ?)",
        (count,),
    )
    return [key for (key,) in found]
