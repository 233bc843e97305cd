"""Pruning: what nobody refers to goes, all else stays, and the account says how much went."""

import random
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from datetime import timedelta
from pathlib import Path

import pytest
from tests.support.call_facts import ended, next_id
from tests.support.effort import times
from tests.support.keeping import (
    BIG,
    END_LOCK_HOLDERS,
    NO_GRACE,
    accounts,
    check,
    folder_digests,
    ingested,
    make_older,
    paths,
    prune_all,
    publish,
    record,
    rows,
    scatter,
)
from tests.support.killing import count_moments, run_and_kill

from tooltrail.journal import JournalLog
from tooltrail.records import (
    DamageError,
    InvalidRecordError,
    StreamRecord,
    TooltrailError,
    UnavailableError,
)
from tooltrail.store.keep.maintenance import Amount, with_references
from tooltrail.store.keep.pruning import plan_pruning, prune
from tooltrail.store.locking import ingest_lock
from tooltrail.store.opening import create_store, open_store
from tooltrail.store.roots import mark_path
from tooltrail.store.store import Store

DAY = timedelta(days=1)
HANG_S = 60
KILLS = times(4)
OBJECTS = 200


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "artifacts"


@pytest.fixture
def used(store: Store) -> Store:
    """A store that refers to one artifact."""
    return ingested(store, BIG)


def size_of(*files: Path) -> int:
    return sum(file.stat().st_size for file in files)


def scatter_part(root: Path) -> Path:
    (file,) = scatter(root, 1, name="part")
    return file.rename(file.with_name(f"{file.name}.{7:016x}.part"))


def test_a_plan_sorts_everything_and_changes_nothing(used: Store, root: Path) -> None:
    (kept,) = root.rglob("*.zst")
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
    before = folder_digests(root)

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
    assert folder_digests(root) == before
    assert accounts(used) == []


def test_pruning_deletes_what_was_planned_and_nothing_else(used: Store, root: Path) -> None:
    files = scatter(root, 50)
    part = scatter_part(root)
    total = size_of(*files, part)
    untouched = set(folder_digests(root)) - {f.relative_to(root).as_posix() for f in (*files, part)}
    done: list[tuple[int, int]] = []

    plan = plan_pruning(used, NO_GRACE)
    report = prune(used, plan, on_progress=lambda count, size: done.append((count, size)))

    assert report.total == Amount(51, total)
    assert report.leftovers == Amount(1, len(b"part 0"))
    assert set(folder_digests(root)) == untouched
    assert done == sorted(done)
    assert done[-1] == (51, total)
    assert accounts(used) == [
        (
            "gc",
            {
                "root": f"file://{root}",
                "grace_s": 0,
                "unreferenced_count": 50,
                "unreferenced_bytes": total - 6,
                "unfinished_count": 1,
                "unfinished_bytes": 6,
            },
        )
    ]
    check(used)


@pytest.mark.both_engines
def test_what_a_record_has_come_to_refer_to_since_the_plan_stays(store: Store) -> None:
    path = publish(store, BIG)
    publish(store, BIG[1:])
    plan = plan_pruning(store, NO_GRACE)
    ingested(store, BIG)

    report = prune(store, plan)

    assert report.total.count == 1
    assert store.archive.exists(path)
    check(store)


@pytest.mark.both_engines
def test_what_waits_for_the_sink_is_referred_to(store: Store, tmp_path: Path) -> None:
    path = publish(store, BIG)
    with store.database.write() as connection:
        connection.insert(
            "pending_artifacts",
            [
                {
                    "digest": bytes.fromhex(path.rpartition("/")[2].removesuffix(".zst")),
                    "journal_key": 1,
                    "spooled": None,
                    "role": "stdout",
                    "size": len(BIG),
                    "line_count": 5_000,
                    "reason": "the sink is away",
                    "noticed_at": connection.moment(store.info.created_at),
                }
            ],
        )
    assert plan_pruning(store, NO_GRACE).unreferenced == []


def test_what_was_recorded_after_a_restored_backup_is_ingested_and_not_pruned(
    tmp_path: Path,
) -> None:
    path, backup = tmp_path / "trail.db", tmp_path / "backup.db"
    with create_store(path) as store:
        ingested(store, BIG)
    shutil.copy(path, backup)
    with open_store(path) as store:
        ingested(store, BIG[1:])
    shutil.copy(backup, path)
    with open_store(path) as store:
        plan = plan_pruning(store, NO_GRACE)
        assert (plan.unreferenced, plan.referenced.count) == ([], 2)
        assert rows(store, "SELECT state FROM invocations") == [("success",)] * 2
        check(store)


