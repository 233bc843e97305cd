"""Task output: whether it was there, where the task stands, and what it printed."""

from typing import Any

import pytest
from pydantic import ValidationError
from tests.records.support import (
    artifact_path,
    check_golden,
    omitted,
    result_of,
    run,
    run_result,
    whole,
)

from tooltrail.records import ObservedTask, StreamRecord, TaskOutput


def task(output: bytes | StreamRecord | None = None, **fields: Any) -> ObservedTask:
    stream = whole(output, "output") if isinstance(output, bytes) else output
    known = {"task_id": "task_123", "kind": "command_task", "status": "running"}
    return ObservedTask.model_validate({**known, **fields, "output": stream})


def answer(status: str, observed: ObservedTask) -> TaskOutput:
    return TaskOutput.model_validate({"retrieval_status": status, "task": observed})


def test_the_receipt_is_worded_as_in_the_golden_file() -> None:
    check_golden(
        ("task_output", 2),
        task_output_success=answer(
            "success",
            task(
                b"12 passed\n",
                status="completed",
                exit_status=0,
                summary="npm  test",
                result_summary="12 tests\npassed",
            ),
        ),
        task_output_timeout=answer("timeout", task(b"still working")),
        task_output_not_ready=answer("not_ready", task(status="queued")),
        task_output_failure=answer(
            "success",
            task(
                b"building\n",
                status="failed",
                exit_status=2,
                failure=whole(b"Traceback\n", "failure"),
            ),
        ),
    )


@pytest.mark.parametrize(
    ("status", "summary"),
    [
        ("success", "task output retrieved; task is running"),
        ("timeout", "task output wait timed out; task is running"),
        ("not_ready", "task output is not ready; task is running"),
    ],
)
def test_the_summary_says_whether_the_output_was_there(status: str, summary: str) -> None:
    projection, _ = run(answer(status, task()))
    assert projection.canonical.summary_text == summary
    assert projection.canonical.status == "success"


def test_lists_show_how_the_command_of_the_task_ended() -> None:
    output = answer("success", task(status="failed", exit_status=7))
    assert output.facts() == (7, None, None)
    assert answer("success", task()).facts() == (None, None, None)


def test_a_task_without_output_has_no_spare_field() -> None:
    assert run_result(answer("not_ready", task())) == {
        "retrieval_status": "not_ready",
        "task": {
            "task_id": "task_123",
            "kind": "command_task",
            "status": "running",
            "summary": None,
            "output_preview": None,
            "output_truncated": False,
            "truncated": False,
        },
    }


def test_artifacts_stand_inside_the_task() -> None:
    data = b"line of output\n" * 2000
    failure = whole(b"Traceback\n", "failure")
    observed = task(data, status="failed", exit_status=2, failure=failure, result_summary="broken")
    projection, receipt = run(answer("success", observed))
    result = result_of(projection)
    paths = [artifact_path(whole(data)), artifact_path(failure)]
    inner = result["task"]
    assert sorted(result) == ["retrieval_status", "task"]
    assert inner["artifacts"] == [{"path": path} for path in paths]
    assert (inner["output_artifact"], inner["failure_artifact"]) == (0, 1)
    assert inner["output_truncated"] is inner["truncated"] is True
    assert (inner["exit_status"], inner["result_summary"]) == (2, "broken")
    assert 7_500 < len(inner["output_preview"]) <= 8_000
    assert receipt.text.endswith(f"\n\nArtifacts:\n{paths[0]} (output)\n{paths[1]} (failure)\n")
    assert [role for role, _ in projection.artifacts] == ["output", "failure"]


def test_a_log_of_a_failure_is_an_artifact_and_counted_as_not_shown() -> None:
    failure = whole(b"one\ntwo\n", "failure")
    projection, receipt = run(answer("success", task(b"out\n", status="failed", failure=failure)))
    inner = result_of(projection)["task"]
    assert inner["failure_artifact"] == 0
    assert (inner["output_truncated"], inner["truncated"]) == (False, True)
    assert omitted(projection.omissions, "failure", "bytes") == 8
    assert omitted(projection.omissions, "failure", "lines") == 2
    assert "one\ntwo" not in receipt.text


def test_long_sentences_are_cut_and_counted() -> None:
    projection, _ = run(answer("success", task(summary="s" * 241, result_summary="r" * 701)))
    inner = result_of(projection)["task"]
    assert inner["summary"] == "s" * 239 + "\u2026"
    assert inner["result_summary"] == "r" * 699 + "\u2026"
    assert (inner["output_truncated"], inner["truncated"]) == (False, True)
    assert omitted(projection.omissions, "task.summary", "chars") == 2
    assert omitted(projection.omissions, "task.result_summary", "chars") == 2


@pytest.mark.parametrize("status", ["queued", "running", "cancelling"])
def test_a_task_that_goes_on_has_no_exit_status(status: str) -> None:
    with pytest.raises(ValidationError, match=f"a task that is {status} has no exit status yet"):
        task(status=status, exit_status=0)


@pytest.mark.parametrize(
    "fields", [{"status": "done"}, {"exit_status": 256}, {"task_id": ""}, {"kind": "k" * 65}]
)
def test_a_task_that_cannot_be_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        task(None, **{"status": "failed", **fields})


def test_a_retrieval_status_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValidationError):
        answer("failed", task())
