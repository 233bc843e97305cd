"""Commands that have one combined stream, that became a task, or that a task ran already."""

from typing import Any

import pytest
from pydantic import ValidationError
from tests.records.support import check_golden, omitted, result_of, run, run_result, whole
from tests.support.cases import each_case

from tooltrail.records import (
    CommandOutput,
    FamilyOutput,
    PromotedCommand,
    RunningCommand,
    StreamRecord,
    TaskHandle,
    digest_of,
)

HANDLE = TaskHandle(task_id="task_123", kind="command_task", status="running")


def combined(data: bytes | StreamRecord = b"", **fields: Any) -> CommandOutput:
    ending = {} if {"exit_status", "signal"} & fields.keys() else {"exit_status": 0}
    stream = data if isinstance(data, StreamRecord) else whole(data, "combined")
    return CommandOutput(combined=stream, **ending, **fields)


def promoted(data: bytes | StreamRecord | None = None, **fields: Any) -> PromotedCommand:
    stream = whole(data, "initial_output") if isinstance(data, bytes) else data
    return PromotedCommand(task_handle=HANDLE, initial_output=stream, **fields)


def test_the_receipt_is_worded_as_in_the_golden_file() -> None:
    check_golden(
        ("command", 2),
        command_promoted=promoted(b"Starting server on :3000\n", command="npm start"),
        command_promoted_silent=promoted(),
        command_promoted_long=promoted(b"\0started\n"),
        command_running=RunningCommand(
            task_handle=HANDLE, command="npm \n start", task_summary="development server\non :3000"
        ),
        command_running_bare=RunningCommand(
            task_handle=TaskHandle(task_id="task_123", kind="command_task")
        ),
        command_combined=combined(
            b"$ make\nmake: *** No rule to make target 'all'.", exit_status=1
        ),
        command_combined_silent=combined(signal=9),
        command_combined_long=combined(b"\0made\n"),
    )


@pytest.mark.parametrize(
    ("output", "summary"),
    [
        (promoted(), "command promoted to managed task"),
        (RunningCommand(task_handle=HANDLE), "command is already running as a background task"),
        (combined(exit_status=2), "command exited with status 2"),
    ],
)
def test_the_summary_says_what_became_of_the_command(output: FamilyOutput, summary: str) -> None:
    assert run(output)[0].canonical.summary_text == summary


def test_a_combined_stream_stands_instead_of_both_streams() -> None:
    projection, _ = run(combined(b"$ make\n", exit_status=1))
    assert result_of(projection) == {
        "disposition": "completed",
        "exit_status": 1,
        "timed_out": False,
        "combined_output_preview": "$ make\n",
        "combined_output_truncated": False,
        "truncated": False,
    }


def test_lists_show_how_a_command_with_a_combined_stream_ended() -> None:
    assert combined(exit_status=3).facts() == (3, None, False)
    assert promoted().facts() == (None, None, None)


@each_case(
    "roles",
    [
        (),
        ("stdout",),
        ("stderr",),
        ("stdout", "combined"),
        ("stderr", "combined"),
        ("stdout", "stderr", "combined"),
    ],
)
def test_a_command_has_both_streams_or_a_combined_one(roles: tuple[str, ...]) -> None:
    with pytest.raises(ValidationError, match="stdout and stderr, or one combined stream"):
        CommandOutput.model_validate({"exit_status": 0} | {r: whole(b"", r) for r in roles})


def test_a_promoted_command_names_its_task_and_what_it_printed_so_far() -> None:
    projection, _ = run(promoted(b"Starting\n", command="npm start", cwd="/srv"))
    assert result_of(projection) == {
        "disposition": "promoted_to_task",
        "task_handle": {"task_id": "task_123", "kind": "command_task", "status": "running"},
        "command": {
            "preview": "npm start",
            "char_count": 9,
            "cwd": "/srv",
            "digest": digest_of(b"npm start"),
        },
        "initial_output_preview": "Starting\n",
        "initial_output_truncated": False,
        "truncated": False,
    }
    assert projection.canonical.status == "success"


def test_a_promoted_command_that_was_silent_has_no_spare_field() -> None:
    assert run(promoted(b""))[1].text == run(promoted())[1].text
    assert run_result(promoted()) == {
        "disposition": "promoted_to_task",
        "task_handle": {"task_id": "task_123", "kind": "command_task", "status": "running"},
        "initial_output_truncated": False,
        "truncated": False,
    }


def test_a_command_that_was_running_already_has_no_spare_field_but_an_unknown_status() -> None:
    output = RunningCommand(task_handle=TaskHandle(task_id="t", kind="k"))
    assert run_result(output) == {
        "disposition": "already_running",
        "task_handle": {"task_id": "t", "kind": "k", "status": None},
        "truncated": False,
    }


def test_a_command_that_was_running_already_is_repeated_bounded() -> None:
    output = RunningCommand(task_handle=HANDLE, command="x" * 241, task_summary="y" * 701)
    projection, _ = run(output)
    result = result_of(projection)
    assert result["command"]["preview"] == "x" * 239 + "\u2026"
    assert result["summary"] == "y" * 699 + "\u2026"
    assert result["truncated"] is True
    assert omitted(projection.omissions, "command", "chars") == 2
    assert omitted(projection.omissions, "summary", "chars") == 2


def test_a_task_is_named_in_the_receipt_as_the_tool_named_it() -> None:
    handle = TaskHandle(task_id="t 1:\u6f22/\ud800", kind="command_task")
    projection, receipt = run(PromotedCommand(task_handle=handle))
    assert receipt.text == "Command promoted to background task\nTask: t 1:\u6f22/\\ud800\n"
    assert result_of(projection)["task_handle"]["task_id"] == handle.task_id
