"""Progress bars and Ctrl-C for long commands, which report what was done when interrupted.

In other commands, Ctrl-C ends the program at once (see `__main__`). A SIGINT that is ignored, as
under `nohup`, stays ignored. A second Ctrl-C always ends the program at once.
"""

import signal
import sys
import time
from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from threading import Timer
from types import FrameType
from typing import TYPE_CHECKING

from tooltrail.cli._output import PROGRESS_LINE, counted, say, size_of, terminal_columns

if TYPE_CHECKING:
    from tooltrail.store import Amount

_BAR_COLUMNS = 20
_REDRAWN_S = 0.1
"""Shortest time between two updates of a bar."""

_SILENT_S = 5.0
"""Time after which a command that may wait for a lock says so."""


@contextmanager
def interruptible(*, between_steps: bool = False) -> Generator[Callable[[], None]]:
    """Raise `KeyboardInterrupt` on Ctrl-C at any point of the block.

    With `between_steps`, only the yielded function raises `KeyboardInterrupt`, after a Ctrl-C.
    """
    was_interrupted = False

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        nonlocal was_interrupted
        was_interrupted = True
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if not between_steps:
            raise KeyboardInterrupt

    def check() -> None:
        if was_interrupted:
            raise KeyboardInterrupt

    before = signal.getsignal(signal.SIGINT)
    if before not in (signal.SIG_DFL, signal.default_int_handler):
        yield check
        return
    signal.signal(signal.SIGINT, interrupt)
    try:
        yield check
    finally:
        signal.signal(signal.SIGINT, before)


def amount_of(amount: "Amount") -> str:
    """Format an amount of stored objects: `2 objects, 1.2 MB`."""
    return f"{counted(amount.count, 'object')}, {size_of(amount.stored_bytes)}"


def with_amounts(members: Mapping[str, object]) -> dict[str, object]:
    """The members as a flat record: an amount `x` becomes `x_count` and `x_bytes`."""
    from tooltrail.store import Amount  # noqa: PLC0415  not for --help

    record: dict[str, object] = {}
    for name, value in members.items():
        if isinstance(value, Amount):
            record |= {f"{name}_count": value.count, f"{name}_bytes": value.stored_bytes}
        else:
            record[name] = value
    return record


@contextmanager
def progress_bar(
    what: str, total: int | None = None, *, delay_s: float = 0, may_wait: bool = False
) -> Generator[Callable[[int, int], None]]:
    """Show a progress bar during the block if stderr is a terminal.

    Args:
        what: the work, in a word or two.
        total: number of objects or bytes to process; None if it is unknown.
        delay_s: show nothing for so many seconds after the first call of the function, for work
            that is mostly short.
        may_wait: whether the work may wait for a lock before the first call. If the wait is long,
            a line on stderr says so.

    Yields:
        A function to call with how much of `total` is processed, and the stored bytes of that.
    """
    reasons = "another program may lock the database, or this machine is slow"
    message = f"tooltrail: {what}: no progress in {_SILENT_S:g} s: {reasons}"
    notice = Timer(_SILENT_S, say, [message])
    notice.daemon = True
    if may_wait:
        notice.start()
    is_shown = sys.stderr.isatty()
    next_at: float | None = None

    def update(count: int, stored_bytes: int) -> None:
        nonlocal next_at
        notice.cancel()
        if not is_shown:
            return
        now = time.monotonic()
        if next_at is None:
            next_at = now + delay_s
        if now >= next_at:
            PROGRESS_LINE.draw(_line(what, count, total, size_of(stored_bytes or None)))
            next_at = now + _REDRAWN_S

    if not (delay_s or may_wait):
        update(0, 0)
    try:
        yield update
    finally:
        notice.cancel()
        PROGRESS_LINE.erase()


@contextmanager
def share_bar(what: str, *, may_wait: bool = False) -> Generator[Callable[[int, int], None]]:
    """Like `progress_bar`, for a function that is called with what is done and with all of it."""
    with progress_bar(what, 100, may_wait=may_wait) as update:
        yield lambda done, of: update(100 * done // max(of, 1), 0)


def _line(what: str, count: int, total: int | None, size: str) -> str:
    """The text of a progress bar: `copying  ██████░░░░░░░░░░░░░░   30 %  12 MB`."""
    done = f"{count:,}"
    if total is not None:
        share = min(count / max(total, 1), 1)
        filled = int(share * _BAR_COLUMNS)
        done = f"{'█' * filled}{'░' * (_BAR_COLUMNS - filled)}  {int(share * 100):3} %"
    return f"{what}  {done}  {size}".rstrip()[: terminal_columns() - 1]
