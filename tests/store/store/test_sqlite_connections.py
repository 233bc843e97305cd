"""A connection to a database on a full disk: for itself where it must, and careful with its log."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path
from threading import Barrier

import pytest
from tests.support.disks import SmallDisk, small_disk
from tests.support.template_stores import make_store

from tooltrail.records import DamageError
from tooltrail.store import open_store
from tooltrail.store._engines.disk import free_bytes, is_below
from tooltrail.store._engines.sqlite import sqlite3
from tooltrail.store._engines.sqlite_connections import LoneConnection, connect

MIB = 1024 * 1024


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[SmallDisk]:
    with small_disk(tmp_path / "disk", 12 * MIB) as mounted:
        make_store(mounted.folder / "trail.db").close()
        yield mounted


def connected(disk: SmallDisk) -> sqlite3.Connection:
    return connect(disk.folder / "trail.db", create=False, foreign_keys=True, synchronous="FULL")


def pages_of_log(connection: sqlite3.Connection) -> int:
    (count,) = connection.execute("PRAGMA wal_autocheckpoint").fetchone()
    return int(count)


def fill(connection: sqlite3.Connection, size: int) -> None:
    connection.execute("CREATE TABLE filled (data)")
    connection.execute("INSERT INTO filled VALUES (zeroblob(?))", (size,))


def test_the_log_is_emptied_at_once_on_a_disk_that_is_nearly_full(disk: SmallDisk) -> None:
    with closing(connected(disk)) as roomy:
        assert pages_of_log(roomy) == 1000
        disk.fill()
        with closing(connected(disk)) as tight:
            assert not isinstance(tight, LoneConnection)
            assert pages_of_log(tight) == 1


def test_a_log_that_does_not_fit_into_the_database_is_left_alone(disk: SmallDisk) -> None:
    with closing(connected(disk)) as roomy:
        fill(roomy, 3 * MIB)
        disk.fill()
        with closing(connected(disk)) as tight:
            assert pages_of_log(tight) == 1000
        disk.free()


def test_a_connection_is_alone_only_where_it_could_not_read_otherwise(disk: SmallDisk) -> None:
    disk.fill()
    with closing(connected(disk)) as alone:
        assert isinstance(alone, LoneConnection)
        assert alone.execute("SELECT count(*) FROM invocations").fetchone() == (0,)
        with (
            closing(sqlite3.connect(disk.folder / "trail.db", timeout=0.01)) as other,
            pytest.raises(sqlite3.OperationalError, match="locked"),
        ):
            other.execute("SELECT 1 FROM invocations")
    disk.free()
    with closing(connected(disk)) as roomy:
        assert not isinstance(roomy, LoneConnection)


def test_many_that_need_the_database_for_themselves_all_get_it(disk: SmallDisk) -> None:
    disk.fill()
    start = Barrier(8)

    def count_often() -> list[int]:
        start.wait()
        return [count_once() for _ in range(20)]

    def count_once() -> int:
        with closing(connected(disk)) as alone:
            (count,) = alone.execute("SELECT count(*) FROM invocations").fetchone()
        return int(count)

    with ThreadPoolExecutor(8) as pool:
        readers = [pool.submit(count_often) for _ in range(8)]
        assert [reader.result() for reader in readers] == [[0] * 20] * 8


def test_a_lone_connection_lasts_for_one_transaction(disk: SmallDisk) -> None:
    disk.fill()
    path = disk.folder / "trail.db"
    with open_store(path) as one, open_store(path) as other:
        assert len(one.reader.invocations().items) == 0
        assert len(other.reader.invocations().items) == 0


def test_a_damaged_file_is_damaged_on_a_full_disk_too(disk: SmallDisk) -> None:
    path = disk.folder / "other.db"
    path.write_bytes(b"no database" * 1000)
    disk.fill()
    with pytest.raises(DamageError, match="is damaged: "):
        open_store(path)


def test_of_a_folder_that_is_gone_nobody_says_that_it_is_full(tmp_path: Path) -> None:
    assert free_bytes(tmp_path / "gone") is None
    assert not is_below(tmp_path / "gone", 1 << 60)
    assert is_below(tmp_path, 1 << 60)
