"""Makes facts of what a session holds besides calls: its opening and its end, messages, tools."""

from collections.abc import Iterable
from datetime import datetime
from uuid import UUID

from tooltrail.journal.clock import now
from tooltrail.journal.environment import environment_json
from tooltrail.journal.log import Entry
from tooltrail.records import (
    AgentVersion,
    InvalidRecordError,
    LegEnded,
    LegStarted,
    Message,
    ToolDefinition,
    leg_fact_json,
)
from tooltrail.records.digests import digest_of
from tooltrail.records.facts import (
    AgentLeg,
    AgentOutcome,
    MessageAdded,
    SessionClosed,
    SessionOpened,
    ToolsOffered,
)


def opened_entry(
    session: UUID,
    *,
    at: datetime | None = None,
    name: str | None = None,
    title: str | None = None,
    agent: str | None = None,
    parent: UUID | None = None,
) -> Entry:
    """The fact that a session begins; see `Session.open`."""
    environment = environment_json()
    fact = SessionOpened(
        session=session,
        at=at or now(),
        name=name,
        title=title,
        agent=agent,
        parent=parent,
        environment=digest_of(environment),
    )
    return Entry(fact, [environment])


def closed_entry(session: UUID, reason: str | None) -> Entry:
    """The fact that a session ends."""
    return Entry(SessionClosed(session=session, at=now(), reason=reason))


def message_entry(
    session: UUID,
    message_id: UUID,
    message: Message,
    *,
    payload: bytes | None = None,
    at: datetime | None = None,
) -> Entry:
    """The fact that a session gets a message; see `Session.message`."""
    text, document = message.text.encode("utf-8", "surrogatepass"), message.to_json()
    fact = MessageAdded(
        session=session,
        id=message_id,
        at=at or now(),
        role=message.role,
        text=digest_of(text),
        document=digest_of(document),
        payload=None if payload is None else digest_of(payload),
        wire_format=None if message.origin is None else message.origin.wire_format,
    )
    return Entry(fact, [text, document] if payload is None else [text, document, payload])


def offered_entry(session: UUID, offer_id: UUID, tools: Iterable[ToolDefinition]) -> Entry:
    """The fact that a session offers these tools and no others from here on."""
    definitions = [tool.to_json() for tool in tools]
    digests = tuple(map(digest_of, definitions))
    return Entry(ToolsOffered(session=session, id=offer_id, at=now(), tools=digests), definitions)


def leg_entry(session: UUID, fact_id: UUID, started: LegStarted, agent: AgentVersion) -> Entry:
    """The fact that a session is a leg of an agent run.

    Raises:
        InvalidRecordError: the leg is of another version of the agent.
    """
    if agent.digest != started.agent_digest:
        raise InvalidRecordError("the leg is of another version of the agent")
    document, described = leg_fact_json(started).encode(), agent.document.encode()
    fact = AgentLeg(
        session=session,
        id=fact_id,
        at=now(),
        document=digest_of(document),
        agent=digest_of(described),
        agent_version=agent.version,
    )
    return Entry(fact, [document, described])


def outcome_entry(session: UUID, fact_id: UUID, ended: LegEnded) -> Entry:
    """The fact that the leg of an agent run that a session is has ended."""
    document = leg_fact_json(ended).encode()
    fact = AgentOutcome(session=session, id=fact_id, at=now(), document=digest_of(document))
    return Entry(fact, [document])
