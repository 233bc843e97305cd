"""Eight processes write one store: nobody is told to wait, and nobody waits for long.

They write for `SOAK_S` seconds.
"""

import json
import signal
import time
from subprocess import Popen
from uuid import UUID

import pytest
from sqlalchemy import select
from tests.support.effort import times
from tests.support.evidence import check_evidence
from tests.support.processes import finish_all, start_worker

from tooltrail.store import Session, Store, check_database
from tooltrail.store.tables import InvocationRow, SessionRow

PROCESSES = 8
PATIENCE_S = 0.5
"""Seconds without a call after which one that was stopped is taken to have had the turn."""

SOAK_S = min(60.0, times(2))
"""Seconds for which the processes write."""


def writers(database: str, store: Store, shared: Session) -> list[Popen[bytes]]:
    """Processes that begin when their standard input ends."""
    what = ("share", database, str(store.spool), str(shared.id), str(SOAK_S))
    started = [start_worker(*what, takes_input=True) for _ in range(PROCESSES)]
    for worker in started:
        assert worker.stdout is not None
        assert worker.stdout.readline() == b"ready\n"
    return started


def begin(workers: list[Popen[bytes]]) -> None:
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.close()
        worker.stdin = None


def in_order(store: Store) -> dict[UUID, list[UUID]]:
    """The invocations of each session in their order, which has no gap and none twice."""
    query = (
        select(SessionRow.id, InvocationRow.seq, InvocationRow.id)
        .join(InvocationRow, InvocationRow.session_key == SessionRow.key)
        .order_by(SessionRow.key, InvocationRow.seq)
    )
    with store.database.read() as connection:
        rows = connection.execute(query).all()
    found: dict[UUID, list[UUID]] = {}
    for session_id, seq, name in rows:
        there = found.setdefault(session_id, [])
        assert seq == len(there)
        there.append(name)
    return found


@pytest.mark.timeout(300 + 10 * SOAK_S)
def test_eight_processes_lose_nothing_and_none_is_turned_away(
    database: str, store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    shared = store.open_session()
    workers = writers(database, store, shared)
    begin(workers)
    said = [json.loads(text) for text in finish_all(workers)]

    acknowledged = [UUID(name) for told in said for name in told["ids"]]
    assert len(set(acknowledged)) == len(acknowledged)
    assert store.reader.counts().invocations == {"success": len(acknowledged)}
    recorded = in_order(store)
    assert {name for ids in recorded.values() for name in ids} == set(acknowledged)
    assert len(recorded.pop(shared.id)) == len(acknowledged) // 2
    assert len(recorded) == PROCESSES
    check_evidence(store)

    counts = [len(told["ids"]) for told in said]
    # Without turns the last has a third of what the first has, or less; with them nearly as much.
    assert store.database.is_server or 2 * min(counts) >= max(counts)
    waits = sorted(wait for told in said for wait in told["waits"])
    engine = store.database.engine.dialect.name
    with capsys.disabled():
        print(  # noqa: T201  how long it takes says something of the machine only
            f"\n{engine}, {PROCESSES} processes, {SOAK_S:g} s: "
            f"{min(counts)} to {max(counts)} calls each, "
            f"p50 {_ms(waits, 0.5)}, p99 {_ms(waits, 0.99)}, longest {_ms(waits, 1)}"
        )


def test_of_eight_processes_one_that_is_killed_or_stopped_for_a_while_loses_nothing(
    sqlite_store: Store,
) -> None:
    shared = sqlite_store.open_session()
    database = str(sqlite_store.database.target)
    killed, stopped, *others = workers = writers(database, sqlite_store, shared)
    begin(workers)
    _until_recorded(sqlite_store, 2 * PROCESSES)
    killed.kill()
    killed.communicate()
    _stop_while_others_record(sqlite_store, stopped, others)
    said = [json.loads(text) for text in finish_all([stopped, *others])]
    counts = sqlite_store.reader.counts().invocations
    assert counts["success"] >= sum(len(told["ids"]) for told in said)
    assert counts.get("started", 0) <= 1
    for session in sqlite_store.reader.sessions():
        view = sqlite_store.reader.conversation(session.id)
        assert [i.summary.seq for i in view[2]] == list(range(session.invocation_count))
    assert check_database(sqlite_store.database) == []


def _until_recorded(store: Store, count: int) -> None:
    while _recorded(store) < count:
        time.sleep(0.01)


def _recorded(store: Store) -> int:
    return sum(store.reader.counts().invocations.values())


def _stop_while_others_record(
    store: Store, stopped: Popen[bytes], others: list[Popen[bytes]]
) -> None:
    """Stop one for as long as others take for some calls; not in its turn, when all would wait."""
    while any(other.poll() is None for other in others):
        stopped.send_signal(signal.SIGSTOP)
        try:
            if _records(store, PROCESSES, PATIENCE_S):
                return
        finally:
            stopped.send_signal(signal.SIGCONT)


def _records(store: Store, count: int, seconds: float) -> bool:
    """Whether others begin so many calls, with no longer between two of them."""
    begun, seen_at = 0, time.monotonic()
    first = _recorded(store)
    while begun < count:
        if _recorded(store) - first > begun:
            begun, seen_at = _recorded(store) - first, time.monotonic()
        elif time.monotonic() - seen_at > seconds:
            return False
        time.sleep(0.01)
    return True


def _ms(waits: list[float], share: float) -> str:
    return f"{waits[min(int(len(waits) * share), len(waits) - 1)] * 1000:.0f} ms"
