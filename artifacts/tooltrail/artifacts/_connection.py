"""One file system for each process that uses a sink.

The asynchronous file systems of fsspec keep a thread with an event loop, which a fork leaves
behind, and sockets, which it would share. So a child process makes a file system of its own.
"""

import os
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Connection(Generic[T]):
    """Makes a file system when a process first asks for it. Safe for threads and forks."""

    def __init__(self, connect: Callable[[], T]) -> None:
        """Make file systems by `connect`."""
        self._connect = connect
        # Those of parent processes are kept: to collect one would close the parent's sockets. No
        # lock, which a fork might take along locked; of two that are made at once one is left.
        self._made: dict[int, T] = {}

    def get(self) -> T:
        """The file system of this process; raises what `connect` raises."""
        process = os.getpid()
        if process not in self._made:
            self._made.setdefault(process, self._connect())
        return self._made[process]
