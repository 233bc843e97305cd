"""Writes bytes to our own standard output or error without blocking in a write.

A write that blocks would stop everything else: the other stream, the time limit, the flush of the
record. Our descriptors are shared with the shell and its other children, so they must not be made
non-blocking. If the system allows it, the same pipe or terminal is opened again, non-blocking, for
us alone. Otherwise, `select` checks that a small write fits before each write.
"""

import os
import select
import stat
import sys
from collections import deque

from tooltrail.cli._process.outcome import StreamName

STANDARD_FDS: dict[StreamName, int] = {"stdout": 1, "stderr": 2}

_REOPEN_FLAGS = os.O_WRONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Outlet:
    """One destination, with a queue of bytes to write. Not thread-safe.

    Args:
        fd: descriptor to write to; None discards everything.
        step: maximum bytes per write, each after a check that the descriptor has room for them;
            None if writes to `fd` cannot block.
        owned: whether `close` closes `fd`.
        may_wait: whether a slow reader can keep bytes waiting; False for files.
    """

    def __init__(
        self,
        fd: int | None,
        *,
        step: int | None = None,
        owned: bool = False,
        may_wait: bool = True,
    ) -> None:
        self.fd = fd
        self.may_wait = may_wait
        self._step = step
        self._owned = owned
        self._pending: deque[memoryview] = deque()

    @property
    def is_pending(self) -> bool:
        """Whether the queue has bytes."""
        return bool(self._pending)

    def put(self, data: bytes) -> None:
        """Append `data` to the queue."""
        if self.fd is not None:
            self._pending.append(memoryview(data))

    def flush(self) -> bool:
        """Write as many bytes as fit; return whether anything was written.

        Raises:
            OSError: the reader has closed the pipe (BrokenPipeError), or the write failed.
        """
        progress = False
        while self._pending and self._has_room():
            chunk = self._pending[0]
            written = self._write(chunk[: self._step])
            if written == 0:
                break
            progress = True
            if written == len(chunk):
                self._pending.popleft()
            else:
                self._pending[0] = chunk[written:]
        return progress

    def drop(self) -> None:
        """Discard the queue and all later bytes."""
        self._pending.clear()
        self.close()

    def close(self) -> None:
        """Close the descriptor if it is owned. Can be called twice."""
        if self.fd is not None and self._owned:
            os.close(self.fd)
        self.fd = None

    def _has_room(self) -> bool:
        fd = self.fd
        return fd is not None and (self._step is None or bool(select.select([], [fd], [], 0)[1]))

    def _write(self, data: memoryview) -> int:
        assert self.fd is not None
        try:
            return os.write(self.fd, data)
        except BlockingIOError:
            return 0


def open_outlets() -> dict[StreamName, Outlet]:
    """Open the outlets of our standard output and error; both are one object if both are one file.

    With `2>&1`, a slow reader must hold back both streams. Otherwise their order would change.
    """
    # Check both before opening anything, because an opened file can get a free number 1 or 2.
    out, err = stat_standard("stdout"), stat_standard("stderr")
    stdout = _open_outlet(STANDARD_FDS["stdout"], out)
    if out is not None and err is not None and stdout.may_wait and _is_same(out, err):
        return {"stdout": stdout, "stderr": stdout}
    return {"stdout": stdout, "stderr": _open_outlet(STANDARD_FDS["stderr"], err)}


def _is_same(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)


def stat_standard(name: StreamName) -> os.stat_result | None:
    """The `os.stat_result` of our standard output or error; None if it is closed."""
    # If a descriptor was closed at our start, its number can now be a file that we opened later,
    # even the record. Only Python knows that the stream was closed.
    if (sys.__stdout__ if name == "stdout" else sys.__stderr__) is None:
        return None
    try:
        return os.fstat(STANDARD_FDS[name])
    except OSError:
        return None


def _may_block(fd: int, found: os.stat_result) -> bool:
    mode = found.st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode) or os.isatty(fd)


def _open_outlet(fd: int, found: os.stat_result | None) -> Outlet:
    if found is None:
        return Outlet(None)
    if not _may_block(fd, found):
        return Outlet(fd, may_wait=False)
    if not os.get_blocking(fd):
        return Outlet(fd)
    try:
        # On Linux this opens the same file again. Linux refuses it for sockets, for files of
        # another user, and for a pipe without a reader.
        return Outlet(os.open(f"/proc/self/fd/{fd}", _REOPEN_FLAGS), owned=True)
    except OSError:
        return Outlet(fd, step=select.PIPE_BUF)
