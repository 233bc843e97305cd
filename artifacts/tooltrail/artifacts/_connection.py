"""One fsspec file system for each process that uses a sink.

The asynchronous file systems of fsspec have a thread with an event loop, which a fork does not
copy, and sockets, which a fork would share. So each child process makes its own file system.
"""

import os
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class Connection(Generic[T]):
    """Makes one file system per process, on first use. Safe for threads and forks."""

    def __init__(self, connect: Callable[[], T]) -> None:
        """Make file systems with `connect`."""
        self._connect = connect
        # File systems of parent processes are kept: collecting one would close the parent's
        # sockets. No lock: a fork could copy it locked. If two are made at once, one is dropped.
        self._made: dict[int, T] = {}

    def get(self) -> T:
        """The file system of this process; raises what `connect` raises."""
        process = os.getpid()
        if process not in self._made:
            self._made.setdefault(process, self._connect())
        return self._made[process]
