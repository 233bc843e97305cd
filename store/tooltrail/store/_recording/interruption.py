"""Outputs of calls that cannot be recorded as they ended: an error, and what was printed."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic import JsonValue

from tooltrail.artifacts import CapturedStream
from tooltrail.records import (
    CompleteOutput,
    Digest,
    Policy,
    Projection,
    StreamRecord,
    ToolError,
    error_of_interruption,
)
from tooltrail.records.cutting import ArtifactPublisher, Cutter
from tooltrail.records.tool_errors import ErrorKind

_SHORT = 256
"""Bytes of a stream that are kept in the database although it is full: a row elsewhere takes more.
"""

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
    output: CompleteOutput, captured: Mapping[Digest, CapturedStream], reason: str
) -> tuple[CompleteOutput, tuple[StreamRecord, ...]]:
    """What is recorded of an output for which the disk has no room, and which streams of it.

    These are the streams that are in a file, which take no room in the database, and the shortest
    of the others; all are named.

    Args:
        output: what there was.
        captured: the captures of its streams, by digest.
        reason: why there is no room.
    """
    kept = tuple(s for one in output.streams if (s := _without_content(one, captured)))
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


def _without_content(
    stream: StreamRecord, captured: Mapping[Digest, CapturedStream]
) -> StreamRecord | None:
    """A stream as it takes least room; None when that is too much."""
    if stream.content is None or stream.size <= _SHORT:
        return stream
    source = captured.get(stream.digest)
    if source is None or source.staged is None:
        return None
    return stream.model_copy(update={"content": None})


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
