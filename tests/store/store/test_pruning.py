"""Pruning: what nobody refers to goes, all else stays, and the account says which."""

import fcntl
import random
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest
from sqlalchemy import update
from tests.support.cli import HANG_S
from tests.support.disks import small_disk
from tests.support.effort import times
from tests.support.evidence import check_evidence
from tests.support.processes import finish_all, start_worker
from tests.support.recording import run_command
from tests.support.rows import MOMENT
from tests.support.sinks import without_answer
from tests.support.template_stores import make_store
from tests.support.upkeep import (
    NO_GRACE,
    folder_digest,
    make_older,
    prune_all,
    publish,
    runs_of,
    scatter,
)

from tooltrail.artifacts import FsspecSink
from tooltrail.records import InvalidRecordError, PathEscapeError, TooltrailError, UnavailableError
from tooltrail.store import Amount, Store, open_store, plan_pruning, prune
from tooltrail.store._roots.references import referenced
from tooltrail.store.tables import MaintenanceRunRow, metadata

BIG = b"a line of a long output\n" * 5_000
DAY = timedelta(days=1)
KILLS = times(6)
OBJECTS = 1_500


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "artifacts"


@pytest.fixture
def used(sqlite_store: Store) -> Store:
    """A store that refers to one artifact."""
    with sqlite_store.open_session() as session:
        run_command(session, BIG)
    return sqlite_store


def reserve_of(store: Store) -> Path:
    return Path(f"{store.database.target}-reserve")


def size_of(*files: Path) -> int:
    return sum(file.stat().st_size for file in files)


def test_a_plan_sorts_everything_and_changes_nothing(used: Store, root: Path) -> None:
    (kept,) = [file for file in root.rglob("*.zst") if file.is_file()]
    old, older, young = scatter(root, 3)
    for file in (old, older):
        make_older(file, DAY)
    (root / "damaged").mkdir()
    damaged = root / "damaged" / f"{'ab' * 32}-00112233.zst"
    foreign = root / "notes.txt"
    odd = root / "sha256" / "ab" / "short.zst"
    parts = [young.with_name(f"{young.name}.{n:016x}.part") for n in range(2)]
    for file in (damaged, foreign, odd, *parts):
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"something")
    for file in (damaged, foreign, parts[0]):
        make_older(file, DAY)
    before = folder_digest(root)

    plan = plan_pruning(used, timedelta(hours=23))

    assert plan.root == f"file://{root}"
    assert {stat.path for stat in plan.unreferenced} == {
        file.relative_to(root).as_posix() for file in (old, older)
    }
    assert [stat.path for stat in plan.leftovers] == [parts[0].relative_to(root).as_posix()]
    assert plan.total == Amount(3, size_of(old, older, parts[0]))
    assert plan.young == Amount(2, size_of(young, parts[1]))
    assert plan.referenced == Amount(1, size_of(kept))
    assert plan.damaged == Amount(1, size_of(damaged))
    assert plan.foreign == Amount(2, size_of(foreign, odd))
    assert folder_digest(root) == before
    assert runs_of(used) == []


def test_pruning_deletes_what_was_planned_and_nothing_else(used: Store, root: Path) -> None:
    files = scatter(root, 250)
    make_older(part := scatter_part(root), DAY)
    total = size_of(*files, part)
    untouched = set(folder_digest(root)) - {f.relative_to(root).as_posix() for f in (*files, part)}
    told: list[tuple[int, int]] = []

    plan = plan_pruning(used, NO_GRACE)
    report = prune(used, plan, on_progress=lambda count, size: told.append((count, size)))

    assert report.total == Amount(251, total)
    assert report.leftovers == Amount(1, len(b"part 0"))
    assert set(folder_digest(root)) == untouched
    assert told == sorted(told)
    assert told[-1] == (251, total)
    (run,) = runs_of(used)
    assert (run.kind, run.outcome, run.object_count, run.stored_bytes) == (
        "gc",
        "finished",
        251,
        total,
    )
    assert run.facts == {"root": f"file://{root}", "grace_s": 0}
    assert run.environment["tooltrail"]
    assert run.environment["host"]
    assert run.report == {
        "unreferenced_count": 250,
        "unreferenced_bytes": total - 6,
        "unfinished_count": 1,
        "unfinished_bytes": 6,
        "adopted_count": 0,
        "vanished_count": 0,
    }
    check_evidence(used)


