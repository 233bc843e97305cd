"""The list of what a result does not show, as it was published."""

from collections.abc import Mapping
from typing import Any

from tests.records.support import MemoryPublisher

from tooltrail.records import canonical_json


def hidden_of(result: Mapping[str, Any], publisher: MemoryPublisher) -> list[Any]:
    """The entries of the list that `hidden_artifact` of a result points at."""
    path = result["artifacts"][result["hidden_artifact"]]["path"]
    stream = publisher.published[path]
    assert stream.role == "hidden"
    assert stream.content is not None
    assert stream.content.endswith(b"\n")
    return [canonical_json.decode(line) for line in stream.content.splitlines()]
