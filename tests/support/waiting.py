"""Waiting for a condition of another thread or process, instead of a fixed time."""

import time
from collections.abc import Callable


def until(condition: Callable[[], bool]) -> None:
    """Wait until a condition holds.

    Raises:
        AssertionError: the condition does not hold within a minute.
    """
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.001)
