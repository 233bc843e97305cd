"""Threads that begin together."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor


def at_once(*tasks: Callable[[], object]) -> list[object]:
    """Run tasks that begin together, one thread for each; return their results."""
    barrier = threading.Barrier(len(tasks))

    def begin(task: Callable[[], object]) -> object:
        barrier.wait()
        return task()

    with ThreadPoolExecutor(len(tasks)) as pool:
        return list(pool.map(begin, tasks))
