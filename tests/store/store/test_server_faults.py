"""A server that is stopped and started while many record: what it acknowledged is there."""

import signal
import sys
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from secrets import token_hex
from subprocess import Popen, TimeoutExpired
from typing import Any
from uuid import UUID

import psycopg
import pytest
from sqlalchemy import make_url
from tests.support.away import without_pause
from tests.support.cli import HANG_S
from tests.support.ended import BASH, made
from tests.support.evidence import check_evidence
from tests.support.postgres import MortalServer, fresh_database, mortal_server
from tests.support.processes import start_worker
from tests.support.recording import content_of, stream_of
from tests.support.store_worker import digest_of_shown

from tooltrail.records import AccessRefusedError, digest_of
from tooltrail.store import (
    EndedCall,
    Finished,
    Store,
    create_store,
    find_backlog,
    find_repairable,
    is_waiting,
    open_store,
    repair,
)

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
        self.shown: dict[UUID, str] = {}
        self.failures: list[str] = []

    def listen(self, worker: Popen[bytes]) -> None:
        assert worker.stdout is not None
        for line in worker.stdout:
            kind, _, rest = line.decode().strip().partition(" ")
            with self._changed:
                if kind in self.said:
                    self.said[kind].add(UUID(rest))
                elif kind == "shown":
                    name, _, digest = rest.partition(" ")
                    self.shown[UUID(name)] = digest
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


def test_who_is_not_let_in_is_told_although_the_store_was_opened_while_it_was_away(
    mortal: MortalServer, store_on: tuple[str, Store]
) -> None:
    url, store = store_on
    wrong = make_url(url).set(username="nobody_here").render_as_string(hide_password=False)
    mortal.stop()
    try:
        right = open_store(url, spool=store.spool)
        misled = open_store(wrong, spool=store.spool)
        sessions = [one.open_session() for one in (right, misled)]
        waiting = [one.record(BASH, made(b"away")) for one in sessions]
        assert {one.recorded_in for one in waiting} == {"outbox"}
    finally:
        mortal.start()
    with right, misled:
        for one in (right, misled):
            without_pause(one)
        with pytest.raises(AccessRefusedError, match='role "nobody_here" does not exist'):
            sessions[1].start(BASH)
        with pytest.raises(AccessRefusedError):
            sessions[1].record(BASH, made())
        with pytest.raises(AccessRefusedError):
            misled.open_session()
        with pytest.raises(AccessRefusedError):
            open_store(wrong, spool=store.spool)
        assert sessions[0].start(BASH).finish(made()).recorded_in == "store"
    assert states_of(store).keys() >= {one.invocation_id for one in waiting}


@contextmanager
def fresh_role(database: str, rights: str) -> Generator[tuple[str, str, psycopg.Connection[Any]]]:
    """The name of a user of a server, the URL of a database for them, and an administrator."""
    role = f"role_{token_hex(4)}"
    url = make_url(database).set(username=role).render_as_string(hide_password=False)
    with psycopg.connect(database, autocommit=True) as admin:
        admin.execute(f"CREATE ROLE {role} {rights}".encode())
        try:
            yield role, url, admin
        finally:
            admin.execute(f"DROP OWNED BY {role}; DROP ROLE {role}".encode())


def test_a_user_who_is_not_let_in_any_more_is_missed_as_a_server_would_be(
    postgres_url: str, tmp_path: Path
) -> None:
    with (
        fresh_role(postgres_url, "SUPERUSER LOGIN") as (role, url, admin),
        create_store(url, artifacts=str(tmp_path / "a"), spool=tmp_path / "s") as store,
    ):
        session = store.open_session()
        invocation = session.start(BASH)
        admin.execute(f"ALTER ROLE {role} NOLOGIN".encode())
        store.database.close()
        assert invocation.finish(made()).recorded_in == "outbox"
        with pytest.raises(AccessRefusedError, match="not permitted to log in"):
            open_store(url, spool=tmp_path / "s")
        admin.execute(f"ALTER ROLE {role} LOGIN".encode())
        repair(store)
        assert states_of(store) == {invocation.id: "success"}


def test_a_user_without_rights_is_told_and_nothing_waits_for_ever(
    postgres_url: str, postgres_store: Store
) -> None:
    denied = partial(pytest.raises, AccessRefusedError, match="access is denied")
    with fresh_role(postgres_url, "LOGIN") as (role, url, admin):
        with denied():
            open_store(url, spool=postgres_store.spool)
        admin.execute(f"GRANT SELECT ON ALL TABLES IN SCHEMA public TO {role}".encode())
        with open_store(url, spool=postgres_store.spool) as store:
            with denied():
                store.open_session()
            session = store.join_session(postgres_store.open_session().id)
            with denied():
                session.record(BASH, made())
            with denied():
                session.start(BASH)
            with denied():
                session.record_many([EndedCall(BASH, made())])
            assert find_backlog(store).entry_count == 0


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


@pytest.mark.timeout(600)
@pytest.mark.parametrize("mode", ["fast", "immediate"])
@pytest.mark.parametrize("how", ["outlast", "accompany"])
def test_a_server_that_is_stopped_under_load_is_missed_by_nobody_who_has_an_outbox(
    mortal: MortalServer, mode: str, how: str, store_on: tuple[str, Store]
) -> None:
    url, store = store_on
    with (
        open_store(url, spool=store.spool) as patient,
        recording(how, url, str(store.spool), str(THREADS)) as heard,
    ):
        meanwhile: list[Finished] = []
        for _ in range(RESTARTS):
            heard.wait_for_ends(ENOUGH)
            mortal.stop(mode)
            with patient.open_session() as opened:
                meanwhile += [opened.record(BASH, made(b"%d" % number)) for number in range(2)]
            heard.wait_for_ends(ENOUGH)
            assert is_waiting(patient)
            mortal.start()
            heard.wait_for_ends(ENOUGH)
    report = repair(store)
    done = report.outbox
    assert (done.kept, done.notes, done.failure) == ([], [], "")
    assert {one.outcome for one in report.folders} <= {"cleared", "stored"}
    assert not is_waiting(store)
    assert not find_repairable(store)

    shown = heard.shown | {one.invocation_id: digest_of_shown(one) for one in meanwhile}
    found: dict[UUID, str] = {}
    for session in store.reader.sessions():
        _, messages, invocations = store.reader.conversation(session.id)
        printed = [content_of(store.reader, stream_of(one, "stdout")) for one in invocations]
        assert [one.rstrip() for one in printed] == [b"%d" % n for n in range(len(printed))]
        assert len(messages) in (0, len(printed))
        for one in invocations:
            assert one.receipt is not None
            text = f"{one.canonical_json}\n{one.receipt.text}"
            found[one.summary.id] = digest_of(text.encode())
    assert found == shown
    assert heard.said["ended"] == set(heard.shown)
    check_evidence(store)
