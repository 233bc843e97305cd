"""A thread that appends the facts of many asyncio tasks, so that the tasks share a sync."""

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, TypeVar

from tooltrail.journal.forks import resets_in_child
from tooltrail.journal.frames import Cursor
from tooltrail.journal.log import Acknowledge, Entry, sync_files
from tooltrail.records.errors import InvalidRecordError

T = TypeVar("T")

_MOST_TOGETHER: Final = 256
"""The most tasks whose facts are appended together."""


@dataclass(slots=True)
class _Job:
    """The facts of one task, and their progress."""

    make: Callable[[], tuple[Sequence[Entry], Any]]
    future: asyncio.Future[Any]
    entries: Sequence[Entry] = ()
    made: object = None
    cursors: Sequence[Cursor] = ()
    level: Acknowledge = "process"


class AppendingThread:
    """A thread that appends the facts of tasks. The first task starts the thread.

    Every fact is appended once. A fact that is refused or rejected fails only its own task; an
    error of the journal or of the database fails every affected task.

    Args:
        append: appends facts together, and returns the cursor behind each fact.
        acknowledge: waits for appended facts, and returns which failures they survive.
    """

    def __init__(
        self,
        append: Callable[[Sequence[Entry]], Sequence[Cursor]],
        acknowledge: Callable[[Sequence[Cursor]], Acknowledge],
    ) -> None:
        self._append = append
        self._acknowledge = acknowledge
        self.reset()
        resets_in_child.add(self)

    def reset(self) -> None:
        """Begin without a thread. In a forked child, thread and lock belong to the parent."""
        self._lock = threading.Lock()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def submit(
        self, make: Callable[[], tuple[Sequence[Entry], T]]
    ) -> asyncio.Future[tuple[Acknowledge, T]]:
        """See `Recorder.append_async`."""
        future: asyncio.Future[tuple[Acknowledge, T]] = asyncio.get_running_loop().create_future()
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="tooltrail", daemon=True)
                self._jobs = queue.SimpleQueue()
                self._thread.start()
            self._jobs.put(_Job(make, future))
        return future

    def close(self) -> None:
        """Wait until all submitted facts are appended."""
        with self._lock:
            thread, self._thread = self._thread, None
            if thread is not None:
                self._jobs.put(None)
        if thread is not None and thread.is_alive():
            thread.join()

    def _run(self) -> None:
        jobs, goes_on = self._jobs, True
        while goes_on:
            batch = [jobs.get()]
            while len(batch) < _MOST_TOGETHER and not jobs.empty():
                batch.append(jobs.get())
            goes_on = batch[-1] is not None  # `close` puts None behind all jobs
            made = [job for job in batch if job is not None and _succeeded(_make, [job])]
            _answer(_succeeded(self._wait, _succeeded(self._write, made)))

    def _write(self, jobs: Sequence[_Job]) -> None:
        cursors = iter(self._append([entry for job in jobs for entry in job.entries]))
        for job in jobs:
            job.cursors = list(islice(cursors, len(job.entries)))

    def _wait(self, jobs: Sequence[_Job]) -> None:
        level = self._acknowledge([cursor for job in jobs for cursor in job.cursors])
        for job in jobs:
            job.level = level


def _make(jobs: Sequence[_Job]) -> None:
    """Make the facts of tasks, and sync the files that the facts name."""
    for job in jobs:
        job.entries, job.made = job.make()
        sync_files(job.entries)


def _succeeded(step: Callable[[Sequence[_Job]], None], jobs: Sequence[_Job]) -> Sequence[_Job]:
    """Run a step for several jobs, and return those that succeeded. Failed jobs get the error.

    If a step raises `InvalidRecordError` for one fact, either none or all of the facts have been
    appended. So the step is repeated for each job alone.
    """
    if not jobs:
        return jobs
    try:
        step(jobs)
    except BaseException as error:  # noqa: BLE001  the tasks get the error
        if isinstance(error, InvalidRecordError) and len(jobs) > 1:
            return [job for one in jobs for job in _succeeded(step, [one])]
        _answer(jobs, error)
        return []
    return jobs


def _answer(jobs: Sequence[_Job], error: BaseException | None = None) -> None:
    """Pass results or an error to the tasks; the tasks of one loop are woken together."""
    by_loop: dict[asyncio.AbstractEventLoop, list[_Job]] = {}
    for job in jobs:
        by_loop.setdefault(job.future.get_loop(), []).append(job)
    for loop, some in by_loop.items():
        with suppress(RuntimeError):  # the loop is closed, and no task waits any more
            loop.call_soon_threadsafe(_resolve, some, error)


def _resolve(jobs: Sequence[_Job], error: BaseException | None) -> None:
    for job in jobs:
        if job.future.done():
            continue  # the task was cancelled
        if error is None:
            job.future.set_result((job.level, job.made))
        else:
            job.future.set_exception(error)
