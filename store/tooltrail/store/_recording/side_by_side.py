"""Doing many things in order, and at once those that wait for something far away."""

from collections.abc import Callable, Generator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
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

    What does not wait is done in this thread when its turn comes. Whoever closes this early leaves
    undone what has not begun, and waits for what has.

    Args:
        tasks: in their order.
        at_once: how many of those that wait are done at a time; by 1 all are done in this thread.
    """
    with ExitStack() as stack:
        begun = _begun(tasks, at_once, stack)
        for place, task in enumerate(tasks):
            ahead = begun.get(place)
            yield task.run() if ahead is None else ahead.result()


def _begun(tasks: Sequence[Task[T]], at_once: int, stack: ExitStack) -> dict[int, Future[T]]:
    """The tasks that are done in other threads, by their places, until the stack ends."""
    places = [place for place, task in enumerate(tasks) if task.is_waiting]
    if min(at_once, len(places)) < 2:
        return {}
    pool = ThreadPoolExecutor(min(at_once, len(places)), thread_name_prefix="tooltrail-publisher")
    stack.callback(pool.shutdown, cancel_futures=True)
    return {place: pool.submit(tasks[place].run) for place in places}
