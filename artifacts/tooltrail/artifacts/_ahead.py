"""What is made of an artifact's blocks by other threads, ahead of whoever takes it, in order.

Decoding lets go of the interpreter, so that it goes on while somebody uses what came before. The
threads belong to the process and are shared by all readers; a child of a fork makes its own. Where
no thread is to be had, at the end of the program for instance, the taker's own does it.
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
"""Full frames that one request fetches and one thread decodes."""

THREADS = max(2, min(4, os.cpu_count() or 1))
"""Threads that decode; the one that takes keeps up with no more."""

IN_FLIGHT = THREADS + 1
"""So many times `FRAMES` are held by one reader at once."""

T = TypeVar("T")

_Batch = tuple[list[T], TooltrailError | None]
"""What was made of the blocks of one request, up to the first that cannot be read."""


def ahead(frames: Frames, made_of: Callable[[Block], T]) -> Iterator[T]:
    """What a function makes of each frame of an artifact, in order.

    Args:
        frames: of the artifact.
        made_of: called by other threads, by several at once.

    Raises:
        DamageError, MissingArtifactError, UnavailableError: see `Frames.blocks`. All that comes
            before a damaged frame was given.
    """
    for made, error in _batches(frames, made_of):
        yield from made
        if error is not None:
            raise error


def _batches(frames: Frames, made_of: Callable[[Block], T]) -> Iterator[_Batch[T]]:
    make = partial(_batch, frames, made_of=made_of)
    waiting: deque[Future[_Batch[T]]] = deque()
    has_threads = True
    try:
        for first, end in frames.batches(0, len(frames.index), FRAMES * frames.frame_size):
            if has_threads:
                try:
                    waiting.append(_threads().submit(make, first, end))
                except RuntimeError:
                    # As in `FrameQueue.put`: what the pool was given all the same goes with it.
                    has_threads = False
                    _threads.cache_clear()
            if not has_threads:
                yield from _taken(waiting)
                yield make(first, end)
            elif len(waiting) > IN_FLIGHT:
                yield waiting.popleft().result()
        yield from _taken(waiting)
    finally:
        for future in waiting:
            future.cancel()


def _taken(waiting: deque[Future[_Batch[T]]]) -> Iterator[_Batch[T]]:
    while waiting:
        yield waiting.popleft().result()


def _batch(frames: Frames, first: int, end: int, made_of: Callable[[Block], T]) -> _Batch[T]:
    made: list[T] = []
    try:
        made.extend(map(made_of, frames.decode_batch(first, end)))
    except TooltrailError as error:
        return made, error
    return made, None


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, "tooltrail-read", leave_signals_to_others)


os.register_at_fork(after_in_child=_threads.cache_clear)
