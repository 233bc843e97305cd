"""A store that is known is opened while it is away, and delivers to itself alone."""

from pathlib import Path

import pytest
from tests.support.away import away, gone, remove_store, without_pause
from tests.support.disks import small_disk
from tests.support.ended import BASH, made
from tests.support.outboxes import BIG, ODD, check_all, check_shown
from tests.support.recording import content_of, stream_of
from tests.support.template_stores import make_store

from tooltrail.records import StoreNotFoundError, UnavailableError
from tooltrail.store import create_store, is_waiting, open_store, relocate, repair


@pytest.fixture
def known(database: str, tmp_path: Path) -> Path:
    """The spool of a store that was open with an outbox once, on each engine in turn."""
    spool = tmp_path / "spool"
    artifacts = str(tmp_path / "artifacts")
    make_store(database, artifacts=artifacts, spool=spool, on_unavailable="outbox").close()
    return spool


def test_a_process_that_starts_while_the_store_is_away_records_all_the_same(
    database: str, known: Path
) -> None:
    with gone(database):
        store = open_store(database, spool=known, on_unavailable="outbox")
        session = store.open_session(title="away from the beginning")
        waiting = [session.record(*one) for one in ODD]
        session.add_message("user", "hello")
        with pytest.raises(UnavailableError):
            store.reader.sessions()
        waiting.append(store.start_alone(BASH).finish(made(b"alone")))
        with pytest.raises(UnavailableError):
            repair(store)
        with store.open_session() as other:
            # As a process that was killed would leave it.
            waiting.append(other.record(BASH, made(b"other")))
    with store:
        without_pause(store)
        waiting.append(session.record(BASH, made(BIG)))
        assert not is_waiting(store)
        check_shown(store, *waiting)
        assert store.reader.session(session.id).title == "away from the beginning"
        check_all(store)


def test_what_a_process_recorded_that_never_met_the_store_is_delivered_by_the_next(
    database: str, known: Path
) -> None:
    with (
        gone(database),
        open_store(database, spool=known, on_unavailable="outbox") as away_store,
        away_store.open_session() as session,
    ):
        waiting = session.record(BASH, made(b"alone"))
    with open_store(database, spool=known) as store:
        assert repair(store).outbox.delivered_count == 3
        check_shown(store, waiting)


def test_a_store_that_was_moved_to_other_artifacts_is_found_when_it_is_back(
    database: str, known: Path, tmp_path: Path
) -> None:
    with gone(database):
        store = open_store(database, spool=known, on_unavailable="outbox")
    with open_store(database, spool=known) as other:
        relocate(other, str(tmp_path / "elsewhere"))
    with store:
        finished = store.open_session().record(BASH, made(BIG))
        stored = store.reader.invocation(finished.invocation_id)
        assert stream_of(stored, "stdout").artifact_path is not None
        assert content_of(store.reader, stream_of(stored, "stdout")) == BIG
        assert store.archive.sink.url == f"file://{tmp_path / 'elsewhere'}"


def test_while_the_store_is_away_who_knows_nothing_of_the_store_is_turned_away(
    database: str, known: Path, tmp_path: Path
) -> None:
    (memory,) = (known / "known-stores").iterdir()
    assert memory.stat().st_mode & 0o777 == 0o600
    saved = memory.read_bytes()
    is_unknown = UnavailableError if "://" in database else StoreNotFoundError
    with gone(database):
        with pytest.raises(UnavailableError):
            open_store(database, spool=known, on_unavailable="raise")
        with pytest.raises(is_unknown):
            open_store(database, spool=tmp_path / "other", on_unavailable="outbox")
        memory.write_bytes(saved.replace(b"format", b"farmot"))
        with pytest.raises(is_unknown):
            open_store(database, spool=known, on_unavailable="outbox")
    with open_store(database, spool=known) as store:
        # Who only reads leaves the spool as it is.
        assert store.reader.sessions() == []
        assert memory.read_bytes() != saved
        store.open_session()
    assert memory.read_bytes() == saved
    assert list((known / "known-stores").iterdir()) == [memory]


def test_what_waits_is_not_delivered_to_another_store_at_the_same_place(
    database: str, known: Path, tmp_path: Path
) -> None:
    with gone(database):
        store = open_store(database, spool=known, on_unavailable="outbox")
        session = store.open_session()
        session.record(BASH, made(b"of the first"))
    remove_store(database)
    with create_store(database, artifacts=str(tmp_path / "a2"), spool=known) as second, store:
        without_pause(store)
        for _ in range(2):
            with pytest.raises(StoreNotFoundError, match=f"where store {second.info.id} is now"):
                session.record(BASH, made(b"late"))
        assert repair(second).outbox.delivered_count == 0
        assert store.fallback.outbox.is_waiting()


def test_who_was_open_meanwhile_delivers_nothing_to_another_store_at_the_same_place(
    database: str, known: Path, tmp_path: Path
) -> None:
    store = open_store(database, spool=known, on_unavailable="outbox")
    session = store.open_session()
    with away(store, database):
        session.record(BASH, made(b"of the first"))
    remove_store(database)
    with create_store(database, artifacts=str(tmp_path / "a2"), spool=known) as second, store:
        without_pause(store)
        with pytest.raises(StoreNotFoundError, match=f"where store {second.info.id} is now"):
            session.record(BASH, made(b"late"))
        assert store.fallback.outbox.is_waiting()
        assert second.reader.sessions() == []


def test_a_file_that_went_with_its_disk_is_waited_for(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 64 << 20) as disk:
        database, spool = disk.folder / "trail.db", tmp_path / "spool"
        artifacts = str(tmp_path / "artifacts")
        make_store(database, artifacts=artifacts, spool=spool, on_unavailable="outbox").close()
        with disk.unmounted():
            with open_store(database, spool=spool, on_unavailable="outbox") as store:
                waiting = store.open_session(title="waits").record(BASH, made(b"waits"))
            told = f"{database} is not there, which has store {store.info.id} "
            with pytest.raises(UnavailableError, match=told):
                open_store(database, spool=spool, on_unavailable="raise")
            assert list(disk.folder.iterdir()) == []
        with open_store(database, spool=spool) as store:
            assert repair(store).outbox.delivered_count == 2
            check_shown(store, waiting)
            check_all(store)
