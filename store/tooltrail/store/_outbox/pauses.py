"""When a store that was found to be away is tried again."""

import threading
from time import monotonic

FIRST_S = 0.25
LONGEST_S = 30.0
"""Seconds between two attempts to reach a store that is away: each can take as long as a timeout,
and nobody's tool is to wait for all of them."""


class Pause:
    """After each attempt that failed twice as long as before. Safe to share between threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._length = 0.0
        self._failed_at = float("-inf")
        self._until = float("-inf")

    def is_over(self) -> bool:
        """Whether to try now."""
        return monotonic() >= self._until

    def lengthen(self, began: float) -> None:
        """Wait after an attempt that failed; those that failed together are one.

        Args:
            began: by `time.monotonic`, when it began.
        """
        with self._lock:
            if began >= self._failed_at:
                self._length = min(max(2 * self._length, FIRST_S), LONGEST_S)
                self._failed_at = monotonic()
                self._until = self._failed_at + self._length

    def end(self) -> None:
        """Try at once: the store is there."""
        with self._lock:
            self._length, self._until = 0.0, float("-inf")

    def left_s(self) -> float:
        """Seconds until then; 0 when it is over."""
        return max(0.0, self._until - monotonic())
