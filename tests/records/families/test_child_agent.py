"""Child agents: how far they are, the handles to go on with, and a bounded report."""

from typing import Any

import pytest
from pydantic import ValidationError
from tests.records.support import check_golden, result_of, run, run_result, whole
from tests.support.cases import each_case
from tests.support.policies import policy_with

from tooltrail.records import ChildAgentOutput, StreamRecord, TaskHandle, TokenUsage

SMALL = policy_with(child_agent={"preview_chars": 1000, "receipt_chars": 3000})
LINES = b"".join(b"line %04d\n" % n for n in range(200))


def reported(report: bytes | StreamRecord) -> ChildAgentOutput:
    stream = report if isinstance(report, StreamRecord) else whole(report, "report")
    return ChildAgentOutput(agent_id="agent_7", status="completed", report=stream)


RUNNING = ChildAgentOutput(agent_id="agent_7", status="running")
COMPLETED = ChildAgentOutput(
    agent_id="agent_7",
    child_session_id="sess_1",
    task_handle=TaskHandle(task_id="task_9", kind="agent_task", status="completed"),
    status="completed",
    report=whole(b"Both tests pass.\n", "report"),
    token_usage=TokenUsage(input_tokens=1234, output_tokens=567),
)
JSON = ChildAgentOutput(
    agent_id="agent_7",
    status="failed",
    report=whole(b'{"found":[1,2]}', "report"),
    token_usage=TokenUsage(
        input_tokens=12, output_tokens=0, cache_read_tokens=1000, cache_write_tokens=20
    ),
)


def test_the_receipt_is_worded_as_in_the_golden_file() -> None:
    check_golden(
        ("child_agent", 2),
        child_agent_running=RUNNING,
        child_agent_completed=COMPLETED,
        child_agent_json=JSON,
        child_agent_cut=(reported(LINES), SMALL),
    )


def test_the_canonical_result_has_the_fields_of_the_family_and_no_idle_ones() -> None:
    assert run_result(COMPLETED) == {
        "agent_id": "agent_7",
        "child_session_id": "sess_1",
        "task_handle": {"task_id": "task_9", "kind": "agent_task", "status": "completed"},
        "status": "completed",
        "report_preview": "Both tests pass.\n",
        "report_truncated": False,
        "token_usage": {"input_tokens": 1234, "output_tokens": 567},
    }
    assert run_result(RUNNING) == {"agent_id": "agent_7", "status": "running"}
    assert run(RUNNING)[0].canonical.summary_text == "agent agent_7 running"


def test_a_report_without_a_word_is_not_a_cut_one() -> None:
    projection, receipt = run(reported(b""))
    assert result_of(projection) == {
        "agent_id": "agent_7",
        "status": "completed",
        "report_truncated": False,
    }
    assert receipt.text == "Agent agent_7 completed\n"


@each_case(
    "fields",
    [
        {"agent_id": ""},
        {"agent_id": "a" * 257},
        {"child_session_id": ""},
        {"status": "success"},
        {"token_usage": {"input_tokens": -1, "output_tokens": 0}},
        {"token_usage": {"input_tokens": 2**63, "output_tokens": 0}},
    ],
)
def test_an_agent_that_cannot_be_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        ChildAgentOutput.model_validate({"agent_id": "agent_7", "status": "running", **fields})