def append_rejected(store: Store, output: bytes) -> None:
    """Append the end of a call that never started, with this output."""
    record = StreamRecord.from_bytes("stdout", output)
    end = ended(next_id(), next_id(), record, spooled=f"{next_id()}/stdout.zst")
    with closing(JournalLog(store.spool / "journal")) as log:
        log.record([end])


@pytest.mark.both_engines
def test_the_output_that_a_fact_rejected_since_the_plan_names_is_kept(store: Store) -> None:
    kept = [publish(store, BIG), publish(store, BIG[2:])]
    publish(store, BIG[1:])
    plan = plan_pruning(store, NO_GRACE)
    append_rejected(store, BIG)
    append_rejected(store, BIG[2:])
    store.ingest()
    assert prune(store, plan).total.count == 1
    assert all(store.archive.exists(path) for path in kept)


def test_the_output_that_a_rejected_fact_names_is_kept(store: Store) -> None:
    path = publish(store, BIG)
    publish(store, BIG[1:])
    append_rejected(store, BIG)
    assert prune_all(store).total.count == 1
    assert rows(store, "SELECT count(*) FROM rejected_facts") == [(1,)]
    assert store.archive.exists(path)


def test_while_facts_cannot_be_ingested_nothing_is_planned(used: Store) -> None:
    record(used, BIG[1:])
    with (used.spool / "journal" / "00000001.seg").open("r+b") as segment:
        segment.write(bytes(40))
    with pytest.raises(DamageError):
        plan_pruning(used, NO_GRACE)


def test_what_is_gone_already_is_not_counted_as_deleted(used: Store, root: Path) -> None:
    files = scatter(root, 3)
    plan = plan_pruning(used, NO_GRACE)
    files[1].unlink()
    assert prune(used, plan).unreferenced.count == 2


def test_every_table_that_can_name_an_artifact_keeps_its_object(used: Store) -> None:
    """In a damaged database, too: whatever could dangle is asked, not what should be there."""

    def is_kept() -> list[bool]:
        listed = used.archive.sink.list("sha256/")
        return [is_referenced for _, is_referenced in with_references(used.database, listed)]

    for table in ("artifacts", "invocation_artifacts", "streams"):
        assert is_kept() == [True]
        with used.database.write() as connection:
            connection.run(f"DROP TRIGGER {table}_no_delete")
            connection.run(f"DELETE FROM {table}")
    assert is_kept() == [False]


def test_a_store_that_refers_to_nothing_prunes_its_own_root_only(
    used: Store, tmp_path: Path
) -> None:
    empty = tmp_path / "empty" / "trail.db"
    with create_store(empty) as store:
        publish(store, BIG[2:])
        assert prune_all(store).total.count == 1
    with (
        open_store(empty, artifacts=str(tmp_path / "artifacts")) as mistaken,
        pytest.raises(InvalidRecordError, match="artifact root of another store"),
    ):
        plan_pruning(mistaken, NO_GRACE)
    check(used)


def test_a_root_without_a_mark_is_not_pruned(used: Store, root: Path) -> None:
    publish(used, BIG[1:])
    (root / mark_path(used.info.id)).unlink()
    with pytest.raises(InvalidRecordError, match="is not marked as the artifact root of this"):
        plan_pruning(used, NO_GRACE)


def test_a_root_in_which_everything_is_lost_is_not_pruned(used: Store, root: Path) -> None:
    for file in root.rglob("*.zst"):
        file.unlink()
    publish(used, BIG[1:])
    with pytest.raises(InvalidRecordError, match="none of the 1 artifacts that the store"):
        plan_pruning(used, NO_GRACE)


def test_a_plan_for_artifacts_that_were_moved_since_is_refused(
    used: Store, root: Path, tmp_path: Path
) -> None:
    scatter(root, 1)
    plan = plan_pruning(used, NO_GRACE)
    with used.database.write() as connection:
        connection.execute("UPDATE store_info SET artifact_root = ?", (str(tmp_path / "moved"),))
    with pytest.raises(UnavailableError, match="the artifacts were moved"):
        prune(used, plan)


