"""Recording through the journal, beside raw `sqlite3` that writes the same bytes as durably."""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

from benchmarks._calls import Call, documents_of, made_rounds, record
from benchmarks._measure import (
    Action,
    Report,
    Times,
    compare_rounds,
    scratch_folder,
    speed,
)
from benchmarks._raw_recording import RawStore
from tooltrail.journal.recorder import Recorder
from tooltrail.records import default_families, default_policy
from tooltrail.store import Session, create_store

INVOCATIONS = 320
ROUNDS = 5
SUSTAINED, SUSTAINED_IN_FULL = 2_000, 20_000
SUSTAINED_ROUNDS = 2
RECORDERS = 64
RAW = "raw sqlite3, two FULL transactions"

Subject = Callable[[Session, Sequence[Call]], None]


def lines(*, is_full: bool) -> Report:
    """One by one, by threads, by tasks, and with ingestion."""
    for name, subject, target in (
        ("start + finish, one by one", record, "≥ 0.7"),
        (f"start + finish, {RECORDERS} threads", by_threads, "≥ 1.2"),
        (f"start + finish, {RECORDERS} asyncio tasks", _by_tasks, "≥ 2.5"),
    ):
        with scratch_folder() as folder:
            yield speed(name, RAW, measure(folder, subject), INVOCATIONS, target)
    count = SUSTAINED_IN_FULL if is_full else SUSTAINED
    with scratch_folder() as folder:
        times = _measure_sustained(folder, count)
    yield speed(f"start + finish and ingestion of {count:,}", RAW, times, count, "≥ 0.45")


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
