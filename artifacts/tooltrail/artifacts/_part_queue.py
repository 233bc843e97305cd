"""The parts of an artifact that wait to be counted, for several processes that take one by one.

All stand in a pipe before anybody reads from it, so that each read takes one part and no two take
the same. Who starts late, or has half a core, takes fewer. Parts become smaller towards the end, at
which all are done at about the same time.
"""

import errno
import os
from collections.abc import Iterator
from struct import Struct
from types import TracebackType
from typing import Self

from tooltrail.artifacts._line_counts import Part
from tooltrail.artifacts.frame_index import FrameIndex

SMALLEST_PART = 8 * 1024 * 1024
"""Plain bytes of a part at least, for at its ends two frames are decoded once more."""

_PART = Struct("<QQ")
_END = _PART.pack(0, 0)


class PartQueue:
    """Each part goes to one taker. Safe for processes; a block closes it."""

    def __init__(self, fd: int) -> None:
        """Take from a descriptor of the pipe."""
        self.fd = fd

    @classmethod
    def of(cls, parts: list[Part], takers: int) -> Self:
        """A new pipe with these parts, and an end of them for each taker.

        Raises:
            OSError: there is no pipe to be had, or too many parts for one.
        """
        data = b"".join([*(_PART.pack(*part) for part in parts), _END * takers])
        reading, writing = os.pipe()
        try:
            _fill(writing, data)
        except BaseException:
            os.close(reading)
            raise
        finally:
            os.close(writing)
        return cls(reading)

    def __iter__(self) -> Iterator[Part]:
        """Take parts until there are no more."""
        while (data := os.read(self.fd, _PART.size)) != _END:
            yield Part(*_PART.unpack(data))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        os.close(self.fd)


def _fill(writing: int, data: bytes) -> None:
    # Rather an error than to wait for ever, since nobody reads yet.
    os.set_blocking(writing, False)
    if os.write(writing, data) < len(data):
        raise BlockingIOError(errno.EAGAIN, "too many parts for a pipe")


def parts_of(index: FrameIndex, takers: int) -> list[Part]:
    """All lines of an artifact in parts, each of which ends where a frame does."""
    parts: list[Part] = []
    start, size = 0, index.plain_size
    while start < size:
        length = max(SMALLEST_PART, (size - start) // (2 * takers))
        stop = index.plain_span(index.frame_at(min(start + length, size) - 1))[1]
        parts.append(Part(start, stop))
        start = stop
    return parts
