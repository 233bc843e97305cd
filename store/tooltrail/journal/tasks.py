"""Appends the facts of many asyncio tasks from one thread, so that they share a sync."""

import asyncio
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any, Final, NamedTuple, TypeVar, cast

from tooltrail.journal.work import Acknowledge, Work

T = TypeVar("T")

_MOST_TOGETHER: Final = 256
"""Tasks whose facts are appended together."""


class _Job(NamedTuple):
    make: Callable[[], "tuple[Work, Any]"]
    loop: asyncio.AbstractEventLoop
    future: "asyncio.Future[Any]"


class AppendingThread:
    """A thread that appends what tasks submit. It starts with the first task.

    Args:
        append: appends facts together and says what they survive.
    """

    def __init__(self, append: "Callable[[Sequence[Work]], Acknowledge]") -> None:
        self._append = append
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
        made: list[tuple[_Job, Work, Any]] = []
        for job in batch:
            try:
                work, result = job.make()
            except BaseException as error:  # noqa: BLE001  it belongs to the task
                _answer([(job, None, error)])
            else:
                made.append((job, work, result))
        if not made:
            return
        try:
            level = self._append([work for _, work, _ in made])
        except BaseException as error:  # noqa: BLE001  it belongs to the tasks
            if len(made) == 1:
                _answer([(made[0][0], None, error)])
                return
            # One fact may be at fault: append each by itself, and answer each by itself.
            for job, work, result in made:
                self._do([job._replace(make=_known(work, result))])
        else:
            _answer([(job, (level, result), None) for job, _, result in made])


def _known(work: "Work", result: object) -> "Callable[[], tuple[Work, object]]":
    return lambda: (work, result)


def _answer(answers: "Sequence[tuple[_Job, object, BaseException | None]]") -> None:
    """Hand results to their tasks; the tasks of one loop are woken together."""
    by_loop: dict[asyncio.AbstractEventLoop, list[tuple[_Job, object, BaseException | None]]] = {}
    for one in answers:
        by_loop.setdefault(one[0].loop, []).append(one)
    for loop, some in by_loop.items():
        if not loop.is_closed():
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
