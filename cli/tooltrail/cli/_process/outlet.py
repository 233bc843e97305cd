"""Passing bytes on to our own standard output or error without ever waiting inside a write.

A write that blocks would stop everything else: the other stream, the time limit, the flushing of
the record. Our descriptors are shared with the shell and its other children, so they cannot simply
be made non-blocking. Where the system allows it, the same pipe or terminal is opened once more for
us alone, non-blocking. Elsewhere, small writes follow a look at whether one fits.
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
    """One destination with the bytes that still wait for it. Not thread-safe.

    Args:
        fd: where to write; None discards everything.
        step: at most so many bytes per write, each after a look whether the descriptor has room
            for them; None when writing to `fd` cannot block.
        owned: close `fd` in `close`.
        may_wait: a full reader can make bytes wait here; a file never does.
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
        """Whether there are bytes that still wait for room."""
        return bool(self._pending)

    def put(self, data: bytes) -> None:
        """Queue `data` behind what is already waiting."""
        if self.fd is not None:
            self._pending.append(memoryview(data))

    def flush(self) -> bool:
        """Write as much as there is room for; whether anything was written.

        Raises:
            OSError: the reader has gone (BrokenPipeError), or writing failed for good.
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
        """Forget what is waiting, and discard all that follows."""
        self._pending.clear()
        self.close()

    def close(self) -> None:
        """Give back the descriptor. Calling it twice is harmless."""
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
    """The outlets of our standard output and error: one and the same when both go to one place.

    With `2>&1` a reader that stalls must hold back both streams, or their order would change.
    """
    # Both are looked at before anything is opened, which might take a free number 1 or 2.
    out, err = stat_standard("stdout"), stat_standard("stderr")
    stdout = _open_outlet(STANDARD_FDS["stdout"], out)
    if out is not None and err is not None and stdout.may_wait and _is_same(out, err):
        return {"stdout": stdout, "stderr": stdout}
    return {"stdout": stdout, "stderr": _open_outlet(STANDARD_FDS["stderr"], err)}


def _is_same(one: os.stat_result, other: os.stat_result) -> bool:
    return (one.st_dev, one.st_ino) == (other.st_dev, other.st_ino)


def stat_standard(name: StreamName) -> os.stat_result | None:
    """What our standard output or error is; None when it is closed."""
    # A descriptor that was closed when we started may now be any file that we opened since, the
    # record itself included. Python remembers; the descriptor table does not.
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
        # On Linux this opens the file behind the descriptor anew; refused for sockets, for what
        # belongs to another user, and for a pipe without a reader.
        return Outlet(os.open(f"/proc/self/fd/{fd}", _REOPEN_FLAGS), owned=True)
    except OSError:
        return Outlet(fd, step=select.PIPE_BUF)
