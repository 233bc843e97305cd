"""Compares what an index tells of an object with what decoding the object finds.

An index can be unaltered, its checksum right, and tell something else all the same: it was made
so, or it is of an object that was replaced by the same content in other frames.
"""

from collections.abc import Iterator

from tooltrail.artifacts.frame_index import FrameIndex


def differences(told: FrameIndex, found: FrameIndex) -> Iterator[str]:
    """Each thing in which an index differs from the frames of its object, in words."""
    if len(told) != len(found):
        yield f"{len(found):,} frames found, {len(told):,} expected"
    for frame in range(min(len(told), len(found))):
        ours, theirs = _facts(found, frame), _facts(told, frame)
        for what, is_there, expected in zip(_FACTS, ours, theirs, strict=True):
            if is_there != expected:
                yield f"frame {frame:,}: {what} {is_there:,} found, {expected:,} expected"


def has_same_frames(told: FrameIndex, found: FrameIndex) -> bool:
    """Whether an index is of the very frames that were found, by what they are made of."""
    return len(told) == len(found) and all(
        told.stored_span(frame) == found.stored_span(frame)
        and told.checksum(frame) == found.checksum(frame)
        for frame in range(len(found))
    )


class PlainCheck:
    """Counts newlines where an index of other frames has its frames begin and end.

    What it tells by plain offsets must be true of the content in whatever frames that stands.
    """

    def __init__(self, told: FrameIndex) -> None:
        self._told = told
        self._counts = [0] * len(told)
        self._size = 0

    def see(self, plain: bytes) -> None:
        """Count in the next plain bytes of the object."""
        start, begin = self._size, 0
        self._size += len(plain)
        while begin < len(plain) and (frame := self._told.frame_at(start + begin)) < len(
            self._told
        ):
            stop = min(len(plain), self._told.plain_span(frame)[1] - start)
            self._counts[frame] += plain.count(b"\n", begin, stop)
            begin = stop

    def differences(self) -> Iterator[str]:
        """Each thing in which it differs from the content, in words."""
        told = self._told
        if told.plain_size != self._size:
            yield f"{self._size:,} plain bytes found, {told.plain_size:,} expected"
        for frame, found in enumerate(self._counts):
            if found != told.newlines_in(frame):
                start, stop = told.plain_span(frame)
                yield (
                    f"frame {frame:,} of other frames, plain bytes {start:,} to {stop:,}:"
                    f" newlines {found:,} found, {told.newlines_in(frame):,} expected"
                )


_FACTS = ("stored bytes", "plain bytes", "newlines", "checksum")


def _facts(index: FrameIndex, frame: int) -> tuple[int, int, int, int]:
    begin, end = index.stored_span(frame)
    start, stop = index.plain_span(frame)
    return end - begin, stop - start, index.newlines_in(frame), index.checksum(frame)
