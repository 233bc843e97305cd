"""How a command ended, in words. One wording for summaries, receipts and batches."""

from typing import Protocol

_SIGNALS = {
    1: "SIGHUP",
    2: "SIGINT",
    3: "SIGQUIT",
    4: "SIGILL",
    5: "SIGTRAP",
    6: "SIGABRT",
    8: "SIGFPE",
    9: "SIGKILL",
    11: "SIGSEGV",
    13: "SIGPIPE",
    14: "SIGALRM",
    15: "SIGTERM",
}
"""Signals that have the same number everywhere; the host's own table would give other bytes on
another system."""


class Ending(Protocol):
    """A command that ended, complete or projected; see `CommandEnd`."""

    @property
    def exit_status(self) -> int | None: ...
    @property
    def signal(self) -> int | None: ...
    @property
    def timed_out(self) -> bool: ...
    @property
    def timeout_ms(self) -> int | None: ...


def worded_end(end: Ending, by_itself: str) -> str:
    """What was done to a command to end it; `by_itself` when it exited with a status."""
    if end.timed_out and end.timeout_ms is not None:
        return f"timed out after {seconds(end.timeout_ms)}"
    if end.signal is not None:
        return f"killed by {_signal_name(end.signal)}"
    return "ended, its exit status is not known" if end.exit_status is None else by_itself


def _signal_name(number: int) -> str:
    name = _SIGNALS.get(number)
    return f"signal {number} ({name})" if name else f"signal {number}"


def seconds(duration_ms: int) -> str:
    """A duration in seconds, exactly: `1.5 s`."""
    whole, rest = divmod(duration_ms, 1000)
    return f"{whole}.{rest:03}".rstrip("0").rstrip(".") + " s"
