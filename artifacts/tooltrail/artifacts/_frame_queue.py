"""Compresses blocks in other threads and gives their frames back in order.

zstd lets go of the interpreter while it works, so that two threads compress about twice as fast as
one, beside the thread that reads, hashes and writes. The threads belong to the process and are
shared by all captures; a child of a fork, which has none of them, makes its own. Where no thread
is to be had, at the end of the program for instance, the caller's own does it.
"""

import os
from collections import deque
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import NamedTuple

from tooltrail.artifacts._threads import leave_signals_to_others
from tooltrail.artifacts.codec import compress_frame
from tooltrail.artifacts.frame_index import Frame

THREADS = max(2, min(4, os.cpu_count() or 1))
"""Threads that compress; beyond four the one that hashes is the limit."""

IN_FLIGHT = 16
"""Blocks of one capture that wait for their frames at once.

Two for each thread would do if all ran on. On a busy machine any of them stands still for some
milliseconds at times, the one that feeds them too, and the others go on with what is there.
"""

IN_FLIGHT_BYTES = 4 * 1024 * 1024
"""The same in bytes, where blocks are large; two more than there are threads wait in any case."""


class Compressed(NamedTuple):
    """A block and the frame that holds it."""

    block: bytearray
    frame: Frame


class FrameQueue:
    """The blocks of one capture that are being compressed. One thread at a time.

    A block leaves only when the one that took it asks for the next, so none is lost when that is
    interrupted.
    """

    def __init__(self, frame_size: int) -> None:
        """Blocks have at most so many bytes."""
        self._most = min(IN_FLIGHT, max(THREADS + 2, IN_FLIGHT_BYTES // frame_size))
        self._waiting: deque[tuple[bytearray, Future[Frame]]] = deque()
        self._has_threads = True

    def put(self, block: bytearray) -> None:
        """Compress a block, which MUST NOT change until it is given back."""
        if self._has_threads:
            try:
                self._waiting.append((block, _threads().submit(compress_frame, block)))
            except RuntimeError:
                # The program is at its end, or may have no more threads. What the pool was given
                # all the same goes with it.
                self._has_threads = False
                _threads.cache_clear()
            else:
                return
        self.put_compressed(block)

    def put_compressed(self, block: bytearray, frame: Frame | None = None) -> None:
        """Add a block with its frame; compressed in this thread where there is none."""
        done: Future[Frame] = Future()
        done.set_result(compress_frame(block) if frame is None else frame)
        self._waiting.append((block, done))

    @property
    def blocks(self) -> list[bytearray]:
        """All blocks that were not taken, in order."""
        return [block for block, _ in self._waiting]

    def clear(self) -> None:
        """Forget all blocks."""
        self._waiting.clear()

    def ready(self) -> Iterator[Compressed]:
        """Take the first blocks, as long as they are done or more wait than may."""
        while self._waiting:
            if len(self._waiting) <= self._most and not self._waiting[0][1].done():
                return
            yield self._first()
            self._waiting.popleft()

    def drain(self) -> Iterator[Compressed]:
        """Take all blocks."""
        while self._waiting:
            yield self._first()
            self._waiting.popleft()

    def _first(self) -> Compressed:
        block, frame = self._waiting[0]
        # There may have been no memory for a moment, and an outcome stays as it is.
        return Compressed(block, compress_frame(block) if frame.exception() else frame.result())


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, "tooltrail-compress", leave_signals_to_others)


os.register_at_fork(after_in_child=_threads.cache_clear)
