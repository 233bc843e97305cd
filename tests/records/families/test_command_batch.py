"""Batches of commands: one budget for all, the artifacts of each in its own result."""

from typing import Any

import pytest
from pydantic import ValidationError
from tests.records.hidden import hidden_of
from tests.records.support import (
    artifact_path,
    check_golden,
    omitted,
    result_of,
    run,
    run_result,
    surfaces,
    whole,
)
from tests.support.cases import each_case
from tests.support.policies import policy_with

from tooltrail.records import (
    BatchItem,
    CommandBatchOutput,
    CommandOutput,
    CompleteOutput,
    StreamRecord,
    digest_of,
)

MAX_MS = (1 << 63) - 1
"""The longest duration that a record takes."""


def streams(index: int, out: bytes = b"", err: bytes = b"") -> dict[str, StreamRecord]:
    return {"stdout": whole(out, f"{index}.stdout"), "stderr": whole(err, f"{index}.stderr")}


def ran(
    index: int,
    cmd: str,
    out: bytes = b"",
    err: bytes = b"",
    *,
    duration_ms: int | None = None,
    **ending: Any,
) -> BatchItem:
    """A command with both streams that exited with 0, unless `ending` says something else."""
    how = ending if "signal" in ending else {"exit_status": 0, **ending}
    result = CommandOutput.model_validate({**streams(index, out, err), **how})
    return BatchItem(cmd=cmd, status="completed", result=result, duration_ms=duration_ms)


def ran_in_terminal(index: int, cmd: str, output: bytes, **ending: Any) -> BatchItem:
    """A command with one combined stream."""
    stream = whole(output, f"{index}.combined")
    result = CommandOutput.model_validate({"combined": stream, **ending})
    return BatchItem(cmd=cmd, status="completed", result=result)


def failed(cmd: str, message: str = "no such program") -> BatchItem:
    return BatchItem(
        cmd=cmd, status="failed", error_kind="command_spawn_failed", error_message=message
    )


def rejected(cmd: str, message: str = "not allowed") -> BatchItem:
    return BatchItem(
        cmd=cmd, status="rejected", error_kind="permission_denied", error_message=message
    )


def skipped(cmd: str) -> BatchItem:
    return BatchItem(cmd=cmd, status="skipped")


def batch(*items: BatchItem, stop_on_error: bool = False) -> CommandBatchOutput:
    return CommandBatchOutput(items=items, stop_on_error=stop_on_error)


ONE = policy_with(command_batch={"max_items": 1})


FIVE = batch(
    ran(1, "one"), ran(2, "two", b"two\n"), failed("three"), rejected("four"), skipped("five")
)


def test_the_receipt_is_worded_as_in_the_golden_file() -> None:
    check_golden(
        ("command_batch", 2),
        batch_mixed=batch(
            ran(1, "mkdir -p \n build", duration_ms=1500),
            ran(
                2,
                "pytest -q",
                b"1 failed, 2 passed\n",
                b"warning: slow",
                exit_status=1,
                duration_ms=12_000,
            ),
            ran(3, "sleep 60", signal=15, timed_out=True, timeout_ms=30_000),
            ran_in_terminal(4, "top", b"top - 10:00:00\n", signal=9),
            failed("mkae", "no such program:\nmkae"),
            rejected("rm -rf /", "the user said no"),
            skipped("make clean"),
        ),
        batch_empty=batch(),
        batch_hidden=(FIVE, ONE),
        batch_artifacts=batch(
            ran(1, "first", b"\0out 1\n", b"err 1\n"),
            ran_in_terminal(2, "second", b"\0both 2\n", exit_status=0),
        ),
    )


def test_the_receipt_begins_with_the_name_that_the_model_used() -> None:
    output = CompleteOutput.success("exec_command_batch\n", batch(skipped("ls")))
    _, receipt, _ = surfaces(output, "command_batch")
    assert receipt.text == "exec_command_batch completed 0/1 items\n[1] ls    skipped\n"


@pytest.mark.parametrize(
    ("output", "summary"),
    [
        (batch(), "0 of 0 commands completed"),
        (batch(skipped("ls")), "0 of 1 command completed"),
        (FIVE, "2 of 5 commands completed"),
    ],
)
def test_the_summary_counts_the_commands_that_ran(output: CommandBatchOutput, summary: str) -> None:
    assert run(output)[0].canonical.summary_text == summary
    assert output.facts() == (None, None, None)


def test_a_command_that_exits_with_1_is_completed() -> None:
    projection, _ = run(batch(ran(1, "false", exit_status=1, duration_ms=5), stop_on_error=True))
    assert result_of(projection) == {
        "item_count": 1,
        "completed_count": 1,
        "failed_count": 0,
        "rejected_count": 0,
        "skipped_count": 0,
        "stop_on_error": True,
        "items": [
            {
                "index": 1,
                "cmd": "false",
                "status": "completed",
                "result": {
                    "disposition": "completed",
                    "exit_status": 1,
                    "timed_out": False,
                    "stdout_preview": None,
                    "stderr_preview": None,
                    "stdout_truncated": False,
                    "stderr_truncated": False,
                    "truncated": False,
                },
                "duration_ms": 5,
            }
        ],
        "truncated": False,
    }


