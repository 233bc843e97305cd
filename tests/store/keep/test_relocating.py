"""Moving the artifacts: everything arrives and is read back, or the store stays where it was."""

import io
import os
import shutil
import stat
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from tests.support.altering import alter
from tests.support.disks import small_disk
from tests.support.effort import times
from tests.support.keeping import (
    END_LOCK_HOLDERS,
    accounts,
    check,
    folder_digests,
    ingested,
    paths,
    publish,
    record,
    rows,
    scatter,
)
from tests.support.killing import count_moments, run_and_kill
from tests.support.lossy_server import LossyServer

from tooltrail.artifacts import ArtifactArchive, copy_of, open_sink
from tooltrail.records import InvalidRecordError, UnavailableError
from tooltrail.store.keep.maintenance import Amount
from tooltrail.store.keep.relocating import SCRATCH, ObjectCopier, relocate
from tooltrail.store.opening import create_store, open_store
from tooltrail.store.roots import mark_path, refuse_nested
from tooltrail.store.store import Store

OUTPUTS = [b"output %d\n" % number * 20_000 for number in range(4)]
HANG_S = 60
KILLS = times(4)


@pytest.fixture
def used(store: Store) -> Store:
    """A store that refers to four artifacts."""
    return ingested(store, *OUTPUTS)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return tmp_path / "artifacts"


@pytest.fixture
def new(tmp_path: Path) -> Path:
    return tmp_path / "elsewhere" / "objects"


def objects(root: Path) -> Amount:
    files = list(root.rglob("*.zst"))
    return Amount(len(files), sum(file.stat().st_size for file in files))


def without_marks(root: Path) -> dict[str, str]:
    return {name: one for name, one in folder_digests(root).items() if "store-" not in name}


def has_mark(store: Store, root: Path) -> bool:
    return (root / mark_path(store.info.id)).exists()


@pytest.mark.both_engines
def test_artifacts_are_copied_verified_and_found_at_the_new_root(
    used: Store, database: str, old: Path, new: Path
) -> None:
    before = folder_digests(old)
    done: list[int] = []

    report = relocate(used, str(new), on_progress=lambda count, _: done.append(count))

    assert (report.root_before, report.root_after) == (f"file://{old}", f"file://{new}")
    assert report.switched
    assert report.copied == objects(old)
    assert (report.sound, report.deleted) == (Amount(), Amount())
    assert (report.damaged, report.missing) == ([], [])
    assert folder_digests(old) == before
    assert without_marks(new) == without_marks(old)
    assert has_mark(used, new)
    assert done == [1, 2, 3, 4]
    ((action, details),) = accounts(used)
    assert action == "relocate"
    assert details["run_id"] == str(report.run_id)
    assert (details["switched"], details["copied"]["count"]) == (True, 4)
    assert (details["root_before"], details["root_after"]) == (f"file://{old}", f"file://{new}")
    remembered = str(new) if "://" in database else str(new.relative_to(old.parent))
    assert used.info.artifact_root == remembered
    old.rename(old.with_name("away"))
    check(used)
    with open_store(database, spool=used.spool) as again:
        check(again)
        assert again.archive.sink.url == f"file://{new}"
        ingested(again, OUTPUTS[0][1:])
        check(again)


def test_a_root_beside_the_database_file_is_remembered_relative_to_it(
    used: Store, tmp_path: Path
) -> None:
    relocate(used, str(tmp_path / "objects"), delete_old=True)
    assert used.info.artifact_root == "objects"
    used.close()
    moved = tmp_path.rename(tmp_path.with_name("moved with its folder"))
    with open_store(moved / "trail.db") as again:
        check(again)
        assert again.archive.sink.url == f"file://{moved}/objects"


@pytest.mark.both_engines
def test_open_stores_follow(
    used: Store, database: str, old: Path, new: Path, tmp_path: Path
) -> None:
    """One that records, one that waits for the lock to ingest, and one that reads."""
    came, go_on = threading.Event(), threading.Event()

    def wait(count: int, stored_bytes: int) -> None:
        came.set()
        assert go_on.wait(HANG_S)

    with (
        ThreadPoolExecutor(2) as pool,
        open_store(database, spool=tmp_path / "two", acknowledge="journal") as other,
    ):
        check(other)
        moving = pool.submit(relocate, used, str(new), delete_old=True, on_progress=wait)
        assert came.wait(HANG_S)
        record(other, OUTPUTS[0][1:])
        ingesting = pool.submit(other.ingest)
        assert rows(other, "SELECT count(*) FROM artifacts") == [(4,)]
        go_on.set()
        assert moving.result(HANG_S).deleted.count == 4
        ingesting.result(HANG_S)
        assert objects(old) == Amount()
        assert objects(new).count == 5
        check(other)
        check(used)


