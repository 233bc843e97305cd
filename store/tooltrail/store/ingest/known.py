"""What the store knows already of the sessions, calls and messages that a batch of facts names."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

from tooltrail.records.digests import ALGORITHM, Digest
from tooltrail.records.facts import (
    AgentLeg,
    AgentOutcome,
    CallEnded,
    CallStarted,
    Fact,
    Maintenance,
    MessageAdded,
    ToolsOffered,
)
from tooltrail.store.ingest.native import Native, moment_of
from tooltrail.store.ingest.outcomes import Beginning

FIRST_SEQ: Final = 1
"""Place of the first entry of a session."""


@dataclass(slots=True)
class Session:
    """One session while a batch is applied.

    Attributes:
        key: of its row; None until the row is inserted.
        id: of the session.
        opened_at: when it began.
        is_opened: whether its `session.opened` was applied.
        is_closed: whether its `session.closed` was applied.
        next_seq: place of its next entry; 0 until somebody asks.
    """

    key: int | None
    id: UUID
    opened_at: datetime
    is_opened: bool
    is_closed: bool
    next_seq: int = 0


@dataclass(slots=True)
class Call:
    """One invocation while a batch is applied.

    Attributes:
        key: of its row; None for one that this batch starts.
        session: id of its session.
        beginning: what its end must know.
        is_ended: whether its `call.ended` was applied.
        start_entry: ledger entry of its start; with the journal, where its fact is.
        end_entry: ledger entry of its end.
        journal_key: of these entries.
    """

    key: int | None
    session: UUID
    beginning: Beginning
    is_ended: bool
    start_entry: int
    end_entry: int | None
    journal_key: int


@dataclass(slots=True)
class Message:
    """One message that is recorded already: where its fact is."""

    journal_key: int
    entry: int


@dataclass(frozen=True, slots=True)
class Known:
    """What the store knows of the ids that a batch names."""

    sessions: dict[UUID, Session]
    calls: dict[UUID, Call]
    messages: dict[UUID, Message]


MessageFact = MessageAdded | ToolsOffered | AgentLeg | AgentOutcome
"""Facts that take a place among the messages of their session."""


def load_known(native: Native, facts: Iterable[Fact]) -> Known:
    """Look the ids of some facts up, in three queries."""
    sessions: dict[UUID, None] = {}
    calls: dict[UUID, None] = {}
    messages: dict[UUID, None] = {}
    for fact in facts:
        if not isinstance(fact, Maintenance):
            sessions[fact.session] = None
        if isinstance(fact, CallStarted | CallEnded):
            calls[fact.id] = None
        elif isinstance(fact, MessageFact):
            messages[fact.id] = None
    return Known(
        {one.id: one for one in _sessions(native, list(sessions))},
        dict(_calls(native, list(calls))),
        dict(_messages(native, list(messages))),
    )


def next_seq(native: Native, session_key: int) -> int:
    """The place behind the last entry of a session."""
    ((last,),) = native.query(
        "SELECT max(seq) FROM ("
        "SELECT max(seq) AS seq FROM invocations WHERE session_key = ? UNION ALL "
        "SELECT max(seq) FROM messages WHERE session_key = ?) AS entries",
        (session_key, session_key),
    )
    return FIRST_SEQ if last is None else int(last) + 1


def _sessions(native: Native, ids: list[UUID]) -> Iterable[Session]:
    # Ingesters of several machines may append to one session. Each waits for the other.
    lock = "" if native.is_sqlite else " ORDER BY id FOR UPDATE"
    found = native.query_each(
        "SELECT key, id, opened_at, entry IS NOT NULL, closed_at IS NOT NULL FROM sessions"
        f" WHERE id IN (?){lock}",
        [native.uuid(one) for one in ids],
    )
    for key, session_id, opened_at, is_opened, is_closed in found:
        name = native.read_uuid(session_id)
        yield Session(key, name, moment_of(opened_at), bool(is_opened), bool(is_closed))


def _calls(native: Native, ids: list[UUID]) -> Iterable[tuple[UUID, Call]]:
    found = native.query_each(
        "SELECT i.id, i.key, s.id, i.tool_name, i.family, i.policy, i.state, i.start_entry,"
        " i.end_entry, i.journal_key FROM invocations AS i"
        " JOIN sessions AS s ON s.key = i.session_key WHERE i.id IN (?)",
        [native.uuid(one) for one in ids],
    )
    for row in found:
        name, key, session, tool_name, family, policy, state, start, end, journal = row
        beginning = Beginning(tool_name, family, Digest(f"{ALGORITHM}:{bytes(policy).hex()}"))
        yield (
            native.read_uuid(name),
            Call(
                key=key,
                session=native.read_uuid(session),
                beginning=beginning,
                is_ended=state != "started",
                start_entry=start,
                end_entry=end,
                journal_key=journal,
            ),
        )


def _messages(native: Native, ids: list[UUID]) -> Iterable[tuple[UUID, Message]]:
    found = native.query_each(
        "SELECT id, journal_key, entry FROM messages WHERE id IN (?)",
        [native.uuid(one) for one in ids],
    )
    for name, journal_key, entry in found:
        yield native.read_uuid(name), Message(journal_key, entry)
