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
from tooltrail.artifacts._threads import leave_signals_to_others
from tooltrail.artifacts.frame_index import FrameIndex
from tooltrail.records.errors import InvalidRecordError

FRAMES = 8
"""Full frames in a block: what one request fetches."""

THREADS = max(2, min(4, os.cpu_count() or 1))
"""Threads that decode; the one that searches keeps up with no more."""

IN_FLIGHT = THREADS + 1
"""Blocks of one search that are held at once."""

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


def line_blocks(frames: Frames, path: str) -> Iterator[LineBlock]:
    """All lines of an artifact, in order.

    Raises:
        InvalidRecordError: a line has more than `LINE_BYTES`.
        DamageError, MissingArtifactError, UnavailableError: see `Frames.blocks`.
    """
    pieces: list[bytes] = []
    start, held, newlines = 0, 0, 0
    for block in _ahead(frames):
        cut = block.plain.rfind(b"\n") + 1
        if not cut:
            pieces.append(block.plain)
            held += len(block.plain)
            _refuse_giant(held, newlines + 1, path)
            continue
        plain = b"".join([*pieces, block.plain[:cut]]) if pieces else block.plain[:cut]
        yield LineBlock(plain, start, newlines + 1)
        newlines = _newlines_before(frames.index, block, plain, newlines)
        start, pieces = start + len(plain), [block.plain[cut:]]
        held = len(pieces[0])
    if held:
        yield LineBlock(b"".join(pieces), start, newlines + 1)


def _newlines_before(index: FrameIndex, block: Block, plain: bytes, newlines: int) -> int:
    """Newlines up to the end of a block: the index knows them where a frame ends there."""
    frame = index.frame_at(block.stop)
    if index.plain_span(frame - 1)[1] == block.stop:
        return index.newlines_before(frame)
    return newlines + plain.count(b"\n")


def _refuse_giant(held: int, line: int, path: str) -> None:
    if held > LINE_BYTES:
        raise InvalidRecordError(
            f"line {line:,} of artifact {path} has more than {LINE_BYTES:,} bytes,"
            " which is too long to be searched"
        )


def _ahead(frames: Frames) -> Iterator[Block]:
    def source(start: int, stop: int) -> Iterator[Block]:
        return _decoded_ahead(frames, start, stop)

    return frames.resumed(source, 0, frames.index.plain_size)


def _decoded_ahead(frames: Frames, start: int, stop: int) -> Iterator[Block]:
    index = frames.index
    waiting: deque[Future[Block]] = deque()
    try:
        for first, end in frames.batches(start, stop, FRAMES * frames.frame_size):
            waiting.append(_threads().submit(_joined, frames, index, first, end))
            if len(waiting) > IN_FLIGHT:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        for future in waiting:
            future.cancel()


def _joined(frames: Frames, index: FrameIndex, first: int, end: int) -> Block:
    blocks = list(frames.decode_batch(index, first, end))
    return Block(blocks[0].start, b"".join(block.plain for block in blocks))


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, "tooltrail-read", leave_signals_to_others)


os.register_at_fork(after_in_child=_threads.cache_clear)
