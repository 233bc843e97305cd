"""A background thread that ingests, for a long-lived recording process."""

import os
import random
import sys
import threading
import time
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Final

from tooltrail.journal import Cursor
from tooltrail.records.errors import UnavailableError
from tooltrail.store.ingest.ingester import Ingester

LAG_S: Final = 0.05
"""Seconds to collect facts before they are ingested together."""

_TIMEOUT_S: Final = 30.0
"""Longest time that `wait` waits, in seconds."""

_FIRST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 5.0
"""Longest back-off in seconds while the database or the sink fails; doubled after each failure."""


class _ForkGate:
    """Entered by ingesters and recorders that use a database driver: a fork must not interrupt it.

    Threads of several stores may be inside at once. A fork waits until they have left, and other
    threads enter after the fork.
    """

    def __init__(self) -> None:
        self.reset()

    def reset(self) -> None:
        """Begin without a thread inside, as in a forked child."""
        self._changed = threading.Condition()
        self._inside = set[int]()
        self._forking = set[int]()

    def __enter__(self) -> None:
        with self._changed:
            self._changed.wait_for(lambda: not self._forking)
            self._inside.add(threading.get_ident())

    def __exit__(self, *_: object) -> None:
        with self._changed:
            self._inside.discard(threading.get_ident())
            self._changed.notify_all()

    def begin_fork(self) -> None:
        self._changed.acquire()
        self._forking.add(threading.get_ident())
        # The thread that forks may itself be inside.
        self._changed.wait_for(lambda: self._inside <= {threading.get_ident()})

    def end_fork(self) -> None:
        self._forking.discard(threading.get_ident())
        self._changed.notify_all()
        self._changed.release()


_FORK_GATE: Final = _ForkGate()

# A driver uses `logging`, which takes a lock of its own at a fork. It is imported first: the hooks
# before a fork run in reverse order, so the gate is entered before that lock is taken.
import_module("logging")
os.register_at_fork(
    before=_FORK_GATE.begin_fork,
    after_in_parent=_FORK_GATE.end_fork,
    after_in_child=_FORK_GATE.reset,
)


class BackgroundIngester:
    """Keeps the database up to date with one journal. Safe for threads and forked children.

    `connect` returns the ingester of the journal, and raises while the store cannot be opened.
    """

    def __init__(self, connect: Callable[[], Ingester]) -> None:
        """Prepare. The thread starts with the first `notice`."""
        self._connect = connect
        self._pid = os.getpid()
        self._ingester: Ingester | None = None
        self._state = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_noticed = False
        self._is_urgent = False
        self._is_closing = False
        self._round = 0
        self._problem: Exception | None = None

    def notice(self) -> None:
        """Wake the thread after facts were appended. Returns at once."""
        if self._is_without_thread():
            return
        with self._state:
            self._is_noticed = True
            if self._thread is None or not self._thread.is_alive():
                thread = threading.Thread(target=self._run, name="tooltrail-ingest", daemon=True)
                self._thread = thread
                thread.start()
            self._state.notify_all()

    def wait(self, cursors: Sequence[Cursor]) -> None:
        """Return when facts are committed in the database and their artifacts are in the sink.

        `cursors` are those behind the facts, in order. Raises `InvalidRecordError` if a fact was
        rejected.
        """
        if self._is_without_thread():
            raise UnavailableError(
                "a forked child, or a program that exits, has no ingester; the facts are in the"
                " journal"
            )
        deadline = time.monotonic() + _TIMEOUT_S
        with self._state:
            begun = self._round
            while (ingester := self._ingester) is None or not ingester.is_past(cursors[-1]):
                left = deadline - time.monotonic()
                failed = self._problem if self._round > begun + 1 else None
                if failed is not None or left <= 0:
                    raise UnavailableError(
                        f"facts are in the journal, and not in the database yet: "
                        f"{failed or 'the ingester needs longer'}"
                    )
                self._is_urgent = True
                self.notice()
                self._state.wait(left)
        with _FORK_GATE:
            ingester.check_kept(cursors)

    def close(self) -> None:
        """Ingest the facts that were appended so far, if possible, and stop the thread."""
        if self._is_without_thread():
            return
        with self._state:
            self._is_closing = True
            self._state.notify_all()
            thread, self._thread = self._thread, None
        if thread is not None and thread.is_alive():
            thread.join()

    def _is_without_thread(self) -> bool:
        # A forked child only appends; its parent or the next reader ingests. A child has no thread,
        # and its copy of `_state` may be locked for ever. At the exit of the interpreter, a stopped
        # thread may hold `_state`, too.
        return self._pid != os.getpid() or sys.is_finalizing()

    def _run(self) -> None:
        pause = 0.0
        while True:
            with self._state:
                while not (self._is_noticed or self._is_closing):
                    self._state.wait()
                if not self._is_urgent and not self._is_closing:
                    self._state.wait(max(LAG_S, pause))
                elif pause and not self._is_closing:
                    self._state.wait(min(pause, _FIRST_PAUSE_S))
                self._is_noticed = self._is_urgent = False
                is_last = self._is_closing
            pause = self._ingest(pause)
            if is_last:
                return

    def _ingest(self, pause: float) -> float:
        """Try to ingest once, and return the pause in seconds before the next attempt."""
        problem: Exception | None = None
        try:
            with _FORK_GATE:
                if self._ingester is None:
                    self._ingester = self._connect()
                self._ingester.ingest()
        except Exception as error:  # noqa: BLE001  the thread goes on, and `wait` says why
            problem = error
        with self._state:
            self._problem = problem
            self._round += 1
            # A failure is retried even if no more facts are appended.
            self._is_noticed |= problem is not None
            self._state.notify_all()
        if problem is None:
            return 0.0
        longer = min(max(_FIRST_PAUSE_S, 2 * pause), _LONGEST_PAUSE_S)
        return longer * random.uniform(0.8, 1.2)  # noqa: S311  no secret
