"""The mark of the new root goes only when it is sure that the store has not come to use that root.

Who takes it from a root that is in use hides all artifacts from everybody.
"""

import time
from collections.abc import Callable, Generator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from sqlalchemy import Connection, event, text, update
from tests.support.cli import HANG_S
from tests.support.disks import small_disk
from tests.support.evidence import check_evidence
from tests.support.lossy_server import LossyServer
from tests.support.postgres import closed_database
from tests.support.recording import run_command
from tests.support.rows import MOMENT
from tests.support.sinks import without_answer
from tests.support.template_stores import make_store
from tests.support.upkeep import Run, runs_of

from tooltrail.artifacts import FsspecSink
from tooltrail.records import DiskFullError, InvalidRecordError, UnavailableError
from tooltrail.store import Store, open_store, relocate
from tooltrail.store._roots.maintenance import RUN_LOCK, MaintenanceRun, maintenance_run
from tooltrail.store._roots.mark_names import mark_path
from tooltrail.store._roots.old_root import OldRoot
from tooltrail.store.tables import MaintenanceRunRow

OUTPUT = b"a line of a long output\n" * 5_000
SWITCH = b"UPDATE store_info"


@pytest.fixture
def new(tmp_path: Path) -> Path:
    return tmp_path / "elsewhere" / "objects"


@pytest.fixture
def on_server(postgres_url: str, tmp_path: Path) -> str:
    """The URL of a store that refers to an artifact."""
    with make_store(postgres_url, artifacts=str(tmp_path / "old"), spool=tmp_path / "s") as store:
        run_command(store.open_session(), OUTPUT)
    return postgres_url


def check_at(store: Store, root: Path) -> None:
    assert store.archive.sink.url == f"file://{root}"
    assert store.find_artifacts() is None
    check_evidence(store)


def has_mark(store: Store, root: Path) -> bool:
    return (root / mark_path(store.info.id)).exists()


def once(action: Callable[[], object]) -> Callable[[int, int], None]:
    """As `on_progress`: do something when the first object has been copied."""
    pending = [action]

    def told(_count: int, _bytes: int) -> None:
        if pending:
            pending.pop()()

    return told


def end_who_holds_the_lock(connection: Connection) -> None:
    """Cut the connection of the run that is under way; it is gone when this returns."""
    ended = connection.scalars(
        text(
            "SELECT pg_terminate_backend(pid, 60000) FROM pg_locks"
            " WHERE locktype = 'advisory' AND objid = :lock AND granted"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        ),
        {"lock": RUN_LOCK},
    )
    assert ended.all() == [True]


def outcomes(runs: list[Run]) -> list[tuple[str | None, bool | None]]:
    return [(run.outcome, run.report["switched"] if run.report else None) for run in runs]


def test_a_run_that_was_taken_for_dead_leaves_the_mark_to_the_one_that_moved_the_artifacts(
    on_server: str, tmp_path: Path, new: Path
) -> None:
    with (
        open_store(on_server, spool=tmp_path / "one") as one,
        open_store(on_server, spool=tmp_path / "two") as two,
    ):

        def take_over() -> None:
            with two.database.write() as connection:
                end_who_holds_the_lock(connection)
            assert relocate(two, str(new)).switched

        with pytest.raises(UnavailableError, match="was taken for dead and closed"):
            relocate(one, str(new), on_progress=once(take_over))

    with open_store(on_server, spool=tmp_path / "s") as store:
        check_at(store, new)
        assert outcomes(runs_of(store)) == [("abandoned", None), ("finished", True)]


def test_while_the_database_cannot_be_asked_the_mark_stays(
    on_server: str, tmp_path: Path, new: Path
) -> None:
    with open_store(on_server, spool=tmp_path / "s") as store:
        with ExitStack() as away:
            close = once(lambda: away.enter_context(closed_database(on_server)))
            with pytest.raises(UnavailableError):
                relocate(store, str(new), on_progress=close)
            assert has_mark(store, new)
        check_at(store, tmp_path / "old")
        assert relocate(store, str(new)).switched
        check_at(store, new)


