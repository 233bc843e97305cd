"""Waiting for more to print, as long as somebody reads it.

A program that waits finds out that its reader has gone only when it next writes, which may be
never: `tooltrail log -f | head -1` would stay behind. So the descriptor is watched meanwhile.
"""

import errno
import os
import select
import sys
import threading

_GONE = select.POLLHUP | select.POLLERR
"""Events that `poll` reports of any descriptor without a request. A file never has them."""


def wait_for_more(seconds: float) -> None:
    """Wait, unless the reader of standard output has gone or goes meanwhile.

    That is a pipe or a socket without its other end, and a terminal that was closed. A connection
    over a network that was closed looks as one that merely sends nothing more, until something is
    written.

    Args:
        seconds: to wait; they may be fewer.

    Raises:
        BrokenPipeError: the reader has gone, as a write would say it.
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
    """Its descriptor; None for one in memory, as programs have it that call this one."""
    try:
        return sys.stdout.fileno()
    except (OSError, ValueError):
        return None
