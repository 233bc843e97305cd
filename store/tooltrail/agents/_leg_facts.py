"""The facts of a leg of an agent run: its beginning and its outcome."""

from uuid import UUID

from tooltrail.journal.clock import new_id, now
from tooltrail.journal.log import Entry
from tooltrail.records import (
    AgentVersion,
    LegEnded,
    LegStarted,
    leg_fact_json,
)
from tooltrail.records.digests import digest_of
from tooltrail.records.facts import AgentLeg, AgentOutcome


def leg_entry(session: UUID, started: LegStarted, agent: AgentVersion) -> Entry:
    """The fact that a session is a leg of an agent run, and how the leg begins."""
    document, described = leg_fact_json(started).encode(), agent.document.encode()
    fact = AgentLeg(
        session=session,
        id=new_id(),
        at=now(),
        document=digest_of(document),
        agent=digest_of(described),
        agent_version=agent.version,
    )
    return Entry(fact, [document, described])


def outcome_entry(session: UUID, ended: LegEnded) -> Entry:
    """The fact that the leg of a session ended, and how."""
    document = leg_fact_json(ended).encode()
    fact = AgentOutcome(session=session, id=new_id(), at=now(), document=digest_of(document))
    return Entry(fact, [document])
