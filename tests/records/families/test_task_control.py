"""Task control: where tasks stand, which there are, and what was asked of one."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.records.hidden import hidden_of
from tests.records.identifiers import identifiers
from tests.records.support import golden, omitted, surfaces
from tests.support.effort import times
from tests.support.policies import policy_with

from tooltrail.records import (
    CanonicalResult,
    CompleteOutput,
    FamilyOutput,
    Policy,
    Projection,
    Receipt,
    Task,
    TaskControlBudget,
    TaskInputOutput,
    TaskListOutput,
    TaskStatusOutput,
    TaskStopOutput,
    default_families,
)

ONE = policy_with(task_control={"max_items": 1})


def task(**fields: Any) -> Task:
    known = {"task_id": "task_123", "kind": "command_task", "status": "running"}
    return Task.model_validate({**known, **fields})


def run(output: FamilyOutput, policy: Policy | None = None) -> tuple[Projection, Receipt]:
    projection, receipt, _ = surfaces(
        CompleteOutput.success("TaskStatus", output), "task_control", policy
    )
    assert [role for role, _ in projection.artifacts] in ([], ["hidden"])
    return projection, receipt


def result_of(projection: Projection) -> dict[str, Any]:
    assert projection.canonical.result is not None
    return projection.canonical.result


LISTED = (
    task(task_id="task_1", summary="npm \n start"),
    task(task_id="task_2", status="failed", exit_status=2, summary="make"),
    task(task_id="task_3", status="queued", kind="agent_task"),
)


@pytest.mark.parametrize(
    ("name", "output", "policy"),
    [
        ("task_status", TaskStatusOutput(task=task(summary="npm start")), None),
        ("task_status_ended", TaskStatusOutput(task=task(status="failed", exit_status=2)), None),
        ("task_list", TaskListOutput(total_active=4, limit=3, tasks=LISTED), None),
        ("task_list_empty", TaskListOutput(total_active=0), None),
        (
            "task_list_hidden",
            TaskListOutput(total_active=1, tasks=(task(task_id="task_1"),) * 3),
            ONE,
        ),
        (
            "task_stop",
            TaskStopOutput(task=task(status="cancelling"), stop_requested=True),
            None,
        ),
        (
            "task_stop_forced",
            TaskStopOutput(
                task=task(status="cancelled"), stop_requested=True, force_stop_requested=True
            ),
            None,
        ),
        (
            "task_stop_idle",
            TaskStopOutput(task=task(status="completed"), stop_requested=False),
            None,
        ),
        ("task_input", TaskInputOutput(task=task(), accepted_input=True, bytes_written=12), None),
        (
            "task_input_refused",
            TaskInputOutput(task=task(status="completed"), accepted_input=False),
            None,
        ),
    ],
)
def test_the_receipt_is_worded_as_in_the_golden_file(
    name: str, output: FamilyOutput, policy: Policy | None
) -> None:
    _, receipt = run(output, policy)
    assert receipt.text == golden(name)
    assert (receipt.renderer_name, receipt.renderer_version) == ("task_control", 1)


def test_one_byte_and_one_task_are_counted_in_the_singular() -> None:
    output = TaskInputOutput(task=task(), accepted_input=True, bytes_written=1)
    assert (
        run(output)[1].text == "Input accepted by task task_123: 1 byte written\nStatus: running\n"
    )
    listed = TaskListOutput(total_active=2, tasks=(task(),) * 2)
    assert "\n[1 further task is not shown; listed in sha256/" in run(listed, ONE)[1].text


@pytest.mark.parametrize(
    "tool_name", ["TaskStatus", "ListTasks", "TaskStop", "TaskInput", "KillShell", "KillBash"]
)
def test_the_tools_that_control_tasks_belong_to_the_family(tool_name: str) -> None:
    assert default_families().of_tool(tool_name).name == "task_control"


@pytest.mark.parametrize(
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
    assert result_of(run(output)[0]) == {
        "action": "status",
        "task": {
            "task_id": "task_123",
            "kind": "command_task",
            "status": "completed",
            "summary": "make",
            "exit_status": 0,
        },
    }


def test_a_list_says_how_many_there_are_and_how_many_were_given() -> None:
    output = TaskListOutput(total_active=9, limit=2, tasks=LISTED[:2])
    assert result_of(run(output)[0]) == {
        "action": "list",
        "total_active": 9,
        "returned": 2,
        "limit": 2,
        "tasks": [
            {
                "task_id": "task_1",
                "kind": "command_task",
                "status": "running",
                "summary": "npm \n start",
            },
            {
                "task_id": "task_2",
                "kind": "command_task",
                "status": "failed",
                "summary": "make",
                "exit_status": 2,
            },
        ],
    }


def test_what_nobody_knows_of_a_task_or_a_list_is_null() -> None:
    result = result_of(run(TaskListOutput(total_active=1, tasks=(task(),)))[0])
    assert result["limit"] is None
    assert result["tasks"] == [
        {"task_id": "task_123", "kind": "command_task", "status": "running", "summary": None}
    ]


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
    assert result_of(run(output)[0]) == {
        "action": "stop",
        "task": {
            "task_id": "task_123",
            "kind": "command_task",
            "status": "cancelling",
            "summary": None,
        },
        "stop_requested": True,
        "force_stop_requested": False,
    }


def test_a_refused_input_is_an_answer_and_no_error() -> None:
    projection, _ = run(TaskInputOutput(task=task(status="failed"), accepted_input=False))
    assert (projection.canonical.status, projection.canonical.error) == ("success", None)
    assert result_of(projection) == {
        "action": "input",
        "task": {
            "task_id": "task_123",
            "kind": "command_task",
            "status": "failed",
            "summary": None,
        },
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


def test_a_summary_cannot_pass_for_another_task_of_the_list() -> None:
    imitation = task(summary="make\ntask_9    failed    command_task")
    _, receipt = run(TaskListOutput(total_active=1, tasks=(imitation,)))
    assert receipt.text == (
        "1 active task, 1 returned\n"
        "task_123    running    command_task    make task_9 failed command_task\n"
    )


@pytest.mark.parametrize(
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


def task_of(task_id: str, kind: str, status: str, summary: str | None) -> Task:
    ended = status in ("completed", "failed")
    return task(
        task_id=task_id,
        kind=kind,
        status=status,
        summary=summary,
        exit_status=255 if ended else None,
    )


tasks = st.builds(
    task_of,
    identifiers,
    st.text(st.characters(), max_size=10) | st.just("k" * 64),
    st.sampled_from(["queued", "running", "cancelling", "completed", "failed", "interrupted"]),
    st.none() | st.text(st.characters(), max_size=50) | st.sampled_from(["x" * 900, "\n" * 900]),
)
numbers = st.integers(0, (1 << 63) - 1)
outputs: st.SearchStrategy[FamilyOutput] = st.one_of(
    st.builds(TaskStatusOutput, task=tasks),
    st.builds(
        TaskListOutput,
        total_active=numbers,
        limit=st.none() | numbers,
        tasks=st.lists(tasks, max_size=6).map(tuple),
    ),
    st.builds(
        TaskStopOutput,
        task=tasks,
        stop_requested=st.booleans(),
        force_stop_requested=st.booleans(),
    ),
    st.builds(
        TaskInputOutput,
        task=tasks,
        accepted_input=st.booleans(),
        bytes_written=st.none() | numbers,
    ),
)


@settings(max_examples=times(37))
@given(outputs, st.integers(1, 5))
def test_any_answer_has_a_bounded_repeatable_accounted_receipt(
    output: FamilyOutput, max_items: int
) -> None:
    budget = {
        "max_items": max_items,
        "preview_chars": 1000,
        "receipt_chars": 3000 + max_items * TaskControlBudget.item_chars,
    }
    policy = policy_with(task_control=budget)
    projection, receipt = run(output, policy)
    again, receipt_again = run(output.model_copy(deep=True), policy)
    assert projection.canonical.to_json() == again.canonical.to_json()
    assert CanonicalResult.from_json(projection.canonical.to_json()) == projection.canonical
    assert receipt == receipt_again
    assert receipt.omissions == ()
    assert len(receipt.text) <= budget["receipt_chars"]
    result = result_of(projection)
    assert result.get("truncated", False) is bool(projection.omissions)
    assert receipt.text.count("\n") <= max(3, max_items + 2)
    if isinstance(output, TaskListOutput):
        whole_ids = [entry.task_id for entry in output.tasks[:max_items]]
        assert [entry["task_id"] for entry in result["tasks"]] == whole_ids


def test_the_widest_lines_of_the_most_tasks_fit_into_the_receipt() -> None:
    widest = task_of("\u6f22" * 256, "k" * 64, "completed", "x" * 900)
    policy = policy_with(task_control={"max_items": 256, "receipt_chars": 3000 + 256 * 640})
    projection, receipt = run(TaskListOutput(total_active=1, tasks=(widest,) * 300), policy)
    assert receipt.omissions == ()
    assert omitted(projection.omissions, "tasks", "items") == 44
    # A heading, the tasks, and the count of those that are not shown.
    assert receipt.text.count("\n") == 258
