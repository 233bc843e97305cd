"""Moving the artifacts: everything arrives and is read back, or the store stays where it was."""

import shutil
import signal
from pathlib import Path

import pytest
from sqlalchemy import insert
from tests.support.disks import small_disk
from tests.support.effort import times
from tests.support.evidence import check_evidence
from tests.support.processes import run_python, start_worker
from tests.support.recording import run_command
from tests.support.rows import row_for
from tests.support.template_stores import make_store
from tests.support.upkeep import folder_digest, publish, runs_of, scatter

from tooltrail.records import InvalidRecordError, UnavailableError
from tooltrail.store import Amount, Store, open_store, relocate
from tooltrail.store._roots.copying import ObjectCopier
from tooltrail.store._roots.mark_names import mark_path
from tooltrail.store._roots.same_place import TwoPlaces
from tooltrail.store.tables import metadata

OUTPUTS = [b"output %d\n" % number * 20_000 for number in range(4)]
KILLS = times(6)


@pytest.fixture
def used(store: Store) -> Store:
    """A store that refers to four artifacts."""
    with store.open_session() as session:
        for output in OUTPUTS:
            run_command(session, output)
    return store


@pytest.fixture
def used_file(sqlite_store: Store) -> Store:
    """The same in a file, where the engine makes no difference."""
    with sqlite_store.open_session() as session:
        for output in OUTPUTS:
            run_command(session, output)
    return sqlite_store


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return tmp_path / "artifacts"


@pytest.fixture
def new(tmp_path: Path) -> Path:
    return tmp_path / "elsewhere" / "objects"


def objects(root: Path) -> Amount:
    files = list(root.rglob("*.zst"))
    return Amount(len(files), sum(file.stat().st_size for file in files))


def test_artifacts_are_copied_verified_and_found_at_the_new_root(
    used: Store, database: str, old: Path, new: Path
) -> None:
    is_file = "://" not in database
    before = folder_digest(old)
    told: list[int] = []

    report = relocate(used, str(new), on_progress=lambda count, _: told.append(count))

    assert (report.root_before, report.root_after) == (f"file://{old}", f"file://{new}")
    assert report.switched
    assert report.copied == objects(old)
    assert (report.sound, report.deleted) == (Amount(), Amount())
    assert (report.damaged, report.missing) == ([], [])
    assert folder_digest(old) == folder_digest(new) == before
    assert told == [1, 2, 3, 4]
    (run,) = runs_of(used)
    assert (run.kind, run.outcome, run.object_count) == ("relocate", "finished", 4)
    remembered = str(new.relative_to(old.parent)) if is_file else str(new)
    assert run.facts == {
        "step": "copy",
        "root_before": "artifacts" if is_file else str(old),
        "root_after": remembered,
        "copied_from": f"file://{old}",
    }
    assert run.report
    assert (run.report["switched"], run.report["copied_count"]) == (True, 4)
    old.rename(old.with_name("away"))
    check_evidence(used)
    with open_store(database) as again:
        assert again.archive.sink.url == f"file://{new}"
        assert again.info.artifact_root == remembered
        check_evidence(again)
        run_command(again.open_session(), OUTPUTS[0][1:])
        check_evidence(again)


def test_a_root_beside_the_database_file_is_remembered_relative_to_it(
    used_file: Store, tmp_path: Path
) -> None:
    relocate(used_file, str(tmp_path / "objects"), delete_old=True)
    assert used_file.info.artifact_root == "objects"
    used_file.close()
    moved = tmp_path.rename(tmp_path.with_name("moved with its folder"))
    with open_store(moved / "trail.db") as again:
        assert again.archive.sink.url == f"file://{moved}/objects"
        check_evidence(again)