@pytest.fixture
def lose_connections(on_server: str, monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Has all connections end when a run is alone for the nth time, and knows that it is."""
    alone = MaintenanceRun.alone

    def lose(nth: int) -> None:
        left = nth

        @contextmanager
        def then_lost(run: MaintenanceRun) -> Generator[Callable[[], None]]:
            nonlocal left
            left -= 1
            with alone(run) as confirm:
                if not left:
                    with closed_database(on_server):
                        pass
                yield confirm

        monkeypatch.setattr(MaintenanceRun, "alone", then_lost)

    return lose


def test_a_mark_is_not_taken_back_without_the_connection_that_keeps_others_out(
    on_server: str, tmp_path: Path, new: Path, lose_connections: Callable[[int], None]
) -> None:
    (file,) = (tmp_path / "old").rglob("*.zst")
    file.rename(tmp_path / "away")
    lose_connections(1)
    with open_store(on_server, spool=tmp_path / "s") as store:
        report = relocate(store, str(new))
        assert (report.switched, len(report.missing)) == (False, 1)
        mark = mark_path(store.info.id)
        assert str(report.mark_stays).startswith(f"the mark {mark} stays in file://{new}: ")
        (run,) = runs_of(store)
        assert run.report
        assert run.report["mark_stays"] == report.mark_stays
        assert has_mark(store, new)


def test_who_begins_waits_for_none_whose_lock_was_lost_and_who_still_acts(
    on_server: str, tmp_path: Path
) -> None:
    """A wait would be one with everybody else who records kept out."""
    spool = tmp_path / "s"
    with (
        open_store(on_server, spool=spool) as first,
        open_store(on_server, spool=spool) as other,
        maintenance_run(first.database, "relocate", {}) as run,
        run.alone(),
    ):
        with other.database.write() as connection:
            end_who_holds_the_lock(connection)
        with (
            pytest.raises(UnavailableError, match="another run of gc, relocate or repair"),
            maintenance_run(other.database, "gc", {}),
        ):
            raise AssertionError("it has begun")
        other.open_session()
        assert outcomes(runs_of(other)) == [(None, None)]


@pytest.mark.parametrize("nth", [1, 2], ids=["the objects", "the mark"])
def test_nothing_is_deleted_without_the_connection_that_keeps_others_out(
    on_server: str, tmp_path: Path, new: Path, lose_connections: Callable[[int], None], nth: int
) -> None:
    old = tmp_path / "old"
    lose_connections(nth)
    with open_store(on_server, spool=tmp_path / "s") as store:
        with pytest.raises(UnavailableError):
            relocate(store, str(new), delete_old=True)
        assert has_mark(store, old)
        assert len(list(old.rglob("*.zst"))) == (1 if nth == 1 else 0)
        assert [run.object_count for run in runs_of(store)] == [1, nth - 1]
        check_at(store, new)


def test_a_run_that_was_taken_for_dead_deletes_nothing_at_the_old_root(
    on_server: str, tmp_path: Path, new: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "old"
    delete = OldRoot.delete
    with (
        open_store(on_server, spool=tmp_path / "one") as one,
        open_store(on_server, spool=tmp_path / "two") as two,
        ExitStack() as others,
    ):

        def take_over(root: OldRoot, at_both: Mapping[str, int]) -> None:
            with closed_database(on_server):
                pass
            # Such as one that moves the artifacts back, and has found them at the old root.
            others.enter_context(maintenance_run(two.database, "relocate", {}))
            delete(root, at_both)

        monkeypatch.setattr(OldRoot, "delete", take_over)
        with pytest.raises(UnavailableError, match="was taken for dead and closed"):
            relocate(one, str(new), delete_old=True)
        assert len(list(old.rglob("*.zst"))) == 1
        assert has_mark(one, old)


def test_a_run_whose_account_was_closed_deletes_nothing_at_the_old_root(
    store: Store, tmp_path: Path, new: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_command(store.open_session(), OUTPUT)
    delete = OldRoot.delete

    def close_first(root: OldRoot, at_both: Mapping[str, int]) -> None:
        with store.database.write() as connection:
            row = MaintenanceRunRow
            open_ones = update(row).where(row.finished_at.is_(None))
            connection.execute(open_ones.values(finished_at=MOMENT, outcome="abandoned"))
        delete(root, at_both)

    monkeypatch.setattr(OldRoot, "delete", close_first)
    with pytest.raises(UnavailableError, match="was taken for dead and closed"):
        relocate(store, str(new), delete_old=True)
    assert len(list((tmp_path / "artifacts").rglob("*.zst"))) == 1
    assert has_mark(store, tmp_path / "artifacts")


@pytest.mark.parametrize("what", ["/old/sha256/", "/old/store-"], ids=["an object", "the mark"])
def test_nobody_who_records_is_held_off_by_an_old_root_that_does_not_answer(
    database: str, tmp_path: Path, new: Path, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    old = tmp_path / "old"
    with make_store(database, artifacts=str(old), spool=tmp_path / "s") as store:
        run_command(store.open_session(), OUTPUT)
        came, go_on = without_answer(monkeypatch, "delete", what)
        with ThreadPoolExecutor(1) as pool:
            moving = pool.submit(relocate, store, str(new), delete_old=True)
            assert came.wait(HANG_S)
            with open_store(database, spool=tmp_path / "two") as writer:
                assert run_command(writer.open_session(), OUTPUT[1:]).postponed == ()
            go_on.set()
            assert moving.result(HANG_S).deleted.count == 1
        assert list(old.rglob("*.zst")) == []
        check_at(store, new)


def test_nobody_who_records_is_held_off_by_a_new_root_that_does_not_take_its_mark_back(
    database: str, tmp_path: Path, new: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "old"
    with make_store(database, artifacts=str(old), spool=tmp_path / "s") as store:
        run_command(store.open_session(), OUTPUT)
        (file,) = old.rglob("*.zst")
        file.rename(tmp_path / "away")
        came, go_on = without_answer(monkeypatch, "delete", f"{new}/store-")
        with ThreadPoolExecutor(1) as pool:
            moving = pool.submit(relocate, store, str(new))
            assert came.wait(HANG_S)
            with open_store(database, spool=tmp_path / "two") as writer:
                assert run_command(writer.open_session(), OUTPUT[1:]).postponed == ()
            go_on.set()
            assert len(moving.result(HANG_S).missing) == 1
        assert not has_mark(store, new)
        (tmp_path / "away").rename(file)
        check_at(store, old)


def test_what_was_moved_back_before_it_is_deleted_stays(
    on_server: str, tmp_path: Path, new: Path
) -> None:
    old = tmp_path / "old"
    moved: list[bool] = []

    def move_back(*_: object) -> None:
        # Refused until the artifacts are at the new root and the run that moved them has ended.
        if not moved:
            with (
                open_store(on_server, spool=tmp_path / "two") as two,
                suppress(InvalidRecordError, UnavailableError),
            ):
                moved.append(relocate(two, str(old)).switched)

    with open_store(on_server, spool=tmp_path / "one") as one:
        event.listen(one.database.engine, "checkout", move_back)
        with pytest.raises(UnavailableError, match="were moved once more meanwhile"):
            relocate(one, str(new), delete_old=True)
    with open_store(on_server, spool=tmp_path / "s") as store:
        check_at(store, old)


def test_what_was_moved_back_while_it_is_deleted_stays(
    on_server: str, tmp_path: Path, new: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = tmp_path / "old"
    with open_store(on_server, spool=tmp_path / "s") as store:
        run_command(store.open_session(), OUTPUT[1:])
    delete = FsspecSink.delete

    def delete_and_move_back(sink: FsspecSink, path: str) -> None:
        delete(sink, path)
        if not path.startswith("sha256/"):
            return
        monkeypatch.setattr(FsspecSink, "delete", delete)
        # The server gives up all connections of the one that deletes.
        with closed_database(on_server):
            pass
        with open_store(on_server, spool=tmp_path / "two") as two:
            assert relocate(two, str(old)).copied.count == 1

    monkeypatch.setattr(FsspecSink, "delete", delete_and_move_back)
    with (
        open_store(on_server, spool=tmp_path / "one") as one,
        pytest.raises(UnavailableError),
    ):
        relocate(one, str(new), delete_old=True)
    with open_store(on_server, spool=tmp_path / "s") as store:
        check_at(store, old)


@pytest.mark.parametrize("is_committed", [True, False])
def test_a_change_of_the_root_that_nobody_answered_is_called_neither_done_nor_failed(
    on_server: str, tmp_path: Path, new: Path, *, is_committed: bool
) -> None:
    with LossyServer(on_server).running() as lossy:
        lossy.lose_an_answer(SWITCH, is_committed=is_committed)
        with (
            open_store(lossy.url, spool=tmp_path / "s") as far,
            pytest.raises(UnavailableError, match=f"moved to file://{new} is not known: "),
        ):
            relocate(far, str(new))
    with open_store(on_server, spool=tmp_path / "s") as store:
        check_at(store, new if is_committed else tmp_path / "old")
        assert has_mark(store, new) == is_committed
        (outcome,) = outcomes(runs_of(store))
        assert outcome == (("finished", True) if is_committed else ("failed", False))
        # As the error says.
        if is_committed:
            with pytest.raises(InvalidRecordError, match=r"are in file://.* already"):
                relocate(store, str(new))
        else:
            assert relocate(store, str(new)).switched
        check_at(store, new)


def test_a_change_of_the_root_that_comes_through_late_is_waited_for(
    on_server: str, tmp_path: Path, new: Path
) -> None:
    waiting = text(
        "SELECT count(*) FROM pg_stat_activity"
        " WHERE datname = current_database() AND wait_event_type = 'Lock'"
    )

    def until_somebody_waits() -> None:
        with open_store(on_server, spool=tmp_path / "near") as near:
            for _ in range(3_000):
                with near.database.read() as connection:
                    if connection.scalar(waiting):
                        return
                time.sleep(0.01)

    with LossyServer(on_server).running() as lossy:
        lossy.lose_an_answer(SWITCH, delay=until_somebody_waits)
        with (
            open_store(lossy.url, spool=tmp_path / "s") as far,
            pytest.raises(UnavailableError, match="is not known"),
        ):
            relocate(far, str(new))
    with open_store(on_server, spool=tmp_path / "s") as store:
        check_at(store, new)
        assert outcomes(runs_of(store)) == [("finished", True)]


DEFERRED = "DEFERRABLE INITIALLY DEFERRED"
REFUSING = {
    "sqlite": "CREATE TRIGGER refuse AFTER UPDATE ON store_info"
    " BEGIN INSERT INTO refused VALUES (1); END",
    "postgresql": "CREATE RULE refuse AS ON UPDATE TO store_info"
    " DO ALSO INSERT INTO refused VALUES (1)",
}
"""Make the commit of a change of the root break a foreign key that is checked no sooner."""

NO_MORE = {"sqlite": "DROP TRIGGER refuse", "postgresql": "DROP RULE refuse ON store_info"}
"""A store that is whole has neither."""


def test_a_change_of_the_root_whose_commit_is_refused_is_called_failed_and_leaves_no_mark(
    store: Store, tmp_path: Path, new: Path
) -> None:
    run_command(store.open_session(), OUTPUT)
    with store.database.write() as connection:
        for statement in (
            "CREATE TABLE referred (id INTEGER PRIMARY KEY)",
            f"CREATE TABLE refused (id INTEGER REFERENCES referred (id) {DEFERRED})",
            REFUSING[connection.dialect.name],
        ):
            connection.execute(text(statement))

    with pytest.raises(InvalidRecordError, match="refused the record"):
        relocate(store, str(new))

    with store.database.write() as connection:
        connection.execute(text(NO_MORE[connection.dialect.name]))
    check_at(store, tmp_path / "artifacts")
    assert not has_mark(store, new)
    assert outcomes(runs_of(store)) == [("failed", False)]


def test_a_change_of_the_root_for_which_the_disk_of_the_database_has_no_room_leaves_no_mark(
    tmp_path: Path, new: Path
) -> None:
    with small_disk(tmp_path / "disk", 8 << 20) as disk:
        old = tmp_path / "old"
        database = disk.folder / "trail.db"
        spool = tmp_path / "spool"
        with make_store(database, artifacts=str(old), spool=spool) as store:
            # It is copied without a transaction between its copy and the change.
            (old / "damaged").mkdir()
            (old / "damaged" / f"{'ab' * 32}-00112233.zst").write_bytes(b"kept aside")
            with pytest.raises(DiskFullError):
                relocate(store, str(new), on_progress=once(disk.fill))
            assert not has_mark(store, new)
            check_at(store, old)
            disk.free()
            assert relocate(store, str(new)).switched
            check_at(store, new)
