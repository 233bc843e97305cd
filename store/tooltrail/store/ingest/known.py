"""Loads the stored state of the sessions, calls and messages that a batch of facts names."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple
from uuid import UUID

from tooltrail.records.digests import Digest
from tooltrail.records.fact_spelling import body_digests
from tooltrail.records.facts import (
    AgentLeg,
    AgentOutcome,
    AnswerStarted,
    CallEnded,
    CallStarted,
    Fact,
    Maintenance,
    MessageAdded,
    ToolsOffered,
)
from tooltrail.records.frozen import Frozen
from tooltrail.store.engines.connection import Connection
from tooltrail.store.engines.values import NO_NUMBER, digest_from, uuid_from

FIRST_SEQ: Final = 1
"""Position of the first entry of a session."""


class Entry(NamedTuple):
    """The ledger entry of the fact behind a row."""

    journal_key: int
    n: int


_REFERRING: Final = {
    "sessions": ("invocations", "messages", "agent_legs", "agent_outcomes"),
    "invocations": ("surfaces", "streams", "omissions", "invocation_artifacts"),
    "messages": ("tool_offers", "agent_legs", "agent_outcomes"),
}
"""Tables with the keys of a table. A new row must not get the key of a lost row: the rows that
still refer to the lost row would then belong to the new one."""


@dataclass(slots=True)
class Session:
    """One session while a batch is applied.

    Attributes:
        opening: entry of its `session.opened`; None until that fact is applied.
        is_closed: whether its `session.closed` was applied.
        next_seq: position of its next entry; 0 until `take_seq` reads it.
    """

    key: int
    opening: Entry | None
    is_closed: bool
    next_seq: int = 0


@dataclass(slots=True)
class Call:
    """One invocation while a batch is applied.

    Attributes:
        start: entry of its `call.started`.
        end: entry of its `call.ended`; None until that fact is applied.
    """

    key: int
    session: UUID
    family: str
    policy: Digest
    start: Entry
    end: Entry | None


class Known(Frozen):
    """The stored state of the ids that a batch names.

    Attributes:
        messages: the ledger entry of each message, by id.
        bodies: the named bodies that are stored and do not travel with their fact.
        open_answers: ids of the named messages that are still being streamed.
        new_keys: keys for new rows of `sessions`, `invocations` and `messages`.
    """

    sessions: dict[UUID, Session]
    calls: dict[UUID, Call]
    messages: dict[UUID, Entry]
    bodies: frozenset[Digest]
    open_answers: set[UUID]
    new_keys: Mapping[str, Iterator[int]]


MessageFact = MessageAdded | ToolsOffered | AgentLeg | AgentOutcome
"""Facts that become a message of their session."""


def load_known(
    connection: Connection, facts: Iterable[tuple[Fact, Mapping[Digest, bytes]]]
) -> Known:
    """Look up everything that facts and their bodies name. Locks the rows of their sessions."""
    sessions: set[UUID] = set()
    calls: set[UUID] = set()
    messages: set[UUID] = set()
    absent: set[Digest] = set()
    for fact, bodies in facts:
        if not isinstance(fact, Maintenance | AnswerStarted):
            sessions.add(fact.session)
        if isinstance(fact, CallStarted | CallEnded):
            calls.add(fact.id)
        elif isinstance(fact, MessageFact | AnswerStarted):
            messages.add(fact.id)
        if not isinstance(fact, CallEnded):
            absent.update(one for one in body_digests(fact) if one not in bodies)
    # Ingesters of several machines may append to one session: one waits for the other. All lock in
    # the same order, so that they cannot deadlock.
    lock = "" if connection.is_sqlite else " ORDER BY id FOR UPDATE"
    found_sessions = _find(
        connection,
        "SELECT id, key, open_journal_key, entry, closed_at IS NOT NULL FROM sessions"
        f" WHERE id IN (?){lock}",
        sorted(sessions),
    )
    sql = "SELECT id, journal_key, entry FROM messages WHERE id IN (?)"
    found_messages = _find(connection, sql, messages)
    sql = "SELECT message_id FROM open_answers WHERE message_id IN (?)"
    open_answers = _find(connection, sql, messages)
    sql = "SELECT digest FROM bodies WHERE digest IN (?)"
    stored = connection.query_each(sql, [connection.sha(one) for one in absent])
    found_calls = load_calls(connection, calls)
    counts = {
        "sessions": len(sessions) - len(found_sessions),
        "invocations": len(calls) - len(found_calls),
        "messages": len(messages) - len(found_messages),
    }
    return Known(
        {
            name: Session(key, None if entry is None else Entry(journal_key, entry), bool(closed))
            for name, (key, journal_key, entry, closed) in found_sessions.items()
        },
        found_calls,
        {name: Entry(*place) for name, place in found_messages.items()},
        frozenset(digest_from(digest) for (digest,) in stored),
        {*open_answers},
        {name: iter(_next_keys(connection, name, counts[name])) for name in counts},
    )


def load_calls(connection: Connection, ids: Iterable[UUID]) -> dict[UUID, Call]:
    """The stored calls with these ids."""
    found = _find(
        connection,
        "SELECT i.id, i.key, s.id, i.family, i.policy, i.journal_key, i.start_entry,"
        " i.end_journal_key, i.end_entry FROM invocations AS i"
        " JOIN sessions AS s ON s.key = i.session_key WHERE i.id IN (?)",
        ids,
    )
    return {
        name: Call(
            key,
            uuid_from(session),
            family,
            digest_from(policy),
            start=Entry(begun_in, begun),
            end=None if ended is None else Entry(ended_in, ended),
        )
        for name, (key, session, family, policy, begun_in, begun, ended_in, ended) in found.items()
    }


def take_seq(connection: Connection, session: Session) -> int:
    """Reserve and return the position of the next entry of a session."""
    if not session.next_seq:
        ((last,),) = connection.query(
            "SELECT max(seq) FROM ("
            "SELECT max(seq) AS seq FROM invocations WHERE session_key = ? AND seq < ? UNION ALL "
            "SELECT max(seq) FROM messages WHERE session_key = ? AND seq < ?) AS entries",
            (session.key, NO_NUMBER, session.key, NO_NUMBER),
        )
        session.next_seq = FIRST_SEQ if last is None else int(last) + 1
    session.next_seq += 1
    return session.next_seq - 1


def _next_keys(connection: Connection, table: str, count: int) -> Iterable[int]:
    """Keys for new rows; from a sequence on PostgreSQL, where other ingesters insert, too."""
    if not count:
        return []
    if connection.is_sqlite:
        owner = f"{table.removesuffix('s')}_key"
        used = (
            f"SELECT max({column}) AS key FROM {of} WHERE {column} < {NO_NUMBER}"
            for of, column in ((table, "key"), *((one, owner) for one in _REFERRING[table]))
        )
        newest = f"SELECT coalesce(max(key), 0) FROM ({' UNION ALL '.join(used)}) AS used"
        ((last,),) = connection.query(newest)
        return range(last + 1, last + 1 + count)
    found = connection.query(
        f"SELECT nextval(pg_get_serial_sequence('{table}', 'key')) FROM generate_series(1, ?)",
        (count,),
    )
    return [key for (key,) in found]


def _find(connection: Connection, sql: str, ids: Iterable[UUID]) -> dict[UUID, tuple[Any, ...]]:
    """Rows by id. The id is the first column of the query, and is not in the values."""
    found = connection.query_each(sql, [connection.uuid(one) for one in ids])
    return {uuid_from(name): tuple(others) for name, *others in found}
