"""What the store knows already of the sessions, calls and messages that a batch of facts names."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple
from uuid import UUID

from tooltrail.records.digests import Digest
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
from tooltrail.store.engines.connection import Connection
from tooltrail.store.engines.values import digest_from
from tooltrail.store.ingest.outcomes import Beginning

FIRST_SEQ: Final = 1
"""Place of the first entry of a session."""


class Entry(NamedTuple):
    """Where the fact behind a row is: a ledger entry."""

    journal_key: int
    n: int


@dataclass(slots=True)
class Session:
    """One session while a batch is applied.

    Attributes:
        key: of its row; None until the row is inserted.
        id: of the session.
        opening: entry of its `session.opened`; None until that was applied.
        is_closed: whether its `session.closed` was applied.
        next_seq: place of its next entry; 0 until somebody asks.
    """

    key: int | None
    id: UUID
    opening: Entry | None
    is_closed: bool
    next_seq: int = 0


@dataclass(slots=True)
class Call:
    """One invocation while a batch is applied.

    Attributes:
        key: of its row; None for one that this batch starts.
        session: id of its session.
        beginning: what its end must know.
        start: entry of its `call.started`.
        end: entry of its `call.ended`; None until that was applied.
    """

    key: int | None
    session: UUID
    beginning: Beginning
    start: Entry
    end: Entry | None


@dataclass(frozen=True, slots=True)
class Known:
    """What the store knows of the ids that a batch names.

    Attributes:
        sessions: by id.
        calls: by id.
        messages: the entry of each, by id.
        bodies: those of the asked digests that are stored.
        open_answers: ids of the named messages that are still being streamed.
    """

    sessions: dict[UUID, Session]
    calls: dict[UUID, Call]
    messages: dict[UUID, Entry]
    bodies: frozenset[Digest]
    open_answers: set[UUID]


MessageFact = MessageAdded | ToolsOffered | AgentLeg | AgentOutcome
"""Facts that take a place among the messages of their session."""


def load_known(connection: Connection, facts: Iterable[Fact], absent: Iterable[Digest]) -> Known:
    """Look up what some facts name. The rows of their sessions are locked.

    Args:
        connection: the connection.
        facts: which.
        absent: bodies that the facts name and that do not travel with them.
    """
    sessions: dict[UUID, None] = {}
    calls: dict[UUID, None] = {}
    messages: dict[UUID, None] = {}
    for fact in facts:
        if not isinstance(fact, Maintenance | AnswerStarted):
            sessions[fact.session] = None
        if isinstance(fact, CallStarted | CallEnded):
            calls[fact.id] = None
        elif isinstance(fact, MessageFact | AnswerStarted):
            messages[fact.id] = None
    return Known(
        {one.id: one for one in _sessions(connection, list(sessions))},
        dict(_calls(connection, list(calls))),
        dict(_messages(connection, list(messages))),
        _bodies(connection, sorted(set(absent))),
        _open_answers(connection, list(messages)),
    )


def next_seq(connection: Connection, session_key: int) -> int:
    """The place behind the last entry of a session."""
    ((last,),) = connection.query(
        "SELECT max(seq) FROM ("
        "SELECT max(seq) AS seq FROM invocations WHERE session_key = ? UNION ALL "
        "SELECT max(seq) FROM messages WHERE session_key = ?) AS entries",
        (session_key, session_key),
    )
    return FIRST_SEQ if last is None else int(last) + 1


def _sessions(connection: Connection, ids: list[UUID]) -> Iterable[Session]:
    # Ingesters of several machines may append to one session. Each waits for the other. All lock in
    # the same order, so that no two wait for each other.
    lock = "" if connection.is_sqlite else " ORDER BY id FOR UPDATE"
    found = connection.query_each(
        "SELECT key, id, open_journal_key, entry, closed_at IS NOT NULL FROM sessions"
        f" WHERE id IN (?){lock}",
        [connection.uuid(one) for one in sorted(ids)],
    )
    for key, session_id, journal_key, entry, is_closed in found:
        opening = None if entry is None else Entry(journal_key, entry)
        yield Session(key, connection.read_uuid(session_id), opening, bool(is_closed))


def _calls(connection: Connection, ids: list[UUID]) -> Iterable[tuple[UUID, Call]]:
    found = connection.query_each(
        "SELECT i.id, i.key, s.id, i.tool_name, i.family, i.policy, i.journal_key, i.start_entry,"
        " i.end_journal_key, i.end_entry FROM invocations AS i"
        " JOIN sessions AS s ON s.key = i.session_key WHERE i.id IN (?)",
        [connection.uuid(one) for one in ids],
    )
    for name, key, session, tool_name, family, policy, journal, start, end_journal, end in found:
        yield (
            connection.read_uuid(name),
            Call(
                key=key,
                session=connection.read_uuid(session),
                beginning=Beginning(tool_name, family, digest_from(policy)),
                start=Entry(journal, start),
                end=None if end is None else Entry(end_journal, end),
            ),
        )


def _messages(connection: Connection, ids: list[UUID]) -> Iterable[tuple[UUID, Entry]]:
    found = connection.query_each(
        "SELECT id, journal_key, entry FROM messages WHERE id IN (?)",
        [connection.uuid(one) for one in ids],
    )
    for name, journal_key, entry in found:
        yield connection.read_uuid(name), Entry(journal_key, entry)


def _bodies(connection: Connection, digests: list[Digest]) -> frozenset[Digest]:
    found = connection.query_each(
        "SELECT digest FROM bodies WHERE digest IN (?)", [connection.sha(one) for one in digests]
    )
    return frozenset(digest_from(digest) for (digest,) in found)


def _open_answers(connection: Connection, ids: list[UUID]) -> set[UUID]:
    found = connection.query_each(
        "SELECT message_id FROM open_answers WHERE message_id IN (?)",
        [connection.uuid(one) for one in ids],
    )
    return {connection.read_uuid(one) for (one,) in found}
