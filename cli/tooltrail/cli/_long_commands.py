"""Commands that take long: how far they are, and Ctrl-C, after which they say what was done.

Elsewhere Ctrl-C ends the program as it ends any other (see `__main__`). One that is ignored, as
`nohup` has it, stays ignored, and a second one always ends the program on the spot.
"""

import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING

from tooltrail.cli._output import counted, size_of

if TYPE_CHECKING:
    from tooltrail.store import Amount


@contextmanager
def interruptible() -> Generator[None]:
    """Ctrl-C raises `KeyboardInterrupt` wherever the block is."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        raise KeyboardInterrupt

    with _handling(interrupt):
        yield


@contextmanager
def interruptible_between_steps() -> Generator[Callable[[], None]]:
    """Ctrl-C is remembered; what is yielded raises `KeyboardInterrupt` once there was one."""
    was_interrupted = False

    def remember(_number: int, _frame: FrameType | None) -> None:
        nonlocal was_interrupted
        was_interrupted = True
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    def check() -> None:
        if was_interrupted:
            raise KeyboardInterrupt

    with _handling(remember):
        yield check


@contextmanager
def _handling(handler: Callable[[int, FrameType | None], None]) -> Generator[None]:
    before = signal.getsignal(signal.SIGINT)
    if before not in (signal.SIG_DFL, signal.default_int_handler):
        yield
        return
    signal.signal(signal.SIGINT, handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def amount_of(amount: "Amount") -> str:
    """An amount of stored objects for people: `2 objects, 1.2 MB`."""
    return f"{counted(amount.count, 'object')}, {size_of(amount.stored_bytes)}"


@contextmanager
def progress_bar(what: str, total: int | None = None) -> Generator[Callable[[int, int], None]]:
    """A bar on a terminal's stderr as long as the block lasts; nothing where nobody looks.

    Args:
        what: is done, in a word or two.
        total: objects to do; None when nobody knows.

    Yields:
        What to call with the objects that are done and their bytes.
    """
    if not sys.stderr.isatty():
        yield lambda _count, _stored_bytes: None
        return
    from rich.console import Console  # noqa: PLC0415  only terminals need it
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn  # noqa: PLC0415

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[size]}"),
    )
    with Progress(*columns, console=Console(file=sys.stderr), transient=True) as progress:
        task = progress.add_task(what, total=total, size="")

        def update(count: int, stored_bytes: int) -> None:
            progress.update(task, completed=count, size=size_of(stored_bytes))

        yield update
