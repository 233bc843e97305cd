"""Doing many things in order, and at once those that wait for something far away."""

from collections import deque
from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future
from contextlib import suppress
from threading import Lock, Thread
from typing import Generic, NamedTuple, TypeVar

T = TypeVar("T")


class Task(NamedTuple, Generic[T]):
    """Something to be done.

    Attributes:
        run: does it.
        is_waiting: whether it waits for what is far away; then it is done in any thread.
    """

    run: Callable[[], T]
    is_waiting: bool


def in_order(tasks: Sequence[Task[T]], at_once: int) -> Generator[T]:
    """What comes of tasks, in their order; the first error is raised in the place of its task.

    What does not wait is done in this thread when its turn comes; so is the first that does, since
    others may need what it makes: a client that has connected. After an error nothing else begins,
    and what has begun is waited for. An interrupt waits for nothing: what has begun goes on.

    Args:
        tasks: in their order.
        at_once: how many of those that wait are done at a time; by 1 all are done in this thread.
    """
    ahead: _Ahead[T] | None = None
    try:
        for place, task in enumerate(tasks):
            if not task.is_waiting:
                yield task.run()
            elif ahead is None:
                done = task.run()
                ahead = _Ahead(tasks, place + 1, at_once)
                yield done
            else:
                yield ahead.result(place)
    except Exception:
        if ahead is not None:
            ahead.leave()
            ahead.wait()
        raise
    except BaseException:
        if ahead is not None:
            ahead.leave()
        raise


class _Ahead(Generic[T]):
    """Tasks that wait, each done by a thread of its own or by whoever asks for it, who is first.

    Where no thread can be started, as at the end of a program, all are left to who asks. No thread
    keeps a program from ending: what it has begun is then cut off, as by a crash.
    """

    def __init__(self, tasks: Sequence[Task[T]], first: int, threads: int) -> None:
        self._tasks = tasks
        self._left = deque(n for n in range(first, len(tasks)) if tasks[n].is_waiting)
        self._results: dict[int, Future[T]] = {n: Future() for n in self._left}
        self._begun: list[Future[T]] = []
        self._lock = Lock()
        count = min(threads, len(self._left))
        with suppress(RuntimeError):
            for _ in range(count if count > 1 else 0):
                Thread(target=self._work, name="tooltrail-publisher", daemon=True).start()

    def result(self, place: int) -> T:
        """What comes of a task, or its error."""
        if self._take(place):
            return self._tasks[place].run()
        return self._results[place].result()

    def leave(self) -> None:
        """Let nothing else begin."""
        with self._lock:
            self._left.clear()

    def wait(self) -> None:
        """Wait for what has begun."""
        for result in self._begun:
            result.exception()

    def _take(self, place: int) -> bool:
        with self._lock:
            if place not in self._left:
                return False
            self._left.remove(place)
            return True

    def _work(self) -> None:
        while True:
            with self._lock:
                if not self._left:
                    return
                place = self._left.popleft()
                result = self._results[place]
                self._begun.append(result)
            try:
                done = self._tasks[place].run()
            except BaseException as error:  # noqa: BLE001  raised where it is asked for
                # All before it have begun, and nobody asks for those behind it.
                self.leave()
                result.set_exception(error)
            else:
                result.set_result(done)
