"""An artifact root says whose it is: nothing is written beside it, or pruned from another's."""

import os
import shutil
import stat
from pathlib import Path
from uuid import UUID, uuid4

import pytest
from tests.support.evidence import check_evidence
from tests.support.recording import run_command
from tests.support.upkeep import NO_GRACE, prune_all, publish

from tooltrail.artifacts import ArtifactSink, open_sink
from tooltrail.records import InvalidRecordError, UnavailableError
from tooltrail.store import Store, create_store, open_store, plan_pruning, relocate, repair
from tooltrail.store._roots import marks as _root_marks
from tooltrail.store._roots.mark_names import mark_path
from tooltrail.store._roots.marks import mark_root

BIG = b"a line of a long output\n" * 5_000
SMALL = b"a line\n"


@pytest.fixture
def database(tmp_path: Path) -> Path:
    """A store with one record, and its artifacts beside it."""
    with create_store(tmp_path / "trail.db") as store:
        run_command(store.open_session(), BIG)
    return tmp_path / "trail.db"


@pytest.fixture
def root(database: Path) -> Path:
    return database.with_name("artifacts")


def marks(root: Path) -> list[str]:
    return sorted(file.name for file in root.glob("store-*"))


def test_a_root_carries_the_mark_of_its_store(database: Path, root: Path) -> None:
    with open_store(database) as store:
        assert marks(root) == [f"store-{store.info.id}"]
        assert str(store.info.id) in (root / marks(root)[0]).read_text()


def test_nothing_is_written_to_the_folder_on_which_a_disk_is_not_mounted(
    database: Path, root: Path
) -> None:
    disk = root.rename(root.with_name("disk"))
    root.mkdir()
    with open_store(database) as store:
        session = store.open_session()
        assert "is not the artifact root that it should be" in str(store.find_artifacts())
        waiting = run_command(session, BIG[1:])
        assert [stream.role for stream in waiting.postponed] == ["stdout"]
        assert run_command(session, SMALL).postponed == ()
        assert list(root.iterdir()) == []

        root.rmdir()
        disk.rename(root)
        # The same process goes on as soon as it is there.
        assert store.find_artifacts() is None
        assert run_command(session, BIG[2:]).postponed == ()
        assert [folder.outcome for folder in repair(store).folders] == ["stored"]
        check_evidence(store)


def test_a_store_whose_artifacts_are_away_reads_everything_else(database: Path, root: Path) -> None:
    root.rename(root.with_name("disk"))
    with open_store(database) as store:
        detail = store.reader.invocation("@last")
        assert detail.receipt
        with pytest.raises(UnavailableError, match="artifacts for artifacts: No such file"):
            store.archive.exists(str(detail.streams[0].artifact_path))


def test_a_store_is_not_made_in_the_root_of_another(database: Path, tmp_path: Path) -> None:
    for _ in range(2):
        with pytest.raises(InvalidRecordError, match="is the artifact root of another store, as"):
            create_store(tmp_path / "new" / "trail.db", artifacts=str(tmp_path / "artifacts"))
    with open_store(database) as store:
        assert prune_all(store).total.count == 0


def test_a_root_that_cannot_be_marked_is_unavailable(tmp_path: Path) -> None:
    sink = open_sink(str(tmp_path / "root"), create=True)
    (tmp_path / "scratch").write_text("in the way")
    with pytest.raises(UnavailableError, match="cannot be marked: "):
        mark_root(sink, uuid4(), "here", tmp_path / "scratch")


def test_the_root_of_a_store_that_has_no_artifact_yet_is_not_taken(tmp_path: Path) -> None:
    with create_store(tmp_path / "trail.db") as store:
        run_command(store.open_session(), SMALL)
        with pytest.raises(InvalidRecordError, match="is the artifact root of another store"):
            create_store(tmp_path / "new.db")
        assert run_command(store.open_session(), BIG).postponed == ()
        check_evidence(store)


def test_a_database_that_is_a_link_is_the_store_where_the_file_is(
    database: Path, root: Path, tmp_path: Path
) -> None:
    link = tmp_path / "elsewhere" / "link.db"
    link.parent.mkdir()
    link.symlink_to(database)
    with open_store(link) as store:
        assert (store.spool, store.archive.sink.url) == (tmp_path / "spool", f"file://{root}")
        run_command(store.open_session(), BIG[1:])
        check_evidence(store)
    assert [path.name for path in link.parent.iterdir()] == ["link.db"]


