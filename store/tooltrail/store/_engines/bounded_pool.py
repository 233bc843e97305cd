"""As many connections at a time as there are places, wherever their users are interrupted.

A pool of SQLAlchemy counts those that are in use, and a signal that comes between a connection and
its number leaves one too many in the count; a program that is interrupted often would have none in
the end. So the pool counts nothing, and who wants a connection takes a place first: an object that
is there again as soon as nobody has it, for whatever reason.
"""

import gc
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from queue import Empty, SimpleQueue
from threading import Lock
from time import monotonic
from typing import Any
from weakref import ref

from sqlalchemy import Connection, Engine, QueuePool
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

from tooltrail.store._engines.driver_errors import interruption_behind

_PATIENCE_S = 1.0
"""Seconds until a place is looked for in what the program has let go of; a thousand records."""


class _Place:
    """One of the places; it is free as soon as nobody refers to this."""

    __slots__ = ("__weakref__",)


class BoundedPool(QueuePool):
    """Connections that are kept, and places for those that are in use.

    A forked child gets another pool in its stead, with all places free.
    """

    def __init__(self, *arguments: Any, pool_size: int, **named: Any) -> None:
        """Begin with all places free.

        Args:
            arguments: those of `QueuePool`.
            pool_size: how many there are, and connections that are kept at most.
            named: those of `QueuePool`.
        """
        super().__init__(*arguments, **{**named, "pool_size": pool_size, "max_overflow": -1})
        self._guard = Lock()
        self._taken: list[ref[_Place]] = []
        # For each place that is free again one hint, for those who wait. Nothing but code in C is
        # called when it becomes free, so that no signal comes in between.
        self._hints: SimpleQueue[object] = SimpleQueue()

    @property
    def free_count(self) -> int:
        """How many places nobody has."""
        return self.size() - sum(place() is not None for place in self._taken)

    def take_place(self, timeout_s: float) -> object:
        """A place; it is free again when the last reference to it is gone.

        Raises:
            sqlalchemy.exc.TimeoutError: there was none in time.
        """
        deadline = monotonic() + timeout_s
        while (place := self._taken_now()) is None:
            left_s = deadline - monotonic()
            if left_s <= 0:
                raise PoolTimeoutError(f"no place of {self.size()} was free in {timeout_s} s")
            try:
                self._hints.get(timeout=min(left_s, _PATIENCE_S))
            except Empty:
                # Some may be in the hands of nobody but the garbage collector.
                gc.collect()
        return place

    def _taken_now(self) -> _Place | None:
        with self._guard:
            self._taken = [place for place in self._taken if place() is not None]
            if len(self._taken) >= self.size():
                return None
            with suppress(Empty):
                self._hints.get_nowait()
            place = _Place()
            self._taken.append(ref(place, self._hints.put))
            return place


@contextmanager
def placed(engine: Engine, timeout_s: float) -> Generator[Connection]:
    """A connection of an engine with a `BoundedPool`, in a place of its own.

    Who interrupts its use gets the interruption back, whatever SQLAlchemy makes of it.

    Raises:
        sqlalchemy.exc.TimeoutError: no place was free in time.
        DBAPIError: the server cannot be reached.
    """
    pool = engine.pool
    if not isinstance(pool, BoundedPool):
        raise TypeError(f"{pool} has no places")
    handled = sys.exception()
    place = pool.take_place(timeout_s)
    try:
        with engine.connect() as connection:
            yield connection
    except Exception as error:
        interruption = interruption_behind(error, handled)
        if interruption is None:
            raise
        raise interruption from error
    finally:
        # Not when the traceback of an error is gone, which somebody may keep.
        del place