def test_the_old_objects_are_deleted_on_demand_and_only_those_that_arrived(
    used_file: Store, old: Path, new: Path
) -> None:
    arrived = objects(old)
    stray = publish(used_file, b"nobody refers to it")
    (old / "notes.txt").write_text("not ours")

    report = relocate(used_file, str(new), delete_old=True)

    assert report.deleted == arrived
    assert {file.name for file in old.rglob("*") if file.is_file()} == {
        "notes.txt",
        stray.rpartition("/")[2],
    }
    assert objects(new) == arrived
    copying, deleting = runs_of(used_file)
    assert (copying.facts["step"], deleting.facts["step"]) == ("copy", "delete")
    assert (deleting.object_count, deleting.stored_bytes) == (arrived.count, arrived.stored_bytes)
    check_evidence(used_file)


def test_what_stays_at_the_old_root_can_be_deleted_later(
    used_file: Store, tmp_path: Path, old: Path, new: Path
) -> None:
    relocate(used_file, str(new))
    with open_store(tmp_path / "trail.db", artifacts=str(old)) as behind:
        report = relocate(behind, str(new), delete_old=True)
    assert (report.copied.count, report.sound.count, report.deleted.count) == (0, 4, 4)
    assert objects(old) == Amount()
    with open_store(tmp_path / "trail.db") as again:
        check_evidence(again)


def test_what_has_arrived_is_read_and_not_copied_again(
    used_file: Store, old: Path, new: Path
) -> None:
    here, altered, *_ = sorted(old.rglob("*.zst"))
    for file in (here, altered):
        target = new / file.relative_to(old)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.read_bytes()[: None if file == here else -3])
    inode = (new / here.relative_to(old)).stat().st_ino

    report = relocate(used_file, str(new))

    assert (report.sound.count, report.copied.count) == (1, 3)
    assert (new / here.relative_to(old)).stat().st_ino == inode
    assert folder_digest(old) == folder_digest(new)
    check_evidence(used_file)


def test_damaged_and_missing_artifacts_keep_the_store_where_it_was(
    used_file: Store, old: Path, new: Path
) -> None:
    damaged, missing, *_ = sorted(old.rglob("*.zst"))
    damaged.chmod(0o600)
    damaged.write_bytes(damaged.read_bytes()[:-3])
    missing.unlink()

    report = relocate(used_file, str(new), delete_old=True)

    assert not report.switched
    assert report.damaged == [damaged.relative_to(old).as_posix()]
    assert report.missing == [missing.relative_to(old).as_posix()]
    assert report.deleted == Amount()
    assert used_file.archive.sink.url == f"file://{old}"
    assert not (new / damaged.relative_to(old)).exists()
    (run,) = runs_of(used_file)
    assert run.report
    assert (run.report["switched"], run.report["damaged"]) == (False, report.damaged)

    moved = relocate(used_file, str(new), delete_old=True, allow_damage=True)

    assert moved.switched
    assert (moved.damaged, moved.missing) == (report.damaged, report.missing)
    # It is there as damaged as it was, and what could not be verified is not deleted.
    assert (new / damaged.relative_to(old)).read_bytes() == damaged.read_bytes()
    assert list(old.rglob("*.zst")) == [damaged]
    assert used_file.archive.sink.url == f"file://{new}"


def test_evidence_of_damage_comes_along(used_file: Store, old: Path, new: Path) -> None:
    (old / "damaged").mkdir()
    kept, twin = (old / "damaged" / f"{'ab' * 32}-0011223{n}.zst" for n in range(2))
    kept.write_bytes(b"damaged bytes")
    twin.write_bytes(b"other damaged bytes")
    (new / "damaged").mkdir(parents=True)
    (new / "damaged" / kept.name).write_bytes(b"damaged bytes")
    (new / "damaged" / twin.name).write_bytes(b"cut")

    report = relocate(used_file, str(new), delete_old=True)

    assert (report.copied.count, report.sound.count) == (5, 1)
    assert (new / "damaged" / kept.name).read_bytes() == b"damaged bytes"
    assert (new / "damaged" / twin.name).read_bytes() == b"other damaged bytes"
    assert not kept.exists()


