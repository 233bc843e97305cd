"""Waiting for what another thread or process does, and for no time."""

import time
from collections.abc import Callable


def until(condition: Callable[[], bool]) -> None:
    """Come back when it holds.

    Raises:
        AssertionError: it does not within a minute.
    """
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)