def scatter_part(root: Path) -> Path:
    (file,) = scatter(root, 1, name="part")
    return file.rename(file.with_name(f"{file.name}.{7:016x}.part"))


def test_an_unfinished_object_is_left_alone_for_an_hour_whatever_the_grace(
    used: Store, root: Path
) -> None:
    part = scatter_part(root)
    part.write_bytes(b"part")
    assert prune_all(used).total.count == 0
    assert part.exists()
    make_older(part, timedelta(hours=1))
    assert prune_all(used).leftovers == Amount(1, 4)
    assert not part.exists()


def test_what_a_record_has_come_to_refer_to_since_the_plan_is_left(store: Store) -> None:
    path = publish(store, BIG)
    publish(store, BIG[1:])
    plan = plan_pruning(store, NO_GRACE)
    run_command(store.open_session(), BIG)

    report = prune(store, plan)

    assert (report.unreferenced.count, report.adopted.count) == (1, 1)
    assert store.archive.exists(path)
    check_evidence(store)


def test_what_is_gone_already_is_not_counted_as_deleted(used: Store, root: Path) -> None:
    files = scatter(root, 3)
    plan = plan_pruning(used, NO_GRACE)
    files[1].unlink()

    report = prune(used, plan)

    assert (report.unreferenced.count, report.vanished.count) == (2, 1)
    (run,) = runs_of(used)
    assert (run.object_count, run.report and run.report["vanished_count"]) == (2, 1)


def test_every_column_that_can_name_an_artifact_keeps_its_object(used: Store, root: Path) -> None:
    """In a damaged database, too: whatever could dangle is asked, not what should be there."""
    (path,) = [view.path for view in used.reader.artifacts()]
    columns = {
        f"{table.name}.{column.name}"
        for table in metadata.tables.values()
        for column in table.columns
        if any(key.column.table.name == "artifacts" for key in column.foreign_keys)
    }
    assert columns == {"output_streams.artifact_path", "invocation_artifacts.path"}
    with used.database.autocommit() as connection:
        connection.exec_driver_sql("PRAGMA foreign_keys = OFF")
        connection.exec_driver_sql("PRAGMA query_only = OFF")
        for table in ("artifacts", "invocation_artifacts", "output_streams"):
            connection.exec_driver_sql(f"DROP TRIGGER {table}_no_delete")
        connection.exec_driver_sql("DELETE FROM artifacts")
        assert referenced(connection, [path]) == {path}
        connection.exec_driver_sql("DELETE FROM invocation_artifacts")
        assert referenced(connection, [path]) == {path}
        connection.exec_driver_sql("DELETE FROM output_streams")
        assert referenced(connection, [path]) == set()


def test_the_root_of_another_store_is_refused(used: Store, tmp_path: Path) -> None:
    with make_store(tmp_path / "second" / "trail.db") as second:
        run_command(second.open_session(), BIG[1:])
    theirs = str(tmp_path / "second" / "artifacts")
    with (
        open_store(tmp_path / "trail.db", artifacts=theirs) as mistaken,
        pytest.raises(InvalidRecordError, match="artifact root of another store"),
    ):
        plan_pruning(mistaken, NO_GRACE)


def test_a_store_that_refers_to_nothing_prunes_its_own_root_only(
    used: Store, tmp_path: Path
) -> None:
    empty = tmp_path / "empty" / "trail.db"
    with make_store(empty) as store:
        publish(store, BIG[2:])
        assert prune_all(store).total.count == 1
    with (
        open_store(empty, artifacts=str(tmp_path / "artifacts")) as mistaken,
        pytest.raises(InvalidRecordError, match="artifact root of another store"),
    ):
        plan_pruning(mistaken, NO_GRACE)
    check_evidence(used)