def test_what_was_erased_is_not_missed(used_file: Store, old: Path, new: Path) -> None:
    erased = min(old.rglob("*.zst"))
    path = erased.relative_to(old).as_posix()
    with used_file.database.write() as connection:
        table = metadata.tables["tombstones"]
        connection.execute(
            insert(table).values(row_for(table) | {"kind": "artifact", "subject": path})
        )
    erased.unlink()

    report = relocate(used_file, str(new))

    assert (report.switched, report.copied.count, report.missing) == (True, 3, [])


def test_a_root_that_is_the_old_one_or_does_not_last_is_refused(
    used_file: Store, old: Path, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(old)
    for same in (str(old), f"file://{old}", str(link)):
        with pytest.raises(InvalidRecordError, match="already"):
            relocate(used_file, same)
    with pytest.raises(InvalidRecordError, match="does not last"):
        relocate(used_file, "memory://elsewhere")
    assert runs_of(used_file) == []


def test_a_root_that_holds_artifacts_of_something_else_is_refused(
    used_file: Store, new: Path, tmp_path: Path
) -> None:
    (stranger,) = scatter(new, 1)
    with pytest.raises(InvalidRecordError, match="something else, such as sha256/"):
        relocate(used_file, str(new))
    assert stranger.exists()
    assert used_file.archive.sink.url == f"file://{tmp_path}/artifacts"


def test_a_new_root_that_is_full_leaves_the_store_where_it_was(
    used_file: Store, tmp_path: Path, old: Path
) -> None:
    with small_disk(tmp_path / "disk", 1 << 20) as disk:
        disk.fill()
        with pytest.raises(UnavailableError, match="No space left"):
            relocate(used_file, str(disk.folder / "objects"))
        assert used_file.archive.sink.url == f"file://{old}"
        assert [run.outcome for run in runs_of(used_file)] == ["failed"]
        disk.free()
        assert relocate(used_file, str(disk.folder / "objects")).switched
        check_evidence(used_file)
        relocate(used_file, str(old))


def test_nothing_is_left_in_the_spool_and_what_lies_there_is_private(
    used_file: Store, new: Path
) -> None:
    leftover = used_file.spool / f"relocating-{used_file.info.id}.part"
    leftover.parent.mkdir(exist_ok=True)
    leftover.write_bytes(b"of a run that was killed")
    relocate(used_file, str(new))
    assert not leftover.exists()
    assert {file.stat().st_mode & 0o077 for file in new.rglob("*.zst")} == {0}


def test_a_spool_that_cannot_be_written_is_said(used_file: Store, new: Path) -> None:
    shutil.rmtree(used_file.spool)
    used_file.spool.write_text("in the way")
    with pytest.raises(UnavailableError, match="cannot be marked: "):
        relocate(used_file, str(new))
    assert [run.outcome for run in runs_of(used_file)] == ["failed"]


def test_a_place_that_keeps_other_bytes_than_it_was_given_is_not_believed(
    used_file: Store, tmp_path: Path
) -> None:
    """Another store's root stands for such a place: it has its own bytes under the name."""
    view = used_file.reader.artifacts()[0]
    with make_store(tmp_path / "second" / "trail.db") as second:
        ours, theirs = used_file.archive, second.archive
        places = TwoPlaces(ours.sink, theirs.sink, tmp_path)
        lying = _Lying(ours, theirs, tmp_path / "scratch", places)
        with pytest.raises(UnavailableError, match="does not give back what was put"):
            lying.ensure(view.path, view.size)
        assert not second.archive.exists(view.path)
        with pytest.raises(UnavailableError, match="does not give back what was put"):
            lying.ensure_raw(view.path)


class _Lying(ObjectCopier):
    def _copy(self, path: str) -> None:
        self._scratch.write_bytes(b"other bytes")
        self._new.sink.put(path, self._scratch)
        self._scratch.unlink()


def test_a_run_that_fails_leaves_no_mark_on_the_folder_of_a_disk_that_is_not_mounted(
    used_file: Store, tmp_path: Path, old: Path, new: Path
) -> None:
    """The store remembers the folder of the disk, and somebody moves to it what is elsewhere."""
    relocate(used_file, str(new))
    disk = new.rename(new.with_name("disk"))
    new.mkdir()
    (old / mark_path(used_file.info.id)).unlink()
    with open_store(tmp_path / "trail.db", artifacts=str(old)) as behind:
        with pytest.raises(UnavailableError, match="nothing can be moved, since the artifacts are"):
            relocate(behind, str(new))
        (old / mark_path(used_file.info.id)).touch()
        min(old.rglob("*.zst")).unlink()
        assert not relocate(behind, str(new)).switched
        assert not (new / mark_path(used_file.info.id)).exists()

    with open_store(tmp_path / "trail.db") as again:
        assert "is not the artifact root that it should be" in str(again.find_artifacts())
        shutil.rmtree(new)
        disk.rename(new)
        assert again.find_artifacts() is None
        check_evidence(again)


def test_a_run_that_fails_makes_no_root_while_the_old_one_is_away(
    used_file: Store, old: Path, new: Path
) -> None:
    old.rename(old.with_name("away"))
    with pytest.raises(UnavailableError, match="nothing can be moved"):
        relocate(used_file, str(new))
    assert not new.exists()


def test_a_run_that_fails_leaves_the_mark_that_was_there(
    used_file: Store, old: Path, new: Path
) -> None:
    relocate(used_file, str(new))
    mark = old / mark_path(used_file.info.id)
    min(new.rglob("*.zst")).unlink()
    min(old.rglob("*.zst")).unlink()
    assert not relocate(used_file, str(old)).switched
    assert mark.exists()


KILLED_WHILE_IT_DELETES = """
import os, signal, sys
from tooltrail.store import open_store, relocate
from tooltrail.artifacts import FsspecSink
delete, deleted = FsspecSink.delete, []
def die(sink, path):
    delete(sink, path)
    if path.endswith(".zst"):
        deleted.append(path)
    if len(deleted) == int(sys.argv[3]):
        os.kill(os.getpid(), signal.SIGKILL)
FsspecSink.delete = die
with open_store(sys.argv[1]) as store:
    relocate(store, sys.argv[2], delete_old=True)
"""


@pytest.mark.parametrize("count", [1, 3, len(OUTPUTS)])
def test_a_run_that_is_killed_while_it_deletes_is_repeated(
    used_file: Store, tmp_path: Path, old: Path, new: Path, count: int
) -> None:
    database = tmp_path / "trail.db"
    run_python(
        *(KILLED_WHILE_IT_DELETES, str(database), str(new), str(count)), expected=-signal.SIGKILL
    )
    left = objects(old)
    assert left.count == len(OUTPUTS) - count

    with open_store(database, artifacts=str(old)) as behind:
        report = relocate(behind, str(new), delete_old=True)

    assert (report.switched, report.sound.count, report.missing) == (True, len(OUTPUTS), [])
    assert report.deleted == left
    assert [file.name for file in old.rglob("*") if file.is_file()] == []
    with open_store(database) as again:
        check_evidence(again)


def test_relocations_that_are_killed_at_any_moment_lose_nothing(
    used_file: Store, tmp_path: Path, old: Path, new: Path
) -> None:
    with used_file.open_session() as session:
        for number in range(30):
            run_command(session, b"more %d\n" % number * 5_000)
    wanted = objects(old)
    worker = start_worker(
        *("killed", "relocate", str(tmp_path / "trail.db"), "", str(tmp_path / "spool")),
        *(str(KILLS), "26", str(new)),
        module="tests.support.upkeep_worker",
    )
    # A run that comes through is not killed, and the next one finds everything moved.
    out, _ = worker.communicate()
    statuses = out.decode().split()

    assert "-9" in statuses
    with open_store(tmp_path / "trail.db") as again:
        check_evidence(again)
        if again.archive.sink.url != f"file://{new}":
            assert relocate(again, str(new)).switched
        check_evidence(again)
        assert objects(new) == wanted
        runs = runs_of(again)
        assert sum(run.outcome == "finished" for run in runs) == 1
        assert {run.outcome for run in runs} <= {"finished", "abandoned", "failed"}
    assert objects(old) == wanted
