"""An artifact root says whose it is: of several stores that want it, at most one gets it."""

import stat
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from tests.support.keeping import BIG, check, ingested

from tooltrail.artifacts import ArtifactSink, open_sink
from tooltrail.records import InvalidRecordError, UnavailableError
from tooltrail.store import marks as root_marks
from tooltrail.store.keep.relocating import relocate
from tooltrail.store.marks import mark_root
from tooltrail.store.opening import create_store, open_store
from tooltrail.store.roots import mark_path
from tooltrail.store.store import Store


@pytest.fixture
def used(store: Store) -> Store:
    """A store that refers to one artifact."""
    return ingested(store, BIG)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tmp_path / "artifacts"


def marks(root: Path) -> list[str]:
    return sorted(file.name for file in root.glob("store-*"))


def test_a_root_carries_the_mark_of_its_store(used: Store, root: Path) -> None:
    assert marks(root) == [f"store-{used.info.id}"]
    assert str(used.info.id) in (root / marks(root)[0]).read_text()


def test_nothing_is_written_to_the_folder_on_which_a_disk_is_not_mounted(
    used: Store, root: Path
) -> None:
    disk = root.rename(root.with_name("disk"))
    root.mkdir()
    ingested(used, BIG[1:])
    assert list(root.iterdir()) == []
    root.rmdir()
    disk.rename(root)
    # The same store goes on as soon as it is there.
    check(used)


def test_a_root_that_cannot_be_marked_is_unavailable(tmp_path: Path) -> None:
    sink = open_sink(str(tmp_path / "root"), create=True)
    (tmp_path / "scratch").write_text("in the way")
    with pytest.raises(UnavailableError, match="cannot be marked: "):
        mark_root(sink, uuid4(), "here", tmp_path / "scratch")


def test_a_database_that_is_a_link_is_the_store_where_the_file_is(
    used: Store, root: Path, tmp_path: Path
) -> None:
    link = tmp_path / "elsewhere" / "link.db"
    link.parent.mkdir()
    link.symlink_to(tmp_path / "trail.db")
    with open_store(link) as store:
        assert (store.spool.name, store.archive.sink.url) == ("trail.db-spool", f"file://{root}")
        ingested(store, BIG[1:])
        check(store)
    assert [path.name for path in link.parent.iterdir()] == ["link.db"]


def test_to_mark_a_root_again_changes_nothing(used: Store, root: Path) -> None:
    mark = root / mark_path(used.info.id)
    before = mark.stat()
    mark_root(open_sink(str(root)), used.info.id, "here")
    after = mark.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_of_two_that_mark_a_root_at_the_same_time_one_takes_its_mark_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = open_sink(str(tmp_path / "root"), create=True)
    late, early = uuid4(), uuid4()
    really_put = root_marks.put_mark

    def put(sink: ArtifactSink, store_id: UUID, place: str, scratch: Path | None) -> None:
        if store_id == late:
            # After the late one has looked whose root it is.
            mark_root(sink, early, "there")
        really_put(sink, store_id, place, scratch)

    monkeypatch.setattr(root_marks, "put_mark", put)
    with pytest.raises(InvalidRecordError, match="is the artifact root of another store"):
        mark_root(sink, late, "here")
    assert marks(tmp_path / "root") == [mark_path(early)]


def test_relocating_marks_the_new_root_and_leaves_the_old_one_on_demand(
    used: Store, root: Path, tmp_path: Path
) -> None:
    mark = mark_path(used.info.id)
    relocate(used, str(tmp_path / "second"))
    assert (marks(root), marks(tmp_path / "second")) == ([mark], [mark])
    relocate(used, str(tmp_path / "third"), delete_old=True)
    assert (marks(tmp_path / "second"), marks(tmp_path / "third")) == ([], [mark])
    check(used)


def test_a_root_that_is_there_keeps_its_mode(tmp_path: Path) -> None:
    root = tmp_path / "artifacts"
    root.mkdir(mode=0o750)
    create_store(tmp_path / "trail.db").close()
    assert stat.S_IMODE(root.stat().st_mode) == 0o750
