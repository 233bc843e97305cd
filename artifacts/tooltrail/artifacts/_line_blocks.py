"""Complete lines of an artifact, from blocks that other threads fetch and decode ahead.

The thread that decodes a block also counts its lines, while the block is in the core's cache. Only
lines that cross the end of a block are joined and counted in order.
"""

from collections.abc import Iterable, Iterator
from functools import partial
from typing import NamedTuple

from tooltrail.artifacts._ahead import ahead
from tooltrail.artifacts._frames import Block, Frames
from tooltrail.artifacts._patterns import Counter, contains
from tooltrail.records.errors import InvalidRecordError

LINE_BYTES = 64 * 1024 * 1024
"""Bytes of the longest line that is searched. The line is in memory twice."""


class LineBlock(NamedTuple):
    """Complete lines; only the last line of the artifact may lack its newline.

    Attributes:
        plain: bytes of the lines.
        start: plain offset of the first line.
        first: number of the first line, from 1.
    """

    plain: bytes
    start: int
    first: int


def line_blocks(frames: Frames, path: str, needle: bytes | None = None) -> Iterator[LineBlock]:
    """The lines of an artifact, in order.

    Args:
        frames: frames of the artifact.
        path: path of the artifact, for errors.
        needle: blocks without these bytes are skipped. Contains no newline.

    Raises:
        InvalidRecordError: a line has more than `LINE_BYTES`.
        DamageError, MissingArtifactError, UnavailableError: see `Frames.blocks`.
    """
    line = _OpenLine(needle)
    start, newlines = 0, 0
    for block in ahead(frames, lambda block: block):
        line.scan(block.plain)
        cut = block.plain.rfind(b"\n") + 1
        if not cut:
            line.add(block.plain)
            _refuse_long_line(line.size, newlines + 1, path)
            continue
        if line.is_wanted:
            yield LineBlock(line.ended_by(memoryview(block.plain)[:cut]), start, newlines + 1)
        newlines = frames.index.newlines_before(frames.index.frame_at(block.stop))
        start = block.start + cut
        line.begin(block.plain[cut:])
    if line.size and line.is_wanted:
        yield LineBlock(line.ended_by(b""), start, newlines + 1)


class _OpenLine:
    """A line that continues in the next block; `is_wanted` is True once the needle was found."""

    def __init__(self, needle: bytes | None) -> None:
        self._needle = needle
        self._overlap = len(needle) - 1 if needle else 0
        self.begin(b"")

    def begin(self, rest: bytes) -> None:
        """Begin a line with the bytes behind the last newline of a block."""
        self._pieces = [rest]
        self.size = len(rest)
        self._end = b""
        self.is_wanted = self._needle is None or self._needle in rest
        self._remember(rest)

    def scan(self, plain: bytes) -> None:
        """Search the next block for the needle, and the seam between the line and the block."""
        if not self.is_wanted and self._needle is not None:
            seam = self._end + plain[: self._overlap] if self._end else b""
            self.is_wanted = contains(plain, self._needle) or self._needle in seam

    def add(self, plain: bytes) -> None:
        """Add a block without a newline."""
        self._pieces.append(plain)
        self.size += len(plain)
        self._remember(plain)

    def ended_by(self, plain: memoryview | bytes) -> bytes:
        """The line so far, followed by bytes of the next block."""
        return b"".join([*self._pieces, plain])

    def _remember(self, plain: bytes) -> None:
        end = self._end + plain[max(0, len(plain) - self._overlap) :]
        self._end = end[max(0, len(end) - self._overlap) :]


class _Counted(NamedTuple):
    """A block in which all lines but the first and the last are counted.

    Attributes:
        stop: plain offset after the block.
        head: bytes up to and including the first newline; all bytes if there is no newline.
        found: matching lines between head and tail.
        tail: bytes behind the last newline; None if there is no newline.
    """

    stop: int
    head: bytes
    found: int = 0
    tail: bytes | None = None


def count_lines(frames: Frames, path: str, counter: Counter) -> Iterator[int]:
    """The number of matching lines in each block in turn; lines across blocks are included.

    Args:
        frames: frames of the artifact.
        path: path of the artifact, for errors.
        counter: counts matching lines in bytes; several threads call it at once.

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
    inner = plain[first:last]
    return _Counted(block.stop, plain[:first], counter(inner) if inner else 0, plain[last:])


def _across_ends(
    frames: Frames, path: str, counter: Counter, blocks: Iterable[_Counted]
) -> Iterator[int]:
    line: list[bytes] = []
    size = 0
    for block in blocks:
        line.append(block.head)
        size += len(block.head)
        if block.tail is None:
            _refuse_long_line(
                size, frames.index.newlines_before(frames.index.frame_at(block.stop)) + 1, path
            )
            continue
        yield counter(b"".join(line)) + block.found
        line, size = [block.tail], len(block.tail)
    if size:
        yield counter(b"".join(line))


def _refuse_long_line(size: int, line: int, path: str) -> None:
    if size > LINE_BYTES:
        raise InvalidRecordError(
            f"line {line:,} of artifact {path} has more than {LINE_BYTES:,} bytes"
            " and is too long to search"
        )