def test_the_old_objects_are_deleted_on_demand_and_only_those_that_arrived(
    used: Store, old: Path, new: Path
) -> None:
    arrived = objects(old)
    stray = publish(used, b"nobody refers to it")
    (old / "notes.txt").write_text("not ours")

    report = relocate(used, str(new), delete_old=True)

    assert report.deleted == arrived
    assert {file.name for file in old.rglob("*") if file.is_file()} == {
        "notes.txt",
        stray.rpartition("/")[2],
    }
    assert objects(new) == arrived
    ((_, details),) = accounts(used)
    assert details["deleted"] == {"count": arrived.count, "stored_bytes": arrived.stored_bytes}
    check(used)


def test_what_stays_at_the_old_root_can_be_deleted_later(
    used: Store, tmp_path: Path, old: Path, new: Path
) -> None:
    relocate(used, str(new))
    with open_store(tmp_path / "trail.db", artifacts=str(old)) as behind:
        report = relocate(behind, str(new), delete_old=True)
        assert behind.archive.sink.url == f"file://{new}"
    assert (report.copied.count, report.sound.count, report.deleted.count) == (0, 4, 4)
    assert objects(old) == Amount()
    check(used)


def test_what_has_arrived_is_read_and_not_copied_again(used: Store, old: Path, new: Path) -> None:
    here, altered, *_ = sorted(old.rglob("*.zst"))
    for file in (here, altered):
        target = new / file.relative_to(old)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.read_bytes()[: None if file == here else -3])
    inode = (new / here.relative_to(old)).stat().st_ino

    report = relocate(used, str(new))

    assert (report.sound.count, report.copied.count) == (1, 3)
    assert (new / here.relative_to(old)).stat().st_ino == inode
    assert without_marks(old) == without_marks(new)
    check(used)


def test_damaged_and_missing_artifacts_keep_the_store_where_it_was(
    used: Store, old: Path, new: Path
) -> None:
    damaged, missing, *_ = sorted(old.rglob("*.zst"))
    damaged.chmod(0o600)
    damaged.write_bytes(damaged.read_bytes()[:-3])
    missing.unlink()

    report = relocate(used, str(new), delete_old=True)

    assert not report.switched
    assert report.damaged == [damaged.relative_to(old).as_posix()]
    assert report.missing == [missing.relative_to(old).as_posix()]
    assert report.deleted == Amount()
    assert used.archive.sink.url == f"file://{old}"
    assert not (new / damaged.relative_to(old)).exists()
    assert not has_mark(used, new)
    ((_, details),) = accounts(used)
    assert (details["switched"], details["damaged"]) == (False, report.damaged)

    moved = relocate(used, str(new), delete_old=True, allow_damage=True)

    assert moved.switched
    assert (moved.damaged, moved.missing) == (report.damaged, report.missing)
    # It is there as damaged as it was, and what could not be verified is not deleted.
    assert (new / damaged.relative_to(old)).read_bytes() == damaged.read_bytes()
    assert list(old.rglob("*.zst")) == [damaged]
    assert used.archive.sink.url == f"file://{new}"


def test_an_object_whose_row_is_damaged_is_compared_with_the_old_root(
    used: Store, old: Path, new: Path
) -> None:
    alter(
        used,
        "UPDATE artifacts SET size = 'x' WHERE key = 1",
        "UPDATE artifacts SET stored_size = 'x' WHERE key = 2",
    )
    report = relocate(used, str(new))
    assert (report.switched, report.copied.count, report.damaged) == (True, 4, [])
    assert without_marks(new) == without_marks(old)


def test_evidence_of_damage_comes_along(used: Store, old: Path, new: Path) -> None:
    (old / "damaged").mkdir()
    kept, twin = (old / "damaged" / f"{'ab' * 32}-0011223{n}.zst" for n in range(2))
    kept.write_bytes(b"damaged bytes")
    twin.write_bytes(b"other damaged bytes")
    (new / "damaged").mkdir(parents=True)
    (new / "damaged" / kept.name).write_bytes(b"damaged bytes")
    (new / "damaged" / twin.name).write_bytes(b"cut")

    report = relocate(used, str(new), delete_old=True)

    assert (report.copied.count, report.sound.count) == (5, 1)
    assert (new / "damaged" / kept.name).read_bytes() == b"damaged bytes"
    assert (new / "damaged" / twin.name).read_bytes() == b"other damaged bytes"
    assert not kept.exists()


