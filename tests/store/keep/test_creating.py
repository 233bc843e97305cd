"""A store is made whole or not at all, and its artifact root is never that of another one."""

import os
import stat
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url
from tests.support.disks import small_disk
from tests.support.effort import times
from tests.support.keeping import BIG, check, ingested, prune_all
from tests.support.killing import count_moments, run_and_kill
from tests.support.lossy_server import LossyServer
from tests.support.threads import at_once

from tooltrail.artifacts import ObjectStat, open_sink
from tooltrail.artifacts._backend_sink import FsspecSink
from tooltrail.journal.clock import new_id
from tooltrail.records import (
    InvalidRecordError,
    StoreExistsError,
    TooltrailError,
    UnavailableError,
)
from tooltrail.store.marks import put_mark
from tooltrail.store.opening import create_store, open_store
from tooltrail.store.roots import MARK_PREFIX, mark_path
from tooltrail.store.store import Store

ANOTHER = "is the artifact root of another store, as its file store-"
MOMENTS = times(6)


@pytest.fixture(params=["local", "s3"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty artifact root, of each kind in turn."""
    if request.param == "local":
        return str(tmp_path / "root")
    return f"s3://{request.getfixturevalue('s3_bucket')}/trail"


def marks(root: str) -> list[str]:
    return [stat.path for stat in open_sink(root, create=True).list(MARK_PREFIX)]


def check_whole(store: Store) -> None:
    ingested(store, BIG)
    assert prune_all(store).total.count == 0
    check(store)


def test_the_root_of_a_store_that_was_at_the_same_path_is_not_taken(
    root: str, tmp_path: Path
) -> None:
    place = tmp_path / "data"
    with create_store(place / "trail.db", artifacts=root) as store:
        ingested(store, BIG)
    # As on another machine, on which nothing is there.
    place.rename(tmp_path / "first")
    with (tmp_path / "first" / "trail.db").open("rb") as file:
        assert file.read(6) == b"SQLite"
    with open_store(tmp_path / "first" / "trail.db", create=False) as store:
        (mark,) = marks(root)
        assert mark == mark_path(store.info.id)
        check_whole(store)
    with pytest.raises(InvalidRecordError, match=ANOTHER):
        create_store(tmp_path / "other" / "trail.db", artifacts=root)


def test_a_process_that_creates_the_same_store_may_mark_the_root_after_another_listed_the_marks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    database, root = tmp_path / "trail.db", str(tmp_path / "root")
    sink = open_sink(root, create=True)
    marked = new_id()
    really_list = type(sink).list

    def then_mark(sink: FsspecSink, prefix: str = "") -> Iterator[ObjectStat]:
        yield from list(really_list(sink, prefix))
        put_mark(sink, marked, str(database), None)

    monkeypatch.setattr(type(sink), "list", then_mark)
    with create_store(database, artifacts=root) as store:
        assert store.info.id == marked
    assert marks(root) == [mark_path(marked)]


def test_two_schemas_of_one_database_do_not_share_a_root(postgres_url: str, tmp_path: Path) -> None:
    url = make_url(postgres_url)
    server = url.set(drivername="postgresql").render_as_string(hide_password=False)
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute("CREATE SCHEMA one")
        connection.execute("CREATE SCHEMA two")
    one, two = (
        url.update_query_dict({"options": f"-csearch_path={schema}"}).render_as_string(
            hide_password=False
        )
        for schema in ("one", "two")
    )
    root = str(tmp_path / "root")
    with create_store(one, artifacts=root, spool=tmp_path / "spool") as store:
        with pytest.raises(InvalidRecordError, match=ANOTHER):
            create_store(two, artifacts=root)
        assert marks(root) == [mark_path(store.info.id)]
        check_whole(store)
    create_store(two, artifacts=str(tmp_path / "another")).close()


def test_a_kill_at_any_moment_leaves_what_is_gone_on_with(tmp_path: Path) -> None:
    def make(folder: Path) -> None:
        create_store(folder / "trail.db").close()

    moments = count_moments(partial(make, tmp_path / "whole"))
    for moment in range(1, moments, max(1, moments // MOMENTS)):
        folder = tmp_path / str(moment)
        run_and_kill(partial(make, folder), moment)
        before = marks(str(folder / "trail.db-artifacts"))
        with open_store(folder / "trail.db") as store:
            own = [mark_path(store.info.id)]
            assert marks(str(folder / "trail.db-artifacts")) == own
            assert before in ([], own)
            check_whole(store)


def test_of_several_that_make_a_store_in_one_root_one_at_the_most_succeeds(tmp_path: Path) -> None:
    root = str(tmp_path / "root")

    def make(number: int) -> str | None:
        try:
            with create_store(tmp_path / str(number) / "trail.db", artifacts=root) as store:
                return mark_path(store.info.id)
        except InvalidRecordError:
            return None

    made = at_once(*[partial(make, number) for number in range(4)])

    assert marks(root) == [mark for mark in made if mark is not None]
    assert len(marks(root)) <= 1


@pytest.mark.both_engines
def test_of_several_that_make_the_same_store_one_does(database: str, tmp_path: Path) -> None:
    root = str(tmp_path / "root")

    def make() -> bool:
        try:
            create_store(database, artifacts=root).close()
        except StoreExistsError:
            return False
        return True

    assert at_once(make, make, make).count(True) == 1
    with open_store(database, spool=tmp_path / "spool") as store:
        assert marks(root) == [mark_path(store.info.id)]
        check_whole(store)


@pytest.mark.both_engines
def test_what_could_not_be_made_leaves_no_mark(database: str, tmp_path: Path) -> None:
    (tmp_path / "in the way").touch()
    with pytest.raises(TooltrailError):
        create_store(database, artifacts=str(tmp_path / "in the way" / "root"))
    root = str(tmp_path / "root")
    with create_store(database, artifacts=root, spool=tmp_path / "spool") as store:
        assert marks(root) == [mark_path(store.info.id)]
        check_whole(store)


def test_a_store_whose_commit_was_not_answered_keeps_its_mark(
    postgres_url: str, tmp_path: Path
) -> None:
    root = str(tmp_path / "root")
    with LossyServer(postgres_url).running() as lossy:
        lossy.lose_an_answer(b"COPY store_info")
        with pytest.raises(UnavailableError):
            create_store(lossy.url, artifacts=root)
    # Whether it was committed or not, it is the same store that goes on.
    before = marks(root)
    with open_store(postgres_url, spool=tmp_path / "spool", artifacts=root) as store:
        assert before in ([], marks(root))
        assert marks(root) == [mark_path(store.info.id)]
        check_whole(store)


def test_an_artifact_root_that_is_the_spool_is_refused(tmp_path: Path) -> None:
    database, spool = tmp_path / "trail.db", tmp_path / "trail.db-spool"
    for root in (spool, spool / "inside", tmp_path):
        with pytest.raises(InvalidRecordError, match="is inside the other"):
            create_store(database, artifacts=str(root))
        store = open_store(database, artifacts=str(root))
        with pytest.raises(InvalidRecordError, match="is inside the other"):
            _ = store.info
    assert [*tmp_path.iterdir()] == []


def test_on_a_full_disk_no_store_is_made_and_later_one_is(tmp_path: Path) -> None:
    database, root = tmp_path / "disk" / "data" / "trail.db", str(tmp_path / "root")
    with small_disk(tmp_path / "disk", 4 << 20) as disk:
        for left in range(0, 200_000, 50_000):
            disk.fill()
            os.truncate(disk.folder / "filler", (disk.folder / "filler").stat().st_size - left)
            with pytest.raises(TooltrailError):
                create_store(database, artifacts=root)
            assert len(marks(root)) <= 1  # its own, which the next attempt takes over
        disk.free()
        with create_store(database, artifacts=root) as store:
            check_whole(store)


def test_what_is_made_for_a_store_is_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        create_store(tmp_path / "a" / "b" / "trail.db").close()
    finally:
        os.umask(before)
    for folder in ("a", "a/b", "a/b/trail.db-artifacts"):
        assert stat.S_IMODE((tmp_path / folder).stat().st_mode) == 0o700
    assert stat.S_IMODE((tmp_path / "a/b/trail.db").stat().st_mode) == 0o600
