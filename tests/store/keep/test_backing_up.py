"""A backup is the database at one moment, whole or not there, whatever goes on meanwhile."""

import fcntl
import os
import re
import shutil
import stat
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from random import Random
from threading import Event, current_thread, main_thread

import pytest
from tests.support.cli import without_coverage
from tests.support.disks import small_disk
from tests.support.effort import times
from tests.support.keeping import check, ingested, rows
from tests.support.killing import count_moments, run_and_kill
from tests.support.processes import ROOT

from tooltrail.migrations import HEAD_REVISION
from tooltrail.records import (
    DamageError,
    DiskFullError,
    InvalidRecordError,
    Message,
    StoreNotFoundError,
    UnavailableError,
)
from tooltrail.store.engines.sqlite_library import sqlite3
from tooltrail.store.engines.targets import SqliteTarget
from tooltrail.store.keep.backing_up import Backup, back_up_store
from tooltrail.store.opening import open_store
from tooltrail.store.store import Store

MIB = 1024 * 1024
WAIT_S = 60
"""Seconds for what is certain to happen; a test that waits longer has failed."""

KILLS = times(5)
"""Moments at which a backup is killed, spread over the whole of it."""


def path_of(store: Store) -> Path:
    target = store.database.target
    assert isinstance(target, SqliteTarget)
    return target.path


@pytest.fixture
def recorded(store: Store) -> Path:
    """The database of a store with records, one of them with an artifact."""
    ingested(store, b"a line\n" * 20_000, b"short\n")
    return path_of(store)


def fill(store: Store, size: int) -> None:
    """Records that take so many bytes of the database."""
    noise = Random(5)
    with store.open_session(title="large") as session:
        for _ in range(size // MIB + 1):
            session.message(Message.of("user", noise.randbytes(MIB).hex()))
    store.ingest()


def call_count(store: Store) -> int:
    ((count,),) = rows(store, "SELECT count(*) FROM invocations")
    return int(count)


def is_copy_of(backup: Path, database: Path) -> bool:
    """Whether each row of each table is there, by SQLite alone."""
    return everything_in(backup) == everything_in(database)


def everything_in(database: Path) -> dict[str, list[object]]:
    with closing(sqlite3.connect(database)) as connection:
        schema = connection.execute("SELECT type, name, sql FROM sqlite_master ORDER BY name")
        found: dict[str, list[object]] = {"": schema.fetchall()}
        # The rows of a virtual table are those of its shadow tables.
        tables = connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'table' AND sql NOT LIKE 'CREATE VIRTUAL%'"
        )
        for (name,) in tables.fetchall():
            found[name] = sorted(connection.execute(f'SELECT * FROM "{name}"'), key=repr)
    return found


