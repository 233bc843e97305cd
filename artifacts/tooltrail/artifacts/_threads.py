"""Set-up for the background threads that this package starts in a user's program."""

import signal


def leave_signals_to_others() -> None:
    """Block all signals in this thread, so that the program's own threads receive them."""
    signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())
