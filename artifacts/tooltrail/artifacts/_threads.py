"""Threads of this package work in the background of somebody else's program."""

import signal


def leave_signals_to_others() -> None:
    """Let no signal be delivered to this thread: whoever holds them back counts on that."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
