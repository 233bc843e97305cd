"""Batches of commands as the tests write them, in one word."""

from typing import Any

from tests.records.support import surfaces, whole

from tooltrail.records import (
    BatchItem,
    CommandBatchOutput,
    CommandOutput,
    CompleteOutput,
    Policy,
    Projection,
    Receipt,
    StreamRecord,
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


def run(output: CommandBatchOutput, policy: Policy | None = None) -> tuple[Projection, Receipt]:
    projection, receipt, publisher = surfaces(
        CompleteOutput.success("ExecCommandBatch", output), "command_batch", policy
    )
    assert set(publisher.published) == {reference.path for _, reference in projection.artifacts}
    return projection, receipt
