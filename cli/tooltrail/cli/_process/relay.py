"""Forwards signals to the process group of the child, and wakes the loop.

The handlers forward at once, whatever the main thread is doing. The loop does all other work of a
signal, and notices the signal by a wake-up descriptor.
"""

import os
import signal
from collections.abc import Callable, Generator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Self

from tooltrail.cli._process.child import Child

ENDING_SIGNALS = frozenset(
    {
        signal.SIGINT,
        signal.SIGTERM,
        signal.SIGHUP,
        signal.SIGQUIT,
        signal.SIGUSR1,
        signal.SIGUSR2,
        signal.SIGALRM,
    }
)
"""Signals that a user or a program sends to a process. A process without a handler ends."""

_FORWARDED = ENDING_SIGNALS | {signal.SIGTSTP, signal.SIGCONT}
_NOTICED = (signal.SIGCHLD, signal.SIGWINCH)

_Handler = Callable[[int, FrameType | None], Any] | int | None

_WAKE_READ_SIZE = 4096


class SignalRelay:
    """Context manager for the main thread: installs our handlers, and restores the old ones.

    A signal that is ignored when we start stays ignored, here and in the child (`nohup`). Signals
    that arrive before `attach` are forwarded by `attach`. Inside the context, none of these signals
    ends this process or raises KeyboardInterrupt.

    Attributes:
        wake_fd: readable after a signal.
    """

    def __init__(self) -> None:
        self.wake_fd = -1
        self._wake_writer = -1
        self._old_wakeup_fd = -1
        self._old_handlers: dict[int, _Handler] = {}
        self._received: list[int] = []
        self._unsent: list[int] = []
        self._child: Child | None = None

    def __enter__(self) -> Self:
        self.wake_fd, self._wake_writer = os.pipe()
        os.set_blocking(self.wake_fd, False)
        os.set_blocking(self._wake_writer, False)
        # If the pipe is full, the loop wakes up anyway.
        self._old_wakeup_fd = signal.set_wakeup_fd(self._wake_writer, warn_on_full_buffer=False)
        for signum in sorted(_FORWARDED):
            if signal.getsignal(signum) != signal.SIG_IGN:
                self._handle(signum)
        # If SIGCHLD were ignored, the system would reap the child and lose its status.
        for signum in _NOTICED:
            self._handle(signum)
        return self

    def __exit__(self, *_: object) -> None:
        for signum, handler in self._old_handlers.items():
            signal.signal(signum, handler)
        signal.set_wakeup_fd(self._old_wakeup_fd)
        os.close(self.wake_fd)
        os.close(self._wake_writer)

    def attach(self, child: Child) -> None:
        """Forward all signals to `child`, including those that arrived earlier."""
        self._child = child
        for signum in self._unsent:
            child.send(signum)

    def detach(self) -> None:
        """Stop forwarding. The child is reaped, so its process id can be reused."""
        self._child = None

    def read_signals(self) -> list[int]:
        """Return the signals since the last call, in order, and clear the wake-up descriptor."""
        with suppress(BlockingIOError):
            os.read(self.wake_fd, _WAKE_READ_SIZE)
        received, self._received = self._received, []
        return received

    def _handle(self, signum: int) -> None:
        # None means a handler that was not set from Python and cannot be restored.
        if signal.getsignal(signum) is not None:
            self._old_handlers[signum] = signal.signal(signum, self._on_signal)

    def _on_signal(self, signum: int, _frame: FrameType | None) -> None:
        self._received.append(signum)
        if signum not in _FORWARDED:
            return
        if self._child is None:
            self._unsent.append(signum)
        else:
            self._child.send(signum)


def stop_self(*, whole_group: bool) -> bool:
    """Stop as on Ctrl-Z until SIGCONT; return whether the system stopped us.

    The system does not stop an orphaned process group, which no shell could continue.

    Args:
        whole_group: also stop the other processes of our job.
    """
    continued: list[int] = []
    old_continue = signal.signal(signal.SIGCONT, lambda signum, _: continued.append(signum))
    old_stop = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    try:
        if whole_group:
            os.killpg(os.getpgrp(), signal.SIGTSTP)
        if not continued:
            signal.raise_signal(signal.SIGTSTP)
        return bool(continued)
    finally:
        signal.signal(signal.SIGTSTP, old_stop)
        signal.signal(signal.SIGCONT, old_continue)


@contextmanager
def held_signals() -> Generator[None]:
    """Block the signals that end a program until the end of the block."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ENDING_SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
