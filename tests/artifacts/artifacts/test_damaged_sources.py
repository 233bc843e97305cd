"""What was altered after it was captured heals nothing, is kept, and is called damaged."""

import os
from pathlib import Path

import pytest
from tests.support.sinks import put_raw

from tooltrail.artifacts import (
    ArtifactArchive,
    ArtifactSink,
    Capture,
    CapturedStream,
    artifact_path,
    open_sink,
)
from tooltrail.records.digests import digest_of
from tooltrail.records.errors import DamageError
from tooltrail.records.streams import StreamRecord

PLAIN = os.urandom(60)


@pytest.fixture
def sink(tmp_path: Path) -> ArtifactSink:
    return open_sink(str(tmp_path / "root"), create=True)


@pytest.fixture
def archive(sink: ArtifactSink) -> ArtifactArchive:
    return ArtifactArchive(sink)


@pytest.fixture
def captured(tmp_path: Path) -> CapturedStream:
    capture = Capture("stdout", tmp_path / "spool" / "stdout.zst", edge_bytes=10)
    capture.write(PLAIN)
    return capture.close()


def stored_bytes(sink: ArtifactSink, path: str) -> bytes:
    with sink.open(path) as reader:
        return reader.read()


def flipped(data: bytes, offset: int) -> bytes:
    return data[:offset] + bytes([data[offset] ^ 1]) + data[offset + 1 :]


@pytest.mark.parametrize("offset", [12, -30], ids=["a frame", "the index"])
def test_a_damaged_source_replaces_no_damaged_object(
    archive: ArtifactArchive,
    sink: ArtifactSink,
    captured: CapturedStream,
    tmp_path: Path,
    offset: int,
) -> None:
    assert captured.staged is not None
    good = captured.staged.read_bytes()
    path = artifact_path(digest_of(PLAIN))
    object_there = flipped(good, 40)
    put_raw(sink, path, object_there)
    source = flipped(good, len(good) + offset if offset < 0 else offset)
    captured.staged.write_bytes(source)
    for _ in range(2):
        with pytest.raises(DamageError, match="is damaged, and so is the file that could replace"):
            archive.publish(captured)
    assert stored_bytes(sink, path) == object_there
    assert captured.staged.read_bytes() == source
    assert [found.path for found in sink.list()] == [path]
    # Whoever has it whole heals it.
    archive.publish(CapturedStream(StreamRecord.from_bytes("stdout", PLAIN), None))
    assert archive.verify(path) == len(PLAIN)


def test_of_two_that_are_damaged_in_their_index_none_is_trusted(
    archive: ArtifactArchive, sink: ArtifactSink, captured: CapturedStream, tmp_path: Path
) -> None:
    assert captured.staged is not None
    good = captured.staged.read_bytes()
    path = artifact_path(digest_of(PLAIN))
    put_raw(sink, path, flipped(good, len(good) - 40))
    captured.staged.write_bytes(flipped(good, len(good) - 30))
    with pytest.raises(DamageError, match="is damaged, and so is the file that could replace"):
        archive.publish(captured)


def test_a_damaged_source_of_what_is_there_whole_does_not_matter(
    archive: ArtifactArchive, captured: CapturedStream
) -> None:
    stored = archive.publish(captured)
    assert captured.staged is not None
    good = captured.staged.read_bytes()
    captured.staged.unlink()
    captured.staged.write_bytes(flipped(good, 12))
    assert archive.publish(captured) == stored
    assert archive.verify(stored.path) == len(PLAIN)
