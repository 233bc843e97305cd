"""When a run has to do something although nothing happened. Times are monotonic, in seconds."""

import math
from enum import Enum, auto

IDLE_INTERVAL_S = 1.0

# Long enough for killed processes to let go of their pipes, short enough not to be felt as a hang.
SETTLE_S = 1.0

# How long a reader that takes nothing may hold us up once the run is over.
PATIENCE_S = 5.0


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
        """Nobody is left to be signalled; in time, nothing is left to be given up either."""
        in_time = bool(self._steps) and self._steps[0][1] is Step.TERMINATE
        self._steps = [] if in_time else [at for at in self._steps if at[1] is Step.ABANDON]

    def hurry(self, now: float) -> None:
        """There is nothing left to wait for but stray holders of the pipes: leave them soon."""
        at = now + SETTLE_S
        if not any(step is Step.ABANDON and when <= at for when, step in self._steps):
            self._steps = [(at, Step.ABANDON)]
