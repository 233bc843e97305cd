"""Ends the frames of captures that wait for more, so that others can read what was written.

One thread for the process, which is there only while some capture has bytes that are in no frame.
A child of a fork, which does not have the thread, begins anew.
"""

import os
import threading
from typing import Protocol

from tooltrail.artifacts._threads import leave_signals_to_others

INTERVAL_S = 1.0
"""Longest time that a byte waits for its frame."""


class Flushable(Protocol):
    """A capture."""

    def flush(self) -> None:
        """End the current frame."""
        ...


class Flusher:
    """Flushes each watched capture once, after an interval. Safe for threads."""

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._lock = threading.Lock()
        self._waiting: dict[Flushable, None] = {}
        self._is_running = False

    def watch(self, capture: Flushable) -> None:
        """Flush a capture after the interval; one that is watched already is flushed earlier.

        Where no thread is to be had its bytes wait for the end of their frame.
        """
        with self._lock:
            self._waiting[capture] = None
            if self._is_running:
                return
            thread = threading.Thread(target=self._run, name="tooltrail-flush", daemon=True)
            try:
                thread.start()
            except RuntimeError:
                self._waiting.clear()
            else:
                self._is_running = True

    def begin_anew(self) -> None:
        """Forget everything, in a process that was forked."""
        self._lock = threading.Lock()
        self._waiting = {}
        self._is_running = False

    def _run(self) -> None:
        leave_signals_to_others()
        pause = threading.Event()
        while True:
            pause.wait(self._interval_s)
            with self._lock:
                due, self._waiting = self._waiting, {}
                if not due:
                    self._is_running = False
                    return
            for capture in due:
                capture.flush()


FLUSHER = Flusher(INTERVAL_S)
os.register_at_fork(after_in_child=FLUSHER.begin_anew)
