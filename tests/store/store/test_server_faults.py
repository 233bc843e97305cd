"""A server that is stopped and started while many record: what it acknowledged is there."""

import threading
from collections.abc import Generator, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import Popen
from uuid import UUID

import pytest
from tests.support.evidence import check_evidence
from tests.support.postgres import MortalServer, fresh_database, mortal_server
from tests.support.processes import start_worker

from tooltrail.store import Store, create_store, find_repairable, repair

PROCESSES = 2
THREADS = 4
ENOUGH = 40
"""Records that are acknowledged between two restarts."""

RESTARTS = 2


@pytest.fixture(scope="module")
def mortal() -> Iterator[MortalServer]:
    with mortal_server() as server:
        yield server


class Heard:
    """What workers say, as they say it."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self.said: dict[str, set[UUID]] = {"started": set(), "ended": set()}
        self.failures: list[str] = []

    def listen(self, worker: Popen[bytes]) -> None:
        assert worker.stdout is not None
        for line in worker.stdout:
            kind, _, rest = line.decode().strip().partition(" ")
            with self._changed:
                if kind in self.said:
                    self.said[kind].add(UUID(rest))
                else:
                    self.failures.append(rest)
                self._changed.notify_all()

    def wait_for_ends(self, count: int) -> None:
        """Until so many are acknowledged that were not yet."""
        with self._changed:
            wanted = len(self.said["ended"]) + count
            self._changed.wait_for(lambda: len(self.said["ended"]) >= wanted or self.failures, 240)
            assert self.failures == []
            assert len(self.said["ended"]) >= wanted


@contextmanager
def recording(url: str, spool: Path) -> Generator[Heard]:
    """Processes that record, each by several threads, for as long as the block lasts."""
    heard = Heard()
    workers = [
        start_worker("endure", url, str(spool), str(THREADS), takes_input=True)
        for _ in range(PROCESSES)
    ]
    listeners = [threading.Thread(target=heard.listen, args=(worker,)) for worker in workers]
    try:
        for worker in workers:
            # Who opens a store while its server is away is turned away.
            assert worker.stdout is not None
            assert worker.stdout.readline() == b"ready\n"
        for listener in listeners:
            listener.start()
        yield heard
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.close()
            worker.stdin = None
        for listener in listeners:
            listener.join()
        for worker in workers:
            _, error = worker.communicate()
            assert worker.returncode == 0, error.decode()
    finally:
        for worker in workers:
            worker.kill()
        for listener in listeners:
            if listener.ident is not None:
                listener.join()
        for worker in workers:
            worker.communicate()


def states_of(store: Store) -> dict[UUID, str]:
    return {
        invocation.summary.id: invocation.summary.state
        for session in store.reader.sessions()
        for invocation in store.reader.conversation(session.id)[2]
    }


@pytest.mark.fault
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_server_that_is_stopped_and_started_under_load_loses_nothing_that_it_acknowledged(
    mortal: MortalServer, mode: str, tmp_path: Path
) -> None:
    spool = tmp_path / "spool"
    with (
        fresh_database(mortal.url) as url,
        create_store(url, artifacts=str(tmp_path / "artifacts"), spool=spool) as store,
    ):
        with recording(url, spool) as heard:
            for number in range(RESTARTS + 1):
                heard.wait_for_ends(ENOUGH)
                if number < RESTARTS:
                    mortal.restart(mode)
        started, ended = heard.said["started"], heard.said["ended"]
        assert started == ended
        assert len(ended) >= ENOUGH * (RESTARTS + 1)

        states = states_of(store)
        assert {name: states.get(name) for name in ended} == dict.fromkeys(ended, "success")
        # Starts whose answer was lost, and whose program does not know of them.
        unknown = set(states) - ended
        assert {states[name] for name in unknown} <= {"started"}
        assert {one.outcome for one in repair(store).folders} <= {"interrupted", "cleared"}
        assert not find_repairable(store)
        assert {states_of(store)[name] for name in unknown} <= {"interrupted"}
        check_evidence(store)
