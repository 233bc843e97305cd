"""Handles standard descriptors that the caller closed, or that cannot be written."""

import os
import sys
from contextlib import suppress

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
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]  Python found it closed
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115  open for the whole run
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison]  the same
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115


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
