"""The three standard descriptors of this program, which a caller may have closed or filled up."""

import os
import sys
from contextlib import suppress

_COUNT = 3


def open_missing() -> None:
    """Open the null device where a standard descriptor is closed (`>&-`).

    Otherwise the next file or connection that is opened takes its number, and what is meant for
    standard output is written into the store.
    """
    for fd in range(_COUNT):
        try:
            os.fstat(fd)
        except OSError:
            # The lowest free number is given out, and all lower ones are in use.
            os.open(os.devnull, os.O_RDWR)
    if sys.stdout is None:  # pyright: ignore[reportUnnecessaryComparison]  Python found it closed
        sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115  open for the whole run
    if sys.stderr is None:  # pyright: ignore[reportUnnecessaryComparison]  the same
        sys.stderr = open(2, "w", closefd=False)  # noqa: SIM115


def drop_unwritten() -> None:
    """Forget what the reader of our output does not take, so that the exit code stays ours.

    Python flushes both streams once more at its exit, and a failure there changes the code to 120.
    """
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            with suppress(OSError):
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
