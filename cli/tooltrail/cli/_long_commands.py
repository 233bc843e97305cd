"""Progress bars and Ctrl-C for long commands, which report what was done when interrupted.

In other commands, Ctrl-C ends the program at once (see `__main__`). A SIGINT that is ignored, as
under `nohup`, stays ignored. A second Ctrl-C always ends the program at once.
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
    """Raise `KeyboardInterrupt` on Ctrl-C, at any point of the block."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        raise KeyboardInterrupt

    with _handling(interrupt):
        yield


@contextmanager
def interruptible_between_steps() -> Generator[Callable[[], None]]:
    """Remember Ctrl-C. The yielded function raises `KeyboardInterrupt` after a Ctrl-C."""
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
    """Format an amount of stored objects: `2 objects, 1.2 MB`."""
    return f"{counted(amount.count, 'object')}, {size_of(amount.stored_bytes)}"


@contextmanager
def progress_bar(what: str, total: int | None = None) -> Generator[Callable[[int, int], None]]:
    """Show a progress bar during the block if stderr is a terminal.

    Args:
        what: the work, in a word or two.
        total: number of objects to process; None if the number is unknown.

    Yields:
        A function to call with the number of processed objects and their stored bytes.
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
