"""Legs of agent runs, recorded as a program records them, but without a model."""

from collections.abc import Iterable
from typing import Any
from uuid import UUID

from tooltrail.agents._leg_facts import leg_entry, outcome_entry
from tooltrail.records import (
    AgentVersion,
    CompleteOutput,
    LegEnded,
    LegOutcome,
    LegStarted,
    SchemaViolation,
    StructuredOutput,
    ToolCall,
    digest_of,
    error_of_invalid_arguments,
)
from tooltrail.store import Session, Store

SCHEMA = digest_of(b'{"type":"object"}')


def version(agent_id: str = "researcher", name: str = "1") -> AgentVersion:
    return AgentVersion(agent_id=agent_id, version=name, document=f'{{"id":"{agent_id}{name}"}}')


def beginning(session: Session, **told: Any) -> LegStarted:
    """The start of a leg; the first leg of its run unless another run is given."""
    agent = told.pop("agent", version())
    members: dict[str, Any] = {
        "run_id": session.id,
        "position": 0,
        "tier": "small",
        "model": "m",
        "wire_format": "openai",
        "agent_id": agent.agent_id,
        "agent_digest": agent.digest,
        "schema_digest": SCHEMA,
        "time_limit_ms": 60_000,
    }
    return LegStarted(**{**members, **told})


def ending(outcome: LegOutcome = "submitted", **told: Any) -> LegEnded:
    members: dict[str, Any] = {"outcome": outcome, "reason": "so it was", "duration_ms": 10}
    return LegEnded(**{**members, **told})


def submit(
    session: Session,
    value: dict[str, Any],
    *errors: tuple[str, str],
    attempt: int = 1,
    agent: str = "researcher",
) -> UUID:
    """Record a validated submission; the submission is valid without `errors`."""
    call = ToolCall.of("submit_result", value)
    violations = [SchemaViolation(path=path, message=message) for path, message in errors]
    verdict = StructuredOutput.of(
        value, agent=agent, schema_digest=SCHEMA, attempt=attempt, errors=violations
    )
    finished = session.start(call).finish(CompleteOutput.success("submit_result", verdict))
    return finished.invocation_id


def submit_nothing_readable(session: Session) -> UUID:
    """Record a submission whose arguments are not JSON."""
    call = ToolCall(tool_name="submit_result", arguments_raw='{"a": ')
    error = error_of_invalid_arguments("submit_result", "not JSON")
    return session.start(call).finish(CompleteOutput.failure("submit_result", error)).invocation_id


def record_leg(
    store: Store,
    outcome: LegOutcome | None = "submitted",
    *,
    agent: AgentVersion | None = None,
    values: Iterable[tuple[dict[str, Any], tuple[tuple[str, str], ...]]] = (),
    ended: dict[str, Any] | None = None,
    **told: Any,
) -> UUID:
    """Record a complete leg with its submissions; without an outcome, the leg has not ended."""
    named = agent or version()
    with store.open_session(agent=named.agent_id) as session:
        session.append([leg_entry(session.id, beginning(session, agent=named, **told), named)])
        for number, (value, errors) in enumerate(values, 1):
            submit(session, value, *errors, attempt=number, agent=named.agent_id)
        if outcome is not None:
            session.append([outcome_entry(session.id, ending(outcome, **(ended or {})))])
    return session.id
