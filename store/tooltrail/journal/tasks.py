"""A thread that appends the facts of many tasks and threads, so that they share a sync."""

import asyncio
import concurrent.futures
import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final, TypeVar

from tooltrail.journal.frames import Cursor
from tooltrail.journal.log import Acknowledge, Entry, resets_in_child, sync_files
from tooltrail.records.errors import InvalidRecordError, UnavailableError

T = TypeVar("T")

_MOST_TOGETHER: Final = 256
"""The most tasks and threads whose facts are appended together."""


@dataclass(slots=True)
class _Job:
    """The facts of one task or thread, and their progress. `make` makes the facts of a task."""

    future: asyncio.Future[Any] | concurrent.futures.Future[Any]
    make: Callable[[], tuple[Sequence[Entry], Any]] | None = None
    entries: Sequence[Entry] = ()
    made: object = None
    cursors: Sequence[Cursor] = ()
    level: Acknowledge = "process"


class AppendingThread:
    """A thread that appends the facts of tasks and threads. The first job starts the thread.

    Every fact is appended once. A fact that is refused or rejected fails only its own task or
    thread; an error of the journal or of the database fails every affected one.

    Args:
        record: appends and syncs facts together, and returns the cursor behind each fact.
        acknowledge: waits for recorded facts, and returns which failures they survive.
    """

    def __init__(
        self,
        record: Callable[[Sequence[Entry]], Sequence[Cursor]],
        acknowledge: Callable[[Sequence[Cursor]], Acknowledge],
    ) -> None:
        self._record = record
        self._acknowledge = acknowledge
        self.reset()
        resets_in_child.add(self)

    def reset(self) -> None:
        """Begin without a thread."""
        self._lock = threading.Lock()
        self._alone = threading.Lock()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    def record(self, entries: Sequence[Entry]) -> Sequence[Cursor]:
        """Record facts. If another thread is recording, the appending thread takes the facts over.

        Threads that all append on their own spend as much time on taking turns as on their facts.
        """
        if self._alone.acquire(blocking=False):
            try:
                return self._record(entries)
            finally:
                self._alone.release()
        job = _Job(concurrent.futures.Future[tuple[Acknowledge, object]](), entries=entries)
        try:
            self._put(job)
        except UnavailableError:
            return self._record(entries)
        job.future.result()
        return job.cursors

    def submit(
        self, make: Callable[[], tuple[Sequence[Entry], T]]
    ) -> asyncio.Future[tuple[Acknowledge, T]]:
        """See `Recorder.append_async`."""
        future: asyncio.Future[tuple[Acknowledge, T]] = asyncio.get_running_loop().create_future()
        self._put(_Job(future, make))
        return future

    def _put(self, job: _Job) -> None:
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._jobs = queue.SimpleQueue()
                thread = threading.Thread(target=self._run, name="tooltrail", daemon=True)
                try:
                    thread.start()
                except RuntimeError as error:  # a limit of the system, or the program is ending
                    raise UnavailableError(f"no thread can be started: {error}") from error
                self._thread = thread
            self._jobs.put(job)

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
            recorded = _succeeded(self._write, made)
            _answer([job for job in recorded if job.make is None])
            _answer(_succeeded(self._wait, [job for job in recorded if job.make is not None]))

    def _write(self, jobs: Sequence[_Job]) -> None:
        cursors = iter(self._record([entry for job in jobs for entry in job.entries]))
        for job in jobs:
            job.cursors = list(islice(cursors, len(job.entries)))

    def _wait(self, jobs: Sequence[_Job]) -> None:
        level = self._acknowledge([cursor for job in jobs for cursor in job.cursors])
        for job in jobs:
            job.level = level


def _make(jobs: Sequence[_Job]) -> None:
    """Make the facts of tasks, and sync the files that the facts name."""
    for job in jobs:
        if job.make is not None:
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
    """Pass results or an error to tasks and threads; the tasks of one loop are woken together."""
    by_loop: dict[asyncio.AbstractEventLoop, list[_Job]] = {}
    for job in jobs:
        if isinstance(job.future, asyncio.Future):
            by_loop.setdefault(job.future.get_loop(), []).append(job)
        else:
            _resolve([job], error)
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
