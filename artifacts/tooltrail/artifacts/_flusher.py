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
        self._thread: threading.Thread | None = None

    def watch(self, capture: Flushable) -> None:
        """Flush a capture after the interval; one that is watched already is flushed earlier.

        A flush that fails, as for want of memory, is tried again after another interval. Where no
        thread is to be had its bytes wait for the end of their frame.
        """
        with self._lock:
            self._waiting[capture] = None
            if self._thread is not None and self._thread.is_alive():
                return
            self._thread = threading.Thread(target=self._run, name="tooltrail-flush", daemon=True)
            try:
                self._thread.start()
            except RuntimeError:
                self._waiting.clear()

    def begin_anew(self) -> None:
        """Forget everything, in a process that was forked."""
        self._lock = threading.Lock()
        self._waiting = {}
        self._thread = None

    def _run(self) -> None:
        leave_signals_to_others()
        pause = threading.Event()
        while True:
            pause.wait(self._interval_s)
            with self._lock:
                due, self._waiting = self._waiting, {}
                if not due:
                    # Said under the lock: whoever comes next must not count on this thread.
                    self._thread = None
                    return
            for capture in due:
                self._flush(capture)

    def _flush(self, capture: Flushable) -> None:
        try:
            capture.flush()
        except BaseException:  # noqa: BLE001  the other captures wait for this thread as well
            # Its bytes are in memory still, and whoever writes or closes meets the same error.
            with self._lock:
                self._waiting[capture] = None


FLUSHER = Flusher(INTERVAL_S)
os.register_at_fork(after_in_child=FLUSHER.begin_anew)
