"""Compress blocks in other threads, and return their frames in order.

zstd releases the interpreter lock while it compresses. So two threads compress about twice as fast
as one, while the caller's thread reads, hashes and writes.
"""

from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future
from typing import NamedTuple

from tooltrail.artifacts._threads import THREADS, submit
from tooltrail.artifacts.codec import compress_frame
from tooltrail.artifacts.frame_index import Frame

IN_FLIGHT = 16
"""Blocks of one capture that wait for their frames at once.

Two per thread would suffice if threads were never descheduled. On a busy machine any thread, also
the one that adds blocks, can pause for some milliseconds, and the others need work during a pause.
"""

IN_FLIGHT_BYTES = 4 * 1024 * 1024
"""The same limit in bytes, for large blocks; `THREADS + 2` blocks are always allowed."""


class Compressed(NamedTuple):
    """A block and its frame."""

    block: bytearray
    frame: Frame


class FrameQueue:
    """The blocks of one capture that are being compressed. For one thread at a time.

    A block is removed only when the caller asks for the next one, so an interrupted caller loses
    no block.
    """

    def __init__(self, frame_size: int) -> None:
        """Accept blocks of at most `frame_size` bytes."""
        self._most = min(IN_FLIGHT, max(THREADS + 2, IN_FLIGHT_BYTES // frame_size))
        self._waiting: deque[tuple[bytearray, Future[Frame]]] = deque()

    def put(self, block: bytearray) -> None:
        """Compress a block, which MUST NOT change until it is returned."""
        self._waiting.append((block, submit("compress", compress_frame, block)))

    def put_compressed(self, block: bytearray, frame: Frame | None = None) -> None:
        """Add a block with its frame; without a frame, compress the block in this thread."""
        done: Future[Frame] = Future()
        done.set_result(compress_frame(block) if frame is None else frame)
        self._waiting.append((block, done))

    @property
    def blocks(self) -> list[bytearray]:
        """All blocks that are still in the queue, in order."""
        return [block for block, _ in self._waiting]

    def clear(self) -> None:
        """Remove all blocks."""
        self._waiting.clear()

    def ready(self) -> Iterator[Compressed]:
        """Remove the first blocks, as long as they are done or the queue is over its limit."""
        while self._waiting:
            if len(self._waiting) <= self._most and not self._waiting[0][1].done():
                return
            yield self._first()
            self._waiting.popleft()

    def drain(self) -> Iterator[Compressed]:
        """Remove all blocks with their frames; wait for each frame."""
        while self._waiting:
            yield self._first()
            self._waiting.popleft()

    def _first(self) -> Compressed:
        block, frame = self._waiting[0]
        # A failed future stays failed, but a lack of memory may be over: compress again.
        return Compressed(block, compress_frame(block) if frame.exception() else frame.result())
