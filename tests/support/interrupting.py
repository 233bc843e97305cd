"""Ctrl-C at a chosen moment of some code, by default of `tooltrail.artifacts`."""

import contextlib
import gc
import signal
import sys
from collections.abc import Callable, Generator, Sequence
from pathlib import Path
from types import FrameType
from typing import Any

import tooltrail.artifacts

OURS = str(Path(tooltrail.artifacts.__file__).parent)


@contextlib.contextmanager
def interrupted_at(moment: int, code: Sequence[str] = (OURS,)) -> Generator[list[int]]:
    """Ctrl-C at the n-th call of or in some code; Python checks for signals at calls.

    Args:
        moment: number of the call, from 1.
        code: folders and files of the modules.

    Yields a list that contains the moment once it was reached.
    """
    count, folders = 0, tuple(code)
    reached: list[int] = []

    def look(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        name = getattr(argument, "__name__", "")
        if not frame.f_code.co_filename.startswith(folders):
            return
        # A `with` releases its lock between two checks. At its own call, `write` has not begun.
        if name != "__exit__" and (event, frame.f_code.co_name) != ("call", "write"):
            count += 1
            if count == moment:
                sys.setprofile(None)
                reached.append(moment)
                signal.raise_signal(signal.SIGINT)

    # No objects of earlier tests are finalized here: an interrupt in a finalizer would be lost.
    is_collecting = gc.isenabled()
    gc.disable()
    sys.setprofile(look)
    try:
        yield reached
    finally:
        sys.setprofile(None)
        if is_collecting:
            gc.enable()


@contextlib.contextmanager
def signalled_at(moment: int, code: str) -> Generator[list[int]]:
    """Ctrl-C at the n-th point of some code where Python checks for signals.

    Python checks at the beginning of a function and after the call of a C function.

    Args:
        moment: number of the point, from 1.
        code: folder of the modules.

    Yields a list that contains the moment once it was reached.
    """
    count = 0
    reached: list[int] = []

    def look(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        # An exception in `__del__` is printed and ignored.
        if event not in {"call", "c_return"} or frame.f_code.co_name == "__del__":
            return
        if frame.f_code.co_filename.startswith(code):
            count += 1
            if count == moment:
                sys.setprofile(None)
                reached.append(moment)
                signal.raise_signal(signal.SIGINT)

    sys.setprofile(look)
    try:
        yield reached
    finally:
        sys.setprofile(None)


def interrupted(step: Callable[[], object], moment: int) -> bool:
    """Run a step with Ctrl-C at a moment; return whether the moment was reached."""
    with contextlib.suppress(KeyboardInterrupt), interrupted_at(moment) as reached:
        step()
    return bool(reached)
