"""The loop of one run: wait for output, a signal, the child's end or a time, and act on it."""

import math
import os
import selectors
import signal
import time

from tooltrail.cli._process.child import Child
from tooltrail.cli._process.clock import IDLE_INTERVAL_S, PATIENCE_S, Agenda, Step
from tooltrail.cli._process.jobs import Job
from tooltrail.cli._process.outcome import ChildExit
from tooltrail.cli._process.pump import Pump
from tooltrail.cli._process.recorder import Recorder
from tooltrail.cli._process.relay import FATAL, SignalRelay

# Only where neither a signal nor a process descriptor can announce the child's end.
_POLL_INTERVAL_S = 0.05


class Loop:
    """Runs once. Whoever made the parts closes them."""

    def __init__(
        self,
        *,
        child: Child,
        pump: Pump,
        job: Job,
        relay: SignalRelay,
        selector: selectors.BaseSelector,
        recorder: Recorder,
        agenda: Agenda,
    ) -> None:
        self._child = child
        self._pump = pump
        self._job = job
        self._relay = relay
        self._selector = selector
        self._recorder = recorder
        self._agenda = agenda
        self._idle_at = agenda.begin + IDLE_INTERVAL_S
        self._give_up_at = math.inf
        self._last_progress: int = 0
        self._timed_out = False
        self._reaped = False
        self._pidfd: int | None = None

    def run(self) -> None:
        """Return when the child has ended, its output is read, and the readers have it."""
        if self._relay.wake_fd is not None:
            self._selector.register(self._relay.wake_fd, selectors.EVENT_READ, self._on_signals)
        try:
            while not self._is_over():
                for key, _ in self._selector.select(self._wait_s(time.monotonic())):
                    key.data()
                self._on_time(time.monotonic())
        finally:
            self._close_pidfd()

    def outcome(self) -> ChildExit:
        """What happened; to be asked after `run`."""
        return ChildExit(
            exit_status=self._child.exit_status,
            signal=self._child.signal,
            timed_out=self._timed_out,
            duration_ms=int((time.monotonic() - self._agenda.begin) * 1000),
            tee_closed=tuple(self._pump.tee_closed),
            tee_error=self._pump.tee_error,
            recorder_error=self._recorder.error,
        )

    def _is_over(self) -> bool:
        if self._pump.is_reading:
            return False
        if not self._child.reap():
            self._watch_for_the_end()
            return False
        if not self._reaped:
            self._reaped = True
            self._relay.detach()
            self._close_pidfd()
            self._agenda.child_ended()
        return not self._pump.is_delivering

    def _wait_s(self, now: float) -> float:
        at = min(self._idle_at, self._agenda.next_at(), self._give_up_at)
        if not self._can_wake():
            at = min(at, now + _POLL_INTERVAL_S)
        return max(0.0, at - now)

    def _can_wake(self) -> bool:
        """Whether an event will announce what we wait for."""
        has_watch = self._relay.wake_fd is not None or self._pidfd is not None
        return has_watch or self._pump.is_reading or self._pump.is_delivering

    def _watch_for_the_end(self) -> None:
        if self._relay.wake_fd is not None or self._pidfd is not None:
            return
        try:
            self._pidfd = os.pidfd_open(self._child.pid)
        except (AttributeError, OSError):
            return  # neither macOS nor every sandbox has it
        self._selector.register(self._pidfd, selectors.EVENT_READ, self._child.reap)

    def _close_pidfd(self) -> None:
        if self._pidfd is not None:
            self._selector.unregister(self._pidfd)
            os.close(self._pidfd)
            self._pidfd = None

    def _on_signals(self) -> None:
        for signum in self._relay.take():
            if signum == signal.SIGCHLD:
                self._job.on_child_changed()
            elif signum == signal.SIGCONT:
                self._job.resume()
            elif signum in FATAL and self._child.has_ended():
                # What still holds the pipes may not even be in the group. `cmd | cat` would end.
                self._agenda.hurry(time.monotonic())

    def _on_time(self, now: float) -> None:
        if (step := self._agenda.pop_due(now)) is not None:
            self._act(step, now)
        if self._pump.progress_count != self._last_progress:
            self._last_progress = self._pump.progress_count
            self._give_up_at = max(self._give_up_at, now + PATIENCE_S)
        if now >= self._give_up_at:
            self._pump.give_up_delivering()
        if now >= self._idle_at:
            self._idle_at = now + IDLE_INTERVAL_S
            self._recorder.idle()

    def _act(self, step: Step, now: float) -> None:
        if step is Step.ABANDON:
            self._pump.stop_reading()
            self._give_up_at = now + PATIENCE_S
            return
        self._timed_out = True
        self._child.send(signal.SIGTERM if step is Step.TERMINATE else signal.SIGKILL)
        # A stopped process takes a SIGTERM only when it goes on.
        self._child.send(signal.SIGCONT)
