"""Recording through the journal; the baseline is raw `sqlite3`, same bytes, same durability.

Two rows do only what every recorder must: they make the documents of the calls, and write nothing.
No way of recording is faster than these rows on one core.
"""

import asyncio
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from benchmarks._calls import Call, Documents, documents_of, made_rounds, record
from benchmarks._measure import IS_FULL, Action, Report, compare_rounds, scratch_folder, speed
from benchmarks._raw_recording import RawStore
from tooltrail.journal.log import Entry
from tooltrail.journal.recorder import Recorder
from tooltrail.journal.tasks import AppendingThread
from tooltrail.records import default_families, default_policy
from tooltrail.store import Session, Store, create_store

INVOCATIONS = 320
ROUNDS = 5
SUSTAINED = 20_000 if IS_FULL else 2_000
SUSTAINED_ROUNDS = 2
RECORDERS = 64
RAW = "raw sqlite3, two FULL transactions"

Subject: TypeAlias = Callable[[Session, Sequence[Call]], object]


def lines() -> Report:
    """Recording one by one, by threads, by tasks, and with ingestion."""
    families = default_families()
    policy = default_policy(families)
    for name, subject, target in (
        ("start + finish, one by one", record, "≥ 0.7"),
        (f"start + finish, {RECORDERS} threads", _by_threads, "≥ 1.2"),
        (f"start + finish, {RECORDERS} asyncio tasks", _by_tasks, "≥ 2.5"),
    ):
        with (
            scratch_folder() as folder,
            closing(Recorder(folder / "spool", policy=policy, families=families)) as recorder,
        ):
            ours = partial(subject, Session.open(recorder))
            times = compare_rounds(_beside_raw(ours, folder, INVOCATIONS, ROUNDS))
        yield speed(name, RAW, times, INVOCATIONS, target)
    with scratch_folder() as folder, create_store(folder / "tooltrail.db") as store:
        ours = partial(_record_and_ingest, store, store.open_session())
        times = compare_rounds(_beside_raw(ours, folder, SUSTAINED, SUSTAINED_ROUNDS))
    name = f"start + finish and ingestion of {SUSTAINED:,}"
    yield speed(name, RAW, times, SUSTAINED, "≥ 0.45")
    for name, part in (
        ("make the documents alone, without a disk", _make_documents),
        (f"the same in a thread for {RECORDERS} asyncio tasks", _make_documents_for_tasks),
    ):
        with scratch_folder() as folder:
            times = compare_rounds(_beside_raw(part, folder, INVOCATIONS, ROUNDS))
        yield speed(name, RAW, times, INVOCATIONS)


def _by_threads(session: Session, calls: Sequence[Call]) -> None:
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


def _make_documents(calls: Sequence[Call]) -> None:
    for call in calls:
        call.tool_call()
        documents_of(call)


def _make_documents_for_tasks(calls: Sequence[Call]) -> None:
    """Make the documents in the thread that appends the facts of tasks, and append nothing."""
    thread = AppendingThread(lambda _: (), lambda _: "process")

    async def make_share(share: Sequence[Call]) -> None:
        for call in share:
            for make in (call.tool_call, partial(documents_of, call)):
                await thread.submit(partial(_without_facts, make))

    async def run() -> None:
        await asyncio.gather(*(make_share(calls[n::RECORDERS]) for n in range(RECORDERS)))

    asyncio.run(run())
    thread.close()


def _without_facts(make: Callable[[], object]) -> tuple[Sequence[Entry], object]:
    return (), make()


def _record_and_ingest(store: Store, session: Session, calls: Sequence[Call]) -> None:
    record(session, calls)
    store.ingest()


def _beside_raw(
    subject: Callable[[Sequence[Call]], object], folder: Path, count: int, rounds: int
) -> Iterator[tuple[Action, Action]]:
    """For each round, the subject with its calls, and one raw writer with the same calls."""
    with closing(RawStore(folder / "raw.db")) as raw:
        for calls in islice(made_rounds(count), rounds + 1):
            work = [(call, documents_of(call)) for call in calls]
            yield partial(subject, calls), partial(_write, raw, work)


def _write(raw: RawStore, work: Sequence[tuple[Call, Documents]]) -> None:
    for call, documents in work:
        raw.finish(raw.start(call), call, documents)
