"""Appends the facts of many asyncio tasks from one thread, so that they share a sync."""

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from itertools import islice
from typing import Any, Final, NamedTuple, TypeVar, cast

from tooltrail.journal.log import Entry, Position
from tooltrail.journal.work import Acknowledge, Work
from tooltrail.records.errors import InvalidRecordError

T = TypeVar("T")

_MOST_TOGETHER: Final = 256
"""Tasks whose facts are appended together."""


class _Job(NamedTuple):
    make: Callable[[], "tuple[Work, Any]"]
    loop: asyncio.AbstractEventLoop
    future: "asyncio.Future[Any]"


class _Made(NamedTuple):
    job: _Job
    entries: Sequence[Entry]
    result: object


class _Written(NamedTuple):
    job: _Job
    positions: Sequence[Position]
    result: object


class AppendingThread:
    """A thread that appends what tasks submit. It starts with the first task.

    Every fact is appended once. A fact that is refused or rejected fails its own task alone; an
    error of the journal or of the database fails every task that it concerns.

    Args:
        append: appends facts together, and returns where each one stands.
        acknowledge: waits for appended facts, and says what they survive.
    """

    def __init__(
        self,
        append: "Callable[[Sequence[Entry]], Sequence[Position]]",
        acknowledge: "Callable[[Sequence[Position]], Acknowledge]",
    ) -> None:
        self._append = append
        self._acknowledge = acknowledge
        self._lock = threading.Lock()
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread: threading.Thread | None = None

    async def submit(self, make: "Callable[[], tuple[Work, T]]") -> "tuple[Acknowledge, T]":
        """See `Recorder.append_async`."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[tuple[Acknowledge, T]] = loop.create_future()
        with self._lock:
            if self._thread is None or not self._thread.is_alive():
                self._thread = threading.Thread(target=self._run, name="tooltrail", daemon=True)
                self._jobs = queue.SimpleQueue()
                self._thread.start()
            self._jobs.put(_Job(make, loop, future))
        return await future

    def close(self) -> None:
        """Wait until everything submitted is appended."""
        with self._lock:
            thread, self._thread = self._thread, None
            if thread is not None:
                self._jobs.put(None)
        if thread is not None and thread.is_alive():
            thread.join()

    def _run(self) -> None:
        jobs, goes_on = self._jobs, True
        while goes_on:
            batch: list[_Job] = []
            one: _Job | None = jobs.get()
            while one is not None:
                batch.append(one)
                if len(batch) == _MOST_TOGETHER:
                    break
                try:
                    one = jobs.get_nowait()
                except queue.Empty:
                    break
            goes_on = one is not None
            self._do(batch)

    def _do(self, batch: Sequence[_Job]) -> None:
        written = self._write([made for job in batch if (made := _make(job)) is not None])
        if written:
            self._wait(written)

    def _write(self, made: Sequence[_Made]) -> list[_Written]:
        """Append facts together, and fail the tasks whose facts are not appended."""
        try:
            positions = iter(self._append([entry for one in made for entry in one.entries]))
        except InvalidRecordError as error:
            if len(made) > 1:
                # One fact was refused, and none was appended: append those of each task alone.
                return [written for one in made for written in self._write([one])]
            _answer([(one.job, None, error) for one in made])
        except BaseException as error:  # noqa: BLE001  it belongs to the tasks
            _answer([(one.job, None, error) for one in made])
        else:
            return [
                _Written(one.job, list(islice(positions, len(one.entries))), one.result)
                for one in made
            ]
        return []

    def _wait(self, written: Sequence[_Written]) -> None:
        """Acknowledge appended facts together, and answer their tasks."""
        try:
            level = self._acknowledge([place for one in written for place in one.positions])
        except InvalidRecordError as error:
            if len(written) > 1:
                # The database has every fact, and rejected one: each task asks for its own.
                for one in written:
                    self._wait([one])
                return
            _answer([(one.job, None, error) for one in written])
        except BaseException as error:  # noqa: BLE001  it belongs to the tasks
            _answer([(one.job, None, error) for one in written])
        else:
            _answer([(one.job, (level, one.result), None) for one in written])


def _make(job: _Job) -> _Made | None:
    """Make the facts of a task and sync the files that they name; None if that fails the task."""
    try:
        work, result = job.make()
        if work.sync is not None:
            work.sync()
    except BaseException as error:  # noqa: BLE001  it belongs to the task
        _answer([(job, None, error)])
        return None
    return _Made(job, work.entries, result)


def _answer(answers: "Sequence[tuple[_Job, object, BaseException | None]]") -> None:
    """Hand results to their tasks; the tasks of one loop are woken together."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[_Job, object, BaseException | None]]] = {}
    for one in answers:
        by_loop.setdefault(one[0].loop, []).append(one)
    for loop, some in by_loop.items():
        with suppress(RuntimeError):  # the loop is closed, and nobody waits any more
            loop.call_soon_threadsafe(_resolve, some)


def _resolve(answers: "Sequence[tuple[_Job, object, BaseException | None]]") -> None:
    for job, result, error in answers:
        future = cast("asyncio.Future[object]", job.future)
        if future.done():
            continue  # the task was cancelled
        if error is None:
            future.set_result(result)
        else:
            future.set_exception(error)
