"""Where the document of a complete output tells of its streams."""

from collections.abc import Iterator
from typing import Any, cast


def streams_in(result: object) -> Iterator[dict[str, Any]]:
    """What a result, as JSON, tells of each of its streams: role, digest, sizes, loss."""
    match result:
        case {"role": str(), "digest": str(), "produced_size": int()}:
            yield cast("dict[str, Any]", result)
        case dict():
            for member in cast("dict[str, object]", result).values():
                yield from streams_in(member)
        case list():
            for member in cast("list[object]", result):
                yield from streams_in(member)
        case _:
            pass
