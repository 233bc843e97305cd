"""How far a long command is, on a terminal's stderr; nothing where nobody looks."""

import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from tooltrail.cli._output import counted, size_of

if TYPE_CHECKING:
    from tooltrail.store import Amount


def amount_of(amount: "Amount") -> str:
    """An amount of stored objects for people: `2 objects, 1.2 MB`."""
    return f"{counted(amount.count, 'object')}, {size_of(amount.stored_bytes)}"


@contextmanager
def progress_bar(what: str, total: int | None = None) -> Generator[Callable[[int, int], None]]:
    """A bar that is there as long as the block lasts.

    Args:
        what: is done, in a word or two.
        total: objects to do; None when nobody knows.

    Yields:
        What to call with the objects that are done and their bytes.
    """
    if not sys.stderr.isatty():
        yield _nothing
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


def _nothing(count: int, stored_bytes: int) -> None:
    del count, stored_bytes
