"""How many lines of an artifact are wanted, counted block by block where blocks are decoded.

The whole lines of a block are counted while they are in the cache of the core that has just decoded
it. Only the lines that go over the end of a block are put together and counted in order.
"""

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from tooltrail.artifacts._block_counts import Counter
from tooltrail.artifacts._frames import Block, Frames
from tooltrail.artifacts._giant_lines import refuse_giant


class Counted(NamedTuple):
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


class Part(NamedTuple):
    """The lines that begin at one plain offset or behind it, and before another.

    Frames need be decoded once only where both are ends of frames.
    """

    start: int
    stop: int


def count_between_ends(block: Block, counter: Counter) -> Counted:
    """Count what can be counted without the blocks before and after."""
    plain = block.plain
    first = plain.find(b"\n") + 1
    if not first:
        return Counted(block.stop, plain)
    last = plain.rfind(b"\n") + 1
    whole = plain[first:last]
    return Counted(block.stop, plain[:first], counter(whole) if whole else 0, plain[last:])


def count_lines(
    frames: Frames, path: str, counter: Counter, blocks: Iterable[Counted]
) -> Iterator[int]:
    """How many lines are wanted in one block after the other, with those over the ends.

    Args:
        frames: of the artifact.
        path: names it in errors.
        counter: of the lines, the same that has counted in the blocks.
        blocks: neighbours in order; the first begins where a line does.

    Raises:
        InvalidRecordError: a line has more than `LINE_BYTES`.
        DamageError, MissingArtifactError, UnavailableError: whatever the blocks raise.
    """
    line: list[bytes] = []
    size = 0
    for block in blocks:
        line.append(block.head)
        size += len(block.head)
        if block.tail is None:
            refuse_giant(size, _lines_before(frames, block.stop) + 1, path)
            continue
        yield counter(b"".join(line)) + block.found
        line, size = [block.tail], len(block.tail)
    if size:
        yield counter(b"".join(line))


def count_lines_of(frames: Frames, path: str, counter: Counter, part: Part) -> Iterator[int]:
    """The same for the lines of a part, decoded and counted by the thread of who asks.

    Raises:
        InvalidRecordError: see `count_lines`.
        DamageError, MissingArtifactError, UnavailableError: see `Frames.blocks`.
    """
    counted = (count_between_ends(block, counter) for block in _lines_of(frames, part))
    return count_lines(frames, path, counter, counted)


def _lines_of(frames: Frames, part: Part) -> Iterator[Block]:
    """The lines of a part, in blocks of up to a frame."""
    # A line begins behind a newline, so the byte before the part is looked at as well.
    is_inside = not part.start
    is_ended = True
    for block in frames.blocks(max(0, part.start - 1), part.stop):
        begin = 0 if is_inside else block.plain.find(b"\n") + 1
        is_inside = is_inside or begin > 0
        is_ended = block.plain.endswith(b"\n")
        if is_inside and begin < len(block.plain):
            yield block.cut(block.start + begin, block.stop)
    if is_inside and not is_ended:
        yield from _rest_of_line(frames, part.stop)


def _rest_of_line(frames: Frames, start: int) -> Iterator[Block]:
    """What belongs to the line that goes on at an offset; fetched frame by frame."""
    index = frames.index
    while start < index.plain_size:
        for block in frames.blocks(start, index.plain_span(index.frame_at(start))[1]):
            end = block.plain.find(b"\n") + 1
            yield block.cut(start, block.start + end) if end else block
            if end:
                return
            start = block.stop


def _lines_before(frames: Frames, stop: int) -> int:
    """Newlines before an offset at which a frame ends."""
    index = frames.index
    return index.newlines_before(index.frame_at(stop))
