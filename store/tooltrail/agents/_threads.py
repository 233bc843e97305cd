"""Ordinary functions called from a task, each in a thread that nobody waits for at the end."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import TypeVar

T = TypeVar("T")


async def in_thread(task: Callable[[], T]) -> T:
    """Call a function in a thread of its own, and give what it gives.

    A function that hangs cannot be stopped. Its waiter can be, and the thread keeps neither the
    loop nor the program from their end, as one of `asyncio.to_thread` would.

    Args:
        task: called once, in the context of who waits.
    """
    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    context = contextvars.copy_context()

    def settle(come: Callable[[], None]) -> None:
        if not done.done():
            come()

    def work() -> None:
        try:
            come = partial(done.set_result, context.run(task))
        except BaseException as error:  # noqa: BLE001  it is raised where it is waited for
            come = partial(done.set_exception, _raisable(error))
        # The loop may have ended meanwhile, and then nobody waits.
        with suppress(RuntimeError):
            loop.call_soon_threadsafe(settle, come)

    threading.Thread(target=work, name="tooltrail-tool", daemon=True).start()
    return await done


def _raisable(error: BaseException) -> BaseException:
    """The error as a future can hold it, which takes no `StopIteration`."""
    if isinstance(error, StopIteration):
        return RuntimeError(f"the function raised {error!r}")
    return error