def test_to_mark_a_root_again_changes_nothing(database: Path, root: Path) -> None:
    with open_store(database) as store:
        before = (root / mark_path(store.info.id)).stat()
        mark_root(open_sink(str(root)), store.info.id, "here")
        after = (root / mark_path(store.info.id)).stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_of_two_that_mark_a_root_at_the_same_time_one_takes_its_mark_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = open_sink(str(tmp_path / "root"), create=True)
    late, early = uuid4(), uuid4()
    really_put = _root_marks.put_mark

    def put(sink: ArtifactSink, store_id: UUID, place: str, scratch: Path | None) -> bool:
        if store_id == late:
            # After the late one has looked whose root it is.
            mark_root(sink, early, "there")
        return really_put(sink, store_id, place, scratch)

    monkeypatch.setattr(_root_marks, "put_mark", put)
    with pytest.raises(InvalidRecordError, match="is the artifact root of another store"):
        mark_root(sink, late, "here")
    assert marks(tmp_path / "root") == [mark_path(early)]


def test_the_folder_for_what_is_being_moved_is_for_its_owner_alone(tmp_path: Path) -> None:
    spool = tmp_path / "a" / "b" / "spool"
    before = os.umask(0)
    try:
        with create_store(tmp_path / "trail.db", spool=spool) as store:
            relocate(store, str(tmp_path / "new"))
    finally:
        os.umask(before)
    for folder in (spool, *spool.parents[:2]):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700


def test_pruning_leaves_the_mark_and_does_not_count_it(database: Path, root: Path) -> None:
    with open_store(database) as store:
        publish(store, BIG[1:])
        plan = plan_pruning(store, NO_GRACE)
        assert (plan.total.count, plan.referenced.count, plan.foreign.count) == (1, 1, 0)
        prune_all(store)
        assert marks(root) == [mark_path(store.info.id)]
        check_evidence(store)


def shared(store: Store, root: Path) -> None:
    """Let another store have put its mark into a root."""
    (root / "store-0190163d-8694-739b-aea5-966c26f8ad91").write_text("another")


def test_a_root_that_two_stores_share_is_not_pruned(database: Path, root: Path) -> None:
    with open_store(database) as store:
        publish(store, BIG[1:])
        shared(store, root)
        with pytest.raises(InvalidRecordError, match="an artifact root belongs to one store"):
            plan_pruning(store, NO_GRACE)


def test_a_root_without_a_mark_is_not_pruned(database: Path, root: Path) -> None:
    with open_store(database) as store:
        publish(store, BIG[1:])
        (root / mark_path(store.info.id)).unlink()
        with pytest.raises(InvalidRecordError, match="is not marked as the artifact root of this"):
            plan_pruning(store, NO_GRACE)


def test_a_root_in_which_everything_is_lost_is_not_pruned(database: Path, root: Path) -> None:
    with open_store(database) as store:
        shutil.rmtree(root / "sha256")
        publish(store, BIG[1:])
        with pytest.raises(InvalidRecordError, match="none of the 1 artifacts that the store"):
            plan_pruning(store, NO_GRACE)


def test_relocating_marks_the_new_root_and_leaves_the_old_one_on_demand(
    database: Path, root: Path, tmp_path: Path
) -> None:
    with open_store(database) as store:
        mark = mark_path(store.info.id)
        relocate(store, str(tmp_path / "second"))
        assert (marks(root), marks(tmp_path / "second")) == ([mark], [mark])
        relocate(store, str(tmp_path / "third"), delete_old=True)
        assert (marks(tmp_path / "second"), marks(tmp_path / "third")) == ([], [mark])
        check_evidence(store)


def test_artifacts_are_not_moved_into_the_root_of_another_store(
    database: Path, root: Path, tmp_path: Path
) -> None:
    with create_store(tmp_path / "other" / "trail.db") as other:
        run_command(other.open_session(), BIG)
        with pytest.raises(InvalidRecordError, match="is the artifact root of another store, as"):
            relocate(other, str(root))
        check_evidence(other)
    with open_store(database) as store:
        check_evidence(store)
