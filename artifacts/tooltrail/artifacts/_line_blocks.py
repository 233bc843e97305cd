"""Whole lines of an artifact, from blocks that other threads fetch and decode ahead.

Lines are counted by the thread that has just decoded their block, while the block is in the cache
of its core. Only the lines that cross the end of a block are put together and counted in order.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import NamedTuple

from tooltrail.artifacts._ahead import ahead
from tooltrail.artifacts._frames import Block, Frames
from tooltrail.artifacts._patterns import Counter, contains
from tooltrail.records.errors import InvalidRecordError

LINE_BYTES = 64 * 1024 * 1024
"""Longest line that is searched: it is in memory twice."""


class LineBlock(NamedTuple):
    """Whole lines; only the last line of the artifact may lack its newline.

    Attributes:
        plain: their bytes.
        start: plain offset of the first.
        first: its number, from 1.
    """

    plain: bytes
    start: int
    first: int


def line_blocks(frames: Frames, path: str, needle: bytes | None = None) -> Iterator[LineBlock]:
    """The lines of an artifact, in order.

    Args:
        frames: of the artifact.
        path: names it in errors.
        needle: blocks without these bytes, which are no newline, are left out.

    Raises:
        InvalidRecordError: a line has more than `LINE_BYTES`.
        DamageError, MissingArtifactError, UnavailableError: see `Frames.blocks`.
    """
    line = _LineSoFar(needle)
    start, newlines = 0, 0
    for block in ahead(frames, lambda block: block):
        line.look_at(block.plain)
        cut = block.plain.rfind(b"\n") + 1
        if not cut:
            line.add(block.plain)
            _refuse_giant(line.size, newlines + 1, path)
            continue
        if line.is_wanted:
            yield LineBlock(line.ended_by(memoryview(block.plain)[:cut]), start, newlines + 1)
        newlines = frames.index.newlines_before(frames.index.frame_at(block.stop))
        start = block.start + cut
        line.begin(block.plain[cut:])
    if line.size and line.is_wanted:
        yield LineBlock(line.ended_by(b""), start, newlines + 1)


class _LineSoFar:
    """The line that goes on in the next block; `is_wanted` says whether a needle was seen."""

    def __init__(self, needle: bytes | None) -> None:
        self._needle = needle
        self._overlap = len(needle) - 1 if needle else 0
        self.begin(b"")

    def begin(self, rest: bytes) -> None:
        """The line begins with what follows the last newline of a block."""
        self._pieces = [rest]
        self.size = len(rest)
        self._end = b""
        self.is_wanted = self._needle is None or self._needle in rest
        self._remember(rest)

    def look_at(self, plain: bytes) -> None:
        """Look for the needle in the next block, and where it follows what came before."""
        if not self.is_wanted and self._needle is not None:
            seam = self._end + plain[: self._overlap] if self._end else b""
            self.is_wanted = contains(plain, self._needle) or self._needle in seam

    def add(self, plain: bytes) -> None:
        """The line goes on through a whole block."""
        self._pieces.append(plain)
        self.size += len(plain)
        self._remember(plain)

    def ended_by(self, plain: memoryview | bytes) -> bytes:
        """The line, and what more of the next block is given."""
        return b"".join([*self._pieces, plain])

    def _remember(self, plain: bytes) -> None:
        end = self._end + plain[max(0, len(plain) - self._overlap) :]
        self._end = end[max(0, len(end) - self._overlap) :]


class _Counted(NamedTuple):
    """A block in which all lines but the first and the last are counted.

    Attributes:
        stop: plain offset behind the block.
        head: up to and with its first newline; the whole block if it has none.
        found: matching lines between head and tail.
        tail: what follows its last newline; None if it has none.
    """

    stop: int
    head: bytes
    found: int = 0
    tail: bytes | None = None


def count_lines(frames: Frames, path: str, counter: Counter) -> Iterator[int]:
    """How many lines match, in one block after the other; lines across their ends included.

    Args:
        frames: of the artifact.
        path: names the artifact in errors.
        counter: of the matching lines; several threads call it at once.

    Raises:
        InvalidRecordError: a line has more than `LINE_BYTES`.
        DamageError, MissingArtifactError, UnavailableError: see `Frames.blocks`.
    """
    return _across_ends(frames, path, counter, ahead(frames, partial(_count_block, counter)))


def _count_block(counter: Counter, block: Block) -> _Counted:
    plain = block.plain
    first = plain.find(b"\n") + 1
    if not first:
        return _Counted(block.stop, plain)
    last = plain.rfind(b"\n") + 1
    whole = plain[first:last]
    return _Counted(block.stop, plain[:first], counter(whole) if whole else 0, plain[last:])


def _across_ends(
    frames: Frames, path: str, counter: Counter, blocks: Iterable[_Counted]
) -> Iterator[int]:
    line: list[bytes] = []
    size = 0
    for block in blocks:
        line.append(block.head)
        size += len(block.head)
        if block.tail is None:
            _refuse_giant(
                size, frames.index.newlines_before(frames.index.frame_at(block.stop)) + 1, path
            )
            continue
        yield counter(b"".join(line)) + block.found
        line, size = [block.tail], len(block.tail)
    if size:
        yield counter(b"".join(line))


def _refuse_giant(size: int, line: int, path: str) -> None:
    if size > LINE_BYTES:
        raise InvalidRecordError(
            f"line {line:,} of artifact {path} has more than {LINE_BYTES:,} bytes,"
            " which is too long to be searched"
        )
