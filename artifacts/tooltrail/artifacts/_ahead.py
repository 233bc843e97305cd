"""Decode the frames of an artifact in other threads, ahead of the consumer and in order.

Decoding releases the interpreter lock, so it runs while the consumer uses earlier results.
"""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from typing import TypeVar

from tooltrail.artifacts._frames import Block, Frames
from tooltrail.artifacts._threads import THREADS, submit
from tooltrail.records.errors import TooltrailError

FRAMES = 8
"""Full frames per batch: one request fetches a batch and one thread decodes it."""

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
    waiting: deque[Future[_Batch[T]]] = deque()
    try:
        for first, end in frames.batches(0, len(frames.index), FRAMES * frames.frame_size):
            waiting.append(submit("read", _batch, frames, first, end, transform))
            if len(waiting) > IN_FLIGHT:
                yield from _results(waiting.popleft())
        while waiting:
            yield from _results(waiting.popleft())
    finally:
        for future in waiting:
            future.cancel()


def _results(batch: Future[_Batch[T]]) -> Iterator[T]:
    results, error = batch.result()
    yield from results
    if error is not None:
        raise error


def _batch(frames: Frames, first: int, end: int, transform: Callable[[Block], T]) -> _Batch[T]:
    results: list[T] = []
    try:
        results.extend(map(transform, frames.decode_batch(first, end)))
    except TooltrailError as error:
        return results, error
    return results, None
