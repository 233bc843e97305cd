"""Every fact is applied exactly once, whatever happens to the ingester and to the database."""

import random
import threading
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest
from tests.support import schema
from tests.support.away import gone
from tests.support.call_facts import FAMILIES, ended, message, next_id, started
from tests.support.disks import SmallDisk, small_disk
from tests.support.effort import times
from tests.support.killing import end_of, fork, run_and_kill
from tests.support.lossy_server import LossyServer
from tests.support.store_parts import StoreParts, ended_spooled, store_parts
from tests.support.threads import at_once
from tests.support.waiting import until

import tooltrail.journal.log
from tooltrail.artifacts import artifact_path
from tooltrail.journal import Cursor, Frame, Gap, segments
from tooltrail.records import UnavailableError
from tooltrail.records.digests import digest_of
from tooltrail.store.engines.database import Database
from tooltrail.store.ingest import ingester
from tooltrail.store.ingest.outcomes import OutcomeMaker
from tooltrail.store.ingest.preparing import Item, prepare

ROUNDS = times(4)
LONG = b"".join(b"%d some line of a log\n" % n for n in range(20_000))


def append_calls(store: StoreParts, count: int) -> list[Cursor]:
    """Calls of one session; every fourth has a long output of its own."""
    session, cursors = next_id(), list[Cursor]()
    for n in range(count):
        call = next_id()
        data = LONG + str(call).encode()
        end = (
            ended_spooled(store, session, call, data)
            if n % 4 == 0
            else ended(session, call, data[-900:])
        )
        for entry in (started(session, call), end):
            cursors += store.log.record([entry])
    return cursors


def assert_all_is_applied_once(store: StoreParts, cursors: list[Cursor]) -> None:
    assert not store.rejections()
    ledger = store.rows(schema.ledger_entries, "n", "hash")
    assert ledger == [(one.index - 1, one.hash) for one in cursors]
    calls = store.rows(schema.invocations, "state", "start_entry", "end_entry")
    assert sorted(calls) == [("success", n, n + 1) for n in range(0, len(cursors), 2)]
    names = ("session_key", "seq")
    places = store.rows(schema.invocations, *names)
    assert len(set(places)) == len(places)
    assert not store.count(schema.pending_artifacts)
    for digest, offset in store.rows(schema.streams, "digest", "receipt_offset"):
        if offset is None and store.body(digest) is None:
            with store.archive.open(artifact_path(digest)) as file:
                assert digest_of(file.read()) == digest
    left = {one.name for one in store.spool.iterdir()}
    assert left <= {"journal", "owners"}


def test_every_committed_batch_is_reported(parts: StoreParts) -> None:
    parts.append(*(message(next_id()) for _ in range(600)))
    counts: list[int] = []
    one = ingester.Ingester(parts.database, parts.archive, parts.spool, FAMILIES)
    assert one.ingest(on_progress=counts.append).frame_count == 600
    assert counts == [512, 600]


