"""What is recorded of an agent run besides its conversation."""

from uuid import UUID

import pytest
from tests.support.cases import each_case

from tooltrail.records import (
    AgentVersion,
    InvalidRecordError,
    LegEnded,
    LegStarted,
    digest_of,
    leg_fact_json,
    read_leg_fact,
)

RUN = UUID(int=7)
AGENT = AgentVersion(agent_id="researcher", version="1", document='{"id":"researcher"}')
STARTED = LegStarted(
    run_id=RUN,
    position=0,
    tier="small",
    model="m",
    wire_format="openai",
    agent_id="researcher",
    agent_digest=AGENT.digest,
    schema_digest=digest_of(b"{}"),
    time_limit_ms=60_000,
)
ENDED = LegEnded(
    outcome="result_not_submitted",
    reason="the model stopped",
    limit="reminders",
    escalated_to="large",
    step_count=2,
    reminder_count=1,
    duration_ms=12,
)


@pytest.mark.parametrize("fact", [STARTED, ENDED])
def test_a_fact_is_the_same_when_it_is_read_again(fact: LegStarted | LegEnded) -> None:
    assert read_leg_fact(leg_fact_json(fact)) == fact
    assert leg_fact_json(read_leg_fact(leg_fact_json(fact))) == leg_fact_json(fact)


def test_facts_are_worded_for_people() -> None:
    assert STARTED.sentence == "agent researcher begins with tier small: m"
    assert ENDED.sentence == "result_not_submitted: the model stopped; tier large goes on"
    alone = ENDED.model_copy(update={"escalated_to": None})
    assert alone.sentence == "result_not_submitted: the model stopped"


@each_case(
    "document",
    ['{"kind":"leg_started"}', "[]", "null", "{", '{"kind":"unheard"}', leg_fact_json(ENDED)[:-1]],
)
def test_what_is_no_fact_is_refused(document: str) -> None:
    with pytest.raises(InvalidRecordError, match="no fact of an agent run"):
        read_leg_fact(document)


def test_a_version_is_named_by_what_it_says() -> None:
    assert AGENT.digest == digest_of(b'{"id":"researcher"}')
    other = AGENT.model_copy(update={"document": '{"id":"researcher","model":"n"}'})
    assert other.digest != AGENT.digest
