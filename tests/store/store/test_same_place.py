"""Nothing is moved, let alone deleted, where the new root is the old one by another name."""

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.support.disks import laid_over, mounted_again
from tests.support.evidence import check_evidence
from tests.support.http_proxy import Proxy
from tests.support.object_stores import S3Admin, ServerProcess
from tests.support.recording import run_command
from tests.support.template_stores import make_store
from tests.support.upkeep import folder_digest, runs_of

from tooltrail.artifacts import FsspecSink, open_sink
from tooltrail.records import InvalidRecordError, UnavailableError
from tooltrail.store import Store, relocate
from tooltrail.store._roots import same_place
from tooltrail.store._roots.maintenance import MaintenanceRun
from tooltrail.store._roots.same_place import TwoPlaces

OUTPUT = b"a line of a long output\n" * 5_000
SAME = "already: it is the same place as"


@pytest.fixture
def old(tmp_path: Path) -> Path:
    return tmp_path / "artifacts"


@pytest.fixture
def used(sqlite_store: Store) -> Store:
    """A store in a file that refers to an artifact."""
    run_command(sqlite_store.open_session(), OUTPUT)
    return sqlite_store


@pytest.mark.parametrize("knows_inodes", [True, False], ids=["by its inode", "by what is put"])
def test_a_folder_that_is_mounted_twice_is_one_place(
    used: Store, old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, knows_inodes: bool
) -> None:
    if not knows_inodes:
        # As of a share that is mounted twice, which has a device of its own each time.
        monkeypatch.setattr(Path, "samefile", is_never)
    before = folder_digest(old)
    again = tmp_path / "again"
    with mounted_again(old, again):
        with pytest.raises(InvalidRecordError, match=r"are in .* already"):
            relocate(used, str(again), delete_old=True)
        assert folder_digest(again) == before
    assert folder_digest(old) == before
    assert used.archive.sink.url == f"file://{old}"
    check_evidence(used)


@pytest.mark.parametrize("above", [1, 0], ids=["all folders", "one of them"])
@pytest.mark.parametrize("is_damaged", [False, True], ids=["sound", "damaged"])
def test_a_folder_below_the_roots_that_is_mounted_twice_is_one_place(
    used: Store, old: Path, tmp_path: Path, above: int, *, is_damaged: bool
) -> None:
    (path,) = (artifact.path for artifact in used.reader.artifacts())
    folder = Path(path).parents[above]
    if is_damaged:
        (old / path).chmod(0o600)
        (old / path).write_bytes((old / path).read_bytes()[:-1] + b"?")
    before = folder_digest(old)
    new = tmp_path / "new"
    with mounted_again(old / folder, new / folder):
        with pytest.raises(InvalidRecordError, match=SAME):
            relocate(used, str(new), allow_damage=True, delete_old=True)
        assert folder_digest(old) == before
    assert used.archive.sink.url == f"file://{old}"
    # It was the mount alone that was in the way.
    if not is_damaged:
        assert relocate(used, str(new), delete_old=True).deleted.count == 1
        check_evidence(used)


def test_what_shows_at_the_new_root_beneath_what_is_put_there_is_not_deleted(
    used: Store, old: Path, tmp_path: Path
) -> None:
    before = folder_digest(old)
    new, upper = tmp_path / "new", Path("/dev/shm") / f"{tmp_path.name}-{os.getpid()}" / "upper"
    try:
        with laid_over(old, upper, new):
            with pytest.raises(InvalidRecordError, match=f"shows what is in file://{old}/"):
                relocate(used, str(new), delete_old=True)
            check_evidence(used)
            assert [(run.outcome, run.object_count) for run in runs_of(used)] == [
                ("finished", 0),
                ("failed", 0),
            ]
        assert folder_digest(old) == before
    finally:
        shutil.rmtree(upper.parent, ignore_errors=True)


def test_a_file_that_is_mounted_at_the_new_root_is_not_deleted(
    used: Store, old: Path, tmp_path: Path
) -> None:
    (path,) = (artifact.path for artifact in used.reader.artifacts())
    before = folder_digest(old)
    new = tmp_path / "new"
    (new / path).parent.mkdir(parents=True)
    (new / path).touch()
    with mounted_again(old / path, new / path):
        with pytest.raises(InvalidRecordError, match=f"{path} are one file"):
            relocate(used, str(new), delete_old=True)
        assert folder_digest(old) == before
        check_evidence(used)


def test_files_that_share_their_storage_are_two(used: Store, old: Path, tmp_path: Path) -> None:
    (path,) = (artifact.path for artifact in used.reader.artifacts())
    new = tmp_path / "new"
    (new / path).parent.mkdir(parents=True)
    (new / path).hardlink_to(old / path)
    report = relocate(used, str(new), delete_old=True)
    assert (report.sound.count, report.deleted.count) == (1, 1)
    check_evidence(used)


