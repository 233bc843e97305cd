"""What is written of a fact about a leg of an agent run, besides the message that tells it."""

from dataclasses import dataclass
from datetime import datetime

from tooltrail.records import (
    AgentVersion,
    Digest,
    InvalidRecordError,
    LegEnded,
    LegStarted,
    canonical_json,
    digest_of,
    read_leg_fact,
)
from tooltrail.store._engines.prepared import Row
from tooltrail.store.entries import MessageAdded
from tooltrail.store.tables import AgentLegRow, AgentOutcomeRow


@dataclass(frozen=True, slots=True)
class LegRows:
    """The rows of one fact.

    Attributes:
        table: that the fact has a row in.
        row: without the keys of its message and its session.
        digest: of the fact, which the ledger commits to.
        agent: the row of the version of the agent, where a leg begins.
    """

    table: type[AgentLegRow | AgentOutcomeRow]
    row: Row
    digest: Digest
    agent: Row | None = None

    @classmethod
    def of(cls, entry: MessageAdded) -> "LegRows | None":
        """Those of the fact that an entry tells; None where it tells none.

        Raises:
            InvalidRecordError: it is no fact that this program knows, or of another version of the
                agent than the one that is told with it.
        """
        if entry.leg is None:
            return None
        fact = read_leg_fact(entry.leg)
        digest = digest_of(entry.leg.encode())
        if isinstance(fact, LegEnded):
            return cls(AgentOutcomeRow, {**outcome_columns(fact), "document": entry.leg}, digest)
        row = {**leg_columns(fact, entry.at), "document": entry.leg}
        return cls(AgentLegRow, row, digest, _agent_row(fact, entry))


def leg_columns(fact: LegStarted, started_at: datetime) -> Row:
    """What the columns say of the beginning of a leg."""
    return {
        "run_id": fact.run_id,
        "position": fact.position,
        "tier": fact.tier,
        "model": fact.model,
        "wire_format": fact.wire_format,
        "agent_id": fact.agent_id,
        "agent_digest": fact.agent_digest,
        "schema_digest": fact.schema_digest,
        "started_at": started_at,
    }


def outcome_columns(fact: LegEnded) -> Row:
    """What the columns say of the end of a leg."""
    return {
        "outcome": fact.outcome,
        "escalated_to": fact.escalated_to,
        "attempt_count": fact.attempt_count,
        "duration_ms": fact.duration_ms,
    }


def agent_json(agent: AgentVersion) -> str:
    """A version of an agent as an entry has it."""
    return canonical_json.encode_text(agent.model_dump())


def _agent_row(fact: LegStarted, entry: MessageAdded) -> Row:
    try:
        agent = AgentVersion.model_validate(canonical_json.decode(entry.agent_version or "null"))
    except ValueError as error:
        raise InvalidRecordError(f"no version of an agent: {error}") from error
    if (agent.digest, agent.agent_id) != (fact.agent_digest, fact.agent_id):
        raise InvalidRecordError(f"the leg is not of version {agent.digest} of {agent.agent_id}")
    return {
        "digest": agent.digest,
        "agent_id": agent.agent_id,
        "version": agent.version,
        "document": agent.document,
        "created_at": entry.at,
    }
