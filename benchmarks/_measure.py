"""Interleaved rounds and medians, so that a noisy machine disturbs both sides alike."""

import statistics
import time
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Ratio:
    """A subject beside its baseline.

    Attributes:
        subject: median seconds of what is measured.
        baseline: median seconds of what it is compared with.
    """

    subject: float
    baseline: float

    @property
    def throughput(self) -> float:
        """How much of the baseline's throughput the subject reaches; 1 is as fast."""
        return self.baseline / self.subject


def compare(subject: Callable[[], None], baseline: Callable[[], None], rounds: int) -> Ratio:
    """Run both in turn, after one round that does not count."""
    times: tuple[list[float], list[float]] = ([], [])
    for number in range(rounds + 1):
        for action, kept in zip((subject, baseline), times, strict=True):
            began = time.perf_counter()
            action()
            if number:
                kept.append(time.perf_counter() - began)
    return Ratio(*map(statistics.median, times))