def test_what_somebody_puts_just_then_into_a_folder_that_is_mounted_twice_stays(
    used: Store, old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path,) = (artifact.path for artifact in used.reader.artifacts())
    before = folder_digest(old)
    new = tmp_path / "new"
    exists = FsspecSink.exists

    def not_yet(sink: FsspecSink, asked: str) -> bool:
        return asked != path and exists(sink, asked)

    with mounted_again(old / Path(path).parent, new / Path(path).parent):
        monkeypatch.setattr(FsspecSink, "exists", not_yet)
        with pytest.raises(InvalidRecordError, match=SAME):
            relocate(used, str(new), delete_old=True)
        assert folder_digest(old) == before


def test_what_the_old_root_says_is_not_replaced_by_what_the_database_says(
    used: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(_sink: FsspecSink, path: str) -> None:
        if path.startswith("sha256/"):
            monkeypatch.setattr(MaintenanceRun, "count", away)
            raise UnavailableError(f"access to {path} is denied")

    def away(*_: object) -> None:
        raise UnavailableError("the database is away")

    monkeypatch.setattr(FsspecSink, "delete", denied)
    monkeypatch.setattr(TwoPlaces, "ensure", is_never)
    monkeypatch.setattr(TwoPlaces, "ensure_behind", is_never)
    with pytest.raises(UnavailableError, match="is denied"):
        relocate(used, str(tmp_path / "new"), delete_old=True)


def test_what_is_put_to_find_out_and_cannot_be_deleted_is_named(
    used: Store, old: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_sink: FsspecSink, path: str) -> None:
        raise UnavailableError(f"access to {path} is denied")

    before = folder_digest(old)
    monkeypatch.setattr(FsspecSink, "delete", refused)
    with pytest.raises(UnavailableError, match=r"^same-place-\w+ stays in .*new: access"):
        relocate(used, str(tmp_path / "new"), delete_old=True)
    assert folder_digest(old) == before


def is_never(*_: object) -> bool:
    return False


@pytest.fixture
def aliased(
    s3_server: ServerProcess, s3_bucket: str, monkeypatch: pytest.MonkeyPatch
) -> Iterator[str]:
    """A bucket that is reached as `alias` too."""

    class Aliasing(Proxy):
        def ask_for(self, target: str) -> str:
            return target.replace("/alias", f"/{s3_bucket}", 1)

    with Aliasing(s3_server.port).running() as proxy:
        monkeypatch.setenv("AWS_ENDPOINT_URL", proxy.url)
        yield s3_bucket


def test_a_bucket_with_an_alias_is_one_place(
    aliased: str, s3_admin: S3Admin, tmp_path: Path
) -> None:
    with make_store(tmp_path / "trail.db", artifacts=f"s3://{aliased}/trail") as store:
        run_command(store.open_session(), OUTPUT)
        before = s3_admin.keys(aliased)
        assert [stat.path for stat in open_sink("s3://alias/trail").list()] == [
            key.removeprefix("trail/") for key in before
        ]
        with pytest.raises(InvalidRecordError, match=f"s3://alias/trail {SAME} s3://{aliased}/"):
            relocate(store, "s3://alias/trail", delete_old=True)
        assert s3_admin.keys(aliased) == before
        assert [(run.outcome, run.object_count) for run in runs_of(store)] == [("failed", 0)]
        assert store.archive.sink.url == f"s3://{aliased}/trail"
        check_evidence(store)
        # Another prefix of the same bucket is another place.
        assert relocate(store, "s3://alias/other", delete_old=True).deleted.count == 1
        check_evidence(store)


def test_what_is_put_to_find_out_goes_also_when_the_old_root_does_not_answer(
    used: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    new = tmp_path / "new"
    exists = FsspecSink.exists

    def away(sink: FsspecSink, path: str) -> bool:
        if path.startswith("same-place-"):
            assert [file.name for file in new.iterdir()] == [path]
            raise UnavailableError("does not answer")
        return exists(sink, path)

    monkeypatch.setattr(FsspecSink, "exists", away)
    with pytest.raises(UnavailableError, match="does not answer"):
        relocate(used, str(new))
    assert list(new.iterdir()) == []


def test_a_name_that_a_trailing_slash_or_a_link_makes_is_the_same_without_asking(
    old: Path, used: Store, tmp_path: Path
) -> None:
    link = tmp_path / "link"
    link.symlink_to(old)
    here = used.archive.sink
    assert same_place.has_same_name(open_sink(f"{old}/"), here)
    assert same_place.has_same_name(open_sink(str(link)), here)
    assert not same_place.has_same_name(open_sink(str(tmp_path)), here)
    assert not same_place.has_same_name(open_sink("memory://a", create=True), here)
    gone = open_sink(str(tmp_path / "gone"), create=True)
    (tmp_path / "gone").rmdir()
    assert not same_place.has_same_name(gone, here)
