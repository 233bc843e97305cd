"""Threads for other work of this package in a user's program: compressing and decoding.

All captures and readers of a process share them; a forked child starts its own.
"""

import os
import signal
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
from typing import Literal, TypeVar

THREADS = max(2, min(4, os.cpu_count() or 1))
"""Threads of each pool. With more, the thread of the caller is the bottleneck."""

T = TypeVar("T")


def submit(
    purpose: Literal["compress", "read"], work: Callable[..., T], *arguments: object
) -> Future[T]:
    """Do work in another thread; in this thread if none can be started."""
    try:
        return _pool(purpose).submit(work, *arguments)
    except RuntimeError:
        # The program is ending, or has reached its limit of threads. The pool is dropped, with any
        # task that it did queue.
        _pool.cache_clear()
    done: Future[T] = Future()
    done.set_result(work(*arguments))
    return done


@cache
def _pool(purpose: str) -> ThreadPoolExecutor:
    return ThreadPoolExecutor(THREADS, f"tooltrail-{purpose}", leave_signals_to_others)


os.register_at_fork(after_in_child=_pool.cache_clear)


def leave_signals_to_others() -> None:
    """Block all signals in this thread, so that the program's own threads receive them."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
