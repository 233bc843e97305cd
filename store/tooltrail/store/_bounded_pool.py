"""As many connections at a time as there are places, wherever their users are interrupted.

A pool of SQLAlchemy counts those that are in use, and a signal that comes between a connection and
its number leaves one too many in the count; a program that is interrupted often would have none in
the end. So the pool counts nothing, and who wants a connection takes a place first: an object that
is there again as soon as nobody has it, for whatever reason.
"""

import gc
from collections.abc import Generator
from contextlib import contextmanager, suppress
from itertools import count
from queue import Empty, SimpleQueue
from typing import Any
from weakref import WeakValueDictionary

from sqlalchemy import Connection, Engine, QueuePool
from sqlalchemy.exc import TimeoutError as PoolTimeoutError

_PATIENCE_S = 1.0
"""Seconds until a place is looked for in what the program has let go of; a thousand records."""


_queues: "WeakValueDictionary[int, SimpleQueue[_Place]]" = WeakValueDictionary()
_numbers = count()


class _Place:
    """One of the places; another one is free as soon as nobody refers to it.

    It knows its queue by number: with a reference neither would ever end, and of a weak one the
    garbage collector makes nothing before it calls `__del__`.
    """

    __slots__ = ("_queue",)

    def __init__(self, queue: int) -> None:
        self._queue = queue

    def __del__(self) -> None:
        free = _queues.get(self._queue)
        if free is not None:
            # Safe wherever the interpreter calls this, as no other queue is.
            free.put(_Place(self._queue))


class BoundedPool(QueuePool):
    """Connections that are kept, and places for those that are in use.

    A forked child gets another pool in its stead, with all places free.
    """

    def __init__(self, *arguments: Any, pool_size: int, **named: Any) -> None:
        """Make the places.

        Args:
            arguments: those of `QueuePool`.
            pool_size: how many there are, and connections that are kept at most.
            named: those of `QueuePool`.
        """
        super().__init__(*arguments, **{**named, "pool_size": pool_size, "max_overflow": -1})
        self._free: SimpleQueue[_Place] = SimpleQueue()
        number = next(_numbers)
        _queues[number] = self._free
        for _ in range(pool_size):
            self._free.put(_Place(number))

    @property
    def free_count(self) -> int:
        """How many places nobody has."""
        return self._free.qsize()

    def take_place(self, timeout_s: float) -> object:
        """A place; it is free again when the last reference to it is gone.

        Raises:
            sqlalchemy.exc.TimeoutError: there was none in time.
        """
        with suppress(Empty):
            return self._free.get(timeout=min(_PATIENCE_S, timeout_s))
        # Some may be in the hands of nobody but the garbage collector.
        gc.collect()
        try:
            return self._free.get(timeout=max(0.0, timeout_s - _PATIENCE_S))
        except Empty:
            raise PoolTimeoutError(f"no place of {self.size()} was free in {timeout_s} s") from None


@contextmanager
def placed(engine: Engine, timeout_s: float) -> Generator[Connection]:
    """A connection of an engine with a `BoundedPool`, in a place of its own.

    Raises:
        sqlalchemy.exc.TimeoutError: no place was free in time.
        DBAPIError: the server cannot be reached.
    """
    pool = engine.pool
    if not isinstance(pool, BoundedPool):
        raise TypeError(f"{pool} has no places")
    place = pool.take_place(timeout_s)
    try:
        with engine.connect() as connection:
            yield connection
    finally:
        # Not when the traceback of an error is gone, which somebody may keep.
        del place