def test_items_that_did_not_run_say_why() -> None:
    items = run_result(batch(failed("a"), rejected("b"), skipped("c")))["items"]
    assert items == [
        {
            "index": 1,
            "cmd": "a",
            "status": "failed",
            "error_kind": "command_spawn_failed",
            "error_message": "no such program",
        },
        {
            "index": 2,
            "cmd": "b",
            "status": "rejected",
            "error_kind": "permission_denied",
            "error_message": "not allowed",
        },
        {"index": 3, "cmd": "c", "status": "skipped"},
    ]


@each_case(
    "fields",
    [
        {"status": "completed"},
        {"status": "completed", "error_kind": "x", "error_message": "y"},
        {"status": "failed"},
        {"status": "failed", "error_kind": "x"},
        {"status": "rejected", "error_message": "y"},
        {"status": "rejected", "error_kind": "No Word", "error_message": "y"},
        {"status": "skipped", "error_kind": "x", "error_message": "y"},
        {
            "status": "skipped",
            "result": CommandOutput.model_validate({**streams(1), "exit_status": 0}),
        },
        {"status": "running"},
        {"status": "skipped", "duration_ms": -1},
        {"status": "skipped", "duration_ms": MAX_MS + 1},
    ],
)
def test_an_item_that_cannot_be_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        BatchItem.model_validate({"cmd": "ls", **fields})


def test_artifacts_stand_inside_the_result_of_their_item() -> None:
    big = b"line of output\n" * 4000
    projection, receipt = run(batch(ran(1, "a", big), ran(2, "b"), ran(3, "c", b"short\n", big)))
    result = result_of(projection)
    path = artifact_path(whole(big))
    first, second, third = (item["result"] for item in result["items"])
    assert "artifacts" not in result
    assert (first["artifacts"], first["stdout_artifact"]) == ([{"path": path}], 0)
    assert "artifacts" not in second
    assert (third["artifacts"], third["stderr_artifact"]) == ([{"path": path}], 0)
    assert (first["truncated"], second["truncated"], third["truncated"]) == (True, False, True)
    assert result["truncated"] is True
    assert [role for role, _ in projection.artifacts] == ["1.stdout", "3.stderr"]
    assert receipt.text.endswith(f"\n\nArtifacts:\n{path} (1.stdout)\n{path} (3.stderr)\n")


SMALL = {"preview_chars": 1000, "receipt_chars": 80_000, "max_items": 64}


def test_commands_are_hidden_only_where_there_is_no_room_for_what_they_printed() -> None:
    policy = policy_with(command_batch=SMALL)

    def indices(*items: BatchItem) -> list[int]:
        return [item["index"] for item in run_result(batch(*items), policy)["items"]]

    assert indices(*[failed("a")] * 70) == [*range(1, 65)]
    assert indices(*(ran(n, "a", b"x" * 30) for n in range(1, 71))) == [*range(1, 34)]
    assert indices(*(ran(n, "a", b"x" * 5000) for n in range(1, 9))) == [1, 2]
    assert indices(*(ran(n, "a", b"x" * 5000, b"y" * 5000) for n in range(1, 9))) == [1]


def test_what_is_cut_of_an_item_is_named_by_its_place() -> None:
    item = ran(2, "x" * 241, command="y" * 300, cwd="/" * 5000)
    projection, _ = run(batch(failed("a", "m" * 701), item))
    result = result_of(projection)
    assert result["items"][0]["error_message"] == "m" * 699 + "\u2026"
    assert result["items"][1]["cmd"] == "x" * 239 + "\u2026"
    assert result["items"][1]["result"]["command"]["preview"] == "y" * 239 + "\u2026"
    assert result["items"][1]["result"]["truncated"] is result["truncated"] is True
    assert {(o.field, o.unit): o.before - o.after for o in projection.omissions} == {
        ("items[0].error_message", "chars"): 2,
        ("items[1].result.command", "chars"): 61,
        ("items[1].result.cwd", "chars"): 905,
        ("items[1].cmd", "chars"): 2,
    }


def test_a_command_line_that_is_no_text_is_spelled_out() -> None:
    projection, receipt = run(batch(skipped("cat caf\udce9 \ud800")))
    assert result_of(projection)["items"][0]["cmd"] == "cat caf\\xed\\xb3\\xa9 \\xed\\xa0\\x80"
    assert run(batch(skipped("cat caf\udce9")))[1].text.endswith("[1] cat caf\\xe9    skipped\n")
    receipt.to_bytes()


def test_items_beyond_the_maximum_are_counted_and_listed() -> None:
    output = batch(*(ran(n, "ls", b"x" * n) for n in range(1, 40)))
    projection, receipt, publisher = surfaces(
        CompleteOutput.success("ExecCommandBatch", output), "command_batch"
    )
    result = result_of(projection)
    assert (len(result["items"]), result["item_count"], result["completed_count"]) == (32, 39, 39)
    assert omitted(projection.omissions, "items", "items") == 7
    assert omitted(projection.omissions, "items", "bytes") == sum(range(33, 40))
    ((role, reference),) = projection.artifacts
    assert (role, result["hidden_artifact"]) == ("hidden", 0)
    assert result["artifacts"] == [{"path": reference.path}]
    entries = hidden_of(result, publisher)
    assert [(entry["field"], entry["n"]) for entry in entries] == [
        ("items", n) for n in range(32, 39)
    ]
    assert entries[0]["value"]["cmd"] == "ls"
    assert entries[0]["value"]["result"]["stdout"]["digest"] == digest_of(b"x" * 33)
    assert (
        f"[7 further items are not shown: 7 completed; listed in {reference.path}]" in receipt.text
    )
