"""Flush captures that wait for more bytes, so that other processes can read the written bytes.

One thread per process. It runs only while a capture has bytes that are not in the spool file.
A forked child does not have the thread, and starts its own.
"""

import os
import sys
import threading
from typing import Protocol

from tooltrail.artifacts._threads import leave_signals_to_others

INTERVAL_S = 1.0
"""Seconds between two flushes: the longest time that a byte waits in memory."""


class Flushable(Protocol):
    """A capture."""

    def flush(self) -> None:
        """Make all bytes so far readable from the spool file."""
        ...


class Flusher:
    """Flushes each watched capture once, after the interval. Safe for threads."""

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._lock = threading.Lock()
        self._waiting: dict[Flushable, None] = {}
        self._thread: threading.Thread | None = None

    def watch(self, capture: Flushable) -> None:
        """Flush a capture after the interval, or earlier if it is watched already.

        A flush that fails, for instance for lack of memory, is retried after another interval. If
        no thread can be started, the bytes wait until their frame is full.
        """
        if sys.is_finalizing():
            return  # a new thread would never run
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
        """Reset the state in a forked child."""
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
                    # Under the lock: the next `watch` must start a new thread.
                    self._thread = None
                    return
            for capture in due:
                self._flush(capture)

    def _flush(self, capture: Flushable) -> None:
        try:
            capture.flush()
        except BaseException:  # noqa: BLE001  other captures need this thread too
            # The bytes are still in memory, and the next `write` or `close` raises the error.
            with self._lock:
                self._waiting[capture] = None


FLUSHER = Flusher(INTERVAL_S)
os.register_at_fork(after_in_child=FLUSHER.begin_anew)
