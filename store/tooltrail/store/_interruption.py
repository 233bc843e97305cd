"""Outputs of calls that cannot be recorded as they ended: an error, and what was printed."""

from collections.abc import Sequence
from dataclasses import replace

from pydantic import JsonValue

from tooltrail.records import (
    CompleteOutput,
    Policy,
    Projection,
    StreamRecord,
    ToolError,
    error_of_interruption,
)
from tooltrail.records.cutting import ArtifactPublisher, Cutter
from tooltrail.records.tool_errors import ErrorKind

_UNSHOWN = "a call without a recorded result shows no output"


def interrupted_output(
    tool_name: str, reason: str, streams: Sequence[StreamRecord]
) -> CompleteOutput:
    """A failure whose details name each stream by digest, so that the ledger commits to them."""
    error = error_of_interruption(reason)
    if streams:
        told = error.details if isinstance(error.details, dict) else {}
        details = {**told, "partial_output": _named(streams)}
        error = error.model_copy(update={"details": details})
    return CompleteOutput.failure(tool_name, error)


def without_room(
    output: CompleteOutput, inline_bytes: int, reason: str
) -> tuple[CompleteOutput, tuple[StreamRecord, ...]]:
    """What is recorded of an output for which the disk has no room, and which streams of it.

    These are the streams that are artifacts, or that take little room; all are named.
    """
    kept = tuple(s for s in output.streams if s.content is None or s.size <= inline_bytes)
    error = ToolError(
        kind=ErrorKind.LOW_DISK_SPACE,
        message="the tool ran, but the disk has no room for the record of its result",
        details={
            "reason": reason,
            "status": output.status,
            "summary_text": output.summary_text,
            "output": _named(output.streams),
        },
        recovery_hint="make room on the disk; look at what the tool did before you call it again",
    )
    return CompleteOutput.failure(output.tool_name, error), kept


def _named(streams: Sequence[StreamRecord]) -> list[JsonValue]:
    return [
        {
            "role": stream.role,
            "digest": stream.digest,
            "size": stream.size,
            "produced_size": stream.produced_size,
        }
        for stream in streams
    ]


def with_unshown(
    projection: Projection,
    streams: Sequence[StreamRecord],
    policy: Policy,
    publisher: ArtifactPublisher,
) -> Projection:
    """The projection of a failure, with all that it shows nothing of counted as left out."""
    cutter = Cutter(policy, publisher)
    for stream in streams:
        cutter.count_losses(stream)
        if stream.role != "order":
            cutter.count(stream.role, "bytes", stream.size, 0, _UNSHOWN)
            cutter.count(stream.role, "lines", stream.line_count, 0, _UNSHOWN)
    return replace(projection, omissions=projection.omissions + cutter.omissions)
