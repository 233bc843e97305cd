"""Whole lines of an artifact, in blocks that are fetched and decoded ahead by other threads."""

from collections.abc import Iterator
from typing import NamedTuple

from tooltrail.artifacts._ahead import ahead
from tooltrail.artifacts._frames import Block, Frames
from tooltrail.artifacts._giant_lines import refuse_giant
from tooltrail.artifacts._memory_search import contains
from tooltrail.artifacts.frame_index import FrameIndex


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
            refuse_giant(line.size, newlines + 1, path)
            continue
        if line.is_wanted:
            yield LineBlock(line.ended_by(memoryview(block.plain)[:cut]), start, newlines + 1)
        newlines = newlines_up_to(frames.index, block, newlines)
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


def newlines_up_to(index: FrameIndex, block: Block, newlines: int) -> int:
    """Newlines up to the end of a block: the index knows them where a frame ends there."""
    frame = index.frame_at(block.stop)
    if index.plain_span(frame - 1)[1] == block.stop:
        return index.newlines_before(frame)
    return newlines + block.plain.count(b"\n")
