"""The folder of a call in the spool: which streams it has."""

from pathlib import Path

import pytest

from tooltrail.artifacts import spooled_streams
from tooltrail.records import UnavailableError


def test_the_streams_of_a_call_are_found_by_role(tmp_path: Path) -> None:
    folder = tmp_path / "call"
    assert spooled_streams(folder) == {}
    (folder / "nested").mkdir(parents=True)
    (folder / "tooltrail-abc").mkdir()
    for name in ("stdout.zst", "nested/role.zst", "tooltrail-abc/object.zst", "notes"):
        (folder / name).write_bytes(b"x")
    assert sorted(spooled_streams(folder)) == ["nested/role", "stdout"]
    assert spooled_streams(folder / "stdout.zst") == {}


def test_a_folder_that_cannot_be_searched_is_unavailable(tmp_path: Path) -> None:
    loop = tmp_path / "loop"
    loop.symlink_to(loop)
    with pytest.raises(UnavailableError, match=r"loop cannot be read: Too many levels"):
        spooled_streams(loop)