def test_a_plan_for_artifacts_that_were_moved_since_is_refused(used: Store, root: Path) -> None:
    scatter(root, 1)
    plan = plan_pruning(used, NO_GRACE)
    with used.database.write() as connection:
        connection.execute(update(metadata.tables["store_info"]).values(artifact_root="moved"))
    with pytest.raises(UnavailableError, match="were moved; open it again"):
        prune(used, plan)
    assert [run.outcome for run in runs_of(used)] == ["failed"]


def test_a_run_that_fails_holds_its_room_again(used: Store, root: Path) -> None:
    scatter(root, 1)
    plan = plan_pruning(used, NO_GRACE)
    with used.database.write() as connection:
        connection.execute(update(metadata.tables["store_info"]).values(artifact_root="moved"))
    used.make_room()
    with pytest.raises(UnavailableError):
        prune(used, plan)
    assert reserve_of(used).exists()


def test_a_run_beside_another_leaves_the_room_that_is_held_back(tmp_path: Path) -> None:
    with (
        small_disk(tmp_path / "disk", 8 << 20) as disk,
        make_store(disk.folder / "trail.db") as store,
    ):
        store.open_session()
        plan = plan_pruning(store, NO_GRACE)
        with (disk.folder / "trail.db-maintenance").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            disk.fill()
            with pytest.raises(UnavailableError, match="is under way"):
                prune(store, plan)
        assert reserve_of(store).exists()
        prune(store, plan)
        assert not reserve_of(store).exists()


def test_a_run_that_was_taken_for_dead_deletes_nothing_more(used: Store, root: Path) -> None:
    files = scatter(root, 150)
    plan = plan_pruning(used, NO_GRACE)

    def close_it(count: int, _: int) -> None:
        if count:
            with used.database.write() as connection:
                row = MaintenanceRunRow
                connection.execute(update(row).values(finished_at=MOMENT, outcome="abandoned"))

    with pytest.raises(UnavailableError, match="was taken for dead and closed"):
        prune(used, plan, on_progress=close_it)

    (run,) = runs_of(used)
    assert run.outcome == "abandoned"
    assert 0 < run.object_count <= 100
    assert sum(file.exists() for file in files) == 150 - run.object_count


