"""Eight processes write one SQLite file: nobody is told to wait, and nobody waits for long.

For as many seconds as TOOLTRAIL_TEST_SOAK_S says.
"""

import json
import os
import signal
import time
from subprocess import Popen
from uuid import UUID

import pytest
from tests.support.evidence import check_evidence
from tests.support.processes import finish_all, start_worker

from tooltrail.store import Session, Store, check_database

PROCESSES = 8
SOAK_S = float(os.environ.get("TOOLTRAIL_TEST_SOAK_S", "3"))


def writers(store: Store, shared: Session) -> list[Popen[bytes]]:
    """Processes that begin when their standard input ends."""
    what = ("share", str(store.database.target), str(shared.id), str(SOAK_S))
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


@pytest.mark.timeout(300 + 10 * SOAK_S)
def test_eight_processes_lose_nothing_and_none_is_turned_away(
    sqlite_store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    shared = sqlite_store.open_session()
    workers = writers(sqlite_store, shared)
    begin(workers)
    said = [json.loads(text) for text in finish_all(workers)]

    acknowledged = [UUID(name) for told in said for name in told["ids"]]
    assert len(set(acknowledged)) == len(acknowledged)
    assert sqlite_store.reader.counts().invocations == {"success": len(acknowledged)}
    for name in acknowledged:
        assert sqlite_store.reader.invocation(name).summary.state == "success"
    assert sqlite_store.reader.session(shared.id).invocation_count == len(acknowledged) // 2
    check_evidence(sqlite_store)

    waits = sorted(wait for told in said for wait in told["waits"])
    counts = [len(told["ids"]) for told in said]
    with capsys.disabled():
        print(  # noqa: T201  how long it takes says something of the machine only
            f"\n{PROCESSES} processes, {SOAK_S:g} s: {min(counts)} to {max(counts)} calls each, "
            f"p50 {_ms(waits, 0.5)}, p99 {_ms(waits, 0.99)}, longest {_ms(waits, 1)}"
        )


@pytest.mark.fault
def test_of_eight_processes_one_that_is_killed_or_stopped_for_a_while_loses_nothing(
    sqlite_store: Store,
) -> None:
    shared = sqlite_store.open_session()
    killed, stopped, *others = workers = writers(sqlite_store, shared)
    begin(workers)
    _until_recorded(sqlite_store, 2 * PROCESSES)
    stopped.send_signal(signal.SIGSTOP)
    killed.kill()
    killed.communicate()
    stopped.send_signal(signal.SIGCONT)
    said = [json.loads(text) for text in finish_all([stopped, *others])]
    counts = sqlite_store.reader.counts().invocations
    assert counts["success"] >= sum(len(told["ids"]) for told in said)
    assert counts.get("started", 0) <= 1
    for session in sqlite_store.reader.sessions():
        view = sqlite_store.reader.conversation(session.id)
        assert [i.summary.seq for i in view[2]] == list(range(session.invocation_count))
    assert check_database(sqlite_store.database) == []


def _until_recorded(store: Store, count: int) -> None:
    while sum(store.reader.counts().invocations.values()) < count:
        time.sleep(0.01)


def _ms(waits: list[float], share: float) -> str:
    return f"{waits[min(int(len(waits) * share), len(waits) - 1)] * 1000:.0f} ms"
