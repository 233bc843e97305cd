"""Task control: where tasks stand, which there are, and what was asked of one."""

from typing import Any

import pytest
from pydantic import ValidationError
from tests.records.hidden import hidden_of
from tests.records.support import check_golden, omitted, result_of, run, run_result, surfaces
from tests.support.cases import each_case
from tests.support.policies import policy_with

from tooltrail.records import (
    CompleteOutput,
    FamilyOutput,
    Task,
    TaskInputOutput,
    TaskListOutput,
    TaskStatusOutput,
    TaskStopOutput,
)

ONE = policy_with(task_control={"max_items": 1})


def task(**fields: Any) -> Task:
    known = {"task_id": "task_123", "kind": "command_task", "status": "running"}
    return Task.model_validate({**known, **fields})


def snapshot(**fields: Any) -> dict[str, Any]:
    known = {"task_id": "task_123", "kind": "command_task", "status": "running", "summary": None}
    return {**known, **fields}


LISTED = (
    task(task_id="task_1", summary="npm \n start"),
    task(task_id="task_2", status="failed", exit_status=2, summary="make"),
    task(task_id="task_3", status="queued", kind="agent_task"),
)


def test_the_receipt_is_worded_as_in_the_golden_file() -> None:
    check_golden(
        ("task_control", 1),
        task_status=TaskStatusOutput(task=task(summary="npm start")),
        task_status_ended=TaskStatusOutput(task=task(status="failed", exit_status=2)),
        task_list=TaskListOutput(total_active=4, limit=3, tasks=LISTED),
        task_list_empty=TaskListOutput(total_active=0),
        task_list_hidden=(TaskListOutput(total_active=1, tasks=(task(task_id="task_1"),) * 3), ONE),
        task_stop=TaskStopOutput(task=task(status="cancelling"), stop_requested=True),
        task_stop_forced=TaskStopOutput(
            task=task(status="cancelled"), stop_requested=True, force_stop_requested=True
        ),
        task_stop_idle=TaskStopOutput(task=task(status="completed"), stop_requested=False),
        task_input=TaskInputOutput(task=task(), accepted_input=True, bytes_written=12),
        task_input_refused=TaskInputOutput(task=task(status="completed"), accepted_input=False),
    )


def test_one_byte_and_one_task_are_counted_in_the_singular() -> None:
    output = TaskInputOutput(task=task(), accepted_input=True, bytes_written=1)
    assert (
        run(output)[1].text == "Input accepted by task task_123: 1 byte written\nStatus: running\n"
    )
    listed = TaskListOutput(total_active=2, tasks=(task(),) * 2)
    assert "\n[1 further task is not shown; listed in sha256/" in run(listed, ONE)[1].text


@each_case(
    ("output", "summary"),
    [
        (TaskStatusOutput(task=task()), "task is running"),
        (TaskListOutput(total_active=1, tasks=LISTED), "1 active task, 3 returned"),
        (
            TaskStopOutput(task=task(status="cancelling"), stop_requested=True),
            "stop requested; task is cancelling",
        ),
        (
            TaskStopOutput(
                task=task(status="cancelled"), stop_requested=True, force_stop_requested=True
            ),
            "forced stop requested; task is cancelled",
        ),
        (
            TaskStopOutput(task=task(status="completed"), stop_requested=False),
            "no stop requested; task is completed",
        ),
        (TaskInputOutput(task=task(), accepted_input=True), "input accepted; task is running"),
        (TaskInputOutput(task=task(), accepted_input=False), "input refused; task is running"),
    ],
)
def test_the_summary_says_what_came_of_it(output: FamilyOutput, summary: str) -> None:
    assert run(output)[0].canonical.summary_text == summary


def test_a_look_at_a_task_is_a_snapshot_without_output() -> None:
    output = TaskStatusOutput(task=task(status="completed", exit_status=0, summary="make"))
    assert run_result(output) == {
        "action": "status",
        "task": snapshot(status="completed", summary="make", exit_status=0),
    }


def test_a_list_says_how_many_there_are_and_how_many_were_given() -> None:
    output = TaskListOutput(total_active=9, limit=2, tasks=LISTED[:2])
    assert run_result(output) == {
        "action": "list",
        "total_active": 9,
        "returned": 2,
        "limit": 2,
        "tasks": [
            snapshot(task_id="task_1", summary="npm \n start"),
            snapshot(task_id="task_2", status="failed", summary="make", exit_status=2),
        ],
    }


def test_what_nobody_knows_of_a_task_or_a_list_is_null() -> None:
    result = run_result(TaskListOutput(total_active=1, tasks=(task(),)))
    assert result["limit"] is None
    assert result["tasks"] == [snapshot()]


def test_tasks_beyond_the_maximum_are_counted_and_listed() -> None:
    output = TaskListOutput(total_active=3, tasks=LISTED)
    complete = CompleteOutput.success("ListTasks", output)
    projection, _, publisher = surfaces(complete, "task_control", ONE)
    result = result_of(projection)
    assert [(e["field"], e["n"], e["value"]["task_id"]) for e in hidden_of(result, publisher)] == [
        ("tasks", 1, "task_2"),
        ("tasks", 2, "task_3"),
    ]
    assert (len(result["tasks"]), result["returned"], result["truncated"]) == (1, 3, True)
    assert omitted(projection.omissions, "tasks", "items") == 2


def test_a_request_to_end_a_task_says_what_was_asked() -> None:
    output = TaskStopOutput(task=task(status="cancelling"), stop_requested=True)
    assert run_result(output) == {
        "action": "stop",
        "task": snapshot(status="cancelling"),
        "stop_requested": True,
        "force_stop_requested": False,
    }


def test_a_refused_input_is_an_answer_and_no_error() -> None:
    projection, _ = run(TaskInputOutput(task=task(status="failed"), accepted_input=False))
    assert (projection.canonical.status, projection.canonical.error) == ("success", None)
    assert result_of(projection) == {
        "action": "input",
        "task": snapshot(status="failed"),
        "accepted_input": False,
    }


def test_the_summary_of_one_task_is_longer_than_those_of_a_list() -> None:
    long = task(summary="s" * 701)
    projection, _ = run(TaskStatusOutput(task=long))
    assert result_of(projection)["task"]["summary"] == "s" * 699 + "\u2026"
    assert result_of(projection)["truncated"] is True
    assert omitted(projection.omissions, "task.summary", "chars") == 2
    projection, _ = run(TaskListOutput(total_active=2, tasks=(task(), long)))
    assert result_of(projection)["tasks"][1]["summary"] == "s" * 239 + "\u2026"
    assert omitted(projection.omissions, "tasks[1].summary", "chars") == 701 - 239


@each_case(
    ("kind", "fields"),
    [
        (TaskListOutput, {"total_active": -1}),
        (TaskListOutput, {"total_active": 1, "limit": -1}),
        (TaskListOutput, {"total_active": 1 << 63}),
        (TaskInputOutput, {"task": task(), "accepted_input": True, "bytes_written": -1}),
        (TaskStatusOutput, {"task": task(), "action": "stop"}),
    ],
)
def test_a_count_or_action_that_cannot_be_is_refused(
    kind: type[FamilyOutput], fields: dict[str, Any]
) -> None:
    with pytest.raises(ValidationError):
        kind.model_validate(fields)
