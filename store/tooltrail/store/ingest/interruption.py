"""The outcome of a call whose program died: an error that names what the tool had printed."""

from collections.abc import Sequence
from dataclasses import replace

from pydantic import JsonValue

from tooltrail.records import (
    CompleteOutput,
    Policy,
    Projection,
    StreamRecord,
    error_of_interruption,
)
from tooltrail.records.cutting import ArtifactPublisher, Cutter

ORDER_ROLE = "order"
"""A stream that says how the chunks of the others came; no output of the tool."""

_UNSHOWN = "a call without a recorded result shows no output"


def interrupted_output(
    tool_name: str, reason: str, streams: Sequence[StreamRecord]
) -> CompleteOutput:
    """A failure whose details name each recovered stream by its digest."""
    error = error_of_interruption(reason)
    if streams:
        known = error.details if isinstance(error.details, dict) else {}
        named: list[JsonValue] = [
            {
                "role": one.role,
                "digest": one.digest,
                "size": one.size,
                "produced_size": one.produced_size,
            }
            for one in streams
        ]
        error = error.model_copy(update={"details": {**known, "partial_output": named}})
    return CompleteOutput.failure(tool_name, error)


def with_unshown(
    projection: Projection,
    streams: Sequence[StreamRecord],
    policy: Policy,
    publisher: ArtifactPublisher,
) -> Projection:
    """The projection of a failure, in which all output counts as left out: it shows none."""
    cutter = Cutter(policy, publisher)
    for stream in streams:
        cutter.count_losses(stream)
        if stream.role != ORDER_ROLE:
            cutter.count(stream.role, "bytes", stream.size, 0, _UNSHOWN)
            cutter.count(stream.role, "lines", stream.line_count, 0, _UNSHOWN)
    return replace(projection, omissions=projection.omissions + cutter.omissions)
