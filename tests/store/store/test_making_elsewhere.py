"""A store that was killed while it was made is made at another root, and leaves no mark behind."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from sqlalchemy import text
from tests.support.making import check_whole, go_on, kill_at, marks
from tests.support.postgres import closed_database

from tooltrail.records import InvalidRecordError, UnavailableError
from tooltrail.store import _making, create_store, open_store
from tooltrail.store._engines.database import open_database
from tooltrail.store._engines.targets import parse_target
from tooltrail.store._roots.mark_names import mark_path
from tooltrail.store._roots.marks import mark_root

TRY_AGAIN = "another process gave up making a store in .* meanwhile, or began anew; try again"


@pytest.fixture
def first(tmp_path: Path) -> str:
    return str(tmp_path / "first")


@pytest.fixture
def second(tmp_path: Path) -> str:
    return str(tmp_path / "second")


def drop_attempt(database: str) -> None:
    opened = open_database(parse_target(database))
    with opened.write() as connection:
        connection.execute(text("DROP TABLE store_being_made"))
    opened.close()


def test_the_mark_is_taken_back_from_the_root_that_was_named_before(
    database: str, first: str, second: str, tmp_path: Path
) -> None:
    kill_at(database, first, "after the mark")
    go_on(database, second, [])
    assert marks(first) == []
    with create_store(tmp_path / "another.db", artifacts=first) as another:
        check_whole(another)


def test_the_mark_is_taken_back_from_an_object_store(
    s3_bucket: str, tmp_path: Path, second: str
) -> None:
    bucket = f"s3://{s3_bucket}/trail"
    kill_at(tmp_path / "trail.db", bucket, "after the mark")
    go_on(tmp_path / "trail.db", second, [])
    assert marks(bucket) == []


def test_a_root_of_another_store_that_is_named_in_between_changes_nothing_there(
    database: str, first: str, second: str, tmp_path: Path
) -> None:
    with create_store(tmp_path / "other.db", artifacts=second) as other:
        kill_at(database, first, "after the mark")
        with pytest.raises(InvalidRecordError, match="is the artifact root of another store"):
            create_store(database, artifacts=second)
        assert marks(second) == [mark_path(other.info.id)]
        check_whole(other)
    assert marks(first) == []
    go_on(database, first, [])


def test_the_same_root_by_another_name_is_marked_anew(
    database: str, first: str, tmp_path: Path
) -> None:
    kill_at(database, first, "after the mark")
    link = tmp_path / "link"
    link.symlink_to(first)
    with create_store(database, artifacts=str(link), spool=tmp_path / "spool") as store:
        assert marks(first) == [mark_path(store.info.id)]
        check_whole(store)


def test_while_the_root_that_was_named_before_is_away_no_other_one_is_taken(
    database: str, first: str, second: str, tmp_path: Path
) -> None:
    kill_at(database, first, "after the mark")
    before = marks(first)
    away = Path(first).rename(tmp_path / "away")
    for _ in range(2):
        with pytest.raises(UnavailableError) as raised:
            create_store(database, artifacts=second)
        assert f"its mark in its artifact root {first} cannot be taken back: " in str(raised.value)
        assert "drop the table store_being_made of the database" in str(raised.value)
        assert not Path(second).exists()
    away.rename(first)
    go_on(database, first, before)


def test_a_mark_that_was_put_and_is_not_there_is_on_a_disk_that_is_away(
    database: str, first: str, second: str, tmp_path: Path
) -> None:
    kill_at(database, first, "INSERT INTO store_info")
    (mark,) = before = marks(first)
    disk = Path(first).rename(tmp_path / "disk")
    Path(first).mkdir()
    with pytest.raises(UnavailableError) as raised:
        create_store(database, artifacts=second)
    assert f"its mark in its artifact root {first} cannot be taken back: " in str(raised.value)
    assert f"the file {mark} was put there and is not there" in str(raised.value)
    assert not Path(second).exists()
    Path(first).rmdir()
    disk.rename(first)
    assert marks(first) == before
    go_on(database, second, [])
    assert marks(first) == []


def test_when_the_disk_with_a_mark_is_gone_for_good_the_table_is_dropped(
    database: str, first: str, second: str
) -> None:
    kill_at(database, first, "INSERT INTO store_info")
    shutil.rmtree(first)
    Path(first).mkdir()
    with pytest.raises(UnavailableError, match="drop the table store_being_made"):
        create_store(database, artifacts=second)
    drop_attempt(database)
    go_on(database, second, [])


def test_a_new_root_that_cannot_be_used_does_not_bring_the_old_mark_back_into_question(
    database: str, first: str, second: str, tmp_path: Path
) -> None:
    kill_at(database, first, "INSERT INTO store_info")
    (tmp_path / "file").touch()
    for _ in range(2):
        with pytest.raises(UnavailableError, match=r"cannot use .* for artifacts"):
            create_store(database, artifacts=str(tmp_path / "file" / "root"))
    assert marks(first) == []
    go_on(database, second, [])


def test_when_the_root_that_was_named_before_is_gone_for_good_the_table_is_dropped(
    database: str, first: str, second: str
) -> None:
    kill_at(database, first, "before the mark")
    Path(first).rmdir()
    with pytest.raises(UnavailableError, match="drop the table store_being_made"):
        create_store(database, artifacts=second)
    drop_attempt(database)
    go_on(database, second, [])


def gives_up(*_: object) -> None:
    raise UnavailableError("gives up")


def test_who_gives_up_takes_back_its_own_attempt_and_not_one_that_began_anew(
    database: str,
    first: str,
    monkeypatch: pytest.MonkeyPatch,
    amid_making: Callable[[Callable[[], object]], None],
) -> None:
    def others() -> None:
        with monkeypatch.context() as patched:
            patched.setattr(_making, "migrate_within", gives_up)
            with pytest.raises(UnavailableError, match="gives up"):
                create_store(database, artifacts=first)
        kill_at(database, first, "after the mark")

    amid_making(others)
    with pytest.raises(UnavailableError, match=TRY_AGAIN):
        create_store(database, artifacts=first)
    before = marks(first)
    assert len(before) == 1
    go_on(database, first, before)


@pytest.mark.parametrize("others", ["begin anew", "are killed", "give up", "finish"])
def test_who_marks_a_root_without_its_connection_takes_that_back_unless_there_is_the_store(
    postgres_url: str, first: str, second: str, monkeypatch: pytest.MonkeyPatch, others: str
) -> None:
    def too_late(*arguments: object) -> None:
        monkeypatch.setattr(_making, "mark_root", mark_root)
        with closed_database(postgres_url):
            pass
        if others == "give up":
            with monkeypatch.context() as patched:
                patched.setattr(_making, "migrate_within", gives_up)
                with pytest.raises(UnavailableError, match="gives up"):
                    create_store(postgres_url, artifacts=first)
        elif others == "are killed":
            kill_at(postgres_url, second, "after the mark")
        else:
            root = second if others == "begin anew" else first
            create_store(postgres_url, artifacts=root).close()
        mark_root(*arguments)  # type: ignore[arg-type]  # as they came

    monkeypatch.setattr(_making, "mark_root", too_late)
    with pytest.raises(UnavailableError):
        create_store(postgres_url, artifacts=first)
    if others in ("give up", "are killed"):
        assert marks(first) == []
        root = first if others == "give up" else second
        go_on(postgres_url, root, marks(root))
        return
    with open_store(postgres_url) as store:
        own = [mark_path(store.info.id)]
        assert (marks(first), marks(second)) == (([], own) if others == "begin anew" else (own, []))
        check_whole(store)


def test_who_is_slow_leaves_the_attempt_at_another_root_alone(
    database: str,
    first: str,
    second: str,
    amid_making: Callable[[Callable[[], object]], None],
) -> None:
    amid_making(lambda: kill_at(database, second, "after the mark"))
    with pytest.raises(UnavailableError, match=TRY_AGAIN):
        create_store(database, artifacts=first)
    assert marks(first) == []
    before = marks(second)
    assert len(before) == 1
    go_on(database, second, before)
