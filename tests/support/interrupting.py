"""Ctrl-C at a chosen moment of some code, by default that of `tooltrail.artifacts`."""

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
    """Ctrl-C at the n-th call, of or in that code; calls are where Python looks for signals.

    Args:
        moment: which call, from 1.
        code: folders, and files, of its modules.

    Gives a list that has the moment in it when it was reached.
    """
    count, folders = 0, tuple(code)
    reached: list[int] = []

    def look(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        name = getattr(argument, "__name__", "")
        if not frame.f_code.co_filename.startswith(folders):
            return
        # A `with` lets go of its lock between two looks; before its call `write` knows nothing.
        if name != "__exit__" and (event, frame.f_code.co_name) != ("call", "write"):
            count += 1
            if count == moment:
                sys.setprofile(None)
                reached.append(moment)
                signal.raise_signal(signal.SIGINT)

    # What earlier tests left behind is not finalized meanwhile, where an interrupt would be lost.
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
    """Ctrl-C at the n-th place of some code where Python looks for signals.

    Python looks at the beginning of a function and after the call of one that is written in C.

    Args:
        moment: which place, from 1.
        code: folder of its modules.

    Gives a list that has the moment in it when it was reached.
    """
    count = 0
    reached: list[int] = []

    def look(frame: FrameType, event: str, argument: Any) -> None:
        nonlocal count
        # What is raised in `__del__` is printed and ignored.
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
    """Do something with Ctrl-C at a moment of it; whether that was reached."""
    with contextlib.suppress(KeyboardInterrupt), interrupted_at(moment) as reached:
        step()
    return bool(reached)
