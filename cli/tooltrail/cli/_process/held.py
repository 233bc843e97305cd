"""Signals that must not interrupt what is being written down."""

import signal
from collections.abc import Generator
from contextlib import contextmanager

_HELD = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT}


@contextmanager
def held_signals() -> Generator[None]:
    """Hold the signals that end a program until the block is over; then they strike."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _HELD)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
