"""The event loop of one run: handles output, signals, the end of the child, and time limits.

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
from tooltrail.cli._process.relay import ENDING_SIGNALS, SignalRelay

IDLE_INTERVAL_S = 1.0

# Killed processes close their pipes within this time, and users do not notice the delay.
SETTLE_S = 1.0

# How long we wait for a reader that does not read, after the run is over.
STALL_S = 5.0


class Step(Enum):
    """The steps after a time limit, in this order."""

    TERMINATE = auto()
    KILL = auto()
    ABANDON = auto()


class Agenda:
    """The schedule of steps that end a run after its time limit.

    Args:
        now: start of the run.
        timeout_s: time limit of the run; None for no limit.
        grace_s: time between SIGTERM and SIGKILL.

    Attributes:
        begin: start of the run.
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
        """The time of the next step; infinity if there is none."""
        return self._steps[0][0] if self._steps else math.inf

    def pop_due(self, now: float) -> Step | None:
        """Remove and return the next step if it is due."""
        return self._steps.pop(0)[1] if now >= self.next_at() else None

    def child_ended(self) -> None:
        """Drop the steps that signal the child; drop all steps if the child ended in time."""
        in_time = bool(self._steps) and self._steps[0][1] is Step.TERMINATE
        self._steps = [] if in_time else [at for at in self._steps if at[1] is Step.ABANDON]

    def hurry(self, now: float) -> None:
        """Stop reading soon: only background processes still hold the pipes."""
        at = now + SETTLE_S
        if not any(step is Step.ABANDON and when <= at for when, step in self._steps):
            self._steps = [(at, Step.ABANDON)]


class Loop:
    """Runs one child to its end. The caller closes the parts that are passed in."""

    def __init__(
        self,
        child: Child,
        pump: Pump,
        job: Job,
        relay: SignalRelay,
        *,
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
        """Run until the child has ended and its output is read and delivered."""
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
            elif signum in ENDING_SIGNALS and self._child.has_ended():
                # A process outside of the group can hold the pipes. `cmd | cat` would end here.
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
        # A stopped process handles SIGTERM only when it continues.
        self._child.send(signal.SIGCONT)
