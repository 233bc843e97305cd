"""Eight processes that record into one store, against eight raw sqlite3 writers of one file."""

import statistics
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import closing
from functools import partial
from itertools import pairwise
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import NamedTuple, TypeAlias

from benchmarks._calls import documents_of, made_rounds
from benchmarks._measure import Report, Times, cost, scratch_folder, speed
from benchmarks._raw_recording import RawStore
from tooltrail.store import create_store, open_store

PROCESSES = 8
CALLS = 200
ROUNDS = 3

Steps: TypeAlias = Callable[[Path, int], Iterator[None]]
"""The work of one process. The first step prepares; each later step is a start or a finish."""

_barriers: list[Barrier] = []
"""The barrier at which this process waits until all processes are ready."""


class _Share(NamedTuple):
    """When one process began and ended, by the machine's clock, and its longest step in seconds."""

    began: float
    ended: float
    longest: float


def lines() -> Report:
    """The time until all calls are ingested, and the longest step of any process."""
    found = [(_run_at_once(_record), _run_at_once(_write)) for _ in range(ROUNDS)]
    total, longest = (
        Times(*(statistics.median(pair[side][figure] for pair in found) for side in (0, 1)))
        for figure in (0, 1)
    )
    name, baseline = f"{PROCESSES} processes, one store", f"{PROCESSES} raw processes, one file"
    yield speed(f"{name}, until ingested", baseline, total, PROCESSES * CALLS)
    yield cost(f"{name}, longest start or finish", baseline, longest)


def _run_at_once(steps: Steps) -> tuple[float, float]:
    context = get_context("spawn")
    with scratch_folder() as folder:
        create_store(folder / "tooltrail.db").close()
        RawStore(folder / "raw.db").close()
        barrier = context.Barrier(PROCESSES)
        with ProcessPoolExecutor(PROCESSES, context, _begin, (barrier,)) as pool:
            shares = list(pool.map(partial(_run, steps, folder), range(PROCESSES)))
    whole = max(one.ended for one in shares) - min(one.began for one in shares)
    return whole, max(one.longest for one in shares)


def _begin(barrier: Barrier) -> None:
    _barriers.append(barrier)


def _run(steps: Steps, folder: Path, number: int) -> _Share:
    work = steps(folder, number)
    next(work)
    _barriers[0].wait()
    marks = [time.perf_counter(), *(time.perf_counter() for _ in work)]
    ended = time.perf_counter()
    return _Share(marks[0], ended, max(later - earlier for earlier, later in pairwise(marks)))


def _record(folder: Path, number: int) -> Iterator[None]:
    calls = next(made_rounds(CALLS, seed=number))
    with open_store(folder / "tooltrail.db") as store:
        session = store.open_session()
        yield
        for call in calls:
            invocation = session.start(call.tool_call())
            yield
            invocation.finish(call.complete_output())
            yield


def _write(folder: Path, number: int) -> Iterator[None]:
    calls = next(made_rounds(CALLS, seed=number))
    work = [(call, documents_of(call)) for call in calls]
    with closing(RawStore(folder / "raw.db")) as raw:
        yield
        for call, documents in work:
            key = raw.start(call)
            yield
            raw.finish(key, call, documents)
            yield
