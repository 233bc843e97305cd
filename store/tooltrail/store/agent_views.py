"""What reading gives back of agent runs: plain values that hold no connection."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from pydantic import JsonValue

from tooltrail.records import Digest, InvocationState, LegEnded, LegStarted, SchemaViolation


@dataclass(frozen=True, slots=True)
class AttemptView:
    """One submission of a result.

    Attributes:
        invocation_id: of the call.
        state: of the call; of one whose arguments could not be read `error`.
        attempt: its number, from 1; None where there is no verdict.
        valid: the verdict; None where there is none.
        errors: ways in which the schema was broken, as many as the canonical result lists.
        error_count: of all of them.
    """

    invocation_id: UUID
    state: InvocationState
    attempt: int | None
    valid: bool | None
    errors: tuple[SchemaViolation, ...]
    error_count: int


@dataclass(frozen=True, slots=True)
class LegView:
    """One leg of an agent run.

    Attributes:
        session_id: that it is.
        started_at: when it began, aware UTC.
        started: how it began.
        ended: how it came out; None while that is not recorded.
        attempts: submissions, in their order.
    """

    session_id: UUID
    started_at: datetime
    started: LegStarted
    ended: LegEnded | None
    attempts: tuple[AttemptView, ...]


@dataclass(frozen=True, slots=True)
class AgentVersionView:
    """One version of an agent.

    Attributes:
        digest: of its description.
        agent_id: the same for all its versions.
        version: what its author calls it.
        document: canonical JSON of its description.
        created_at: when it was first run, aware UTC.
    """

    digest: Digest
    agent_id: str
    version: str | None
    document: str
    created_at: datetime


@dataclass(frozen=True, slots=True)
class AcceptedValue:
    """A result that was submitted and accepted.

    Attributes:
        invocation_id: of the submission.
        schema_digest: of the schema that accepted it.
        value: the whole of it.
    """

    invocation_id: UUID
    schema_digest: Digest
    value: JsonValue
