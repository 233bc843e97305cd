"""Ctrl-C while a command maintains a store: it ends with an account of what was done.

Elsewhere Ctrl-C ends the program as it ends any other (see `__main__`). One that is ignored, as
`nohup` has it, stays ignored, and a second one always ends the program on the spot.
"""

import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType


@contextmanager
def interruptible() -> Generator[None]:
    """Ctrl-C raises `KeyboardInterrupt` wherever the block is."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        raise KeyboardInterrupt

    with _handling(interrupt):
        yield


@contextmanager
def interruptible_between_steps() -> Generator[Callable[[], None]]:
    """Ctrl-C is remembered; what is yielded raises `KeyboardInterrupt` once there was one."""
    was_interrupted = False

    def remember(_number: int, _frame: FrameType | None) -> None:
        nonlocal was_interrupted
        was_interrupted = True
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    def check() -> None:
        if was_interrupted:
            raise KeyboardInterrupt

    with _handling(remember):
        yield check


@contextmanager
def _handling(handler: Callable[[int, FrameType | None], None]) -> Generator[None]:
    before = signal.getsignal(signal.SIGINT)
    if before not in (signal.SIG_DFL, signal.default_int_handler):
        yield
        return
    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