def test_what_was_erased_is_not_missed(used: Store, old: Path, new: Path) -> None:
    erased = min(old.rglob("*.zst"))
    with used.database.write() as connection:
        row = {
            "kind": "artifact",
            "digest": bytes.fromhex(erased.stem),
            "size": 1,
            "reason": "",
            "rule": "",
            "actor": "",
            "removed_at": 0,
        }
        connection.insert("tombstones", [row])
    erased.unlink()

    report = relocate(used, str(new))

    assert (report.switched, report.copied.count, report.missing) == (True, 3, [])


def test_a_root_that_is_the_old_one_or_does_not_last_is_refused(
    used: Store, old: Path, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(old)
    scatter(old, 1)  # no record refers to the object
    for same in (str(old), f"file://{old}", str(link)):
        with pytest.raises(InvalidRecordError, match="already"):
            relocate(used, same)
    for nested in (str(old / "inside"), str(tmp_path), str(used.spool), str(used.spool / "x")):
        with pytest.raises(InvalidRecordError, match="is inside the other"):
            relocate(used, nested)
    with pytest.raises(InvalidRecordError, match="is not durable storage"):
        relocate(used, "memory://elsewhere")
    assert accounts(used) == []
    check(used)


@pytest.mark.parametrize("around", ["/", "file:///"])
def test_every_folder_is_inside_the_root_folder(around: str, tmp_path: Path) -> None:
    with pytest.raises(InvalidRecordError, match="is inside the other"):
        refuse_nested(str(tmp_path), around)
    refuse_nested("/", around)


def test_a_folder_that_is_mounted_twice_is_one_place(
    used: Store, old: Path, tmp_path: Path
) -> None:
    twin = tmp_path / "twin"
    twin.mkdir()
    mounted = subprocess.run(["mount", "--bind", str(old), str(twin)], check=False)
    if mounted.returncode:
        pytest.skip("nobody may mount here")
    before = folder_digests(old)
    try:
        with pytest.raises(InvalidRecordError, match="it is the same place as"):
            relocate(used, str(twin), delete_old=True)
    finally:
        subprocess.run(["umount", str(twin)], check=True)
    assert folder_digests(old) == before
    check(used)


def test_a_root_that_holds_artifacts_of_something_else_is_refused(
    used: Store, new: Path, old: Path
) -> None:
    (stranger,) = scatter(new, 1)
    with pytest.raises(InvalidRecordError, match="something else, such as sha256/"):
        relocate(used, str(new))
    assert stranger.exists()
    assert used.archive.sink.url == f"file://{old}"


def test_the_root_of_another_store_is_refused(used: Store, tmp_path: Path) -> None:
    with create_store(tmp_path / "other" / "trail.db") as other:
        with pytest.raises(InvalidRecordError, match="is the artifact root of another store, as"):
            relocate(used, str(tmp_path / "other" / "trail.db-artifacts"))
        check(other)
    check(used)


def test_a_new_root_that_is_full_leaves_the_store_where_it_was(
    used: Store, tmp_path: Path, old: Path
) -> None:
    with small_disk(tmp_path / "disk", 1 << 20) as disk:
        disk.fill()
        with pytest.raises(UnavailableError, match="No space left"):
            relocate(used, str(disk.folder / "objects"))
        assert used.archive.sink.url == f"file://{old}"
        disk.free()
        assert relocate(used, str(disk.folder / "objects")).switched
        check(used)
        relocate(used, str(old))


def test_nothing_is_left_in_the_spool_and_what_lies_there_is_private(
    used: Store, new: Path
) -> None:
    leftover = used.spool / SCRATCH / "tooltrail-0123"
    leftover.parent.mkdir()
    leftover.write_bytes(b"of a run that was killed")
    relocate(used, str(new))
    assert not leftover.parent.exists()
    assert {file.stat().st_mode & 0o077 for file in new.rglob("*.zst")} == {0}


def test_a_new_spool_is_for_its_owner_alone(tmp_path: Path) -> None:
    spool = tmp_path / "a" / "b" / "spool"
    before = os.umask(0)
    try:
        with create_store(tmp_path / "trail.db", spool=spool) as store:
            relocate(store, str(tmp_path / "new"))
    finally:
        os.umask(before)
    for folder in (spool, *spool.parents[:2]):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_a_place_that_keeps_other_bytes_than_it_was_given_is_not_believed(
    used: Store, tmp_path: Path
) -> None:
    path = min(paths(used))
    new = ArtifactArchive(open_sink(str(tmp_path / "lying"), create=True))
    lying = _Lying(used.archive, new, tmp_path / "scratch")
    size = used.archive.verify(path)
    with pytest.raises(UnavailableError, match="does not give back what was put"):
        lying.ensure(path, size)
    assert not new.exists(path)
    with pytest.raises(UnavailableError, match="does not give back what was put"):
        lying.ensure(path)


class _Lying(ObjectCopier):
    def _copy(self, path: str) -> None:
        with copy_of(io.BytesIO(b"other bytes"), path, self._scratch) as copy:
            self._new.sink.put(path, copy)


def test_a_run_that_fails_leaves_no_mark_on_the_folder_of_a_disk_that_is_not_mounted(
    used: Store, tmp_path: Path, old: Path, new: Path
) -> None:
    """The store is at a disk, and somebody moves it to where the artifacts are not whole."""
    relocate(used, str(new))
    min(old.rglob("*.zst")).unlink()
    (old / mark_path(used.info.id)).unlink()
    min(new.rglob("*.zst")).unlink()
    assert not relocate(used, str(old)).switched
    assert not has_mark(used, old)


def test_a_run_that_fails_leaves_the_mark_that_was_there(used: Store, old: Path, new: Path) -> None:
    relocate(used, str(new))
    min(new.rglob("*.zst")).unlink()
    min(old.rglob("*.zst")).unlink()
    assert not relocate(used, str(old)).switched
    assert has_mark(used, old)


@pytest.mark.parametrize("is_unmounted", [False, True])
def test_nothing_is_moved_and_no_root_made_while_the_old_one_is_away(
    used: Store, old: Path, new: Path, is_unmounted: bool
) -> None:
    old.rename(old.with_name("away"))
    if is_unmounted:
        old.mkdir()
    with pytest.raises((UnavailableError, InvalidRecordError)):
        relocate(used, str(new), allow_damage=True)
    assert not new.exists()


def test_a_run_whose_lock_is_lost_does_not_move_the_store(postgres_store: Store, new: Path) -> None:
    ingested(postgres_store, *OUTPUTS)
    before = postgres_store.info.artifact_root

    def cut(count: int, stored_bytes: int) -> None:
        rows(postgres_store, END_LOCK_HOLDERS)

    with pytest.raises(UnavailableError):
        relocate(postgres_store, str(new), delete_old=True, on_progress=cut)
    assert postgres_store.info.artifact_root == before
    assert not has_mark(postgres_store, new)
    check(postgres_store)


def test_a_change_of_the_root_whose_commit_was_not_answered_keeps_the_mark(
    postgres_store: Store, lossy: LossyServer, tmp_path: Path, new: Path
) -> None:
    ingested(postgres_store, *OUTPUTS)
    with open_store(lossy.url, spool=tmp_path / "spool", artifacts=str(tmp_path / "a")) as store:
        _ = store.info
        lossy.lose_an_answer(b"UPDATE store_info")
        with pytest.raises(UnavailableError):
            relocate(store, str(new), delete_old=True)
    root = postgres_store.info.artifact_root
    assert has_mark(postgres_store, new) or root != str(new)
    check(postgres_store)
    assert objects(tmp_path / "a").count == len(OUTPUTS)


def test_runs_that_are_killed_at_any_moment_lose_nothing(
    tmp_path: Path, old: Path, new: Path
) -> None:
    database = tmp_path / "trail.db"
    with create_store(database, artifacts=str(old)) as store:
        ingested(store, *OUTPUTS, *(b"more %d\n" % number * 5_000 for number in range(10)))

    def move(source: Path, target: Path) -> None:
        # From where it was opened with, so that a run that was killed while it deleted is repeated.
        with open_store(database, artifacts=str(source)) as store:
            relocate(store, str(target), delete_old=True)

    def back() -> None:
        move(new, old)

    def there() -> None:
        move(old, new)

    count = count_moments(there)
    was_killed = 0
    back()
    for n in range(KILLS):
        was_killed += not run_and_kill(there, max(1, count * (n + 1) // (KILLS + 1)))
        with open_store(database) as store:
            check(store)
            is_done = not has_mark(store, old)
        if not is_done:
            there()
        with open_store(database) as store:
            check(store)
            assert store.archive.sink.url == f"file://{new}"
        assert without_marks(old) == {}
        back()
    assert was_killed
    assert not (tmp_path / "spool" / SCRATCH).exists()
    shutil.rmtree(new)
    with open_store(database) as store:
        check(store)


def test_artifacts_move_to_an_object_store_and_back(
    used: Store, s3_bucket: str, old: Path, new: Path
) -> None:
    bucket = f"s3://{s3_bucket}/trail"
    there = relocate(used, bucket, delete_old=True)
    assert (there.copied.count, there.deleted.count) == (4, 4)
    assert without_marks(old) == {}
    check(used)
    with pytest.raises(InvalidRecordError, match="is inside the other"):
        relocate(used, f"{bucket}/below")
    ingested(used, OUTPUTS[0][1:])
    back = relocate(used, str(new), delete_old=True)
    assert (back.copied.count, back.deleted.count) == (5, 5)
    assert list(open_sink(bucket).list()) == []
    check(used)
