"""A server that is stopped and started while many record: what it acknowledged is there."""

import os
import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from subprocess import Popen, TimeoutExpired
from uuid import UUID

import pytest
from sqlalchemy import text
from tests.support.cli import HANG_S
from tests.support.ended import BASH, made
from tests.support.evidence import check_evidence
from tests.support.postgres import MortalServer, fresh_database, mortal_server
from tests.support.processes import start_worker

from tooltrail.records import RecordUncertainError
from tooltrail.store import Store, _postgres_connections, create_store, find_repairable, repair

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
        self._ready_count = 0
        self._is_over = False
        self.said: dict[str, set[UUID]] = {"started": set(), "ended": set()}
        self.failures: list[str] = []

    def listen(self, worker: Popen[bytes]) -> None:
        assert worker.stdout is not None
        for line in worker.stdout:
            kind, _, rest = line.decode().strip().partition(" ")
            with self._changed:
                if kind in self.said:
                    self.said[kind].add(UUID(rest))
                elif kind == "ready":
                    self._ready_count += 1
                else:
                    self.failures.append(rest)
                self._changed.notify_all()
        with self._changed:
            if not self._is_over:
                self.failures.append("a worker ended")
            self._changed.notify_all()

    def wait_for_all(self) -> None:
        """Until each has opened the store: who opens one whose server is away is turned away."""
        self._wait(lambda: self._ready_count == PROCESSES)

    def wait_for_ends(self, count: int) -> None:
        """Until so many are acknowledged that were not yet."""
        with self._changed:
            wanted = len(self.said["ended"]) + count
        self._wait(lambda: len(self.said["ended"]) >= wanted)

    def expect_the_end(self) -> None:
        with self._changed:
            self._is_over = True

    def _wait(self, is_so: Callable[[], bool]) -> None:
        with self._changed:
            self._changed.wait_for(lambda: self.failures or is_so(), HANG_S)
            assert self.failures == []
            assert is_so()


@contextmanager
def recording(*arguments: str) -> Generator[Heard]:
    """Processes that record, each by several threads, for as long as the block lasts."""
    heard = Heard()
    workers = [start_worker(*arguments, takes_input=True) for _ in range(PROCESSES)]
    listeners = [threading.Thread(target=heard.listen, args=(worker,)) for worker in workers]
    try:
        for listener in listeners:
            listener.start()
        heard.wait_for_all()
        yield heard
        heard.expect_the_end()
        for worker in workers:
            assert worker.stdin is not None
            worker.stdin.close()
            worker.stdin = None
        for listener, worker in zip(listeners, workers, strict=True):
            listener.join(HANG_S)
            assert not listener.is_alive()
            _, error = worker.communicate(timeout=HANG_S)
            assert worker.returncode == 0, error.decode()
        assert heard.failures == []
    finally:
        for worker in workers:
            put_down(worker)
        for listener in listeners:
            listener.join(HANG_S)


def put_down(worker: Popen[bytes]) -> None:
    """End one that may be running still, and let the test's output tell where it was."""
    if worker.poll() is None:
        worker.send_signal(signal.SIGUSR1)
        with suppress(TimeoutExpired):
            worker.wait(HANG_S)
        worker.kill()
    if worker.stderr is not None and not worker.stderr.closed:
        print(worker.stderr.read().decode(), file=sys.stderr)  # noqa: T201  shown when it fails
    worker.communicate()


def states_of(store: Store) -> dict[UUID, str]:
    return {
        invocation.summary.id: invocation.summary.state
        for session in store.reader.sessions()
        for invocation in store.reader.conversation(session.id)[2]
    }


@pytest.fixture
def store_on(mortal: MortalServer, tmp_path: Path) -> Iterator[tuple[str, Store]]:
    spool = tmp_path / "spool"
    with (
        fresh_database(mortal.url) as url,
        create_store(url, artifacts=str(tmp_path / "artifacts"), spool=spool) as store,
    ):
        yield url, store


def restart_under_load(mortal: MortalServer, heard: Heard, modes: Sequence[str]) -> None:
    for mode in modes:
        heard.wait_for_ends(ENOUGH)
        mortal.restart(mode)
    heard.wait_for_ends(ENOUGH)


@pytest.mark.fault
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", ["fast", "immediate"])
def test_a_server_that_is_stopped_and_started_under_load_loses_nothing_that_it_acknowledged(
    mortal: MortalServer, mode: str, store_on: tuple[str, Store]
) -> None:
    url, store = store_on
    with recording("endure", url, str(store.spool), str(THREADS)) as heard:
        restart_under_load(mortal, heard, [mode] * RESTARTS)
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


@pytest.mark.fault
@pytest.mark.timeout(600)
def test_what_is_recorded_again_by_its_key_after_a_server_was_away_is_there_once(
    mortal: MortalServer, store_on: tuple[str, Store]
) -> None:
    url, store = store_on
    with recording("persist", url, str(store.spool)) as heard:
        restart_under_load(mortal, heard, ["fast", "immediate", "immediate"])
    ended = heard.said["ended"]
    # Also what was recorded and not acknowledged has been asked for again, and is the same.
    assert states_of(store) == dict.fromkeys(ended, "success")
    assert not find_repairable(store)
    check_evidence(store)


@contextmanager
def standing_still(store: Store) -> Generator[None]:
    """The part of the server that serves the connection which is taken next does nothing."""
    with store.database.read() as connection:
        process = connection.scalar(text("SELECT pg_backend_pid()"))
    assert isinstance(process, int)
    os.kill(process, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(process, signal.SIGCONT)


@pytest.mark.fault
def test_a_server_that_stands_still_is_given_up_and_the_record_goes_another_way(
    store_on: tuple[str, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, store = store_on
    session = store.open_session()
    session.record(BASH, made(b"before\n"))
    monkeypatch.setattr(_postgres_connections, "TRANSACTION_TIMEOUT_S", 1)
    monkeypatch.setattr(_postgres_connections, "ANSWER_TIMEOUT_S", 0)
    with standing_still(store):
        finished = session.record(BASH, made(b"meanwhile\n"))
        assert states_of(store)[finished.invocation_id] == "success"
    check_evidence(store)


@pytest.mark.fault
def test_who_reads_from_a_server_that_stands_still_goes_another_way(
    store_on: tuple[str, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, store = store_on
    finished = store.open_session().record(BASH, made(b"before\n"))
    monkeypatch.setattr(_postgres_connections, "CONNECT_TIMEOUT_S", 1)
    with standing_still(store):
        assert states_of(store) == {finished.invocation_id: "success"}


_SLOW_COMMIT = """
CREATE FUNCTION slow() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_sleep(3); RETURN NULL; END $$;
CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON invocations
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW EXECUTE FUNCTION slow();
"""


@pytest.mark.fault
def test_a_commit_that_is_not_answered_in_time_is_told_as_one_that_may_be_done(
    store_on: tuple[str, Store], monkeypatch: pytest.MonkeyPatch
) -> None:
    _, store = store_on
    session = store.open_session()
    session.record(BASH, made(b"before\n"))
    with store.database.write() as connection:
        connection.exec_driver_sql(_SLOW_COMMIT)
    monkeypatch.setattr(_postgres_connections, "TRANSACTION_TIMEOUT_S", 1)
    monkeypatch.setattr(_postgres_connections, "ANSWER_TIMEOUT_S", 0)
    with pytest.raises(RecordUncertainError, match="has not answered in time"):
        session.record(BASH, made(b"slow\n"))