def names_in(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# What it is


def test_a_backup_opens_as_the_store_and_all_of_it_is_right(recorded: Path, tmp_path: Path) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    copy = folder / "copy.db"

    made = back_up_store(recorded, copy)

    artifacts = recorded.parent / "artifacts"
    assert made.path == str(copy)
    assert (made.size, made.revision) == (copy.stat().st_size, HEAD_REVISION)
    assert made.artifacts == str(artifacts)
    assert stat.S_IMODE(copy.stat().st_mode) == 0o600
    assert names_in(folder) == {"copy.db"}
    assert is_copy_of(copy, recorded)
    with open_store(copy, artifacts=str(artifacts)) as store:
        assert store.info.id == made.store_id
        check(store)
        assert rows(store, "PRAGMA journal_mode") == [("wal",)]


def test_a_backup_names_the_artifacts_that_were_named(recorded: Path, tmp_path: Path) -> None:
    made = back_up_store(recorded, tmp_path / "copy.db", artifacts="s3://bucket/prefix")
    assert made.artifacts == "s3://bucket/prefix"


def test_what_is_not_in_the_main_file_yet_is_in_the_backup(store: Store, tmp_path: Path) -> None:
    ingested(store, b"only in the log\n")
    path = path_of(store)
    assert path.with_name(f"{path.name}-wal").stat().st_size
    back_up_store(path, tmp_path / "copy.db")
    with open_store(tmp_path / "copy.db", artifacts=str(path.parent / "artifacts")) as copy:
        assert call_count(copy) == 1
        check(copy)


def test_a_store_of_any_revision_is_backed_up(recorded: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(recorded)) as connection, connection:
        connection.execute("UPDATE tooltrail_version SET version_num = '9999'")
    assert back_up_store(recorded, tmp_path / "later.db").revision == "9999"


def test_a_backup_says_how_far_it_is(store: Store, tmp_path: Path) -> None:
    fill(store, 9 * MIB)
    told: list[tuple[int, int]] = []
    made = back_up_store(
        path_of(store), tmp_path / "copy.db", on_progress=lambda done, of: told.append((done, of))
    )
    assert len(told) > 2
    assert told == sorted(told)
    assert {of for _, of in told} == {made.size}
    assert told[-1] == (made.size, made.size)


# What goes on meanwhile


def test_beside_a_busy_ingester_a_backup_ends_and_is_of_one_moment(
    store: Store, tmp_path: Path
) -> None:
    fill(store, 9 * MIB)
    counts: list[int] = []

    def meanwhile(done: int, of: int) -> None:
        counts.append(call_count(store))
        ingested(store, b"meanwhile\n")

    made = back_up_store(path_of(store), tmp_path / "copy.db", on_progress=meanwhile)
    assert len(counts) > 2
    assert call_count(store) == len(counts)
    with open_store(made.path, artifacts=made.artifacts, spool=tmp_path / "two") as copy:
        assert call_count(copy) == 0
        check(copy)


def test_of_two_backups_to_one_place_at_once_the_second_is_refused(
    recorded: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.db"

    def again(done: int, of: int) -> None:
        with pytest.raises(UnavailableError, match="another backup is being made there"):
            back_up_store(recorded, copy)

    back_up_store(recorded, copy, on_progress=again)
    assert is_copy_of(copy, recorded)


def backed_up_meanwhile(
    recorded: Path, copy: Path, under_way: Event, go_on: Event
) -> Callable[[], Backup]:
    """A backup that waits when it is under way."""

    def tell(done: int, of: int) -> None:
        under_way.set()
        assert go_on.wait(WAIT_S)

    return lambda: back_up_store(recorded, copy, on_progress=tell)


def test_a_backup_that_comes_late_to_what_was_left_leaves_alone_whose_turn_it_is(
    recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = tmp_path / "copy.db"
    (tmp_path / ".copy.db.part").write_bytes(b"of a killed one")
    under_way, go_on = Event(), Event()
    with ThreadPoolExecutor(1) as pool:
        started: list[Future[Backup]] = []
        lock = fcntl.flock

        def locked_late(descriptor: int, operation: int) -> None:
            if current_thread() is not main_thread():  # an ingester of another store
                return lock(descriptor, operation)
            # What was left is open here. Before it is locked, another backup has removed it.
            monkeypatch.undo()
            first = backed_up_meanwhile(recorded, copy, under_way, go_on)
            started.append(pool.submit(first))
            assert under_way.wait(WAIT_S)
            return lock(descriptor, operation)

        monkeypatch.setattr(fcntl, "flock", locked_late)
        try:
            with pytest.raises(UnavailableError, match="another backup is being made there"):
                back_up_store(recorded, copy)
        finally:
            go_on.set()
        assert started[0].result().path == str(copy)
    assert is_copy_of(copy, recorded)
    assert names_in(tmp_path).isdisjoint({".copy.db.part"})


@pytest.mark.parametrize("by", ["nothing", "another"])
def test_a_backup_whose_unfinished_file_was_taken_away_is_never_acknowledged(
    recorded: Path, tmp_path: Path, by: str
) -> None:
    part = tmp_path / ".copy.db.part"

    def take_away(done: int, of: int) -> None:
        part.unlink()
        if by == "another":
            part.write_bytes(b"mine")

    with pytest.raises(UnavailableError, match=r"cannot be made: another program removed .*\.part"):
        back_up_store(recorded, tmp_path / "copy.db", on_progress=take_away)
    assert not (tmp_path / "copy.db").exists()
    assert part.exists() == (by == "another")


def test_a_backup_that_is_overtaken_at_the_end_overwrites_nothing(
    recorded: Path, tmp_path: Path
) -> None:
    copy = tmp_path / "copy.db"

    def overtake(done: int, of: int) -> None:
        copy.write_bytes(b"mine")

    with pytest.raises(InvalidRecordError, match=r"copy\.db is there already"):
        back_up_store(recorded, copy, on_progress=overtake)
    assert copy.read_bytes() == b"mine"
    assert not (tmp_path / ".copy.db.part").exists()


# What ends it


@pytest.mark.parametrize("name", ["copy.db", "copy.db-wal", "copy.db-shm", "copy.db-journal"])
@pytest.mark.parametrize("kind", ["file", "folder", "link to nothing"])
def test_nothing_that_is_there_is_overwritten_or_taken_for_a_part(
    recorded: Path, tmp_path: Path, name: str, kind: str
) -> None:
    there = tmp_path / name
    if kind == "file":
        there.write_bytes(b"mine")
    elif kind == "folder":
        there.mkdir()
    else:
        there.symlink_to(tmp_path / "nothing")
    before = names_in(tmp_path)
    with pytest.raises(InvalidRecordError, match=f"{name} is there already; nothing was overwritt"):
        back_up_store(recorded, tmp_path / "copy.db")
    assert names_in(tmp_path) == before


@pytest.mark.parametrize("name", ["/", "a\0b", "\ud800", "~\0"])
def test_what_can_be_no_file_is_said_of_the_name_and_not_of_the_store(
    recorded: Path, name: str
) -> None:
    with pytest.raises(InvalidRecordError, match="no file can have the name"):
        back_up_store(recorded, name)


@pytest.mark.parametrize("error", [ValueError, KeyError, OverflowError, KeyboardInterrupt])
def test_what_is_raised_by_who_is_told_how_far_it_is_stays_what_it_is(
    recorded: Path, tmp_path: Path, error: type[BaseException]
) -> None:
    def tell(done: int, of: int) -> None:
        raise error("a broken bar")

    with pytest.raises(error, match="a broken bar"):
        back_up_store(recorded, tmp_path / "copy.db", on_progress=tell)
    assert not {name for name in names_in(tmp_path) if "copy.db" in name}


def test_a_store_whose_own_row_is_damaged_is_said_to_be(recorded: Path, tmp_path: Path) -> None:
    with closing(sqlite3.connect(recorded)) as connection, connection:
        connection.execute("DROP TRIGGER store_info_no_update")
        connection.execute("UPDATE store_info SET format = 'never'")
    with pytest.raises(DamageError):
        back_up_store(recorded, tmp_path / "copy.db")
    assert not {name for name in names_in(tmp_path) if "copy.db" in name}


def test_a_folder_that_is_not_there_is_said(recorded: Path, tmp_path: Path) -> None:
    with pytest.raises(UnavailableError, match="cannot be made: No such file or directory"):
        back_up_store(recorded, tmp_path / "missing" / "copy.db")


def test_no_store_has_no_backup(tmp_path: Path) -> None:
    with pytest.raises(StoreNotFoundError):
        back_up_store(tmp_path / "missing.db", tmp_path / "copy.db")
    (tmp_path / "empty.db").touch()
    with pytest.raises(StoreNotFoundError):
        back_up_store(tmp_path / "empty.db", tmp_path / "copy.db")
    assert names_in(tmp_path) == {"empty.db"}


def test_a_server_is_backed_up_by_its_own_tools(tmp_path: Path) -> None:
    url = "postgresql://someone:secret@host/name"
    with pytest.raises(InvalidRecordError, match="pg_dump") as refused:
        back_up_store(url, tmp_path / "copy.db")
    assert "secret" not in str(refused.value)
    assert not (tmp_path / "copy.db").exists()


def test_on_a_full_disk_a_backup_leaves_nothing_and_says_why(store: Store, tmp_path: Path) -> None:
    fill(store, 3 * MIB)
    with small_disk(tmp_path / "disk", 2 * MIB) as disk:
        for size in ("some", "none"):
            if size == "none":
                disk.fill()
            before = names_in(disk.folder)
            with pytest.raises(DiskFullError, match=f"{disk.folder}: the disk is full"):
                back_up_store(path_of(store), disk.folder / "copy.db")
            assert names_in(disk.folder) == before
    check(store)


def test_what_a_killed_backup_left_is_replaced(recorded: Path, tmp_path: Path) -> None:
    left = tmp_path / ".copy.db.part"
    left.write_bytes(recorded.read_bytes()[:5_000] + bytes(10_000_000))
    back_up_store(recorded, tmp_path / "copy.db")
    assert is_copy_of(tmp_path / "copy.db", recorded)
    assert (tmp_path / "copy.db").stat().st_size < 10_000_000
    assert not left.exists()


def test_what_no_backup_has_left_is_in_the_way(recorded: Path, tmp_path: Path) -> None:
    mine = tmp_path / "mine"
    mine.write_bytes(b"mine")
    (tmp_path / ".copy.db.part").symlink_to(mine)
    (tmp_path / ".other.db.part").mkdir()
    for name in ("copy.db", "other.db"):
        with pytest.raises(UnavailableError, match=f"backup .*{name} cannot be made"):
            back_up_store(recorded, tmp_path / name)
        assert not (tmp_path / name).exists()
    assert mine.read_bytes() == b"mine"


def test_a_backup_that_is_killed_at_any_moment_leaves_no_file_or_a_whole_one(
    recorded: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "backups"
    folder.mkdir()
    copy = folder / "copy.db"

    def back_up() -> None:
        back_up_store(recorded, copy)

    count = count_moments(back_up)
    copy.unlink()
    was_whole: set[bool] = set()
    spread = {max(1, count * (n + 1) // KILLS) for n in range(KILLS)}
    for moment in sorted(spread | {count - n for n in range(0, 60, 10)}):
        run_and_kill(back_up, moment)
        was_whole.add(copy.exists())
        if copy.exists():
            # Elsewhere, so that the next one meets what this one may have left beside it.
            kept = folder / f"{moment}.db"
            copy.rename(kept)
    assert was_whole == {True, False}
    back_up()
    for path in folder.glob("*.db"):
        assert is_copy_of(path, recorded)
    assert not (folder / ".copy.db.part").exists()
    with open_store(copy, artifacts=str(recorded.parent / "artifacts")) as store:
        check(store)


BACK_UP = """
import sys
from tooltrail.store.keep.backing_up import back_up_store
back_up_store(*sys.argv[1:])
"""


def traced(recorded: Path, copy: Path, *inject: str) -> subprocess.CompletedProcess[str]:
    """A backup whose system calls fail as they are told to."""
    if shutil.which("strace") is None:
        pytest.skip("only strace makes system calls fail")
    command = ["strace", "-f", "-qq", "-o", os.devnull, *(f"-einject={one}" for one in inject)]
    return subprocess.run(
        [*command, sys.executable, "-c", BACK_UP, str(recorded), str(copy)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        # Its data would be a database, too, and not be written either.
        env=without_coverage(os.environ),
    )


@pytest.mark.parametrize(
    ("fault", "error"),
    [
        ("fsync:error=EIO", "UnavailableError: backup .* cannot be made: Input/output error"),
        ("fsync:error=ENOSPC", "DiskFullError: .*: the disk is full"),
        ("rename,renameat,renameat2:error=EIO", "UnavailableError: backup .* cannot be made"),
        ("pwrite64:error=EIO", "UnavailableError: the backup cannot be made in"),
    ],
)
def test_a_backup_that_cannot_be_written_leaves_nothing(
    recorded: Path, tmp_path: Path, fault: str, error: str
) -> None:
    copy = tmp_path / "copy.db"
    ended = traced(recorded, copy, fault)
    assert ended.returncode == 1
    assert_matches(error, ended.stderr.splitlines()[-1])
    assert not {name for name in names_in(tmp_path) if "copy.db" in name}


def assert_matches(pattern: str, text: str) -> None:
    assert re.search(pattern, text), text
