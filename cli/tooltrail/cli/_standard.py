"""Handles standard descriptors that the caller closed, or that cannot be written."""

import io
import os
import sys
from contextlib import suppress
from typing import TextIO

_COUNT = 3


def open_missing() -> None:
    """Open the null device where a standard descriptor is closed (`>&-`).

    Otherwise the next opened file or connection would get the free number, and standard output
    would be written into the store. A write to the null device fails as on a closed descriptor.
    """
    for fd in range(_COUNT):
        try:
            os.fstat(fd)
        except OSError:
            # `open` returns the lowest free number. All lower numbers are in use.
            os.open(os.devnull, os.O_RDONLY)
    sys.stdout, sys.stderr = _with_buffer(sys.stdout, 1), _with_buffer(sys.stderr, 2)


def _with_buffer(stream: TextIO | None, fd: int) -> TextIO:
    """The stream, or a new one where Python found it closed, or opened it without a buffer.

    Without a buffer, as with `PYTHONUNBUFFERED`, Python drops the rest of a short write.
    """
    if stream is not None and not isinstance(getattr(stream, "buffer", None), io.RawIOBase):
        return stream
    encoding = getattr(stream, "encoding", None)
    return open(fd, "w", encoding=encoding, errors="backslashreplace", closefd=False)


def drop_unwritten() -> None:
    """Drop output that cannot be written, so that the exit code is not changed.

    Python flushes both streams at exit. If that fails, Python exits with 120.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
