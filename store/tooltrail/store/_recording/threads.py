"""The threads of an open store, in which records of tasks are written."""

import asyncio
import os
import threading
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

THREADS = 12
"""Records that are written at once: fewer than there are connections to a server, and enough to
share the waits for a disk."""

T = TypeVar("T")


class WriterThreads:
    """Threads that are made when they are first needed. Safe to share between threads and loops.

    A forked child has none of its parent's, and makes its own.
    """

    def __init__(self) -> None:
        self.forget()
        _all.add(self)

    def forget(self) -> None:
        """Begin without those of the parent, in a process that was forked."""
        self._lock = threading.Lock()
        self._pool: ThreadPoolExecutor | None = None

    async def run(self, task: Callable[[], T]) -> T:
        """Do something in one of them, and wait for it without holding up the loop.

        A waiter that is cancelled has not begun it, or leaves it to come to its end.
        """
        return await asyncio.get_running_loop().run_in_executor(self._made(), task)

    def close(self) -> None:
        """Wait for what has begun or is to begin, and end them."""
        with self._lock:
            pool, self._pool = self._pool, None
        if pool is not None:
            pool.shutdown()

    def _made(self) -> ThreadPoolExecutor:
        with self._lock:
            if self._pool is None:
                self._pool = ThreadPoolExecutor(THREADS, thread_name_prefix="tooltrail-writer")
            return self._pool


_all: weakref.WeakSet[WriterThreads] = weakref.WeakSet()


def _forget() -> None:
    for threads in list(_all):
        threads.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_forget)
