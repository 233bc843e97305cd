"""Recording calls through the journal, beside raw `sqlite3` that writes the same bytes as durably."""

import asyncio
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from contextlib import closing
from functools import partial
from multiprocessing import get_context
from multiprocessing.synchronize import Barrier
from pathlib import Path
from typing import NamedTuple

from benchmarks._calls import Call, documents_of, made_rounds, record
from benchmarks._measure import (
    Action,
    Report,
    Times,
    compare_rounds,
    cost,
    scratch_folder,
    speed,
)
from benchmarks._raw_recording import RawStore
from tooltrail.journal.recorder import Recorder
from tooltrail.records import default_families, default_policy
from tooltrail.store import Session, create_store, open_store

INVOCATIONS = 320
ROUNDS = 5
SUSTAINED, SUSTAINED_IN_FULL = 2_000, 20_000
SUSTAINED_ROUNDS = 2
RECORDERS = 64
PROCESSES = 8
PROCESS_CALLS = 200
PROCESS_ROUNDS = 3
RAW = "raw sqlite3, two FULL transactions"

Subject = Callable[[Session, Sequence[Call]], None]


def lines(*, is_full: bool) -> Report:
    """One by one, by threads, by tasks, with ingestion, and by processes."""
    for name, subject, target in (
        ("start + finish, one by one", record, "≥ 0.7"),
        (f"start + finish, {RECORDERS} threads", by_threads, "≥ 1.2"),
        (f"start + finish, {RECORDERS} asyncio tasks", _by_tasks, "≥ 2.5"),
    ):
        with scratch_folder() as folder:
            yield speed(name, RAW, measure(folder, subject), INVOCATIONS, target=target)
    count = SUSTAINED_IN_FULL if is_full else SUSTAINED
    with scratch_folder() as folder:
        times = _measure_sustained(folder, count)
    yield speed(f"start + finish and ingestion of {count:,}", RAW, times, count, target="≥ 0.45")
    total, longest = _measure_processes()
    name, raw = f"{PROCESSES} processes, one store", f"{PROCESSES} raw processes, one file"
    yield speed(f"{name}, until ingested", raw, total, PROCESSES * PROCESS_CALLS)
    yield cost(f"{name}, longest wait of a start or a finish", raw, longest)


def measure(folder: Path, subject: Subject) -> Times:
    """Calls that the journal acknowledges, beside one raw writer; nothing is ingested."""
    families = default_families()
    recorder = Recorder(folder / "spool", policy=default_policy(families), families=families)
    with closing(recorder), closing(RawStore(folder / "raw.db")) as raw:
        session = Session.open(recorder)
        return compare_rounds(_beside_raw(partial(subject, session), raw, INVOCATIONS, ROUNDS))


def by_threads(session: Session, calls: Sequence[Call]) -> None:
    """Record by `RECORDERS` threads at once."""
    with ThreadPoolExecutor(RECORDERS) as pool:
        list(pool.map(partial(record, session), (calls[n::RECORDERS] for n in range(RECORDERS))))


def _by_tasks(session: Session, calls: Sequence[Call]) -> None:
    async def record_share(share: Sequence[Call]) -> None:
        for call in share:
            invocation = await session.astart(call.tool_call())
            await invocation.afinish(call.complete_output())

    async def run() -> None:
        await asyncio.gather(*(record_share(calls[n::RECORDERS]) for n in range(RECORDERS)))

    asyncio.run(run())


def _measure_sustained(folder: Path, count: int) -> Times:
    with (
        create_store(folder / "tooltrail.db") as store,
        closing(RawStore(folder / "raw.db")) as raw,
    ):
        session = store.open_session()

        def subject(calls: Sequence[Call]) -> None:
            record(session, calls)
            store.ingest()

        return compare_rounds(_beside_raw(subject, raw, count, SUSTAINED_ROUNDS))


def _beside_raw(
    subject: Callable[[Sequence[Call]], None], raw: RawStore, count: int, rounds: int
) -> Iterator[tuple[Action, Action]]:
    made = made_rounds(count)
    for _ in range(rounds + 1):
        calls = next(made)
        documents = list(map(documents_of, calls))

        def baseline() -> None:
            for call, texts in zip(calls, documents, strict=True):  # noqa: B023  runs in this round
                raw.record(call, texts)

        yield partial(subject, calls), baseline


class _Share(NamedTuple):
    """What one process did; times of the clock that all processes share."""

    began: float
    ended: float
    longest: float


def _measure_processes() -> tuple[Times, Times]:
    """The whole work of all processes, and the longest wait of any."""
    found: tuple[list[tuple[float, float]], ...] = ([], [])
    for _ in range(PROCESS_ROUNDS):
        for share, kept in zip((_record_share, _write_share), found, strict=True):
            kept.append(_run_at_once(share))
    (total, longest), (raw_total, raw_longest) = (
        map(statistics.median, zip(*kept, strict=True)) for kept in found
    )
    return Times(total, raw_total), Times(longest, raw_longest)


def _run_at_once(share: Callable[[Path, int], _Share]) -> tuple[float, float]:
    context = get_context("spawn")
    with scratch_folder() as folder:
        create_store(folder / "tooltrail.db").close()
        RawStore(folder / "raw.db").close()
        barrier = context.Barrier(PROCESSES)
        with ProcessPoolExecutor(PROCESSES, context, _begin_process, (barrier,)) as pool:
            shares = list(pool.map(partial(share, folder), range(PROCESSES)))
    whole = max(one.ended for one in shares) - min(one.began for one in shares)
    return whole, max(one.longest for one in shares)


_barriers: list[Barrier] = []
"""The barrier of this process, before which all wait until the last one is ready."""


def _begin_process(barrier: Barrier) -> None:
    _barriers[:] = [barrier]


def _record_share(folder: Path, number: int) -> _Share:
    calls = next(made_rounds(PROCESS_CALLS, seed=number))
    with open_store(folder / "tooltrail.db") as store:
        session = store.open_session()
        marks = [_wait_for_all()]
        for call in calls:
            invocation = session.start(call.tool_call())
            marks.append(time.perf_counter())
            invocation.finish(call.complete_output())
            marks.append(time.perf_counter())
    return _share(marks)


def _write_share(folder: Path, number: int) -> _Share:
    calls = next(made_rounds(PROCESS_CALLS, seed=number))
    work = [(call, documents_of(call)) for call in calls]
    with closing(RawStore(folder / "raw.db")) as raw:
        marks = [_wait_for_all()]
        for call, documents in work:
            key = raw.start(call)
            marks.append(time.perf_counter())
            raw.finish(key, call, documents)
            marks.append(time.perf_counter())
    return _share(marks)


def _wait_for_all() -> float:
    _barriers[0].wait()
    return time.perf_counter()


def _share(marks: list[float]) -> _Share:
    waits = (later - earlier for earlier, later in zip(marks, marks[1:], strict=False))
    return _Share(marks[0], time.perf_counter(), max(waits))
