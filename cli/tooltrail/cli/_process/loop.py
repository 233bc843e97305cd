"""The loop of one run: wait for output, a signal, the child's end or a time, and act on it.

Times are monotonic, in seconds.
"""

import math
import selectors
import signal
import time
from collections.abc import Callable
from enum import Enum, auto

from tooltrail.cli._process.child import Child
from tooltrail.cli._process.jobs import Job
from tooltrail.cli._process.outcome import ChildExit
from tooltrail.cli._process.pump import Pump
from tooltrail.cli._process.relay import FATAL, SignalRelay

IDLE_INTERVAL_S = 1.0

# Long enough for killed processes to let go of their pipes, short enough not to be felt as a hang.
SETTLE_S = 1.0

# How long a reader that takes nothing may hold us up once the run is over.
STALL_S = 5.0


class Step(Enum):
    """What the time limit asks for, in this order."""

    TERMINATE = auto()
    KILL = auto()
    ABANDON = auto()


class Agenda:
    """The steps that end a run which takes too long.

    Args:
        now: when the run began.
        timeout_s: how long it may take; None for as long as it likes.
        grace_s: how long it may take to end after it was asked to.

    Attributes:
        begin: when the run began.
    """

    def __init__(self, now: float, timeout_s: float | None, grace_s: float) -> None:
        self.begin = now
        self._steps: list[tuple[float, Step]] = []
        if timeout_s is not None:
            end = now + timeout_s
            kill = end + grace_s
            self._steps = [
                (end, Step.TERMINATE),
                (kill, Step.KILL),
                (kill + SETTLE_S, Step.ABANDON),
            ]

    def next_at(self) -> float:
        """When the next step is due; infinity when there is none."""
        return self._steps[0][0] if self._steps else math.inf

    def pop_due(self, now: float) -> Step | None:
        """The next step if it is due; it is given out once."""
        return self._steps.pop(0)[1] if now >= self.next_at() else None

    def child_ended(self) -> None:
        """Drop the steps that signal the child, and all of them when the child ended in time."""
        in_time = bool(self._steps) and self._steps[0][1] is Step.TERMINATE
        self._steps = [] if in_time else [at for at in self._steps if at[1] is Step.ABANDON]

    def hurry(self, now: float) -> None:
        """There is nothing left to wait for but stray holders of the pipes: leave them soon."""
        at = now + SETTLE_S
        if not any(step is Step.ABANDON and when <= at for when, step in self._steps):
            self._steps = [(at, Step.ABANDON)]


class Loop:
    """Runs once. The caller closes the parts."""

    def __init__(
        self,
        *,
        child: Child,
        pump: Pump,
        job: Job,
        relay: SignalRelay,
        selector: selectors.BaseSelector,
        agenda: Agenda,
        on_idle: Callable[[], None],
    ) -> None:
        self._child = child
        self._pump = pump
        self._job = job
        self._relay = relay
        self._selector = selector
        self._agenda = agenda
        self._on_idle = on_idle
        self._idle_at = agenda.begin + IDLE_INTERVAL_S
        self._give_up_at = math.inf
        self._last_progress: int = 0
        self._timed_out = False
        self._reaped = False

    def run(self) -> ChildExit:
        """What happened, when the child has ended, its output is read, and the readers have it."""
        self._selector.register(self._relay.wake_fd, selectors.EVENT_READ, self._on_signals)
        while not self._is_over():
            for key, _ in self._selector.select(self._wait_s(time.monotonic())):
                key.data()
            self._on_time(time.monotonic())
        return ChildExit(
            exit_status=self._child.exit_status,
            signal=self._child.signal,
            timed_out=self._timed_out,
            duration_ms=int((time.monotonic() - self._agenda.begin) * 1000),
            tee_closed=tuple(self._pump.tee_closed),
            tee_error=self._pump.tee_error,
            recorder_error=self._pump.recorder_error,
        )

    def _is_over(self) -> bool:
        if self._pump.is_reading or not self._child.reap():
            return False
        if not self._reaped:
            self._reaped = True
            self._relay.detach()
            self._agenda.child_ended()
        return not self._pump.is_delivering

    def _wait_s(self, now: float) -> float:
        return max(0.0, min(self._idle_at, self._agenda.next_at(), self._give_up_at) - now)

    def _on_signals(self) -> None:
        for signum in self._relay.read_signals():
            if signum == signal.SIGCHLD:
                self._job.on_child_changed()
            elif signum == signal.SIGCONT:
                self._job.resume()
            elif signum == signal.SIGTSTP:
                self._job.suspend()
            elif signum == signal.SIGWINCH:
                self._job.resize()
            elif signum in FATAL and self._child.has_ended():
                # What still holds the pipes may not even be in the group. `cmd | cat` would end.
                self._agenda.hurry(time.monotonic())

    def _on_time(self, now: float) -> None:
        if (step := self._agenda.pop_due(now)) is not None:
            self._act(step, now)
        if self._pump.progress_count != self._last_progress:
            self._last_progress = self._pump.progress_count
            self._give_up_at = max(self._give_up_at, now + STALL_S)
        if now >= self._give_up_at:
            self._pump.give_up_delivering()
        if now >= self._idle_at:
            self._idle_at = now + IDLE_INTERVAL_S
            self._pump.guard(self._on_idle)

    def _act(self, step: Step, now: float) -> None:
        if step is Step.ABANDON:
            self._pump.stop_reading()
            self._give_up_at = now + STALL_S
            return
        self._timed_out = True
        self._child.send(signal.SIGTERM if step is Step.TERMINATE else signal.SIGKILL)
        # A stopped process takes a SIGTERM only when it goes on.
        self._child.send(signal.SIGCONT)