def test_nobody_who_records_is_held_off_by_a_root_that_has_stopped_to_answer(
    store: Store, database: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = publish(store, BIG)
    plan = plan_pruning(store, NO_GRACE)
    came, go_on = without_answer(monkeypatch, "exists", path)
    with ThreadPoolExecutor(1) as pool:
        pruning = pool.submit(prune, store, plan)
        assert came.wait(HANG_S)
        with open_store(database, spool=tmp_path / "two") as writer:
            assert run_command(writer.open_session(), BIG[1:]).postponed == ()
        go_on.set()
        assert pruning.result(HANG_S).total.count == 1
    check_evidence(store)


class Clock:
    """Time that passes only while something is deleted, or somebody sleeps."""

    def __init__(self) -> None:
        self.now = 0.0
        self.slept: list[float] = []

    def monotonic(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        self.slept.append(round(seconds, 6))
        self.now += seconds


@pytest.mark.parametrize(
    ("takes_s", "holds_s"), [(0.02, [0.06, 0.06, 0.06]), (1.0, [1.0] * 9), (60.0, [60.0] * 9)]
)
def test_writers_get_as_long_as_they_were_held_off_however_slow_the_root_is(
    used: Store,
    root: Path,
    monkeypatch: pytest.MonkeyPatch,
    takes_s: float,
    holds_s: list[float],
) -> None:
    scatter(root, 10)
    plan = plan_pruning(used, NO_GRACE)
    clock = Clock()
    delete = FsspecSink.delete

    def slowly(sink: FsspecSink, path: str) -> None:
        clock.now += takes_s
        delete(sink, path)

    monkeypatch.setattr(FsspecSink, "delete", slowly)
    monkeypatch.setattr("tooltrail.store.pruning.time", clock)
    assert prune(used, plan).total.count == 10
    assert clock.slept == holds_s


def test_a_run_that_is_interrupted_says_what_it_has_done(used: Store, root: Path) -> None:
    files = scatter(root, 150)
    plan = plan_pruning(used, NO_GRACE)

    def interrupt(count: int, _: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prune(used, plan, on_progress=interrupt)

    (run,) = runs_of(used)
    assert run.outcome == "interrupted"
    assert run.report
    assert 150 - sum(file.exists() for file in files) == run.object_count
    assert run.report["unreferenced_count"] == run.object_count > 0


def test_a_deletion_that_is_refused_ends_the_run_and_what_was_done_is_on_record(
    used: Store, root: Path
) -> None:
    files = sorted(scatter(root, 40))
    plan = plan_pruning(used, NO_GRACE)
    outside = files[25].parent.rename(root.parent / "outside")
    files[25].parent.symlink_to(outside)

    with pytest.raises(PathEscapeError):
        prune(used, plan)

    (run,) = runs_of(used)
    assert (run.outcome, run.object_count) == ("failed", 25)
    assert [file.exists() for file in files] == [False] * 25 + [True] * 15


def test_a_run_that_cannot_have_its_lock_does_not_begin(used: Store, tmp_path: Path) -> None:
    (tmp_path / "trail.db-maintenance").mkdir()
    with pytest.raises(UnavailableError, match="-maintenance cannot be locked"):
        prune_all(used)
    assert runs_of(used) == []


def test_readers_read_on_while_everything_around_is_pruned(used: Store, root: Path) -> None:
    (path,) = [view.path for view in used.reader.artifacts()]
    failures: list[Exception] = []
    stopped = threading.Event()

    def read() -> None:
        while not stopped.is_set():
            try:
                assert used.archive.verify(path) == len(BIG)
            except (TooltrailError, AssertionError) as error:
                failures.append(error)

    reader = threading.Thread(target=read)
    reader.start()
    try:
        for round_ in range(3):
            scatter(root, 100, name=str(round_))
            assert prune_all(used).total.count == 100
    finally:
        stopped.set()
        reader.join()
    assert failures == []


def test_an_object_that_is_open_is_read_to_its_end_although_it_is_pruned(used: Store) -> None:
    data = random.Random(4).randbytes(3_000_000)
    path = publish(used, data)
    with used.archive.open(path) as source:
        beginning = source.read(10)
        assert prune_all(used).total.count == 1
        assert beginning + source.read() == data


def test_runs_that_are_killed_at_any_moment_delete_nothing_that_is_referred_to(
    used: Store, root: Path, tmp_path: Path
) -> None:
    with used.open_session() as session:
        for number in range(3):
            run_command(session, b"%d\n" % number * 30_000)
    scatter(root, OBJECTS)
    worker = start_worker(
        *("killed", "prune", str(tmp_path / "trail.db"), "", str(tmp_path / "spool")),
        *(str(KILLS), "25"),
        module="tests.support.upkeep_worker",
    )
    (printed,) = finish_all([worker])

    statuses = printed.split()
    assert len(statuses) == KILLS
    assert "-9" in statuses
    check_evidence(used)
    last = prune_all(used)
    runs = runs_of(used)
    assert {run.outcome for run in runs} <= {"abandoned", "finished"}
    # On record is all but what a run had deleted in its last step.
    counted = sum(run.object_count for run in runs)
    killed = sum(run.outcome == "abandoned" for run in runs)
    assert OBJECTS - 100 * killed <= counted <= OBJECTS
    assert killed > 0
    # Some were killed after their first step, all before their last.
    assert any(run.object_count for run in runs if run.outcome == "abandoned")
    assert prune_all(used).total.count == 0
    assert last.adopted.count == 0
    check_evidence(used)
    run_command(used.open_session(), BIG[3:])
    check_evidence(used)
