"""A store is made whole or not at all, and its artifact root is never that of another one."""

import os
import stat
from collections.abc import Callable
from functools import partial
from pathlib import Path

import psycopg
import pytest
from sqlalchemy import make_url
from tests.support.disks import small_disk
from tests.support.killing import count_moments, run_and_kill
from tests.support.lossy_server import LossyServer
from tests.support.making import (
    BIG,
    check_whole,
    go_on,
    kill_at,
    marks,
)
from tests.support.recording import run_command
from tests.support.threads import at_once

from tooltrail.records import (
    DiskFullError,
    InvalidRecordError,
    StoreExistsError,
    TooltrailError,
    UnavailableError,
)
from tooltrail.store import _making, create_store, open_store
from tooltrail.store._roots.mark_names import mark_path

ANOTHER = "is the artifact root of another store, as its file store-"

MOMENTS = 12
"""Moments, spread over the making of a store, at which it is killed."""


@pytest.fixture(params=["local", "s3"])
def root(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """An empty artifact root, of each kind in turn."""
    if request.param == "local":
        return str(tmp_path / "root")
    return f"s3://{request.getfixturevalue('s3_bucket')}/trail"


@pytest.mark.parametrize("content", [BIG, b""])
def test_the_root_of_a_store_that_was_at_the_same_path_is_not_taken(
    root: str, tmp_path: Path, content: bytes
) -> None:
    place = tmp_path / "data"
    with create_store(place / "trail.db", artifacts=root) as store:
        if content:
            run_command(store.open_session(), content)
        # As on another machine, on which nothing is there.
        place.rename(tmp_path / "first")
        for _ in range(2):
            with pytest.raises(InvalidRecordError, match=ANOTHER):
                create_store(place / "trail.db", artifacts=root)
            assert not (place / "trail.db").exists()
    with open_store(tmp_path / "first" / "trail.db") as store:
        assert marks(root) == [mark_path(store.info.id)]
        check_whole(store)


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


@pytest.mark.parametrize(
    ("at", "nth", "marked"),
    [
        ("CREATE TABLE store_being_made", 1, False),
        ("COMMIT", 1, False),
        ("before the mark", 1, False),
        ("after the mark", 1, True),
        ("DROP TABLE store_being_made", 1, True),
        ("COMMIT", 2, True),
    ],
)
def test_what_was_killed_while_it_was_made_is_gone_on_with(
    database: str, tmp_path: Path, at: str, nth: int, *, marked: bool
) -> None:
    root = str(tmp_path / "root")
    kill_at(database, root, at, nth)
    before = marks(root)
    assert len(before) == marked
    if marked:
        with pytest.raises(InvalidRecordError, match="When that one is gone, delete the file"):
            create_store(tmp_path / "another.db", artifacts=root)
    go_on(database, root, before)


def test_what_was_killed_while_it_was_made_on_an_object_store_is_gone_on_with(
    s3_bucket: str, tmp_path: Path
) -> None:
    root = f"s3://{s3_bucket}/trail"
    kill_at(tmp_path / "trail.db", root, "after the mark")
    before = marks(root)
    with pytest.raises(InvalidRecordError, match=ANOTHER):
        create_store(tmp_path / "another.db", artifacts=root)
    assert marks(root) == before
    go_on(tmp_path / "trail.db", root, before)


def test_a_store_that_was_killed_once_it_was_made_is_a_store(tmp_path: Path) -> None:
    root = str(tmp_path / "artifacts")
    kill_at(tmp_path / "trail.db", root, "PRAGMA journal_mode")
    with pytest.raises(StoreExistsError):
        create_store(tmp_path / "trail.db")
    with open_store(tmp_path / "trail.db") as store:
        assert marks(root) == [mark_path(store.info.id)]
        check_whole(store)


def test_a_kill_at_any_moment_leaves_what_is_gone_on_with(tmp_path: Path) -> None:
    def make(folder: Path) -> None:
        create_store(folder / "trail.db").close()

    moments = count_moments(partial(make, tmp_path / "whole"))
    for moment in range(1, moments, moments // MOMENTS):
        folder = tmp_path / str(moment)
        root = str(folder / "artifacts")
        run_and_kill(partial(make, folder), moment)
        try:
            go_on(folder / "trail.db", root, marks(root))
        except StoreExistsError:
            with open_store(folder / "trail.db") as store:
                assert marks(root) == [mark_path(store.info.id)]
                check_whole(store)


def test_who_was_killed_before_the_mark_finds_the_root_taken_and_leaves_it(
    database: str, tmp_path: Path
) -> None:
    root = str(tmp_path / "root")
    kill_at(database, root, "before the mark")
    with create_store(tmp_path / "other" / "trail.db", artifacts=root) as other:
        with pytest.raises(InvalidRecordError, match=ANOTHER):
            create_store(database, artifacts=root)
        assert marks(root) == [mark_path(other.info.id)]
        check_whole(other)
    go_on(database, str(tmp_path / "free"), [])


def test_who_was_killed_between_its_mark_and_another_takes_its_own_back(
    database: str, tmp_path: Path
) -> None:
    root = tmp_path / "root"
    kill_at(database, str(root), "after the mark")
    # As if both had looked before either put its mark.
    other = "store-0190163d-8694-739b-aea5-966c26f8ad91"
    (root / other).write_text("another")
    with pytest.raises(InvalidRecordError, match=ANOTHER):
        create_store(database, artifacts=str(root))
    assert marks(str(root)) == [other]


def test_of_several_that_make_a_store_in_one_root_one_at_the_most_succeeds(tmp_path: Path) -> None:
    root = str(tmp_path / "root")

    def make(number: int) -> str | None:
        try:
            with create_store(tmp_path / str(number) / "trail.db", artifacts=root) as store:
                return mark_path(store.info.id)
        except InvalidRecordError:
            assert not (tmp_path / str(number) / "trail.db").exists()
            return None

    made = at_once(*[partial(make, number) for number in range(4)])

    assert marks(root) == [mark for mark in made if mark is not None]
    assert len(marks(root)) <= 1


def gives_up(*_: object) -> None:
    raise UnavailableError("gives up")


def test_what_could_not_be_made_leaves_nothing(
    database: str, root: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(_making, "migrate_within", gives_up)
        with pytest.raises(UnavailableError, match="gives up"):
            create_store(database, artifacts=root)
    assert marks(root) == []
    assert not (tmp_path / "trail.db").exists()
    with create_store(database, artifacts=root, spool=tmp_path / "spool") as store:
        check_whole(store)


def test_a_file_that_was_there_stays_as_it_was(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "trail.db").touch()
    with monkeypatch.context() as patched:
        patched.setattr(_making, "migrate_within", gives_up)
        with pytest.raises(UnavailableError, match="gives up"):
            create_store(tmp_path / "trail.db")
    assert (tmp_path / "trail.db").exists()
    with create_store(tmp_path / "trail.db") as store:
        check_whole(store)


def test_a_file_that_was_there_stays_when_the_root_cannot_be_made(tmp_path: Path) -> None:
    (tmp_path / "trail.db").touch()
    (tmp_path / "in the way").touch()
    with pytest.raises(UnavailableError):
        create_store(tmp_path / "trail.db", artifacts=str(tmp_path / "in the way" / "root"))
    assert (tmp_path / "trail.db").read_bytes() == b""


def test_while_the_mark_cannot_be_taken_back_it_stays_known_whose_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = str(tmp_path / "artifacts")
    with monkeypatch.context() as patched:
        patched.setattr(_making, "migrate_within", gives_up)
        patched.setattr(_making, "unmark_root", gives_up)
        with pytest.raises(UnavailableError, match="gives up"):
            create_store(tmp_path / "trail.db")
    before = marks(root)
    assert len(before) == 1
    go_on(tmp_path / "trail.db", root, before)


def test_who_goes_on_while_another_gives_up_is_told_to_try_again(
    database: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    amid_making: Callable[[Callable[[], object]], None],
) -> None:
    root = str(tmp_path / "root")

    def another() -> None:
        with monkeypatch.context() as patched:
            patched.setattr(_making, "migrate_within", gives_up)
            with pytest.raises(UnavailableError, match="gives up"):
                create_store(database, artifacts=root)

    amid_making(another)
    with pytest.raises(UnavailableError, match="another process gave up making a store in"):
        create_store(database, artifacts=root)
    assert marks(root) == []
    with create_store(database, artifacts=root, spool=tmp_path / "spool") as store:
        check_whole(store)


def test_a_store_is_not_made_in_a_file_that_was_removed(
    tmp_path: Path, amid_making: Callable[[Callable[[], object]], None]
) -> None:
    database = tmp_path / "trail.db"
    amid_making(database.unlink)
    with pytest.raises(UnavailableError, match="another process gave up making a store in"):
        create_store(database)
    assert not database.exists()
    assert marks(str(tmp_path / "artifacts")) == []


def test_the_file_of_another_is_left_alone(
    tmp_path: Path, amid_making: Callable[[Callable[[], object]], None]
) -> None:
    database = tmp_path / "trail.db"

    def another() -> None:
        database.rename(tmp_path / "aside.db")
        create_store(database, artifacts=str(tmp_path / "its own")).close()

    amid_making(another)
    with pytest.raises(UnavailableError, match="another process gave up making a store in"):
        create_store(database)
    with open_store(database) as store:
        check_whole(store)


def test_who_goes_on_while_another_makes_the_store_is_told_that_it_is_there(
    database: str, tmp_path: Path, amid_making: Callable[[Callable[[], object]], None]
) -> None:
    root = str(tmp_path / "root")
    amid_making(lambda: create_store(database, artifacts=root).close())
    with pytest.raises(StoreExistsError):
        create_store(database, artifacts=root)
    with open_store(database, spool=tmp_path / "spool") as store:
        assert marks(root) == [mark_path(store.info.id)]
        check_whole(store)


def test_a_store_whose_commit_was_not_answered_keeps_its_mark(
    postgres_url: str, tmp_path: Path
) -> None:
    root = str(tmp_path / "root")
    with LossyServer(postgres_url).running() as lossy:
        lossy.lose_an_answer(b"INSERT INTO store_info")
        with pytest.raises(UnavailableError):
            create_store(lossy.url, artifacts=root)
    with open_store(postgres_url, spool=tmp_path / "spool") as store:
        assert marks(root) == [mark_path(store.info.id)]
        check_whole(store)


def test_on_a_full_disk_nothing_is_left_of_a_store_that_could_not_be_made(tmp_path: Path) -> None:
    database, root = tmp_path / "disk" / "data" / "trail.db", str(tmp_path / "root")
    failed = 0
    with small_disk(tmp_path / "disk", 4 << 20) as disk:
        for left in range(0, 240_000, 20_000):
            disk.fill()
            os.truncate(disk.folder / "filler", (disk.folder / "filler").stat().st_size - left)
            with pytest.raises(TooltrailError) as raised:
                create_store(database, artifacts=root)
            failed += isinstance(raised.value, DiskFullError)
            assert list(database.parent.iterdir()) == []
            assert marks(root) == []
        disk.free()
        assert failed >= 10
        with create_store(database, artifacts=root) as store:
            check_whole(store)


def test_what_is_made_for_a_store_is_for_its_owner_alone(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        create_store(tmp_path / "a" / "b" / "trail.db").close()
    finally:
        os.umask(before)
    for folder in ("a", "a/b", "a/b/artifacts"):
        assert stat.S_IMODE((tmp_path / folder).stat().st_mode) == 0o700
