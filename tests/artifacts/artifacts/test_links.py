"""No file is created or taken in through a symbolic link."""

import os
from pathlib import Path

import pytest

from tooltrail.artifacts import (
    ArtifactArchive,
    Capture,
    StreamFollower,
    create_private,
    open_sink,
    salvage,
)
from tooltrail.records.errors import DamageError, UnavailableError


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    capture = Capture("stdout", tmp_path / "elsewhere" / "secret.zst", edge_bytes=9)
    capture.write(b"a secret\n")
    staged = capture.close().staged
    assert staged is not None
    return staged


def test_a_capture_writes_through_no_link(tmp_path: Path) -> None:
    link, target = tmp_path / "stdout.zst", tmp_path / "target"
    link.symlink_to(target)
    with pytest.raises(OSError, match=r"File exists|symbolic links"):
        create_private(link)
    with Capture("stdout", link, edge_bytes=9) as capture:
        capture.write(b"output")
    assert not target.exists()


def test_a_link_in_a_spool_is_not_read(tmp_path: Path, secret: Path) -> None:
    link = tmp_path / "spool" / "stdout.zst"
    link.parent.mkdir()
    link.symlink_to(secret)
    with pytest.raises(UnavailableError):
        salvage(link, "stdout", tmp_path / "staged.zst", edge_bytes=9)
    with (
        StreamFollower(link.parent, "stdout", lambda: True) as follower,
        pytest.raises(UnavailableError),
    ):
        list(follower.poll())


@pytest.mark.parametrize("kind", ["pipe", "link", "link out of the root"])
def test_an_object_that_is_a_link_or_a_pipe_is_damaged(
    tmp_path: Path, secret: Path, kind: str
) -> None:
    sink = open_sink(str(tmp_path / "root"), create=True)
    archive = ArtifactArchive(sink)
    with Capture("stdout", tmp_path / "spool" / "x.zst", edge_bytes=9) as capture:
        capture.write(b"output")
    path = archive.publish(capture.close()).path
    (tmp_path / "root" / path).unlink()
    if kind == "pipe":
        os.mkfifo(tmp_path / "root" / path)
    elif kind == "link":
        (tmp_path / "root" / path).symlink_to(secret.rename(tmp_path / "root" / "secret.zst"))
    else:
        (tmp_path / "root" / path).symlink_to(secret)
    with pytest.raises(DamageError):
        archive.reader(path).read_bytes(0, 9)
    with pytest.raises(DamageError):
        archive.verify(path)


def test_a_link_is_not_published(tmp_path: Path, secret: Path) -> None:
    sink = open_sink(str(tmp_path / "root"), create=True)
    link = tmp_path / "link"
    link.symlink_to(secret)
    with pytest.raises(UnavailableError):
        sink.put("sha256/aa/object.zst", link)
    assert not sink.exists("sha256/aa/object.zst")
