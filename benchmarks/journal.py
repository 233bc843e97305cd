"""Recording through the journal, beside raw `sqlite3` that writes the same bytes as durably."""

import asyncio
import json
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from tests.support.lean_store import LeanStore, lean_store

from benchmarks._measure import Ratio, compare
from benchmarks._raw_recording import RawStore
from benchmarks.recording import RECORDERS, ROUNDS, Call, made_rounds, with_documents
from tooltrail.journal.session import Session
from tooltrail.records import ToolCall

Subject = Callable[[LeanStore, Session, Sequence[Call]], None]


def measure(folder: Path, subject: Subject) -> Ratio:
    """One subject beside a single raw writer of two FULL transactions a call."""
    raw = RawStore(folder / "raw.db")
    rounds = made_rounds()
    ours: Iterator[list[Call]] = iter(rounds)
    theirs = iter([with_documents(calls) for calls in rounds])

    def baseline() -> None:
        for call, documents in next(theirs):
            raw.record(json.dumps(call.arguments), call.output, documents)

    try:
        with lean_store(str(folder / "ours.db"), folder) as store:
            session = Session.open(store.recorder)
            return compare(lambda: subject(store, session, next(ours)), baseline, ROUNDS)
    finally:
        raw.close()


def one_by_one(store: LeanStore, session: Session, calls: Sequence[Call]) -> None:
    """Start and finish calls, each acknowledged by the journal; nothing is ingested."""
    del store
    _record(session, calls)


def ingested(store: LeanStore, session: Session, calls: Sequence[Call]) -> None:
    """The same, and then everything is moved into the database."""
    _record(session, calls)
    store.ingester.ingest()


def by_threads(store: LeanStore, session: Session, calls: Sequence[Call]) -> None:
    """`RECORDERS` threads at once."""
    del store
    shares = [calls[n::RECORDERS] for n in range(RECORDERS)]
    with ThreadPoolExecutor(RECORDERS) as pool:
        list(pool.map(partial(_record, session), shares))


def by_tasks(store: LeanStore, session: Session, calls: Sequence[Call]) -> None:
    """`RECORDERS` asyncio tasks at once."""
    del store

    async def record(share: Sequence[Call]) -> None:
        for call in share:
            invocation = await session.astart(ToolCall.of("Bash", call.arguments))
            await invocation.afinish(call.complete_output())

    async def run() -> None:
        await asyncio.gather(*(record(calls[n::RECORDERS]) for n in range(RECORDERS)))

    asyncio.run(run())


SUBJECTS: Sequence[tuple[str, Subject]] = (
    ("journal: start + finish, one by one", one_by_one),
    ("journal: the same, ingested", ingested),
    (f"journal: by {RECORDERS} threads", by_threads),
    (f"journal: by {RECORDERS} tasks", by_tasks),
)


def _record(session: Session, calls: Sequence[Call]) -> None:
    for call in calls:
        session.start(ToolCall.of("Bash", call.arguments)).finish(call.complete_output())
