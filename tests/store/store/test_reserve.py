"""The room that is held back on the disk of a database: whole, or not there."""

import os
import resource
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tests.support.disks import small_disk
from tests.support.killing import count_moments, run_and_kill

from tooltrail.store._engines.reserve import RESERVE_BYTES, DiskReserve


@pytest.fixture
def database(tmp_path: Path) -> Path:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "trail.db").touch()
    return tmp_path / "data" / "trail.db"


def sizes(database: Path) -> dict[str, int]:
    beside = (file for file in database.parent.iterdir() if file != database)
    return {file.name: file.stat().st_size for file in beside}


WHOLE = {"trail.db-reserve": RESERVE_BYTES}


@pytest.mark.parametrize("size", [0, 1, RESERVE_BYTES - 1])
def test_a_reserve_that_was_cut_short_is_made_anew(database: Path, size: int) -> None:
    reserve = DiskReserve(database)
    reserve.hold()
    os.truncate(f"{database}-reserve", size)
    reserve.hold()
    assert sizes(database) == WHOLE


def test_where_the_database_is_not_no_room_is_held_back(database: Path) -> None:
    database.unlink()
    DiskReserve(database).hold()
    assert sizes(database) == {}


def test_a_reserve_that_is_whole_is_left_alone(database: Path) -> None:
    DiskReserve(database).hold()
    before = Path(f"{database}-reserve").stat()
    DiskReserve(database).hold()
    assert Path(f"{database}-reserve").stat() == before


def test_what_is_given_up_leaves_nothing(database: Path) -> None:
    reserve = DiskReserve(database)
    reserve.hold()
    Path(f"{database}-reserve.part").write_bytes(b"of a process that was killed")
    reserve.release()
    assert sizes(database) == {}


def test_a_kill_at_any_moment_leaves_a_reserve_that_is_whole_or_none(database: Path) -> None:
    reserve = DiskReserve(database)
    for moment in range(1, count_moments(reserve.hold) + 1):
        reserve.release()
        run_and_kill(reserve.hold, moment)
        assert sizes(database).get("trail.db-reserve", RESERVE_BYTES) == RESERVE_BYTES
        reserve.hold()
        assert sizes(database)["trail.db-reserve"] == RESERVE_BYTES


@contextmanager
def short_files(size: int) -> Generator[None]:
    """No file of this process may grow beyond a size."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def test_a_reserve_that_cannot_be_written_leaves_nothing(database: Path) -> None:
    with short_files(RESERVE_BYTES // 2):
        DiskReserve(database).hold()
    assert sizes(database) == {}


def test_on_a_full_disk_a_reserve_that_was_cut_short_is_none(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", 8 << 20) as disk:
        (disk.folder / "trail.db").touch()
        reserve = DiskReserve(disk.folder / "trail.db")
        reserve.hold()
        disk.fill()
        assert (reserve.is_given_up(), reserve.is_out_of_reach()) == (False, False)
        os.truncate(disk.folder / "trail.db-reserve", 0)
        disk.fill()
        assert (reserve.is_given_up(), reserve.is_out_of_reach()) == (True, True)


def test_a_server_holds_nothing_back_here() -> None:
    reserve = DiskReserve(None)
    reserve.hold()
    reserve.release()
    assert not reserve.is_out_of_reach()
