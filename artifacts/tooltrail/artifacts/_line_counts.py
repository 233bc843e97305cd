"""How many lines of an artifact are wanted, counted by the threads that decode them.

Each counts the whole lines of the frame that it has just decoded, while they are in its core's
cache. Only the lines that go over the end of a frame are put together and counted in order. It is
for counters that take a bounded time: nobody can interrupt these threads.
"""

from collections.abc import Iterator
from typing import NamedTuple

from tooltrail.artifacts._ahead import ahead
from tooltrail.artifacts._block_counts import Counter
from tooltrail.artifacts._frames import Block, Frames
from tooltrail.artifacts._line_blocks import refuse_giant


class _Counted(NamedTuple):
    """A block of which all but the ends was counted.

    Attributes:
        stop: plain offset behind it.
        head: up to and with its first newline, or all of it.
        found: lines that are wanted between head and tail.
        tail: what follows its last newline; None when it has none.
    """

    stop: int
    head: bytes
    found: int = 0
    tail: bytes | None = None


def count_lines_with(frames: Frames, path: str, counter: Counter) -> Iterator[int]:
    """How many lines are wanted in one part of an artifact after the other.

    Raises:
        InvalidRecordError: a line has more than `LINE_BYTES`.
        DamageError, MissingArtifactError, UnavailableError: see `Frames.blocks`.
    """
    line: list[bytes] = []
    size = 0
    for block in ahead(frames, lambda block: _counted(block, counter)):
        line.append(block.head)
        size += len(block.head)
        if block.tail is None:
            refuse_giant(size, _lines_before(frames, block.stop) + 1, path)
            continue
        yield counter(b"".join(line)) + block.found
        line, size = [block.tail], len(block.tail)
    if size:
        yield counter(b"".join(line))


def _counted(block: Block, counter: Counter) -> _Counted:
    plain = block.plain
    first = plain.find(b"\n") + 1
    if not first:
        return _Counted(block.stop, plain)
    last = plain.rfind(b"\n") + 1
    whole = plain[first:last]
    return _Counted(block.stop, plain[:first], counter(whole) if whole else 0, plain[last:])


def _lines_before(frames: Frames, stop: int) -> int:
    """Newlines before an offset at which a frame ends."""
    index = frames.index
    return index.newlines_before(index.frame_at(stop))