@pytest.mark.both_engines
def test_an_ingester_that_is_killed_at_any_moment_applies_all_facts_once(
    database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # Small segments, so that they are deleted, too.
    monkeypatch.setattr(tooltrail.journal.log, "SEAL_BYTES", 30_000)
    chance = random.Random(7)
    cursors = list[Cursor]()
    most, killed = 20_000, 0

    def ingest() -> None:
        with store_parts(database, tmp_path, is_new=False) as other:
            other.ingest()

    with store_parts(database, tmp_path) as store:
        for _ in range(times(6)):
            cursors += append_calls(store, 8)
            while not run_and_kill(ingest, moment := chance.randrange(most)):
                killed += 1
                most += most // 10
            most = min(most, 2 * moment)
        store.ingest()
        assert_all_is_applied_once(store, cursors)
        assert len(list((tmp_path / "spool" / "journal").glob("*.seg"))) == 1
    assert killed


@pytest.mark.both_engines
def test_two_processes_and_two_threads_that_ingest_at_once_apply_all_facts_once(
    parts: StoreParts, database: str, tmp_path: Path
) -> None:
    def ingest_in_fork() -> None:
        with store_parts(database, tmp_path, is_new=False) as other:
            ingester = other.ingester()
            while not (tmp_path / "done").exists():
                ingester.ingest()

    children = [fork(ingest_in_fork) for _ in range(2)]
    is_done = threading.Event()

    def ingest(store: StoreParts) -> None:
        ingester = store.ingester()
        while not is_done.is_set():
            ingester.ingest()

    shared = parts.ingester()

    def ingest_shared() -> None:
        while not is_done.is_set():
            shared.ingest()

    cursors = list[Cursor]()

    def append() -> None:
        cursors.extend(append_calls(parts, times(40)))
        is_done.set()
        (tmp_path / "done").touch()

    at_once(append, lambda: ingest(parts), lambda: ingest(parts), ingest_shared, ingest_shared)
    assert [end_of(child) for child in children] == [0, 0]
    parts.ingest()
    assert_all_is_applied_once(parts, cursors)


@pytest.mark.both_engines
def test_machines_that_share_a_session_write_it_together(database: str, tmp_path: Path) -> None:
    shared = [next_id() for _ in range(6)]
    with store_parts(database, tmp_path) as store:
        machines = [
            StoreParts(store.database, tmp_path / f"spool-{n}", store.sink) for n in range(3)
        ]

        def run(machine: StoreParts, seed: int) -> None:
            chance = random.Random(seed)
            for _ in range(ROUNDS):
                # Each machine meets the sessions and bodies in another order.
                for session in chance.sample(shared, len(shared)):
                    call, text = next_id(), b"body %d" % chance.randrange(20)
                    machine.append(
                        message(session, text), started(session, call), ended(session, call)
                    )
                machine.ingest()

        at_once(*(lambda n=n, one=one: run(one, n) for n, one in enumerate(machines)))
        assert not store.rejections()
        per_session = 3 * 2 * ROUNDS
        for (key,) in store.rows(schema.sessions, "key"):
            places = [
                seq
                for table in (schema.messages, schema.invocations)
                for session_key, seq in store.rows(table, "session_key", "seq")
                if session_key == key
            ]
            assert sorted(places) == list(range(1, per_session + 1))
        assert store.count(schema.sessions) == len(shared)
        assert store.count(schema.journals) == 3


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_lost_answer_to_a_commit_is_resolved_by_the_cursor(
    lossy: LossyServer, tmp_path: Path, is_committed: bool
) -> None:
    with store_parts(lossy.url, tmp_path) as store:
        cursors = append_calls(store, 5)
        lossy.lose_an_answer(b"COPY ledger_entries", is_committed=is_committed)
        with pytest.raises(UnavailableError):
            store.ingest()
        assert store.ingest().frame_count == (0 if is_committed else 10)
        assert_all_is_applied_once(store, cursors)


def test_a_commit_that_comes_after_its_client_gave_up_is_noticed(
    lossy: LossyServer, postgres_url: str, tmp_path: Path
) -> None:
    with (
        store_parts(lossy.url, tmp_path) as store,
        store_parts(postgres_url, tmp_path, is_new=False) as direct,
    ):
        cursors = append_calls(store, 5)
        second = threading.Thread(target=direct.ingest)

        def is_waiting() -> bool:
            with direct.database.read() as connection:
                ((count,),) = connection.query(
                    "SELECT count(*) FROM pg_stat_activity"
                    " WHERE wait_event_type = 'Lock' AND datname = current_database()"
                )
                return bool(count)

        def ingest_meanwhile() -> None:
            second.start()
            until(is_waiting)

        lossy.lose_an_answer(b"COPY ledger_entries", delay=ingest_meanwhile)
        with pytest.raises(UnavailableError):
            store.ingest()
        until(lambda: second.ident is not None and not second.is_alive())
        store.ingest()
        assert_all_is_applied_once(store, cursors)


def test_an_ingester_ends_beside_a_program_that_appends_as_fast_as_it_ingests(
    parts: StoreParts, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = parts
    monkeypatch.setattr(ingester, "BATCH_FRAMES", 4)
    monkeypatch.setattr(segments, "MOST_ROOM_BYTES", 4_000)
    monkeypatch.setattr(segments, "FIRST_ROOM_BYTES", 4_000)
    cursors = append_calls(store, 8)
    before = len(cursors)

    def prepare_beside_a_program(
        database: Database, maker: OutcomeMaker, sources: Sequence[Frame | Gap]
    ) -> list[Item]:
        assert len(cursors) < 20 * before, "it goes on as long as the program does"
        cursors.extend(append_calls(store, 8))
        return prepare(database, maker, sources)

    with monkeypatch.context() as patching:
        patching.setattr(ingester, "prepare", prepare_beside_a_program)
        assert before <= store.ingest().frame_count < len(cursors)
    store.ingest()
    assert_all_is_applied_once(store, cursors)


@pytest.mark.both_engines
def test_a_database_that_is_away_gets_all_facts_when_it_is_back(
    parts: StoreParts, database: str
) -> None:
    cursors = append_calls(parts, 5)
    parts.ingest()
    cursors += append_calls(parts, 5)
    parts.database.close()
    with gone(database):
        for _ in range(2):
            with pytest.raises(UnavailableError):
                parts.ingest()
        cursors += append_calls(parts, 5)
    assert parts.ingest().frame_count == 20
    assert_all_is_applied_once(parts, cursors)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", 24 << 20) as made:
        yield made


@contextmanager
def _full(disk: SmallDisk) -> Generator[None]:
    disk.fill()
    yield
    disk.free()


@pytest.mark.parametrize("trouble", [_full, SmallDisk.read_only])
def test_a_database_on_a_disk_in_trouble_gets_all_facts_afterwards(
    disk: SmallDisk, tmp_path: Path, trouble: Callable[[SmallDisk], AbstractContextManager[None]]
) -> None:
    database = str(disk.folder / "trail.db")
    with store_parts(database, tmp_path) as store:
        cursors = append_calls(store, 3)
        store.ingest()
        cursors += append_calls(store, 100)
        store.database.close()
        with trouble(disk), pytest.raises(UnavailableError):
            store.ingest()
        store.ingest()
        assert_all_is_applied_once(store, cursors)
