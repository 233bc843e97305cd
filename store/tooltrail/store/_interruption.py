"""The output of a call that did not come to its end: an error, and what was printed before."""

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

_UNSHOWN = "an interrupted call shows no output"


def interrupted_output(
    tool_name: str, reason: str, streams: Sequence[StreamRecord]
) -> CompleteOutput:
    """A failure whose details name each stream by digest, so that the ledger commits to them."""
    error = error_of_interruption(reason)
    partial: list[JsonValue] = [
        {
            "role": stream.role,
            "digest": stream.digest,
            "size": stream.size,
            "produced_size": stream.produced_size,
        }
        for stream in streams
    ]
    if partial:
        told = error.details if isinstance(error.details, dict) else {}
        details = {**told, "partial_output": partial}
        error = error.model_copy(update={"details": details})
    return CompleteOutput.failure(tool_name, error)


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
