"""Check ranges of stored bytes, and clip them to an object."""

from tooltrail.records.errors import InvalidRecordError


def check_range(start: int, stop: int | None) -> None:
    """Refuse an invalid range; see `ArtifactSink.read`.

    Raises:
        InvalidRecordError: `stop` is less than `start`, or given with a negative start.
    """
    if stop is not None and (start < 0 or stop < start):
        raise InvalidRecordError(f"not a range of bytes: from {start} to {stop}")


def clip(start: int, stop: int | None, size: int) -> tuple[int, int]:
    """The same range within an object of `size` bytes: 0 <= first <= end <= size."""
    first = max(0, size + start) if start < 0 else min(start, size)
    end = size if stop is None else min(stop, size)
    return first, max(first, end)
