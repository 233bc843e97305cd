"""Whole lines of an artifact, in blocks that are fetched and decoded ahead by other threads.

Decoding lets go of the interpreter, so that it goes on while somebody searches the block before.
The threads belong to the process and are shared by all readers; a child of a fork makes its own.
"""

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import NamedTuple

from tooltrail.artifacts._frames import Block, Frames
from tooltrail.artifacts._memory_search import contains
from tooltrail.artifacts._threads import leave_signals_to_others
from tooltrail.artifacts.frame_index import FrameIndex
from tooltrail.records.errors import InvalidRecordError

FRAMES = 8
"""Full frames that one request fetches and one thread decodes."""

THREADS = max(2, min(4, os.cpu_count() or 1))
"""Threads that decode; the one that searches keeps up with no more."""

IN_FLIGHT = THREADS + 1
"""So many times `FRAMES` are held by one search at once."""

LINE_BYTES = 64 * 1024 * 1024
"""Longest line that is searched: it is held whole, twice."""


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
    for block in _ahead(frames):
        line.look_at(block.plain)
        cut = block.plain.rfind(b"\n") + 1
        if not cut:
            line.add(block.plain)
            _refuse_giant(line.size, newlines + 1, path)
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


def _refuse_giant(size: int, line: int, path: str) -> None:
    if size > LINE_BYTES:
        raise InvalidRecordError(
            f"line {line:,} of artifact {path} has more than {LINE_BYTES:,} bytes,"
            " which is too long to be searched"
        )


def _ahead(frames: Frames) -> Iterator[Block]:
    def source(start: int, stop: int) -> Iterator[Block]:
        for blocks in _decoded_ahead(frames, start, stop):
            yield from blocks

    return frames.resumed(source, 0, frames.index.plain_size)


def _decoded_ahead(frames: Frames, start: int, stop: int) -> Iterator[list[Block]]:
    index = frames.index
    waiting: deque[Future[list[Block]]] = deque()
    try:
        for first, end in frames.batches(start, stop, FRAMES * frames.frame_size):
            waiting.append(_threads().submit(_decoded, frames, index, first, end))
            if len(waiting) > IN_FLIGHT:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def _decoded(frames: Frames, index: FrameIndex, first: int, end: int) -> list[Block]:
    return list(frames.decode_batch(index, first, end))


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, "tooltrail-read", leave_signals_to_others)


os.register_at_fork(after_in_child=_threads.cache_clear)
