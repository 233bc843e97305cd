"""Waits for more output, unless the reader of standard output has closed the pipe.

A waiting program notices a closed pipe only at its next write, which may never come. Then
`tooltrail log -f | head -1` would run forever. Therefore the descriptor is polled during the wait.
"""

import errno
import os
import select
import sys
import threading

_GONE = select.POLLHUP | select.POLLERR
"""Events that `poll` reports without being requested. A file never has them."""


def wait_for_more(seconds: float) -> None:
    """Wait, and raise if the reader of standard output is gone before or during the wait.

    Detects a pipe or a socket whose other end is closed, and a terminal that was closed. A closed
    network connection is detected only at the next write.
    """
    fd = _standard_output()
    if fd is None:
        threading.Event().wait(seconds)
        return
    watch = select.poll()
    watch.register(fd, 0)
    for _, events in watch.poll(seconds * 1000):
        if events & _GONE:
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        threading.Event().wait(seconds)  # `poll` reports a device that it cannot watch at once


def _standard_output() -> int | None:
    """The descriptor of standard output; None if it has none, such as a stream in memory."""
    try:
        return sys.stdout.fileno()
    except (OSError, ValueError):
        return None
