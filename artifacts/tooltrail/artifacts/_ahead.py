"""Decode the frames of an artifact in other threads, ahead of the consumer and in order.

Decoding releases the interpreter lock, so it runs while the consumer uses earlier results. All
readers of a process share the threads; a forked child starts its own. If no thread can be started,
for instance at the end of the program, the consumer's thread decodes.
"""

import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache, partial
from typing import TypeVar

from tooltrail.artifacts._frames import Block, Frames
from tooltrail.artifacts._threads import leave_signals_to_others
from tooltrail.records.errors import TooltrailError

FRAMES = 8
"""Full frames per batch: one request fetches a batch and one thread decodes it."""

THREADS = max(2, min(4, os.cpu_count() or 1))
"""Threads that decode; the consumer cannot keep up with more."""

IN_FLIGHT = THREADS + 1
"""Batches of `FRAMES` frames that one reader holds at once."""

T = TypeVar("T")

_Batch = tuple[list[T], TooltrailError | None]
"""The results of one batch, up to the first block that cannot be read, and the error."""


def ahead(frames: Frames, transform: Callable[[Block], T]) -> Iterator[T]:
    """The result of a function for each frame of an artifact, in order.

    Args:
        frames: the frames of the artifact.
        transform: the function; several other threads call it at once.

    Raises:
        DamageError, MissingArtifactError, UnavailableError: see `Frames.blocks`. The results of
            all frames before a damaged one are returned first.
    """
    for results, error in _batches(frames, transform):
        yield from results
        if error is not None:
            raise error


def _batches(frames: Frames, transform: Callable[[Block], T]) -> Iterator[_Batch[T]]:
    make = partial(_batch, frames, transform=transform)
    waiting: deque[Future[_Batch[T]]] = deque()
    has_threads = True
    try:
        for first, end in frames.batches(0, len(frames.index), FRAMES * frames.frame_size):
            if has_threads:
                try:
                    waiting.append(_threads().submit(make, first, end))
                except RuntimeError:
                    # As in `FrameQueue.put`: the pool is dropped, with any task that it did queue.
                    has_threads = False
                    _threads.cache_clear()
            if not has_threads:
                yield from _results(waiting)
                yield make(first, end)
            elif len(waiting) > IN_FLIGHT:
                yield waiting.popleft().result()
        yield from _results(waiting)
    finally:
        for future in waiting:
            future.cancel()


def _results(waiting: deque[Future[_Batch[T]]]) -> Iterator[_Batch[T]]:
    while waiting:
        yield waiting.popleft().result()


def _batch(frames: Frames, first: int, end: int, transform: Callable[[Block], T]) -> _Batch[T]:
    results: list[T] = []
    try:
        results.extend(map(transform, frames.decode_batch(first, end)))
    except TooltrailError as error:
        return results, error
    return results, None


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, "tooltrail-read", leave_signals_to_others)


os.register_at_fork(after_in_child=_threads.cache_clear)