@pytest.mark.both_engines
def test_an_ingester_waits_for_a_run_and_a_recorder_does_not(
    store: Store, database: str, tmp_path: Path
) -> None:
    publish(store, BIG)
    publish(store, BIG[1:])
    plan = plan_pruning(store, NO_GRACE)
    came, go_on = threading.Event(), threading.Event()

    def wait(count: int, stored_bytes: int) -> None:
        came.set()
        assert go_on.wait(HANG_S)

    with (
        ThreadPoolExecutor(2) as pool,
        open_store(database, spool=tmp_path / "two", acknowledge="journal") as writer,
    ):
        pruning = pool.submit(prune, store, plan, on_progress=wait)
        assert came.wait(HANG_S)
        record(writer, BIG, BIG[1:])
        ingesting = pool.submit(writer.ingest)
        assert rows(writer, "SELECT count(*) FROM invocations") == [(0,)]
        assert not ingesting.done()
        go_on.set()
        assert pruning.result(HANG_S).total.count == 2
        ingesting.result(HANG_S)
        assert rows(writer, "SELECT count(*) FROM invocations") == [(2,)]
        check(writer)


def test_a_run_whose_lock_is_lost_deletes_nothing_more(
    postgres_store: Store, tmp_path: Path
) -> None:
    publish(postgres_store, BIG)
    publish(postgres_store, BIG[1:])
    plan = plan_pruning(postgres_store, NO_GRACE)

    def cut(count: int, stored_bytes: int) -> None:
        rows(postgres_store, END_LOCK_HOLDERS)

    with pytest.raises(UnavailableError):
        prune(postgres_store, plan, on_progress=cut)
    assert [details["unreferenced_count"] for _, details in accounts(postgres_store)] == [1]
    with ingest_lock(postgres_store.database, exclusive=True):
        pass


def test_a_run_that_is_interrupted_says_what_it_has_done(used: Store, root: Path) -> None:
    files = scatter(root, 50)
    plan = plan_pruning(used, NO_GRACE)

    def interrupt(count: int, stored_bytes: int) -> None:
        if count == 20:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        prune(used, plan, on_progress=interrupt)

    ((action, details),) = accounts(used)
    assert (action, details["unreferenced_count"]) == ("gc", 20)
    assert sum(file.exists() for file in files) == 30


def test_a_deletion_that_is_refused_ends_the_run_and_what_was_done_is_on_record(
    used: Store, root: Path
) -> None:
    files = sorted(scatter(root, 40))
    plan = plan_pruning(used, NO_GRACE)
    outside = files[25].parent.rename(root.parent / "outside")
    files[25].parent.symlink_to(outside)

    with pytest.raises(DamageError):
        prune(used, plan)

    assert [details["unreferenced_count"] for _, details in accounts(used)] == [25]
    assert [file.exists() for file in files] == [False] * 25 + [True] * 15


def test_a_run_that_cannot_have_its_lock_does_not_begin(used: Store, root: Path) -> None:
    files = scatter(root, 1)
    lock = root.with_name("trail.db-ingest.lock")
    lock.unlink()
    lock.mkdir()
    with pytest.raises(UnavailableError, match=r"-ingest\.lock cannot be opened"):
        prune_all(used)
    assert files[0].exists()


def test_readers_read_on_while_everything_around_is_pruned(used: Store, root: Path) -> None:
    (path,) = paths(used)
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
            scatter(root, 50, name=str(round_))
            assert prune_all(used).total.count == 50
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
    tmp_path: Path, root: Path
) -> None:
    database = tmp_path / "trail.db"
    with create_store(database) as store:
        ingested(store, *(b"%d\n" % number * 30_000 for number in range(3)))

    def run() -> None:
        with open_store(database) as store:
            prune_all(store)

    scatter(root, OBJECTS)
    count = count_moments(run)
    was_killed = False
    for n in range(KILLS):
        scatter(root, OBJECTS)
        was_killed |= not run_and_kill(run, max(1, count * (n + 1) // (KILLS + 1)))
    assert was_killed
    with open_store(database) as store:
        check(store)
        prune_all(store)
        assert prune_all(store).total.count == 0
        ingested(store, BIG[3:])
        check(store)


def test_a_bucket_is_pruned_like_a_folder(s3_bucket: str, tmp_path: Path) -> None:
    with create_store(tmp_path / "trail.db", artifacts=f"s3://{s3_bucket}/trail") as store:
        ingested(store, BIG)
        stray = publish(store, BIG[1:])
        assert prune_all(store).total.count == 1
        assert not store.archive.exists(stray)
        check(store)
