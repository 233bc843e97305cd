"""What the archive gives back is what was stored, or an error; never something in between."""

import io
import os
import re
import stat
import tempfile
import tracemalloc
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO, cast

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st
from tests.support.sinks import Framed, put_raw

from tooltrail.artifacts._scratch import copy_of
from tooltrail.artifacts.archive import ArtifactArchive, StoredArtifact
from tooltrail.artifacts.capture import Capture
from tooltrail.artifacts.captured import CapturedStream
from tooltrail.artifacts.codec import encode
from tooltrail.artifacts.frame_index import FrameIndex
from tooltrail.artifacts.fsspec_sink import open_sink
from tooltrail.artifacts.paths import artifact_path
from tooltrail.artifacts.sink import FRAME_SIZE, ArtifactSink
from tooltrail.records.digests import digest_of, hex_of
from tooltrail.records.errors import (
    DamageError,
    DigestMismatchError,
    InvalidRecordError,
    MissingArtifactError,
    PathEscapeError,
    UnavailableError,
)
from tooltrail.records.streams import StreamRecord

LINES = [b"the first frame\n", b"the second frame\n", b"the third"]
PLAIN = b"".join(LINES)
ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/mem").exists(), reason="there is no /proc to make a real read error with"
)


def captured_from(folder: Path, chunks: list[bytes]) -> CapturedStream:
    """A stream with one frame for each chunk."""
    path = folder / str(uuid.uuid4()) / "stdout.zst"
    capture = Capture("stdout", path, edge_bytes=10)
    for chunk in chunks:
        capture.write(chunk)
        capture.flush()
    return capture.close()


@pytest.fixture(params=["local", "memory"])
def sink(request: pytest.FixtureRequest, tmp_path: Path) -> ArtifactSink:
    place = {"local": str(tmp_path / "root"), "memory": f"memory://{uuid.uuid4()}"}
    return open_sink(place[request.param], create=True)


@pytest.fixture
def archive(sink: ArtifactSink) -> ArtifactArchive:
    return ArtifactArchive(sink)


@pytest.fixture
def captured(tmp_path: Path) -> CapturedStream:
    return captured_from(tmp_path, LINES)


def stored_bytes(sink: ArtifactSink, path: str) -> bytes:
    with sink.open(path) as reader:
        return reader.read()


def test_publishing_names_the_object_by_its_content(
    archive: ArtifactArchive, sink: ArtifactSink, captured: CapturedStream
) -> None:
    digest = digest_of(PLAIN)
    stored = archive.publish(captured)
    assert stored == StoredArtifact(
        path=artifact_path(digest),
        digest=digest,
        size=len(PLAIN),
        stored_size=sink.stat(stored.path).stored_size,
        line_count=3,
    )
    assert FrameIndex.from_bytes(sink.read(stored.path, 0)) == captured.index
    assert archive.sink is sink
    assert archive.exists(stored.path)
    assert archive.stat(stored.path) == sink.stat(stored.path)


def test_an_object_that_lost_its_index_or_half_of_it_is_damaged_and_can_be_read(
    archive: ArtifactArchive, sink: ArtifactSink, tmp_path: Path
) -> None:
    path = artifact_path(digest_of(PLAIN))
    good = encode(PLAIN)
    end = FrameIndex.from_bytes(good).frames_size
    put_raw(sink, path, good[:end])
    for method in (archive.verify, archive.reader):
        with pytest.raises(DamageError, match=f"{path} is damaged: it was cut, or the index at"):
            method(path, size=len(PLAIN))
    with archive.open(path, size=len(PLAIN)) as reader:
        assert reader.read() == PLAIN
    put_raw(sink, path, good[: end + 20])
    with pytest.raises(DamageError, match=f"artifact {path} is damaged: it was cut, or the index"):
        archive.verify(path, size=len(PLAIN))


def test_a_stream_that_was_closed_on_a_full_disk_gets_its_index_when_it_is_published(
    archive: ArtifactArchive, captured: CapturedStream
) -> None:
    assert captured.staged is not None
    assert captured.index is not None
    os.truncate(captured.staged, captured.index.frames_size)
    closed = captured.replaced(index=None, stored_size=captured.index.frames_size)
    stored = archive.publish(closed)
    assert FrameIndex.from_bytes(archive.sink.read(stored.path, 0)) == captured.index
    assert archive.verify(stored.path, size=len(PLAIN), line_count=3) == len(PLAIN)


def test_equal_content_in_other_frames_is_the_same_artifact(
    archive: ArtifactArchive, sink: ArtifactSink, tmp_path: Path
) -> None:
    first = archive.publish(captured_from(tmp_path, LINES))
    before = stored_bytes(sink, first.path)
    again = archive.publish(captured_from(tmp_path, [PLAIN]))
    assert again.stored_size == first.stored_size
    assert stored_bytes(sink, first.path) == before
    assert [found.path for found in sink.list()] == [first.path]


def test_what_is_only_in_memory_is_published_too(archive: ArtifactArchive) -> None:
    for content in (b"", b"some text\n"):
        stored = archive.publish(
            CapturedStream(StreamRecord.from_bytes("content", content), staged=None)
        )
        assert archive.verify(stored.path, size=len(content)) == len(content)


def test_a_stream_without_bytes_to_publish_is_invalid(archive: ArtifactArchive) -> None:
    record = StreamRecord.from_bytes("stdout", b"bytes").model_copy(update={"content": None})
    with pytest.raises(InvalidRecordError, match="no bytes of stdout to publish"):
        archive.publish(CapturedStream(record, staged=None))


def test_a_staged_file_that_is_gone_is_invalid_and_one_out_of_reach_is_unavailable(
    archive: ArtifactArchive, captured: CapturedStream
) -> None:
    assert captured.staged is not None
    captured.staged.unlink()
    with pytest.raises(InvalidRecordError, match="there is no file"):
        archive.publish(captured)
    below = captured.staged.parent / "x" / "stdout.zst"
    below.parent.write_bytes(b"a file where a folder was")
    with pytest.raises(UnavailableError, match=f"cannot read {below}: Not a directory"):
        archive.publish(captured.replaced(staged=below))


@pytest.mark.parametrize("is_there_already", [False, True])
def test_a_staged_file_that_was_cut_is_damage_and_is_not_published(
    archive: ArtifactArchive, sink: ArtifactSink, tmp_path: Path, is_there_already: bool
) -> None:
    chunks = [os.urandom(FRAME_SIZE) for _ in range(3)]
    if is_there_already:
        archive.publish(captured_from(tmp_path, chunks))
    before = list(sink.list())
    captured = captured_from(tmp_path, chunks)
    assert captured.staged is not None
    assert captured.stored_size is not None
    os.truncate(captured.staged, captured.stored_size // 3)
    with pytest.raises(DamageError, match="is damaged: it has") as caught:
        archive.publish(captured)
    assert caught.value.path == str(captured.staged)
    assert list(sink.list()) == before


def test_no_room_for_a_temporary_file_is_unavailable(
    archive: ArtifactArchive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    with pytest.raises(UnavailableError, match="cannot write a temporary file"):
        archive.publish(CapturedStream(StreamRecord.from_bytes("content", b"x"), staged=None))


def test_an_object_that_cannot_be_read_is_not_said_to_be_a_failure_of_the_scratch_folder(
    tmp_path: Path,
) -> None:
    class Broken(io.RawIOBase):
        def read(self, size: int = -1, /) -> bytes:
            raise OSError(0, f"the store ended the connection within {size} bytes")

    with (
        pytest.raises(UnavailableError, match=r"^cannot copy one\.zst to .*: the store ended"),
        copy_of(cast("BinaryIO", Broken()), "one.zst", tmp_path / "scratch"),
    ):
        pass
    assert list((tmp_path / "scratch").iterdir()) == []


def test_a_scratch_folder_is_made_private_and_left_empty(
    archive: ArtifactArchive, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "nowhere"))
    scratch = tmp_path / "spool" / "invocation"
    content = CapturedStream(StreamRecord.from_bytes("content", b"some text"), staged=None)
    stored = archive.publish(content, scratch=scratch)
    assert archive.verify(stored.path, size=9) == 9
    assert stat.S_IMODE(scratch.stat().st_mode) == 0o700
    assert list(scratch.iterdir()) == []


def test_content_in_memory_is_not_copied_in_memory(tmp_path: Path) -> None:
    archive = ArtifactArchive(open_sink(str(tmp_path / "root"), create=True))
    content = os.urandom(32 * FRAME_SIZE)
    captured = CapturedStream(StreamRecord.from_bytes("content", content), staged=None)
    tracemalloc.start()
    try:
        archive.publish(captured, scratch=tmp_path / "spool")
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 4 * FRAME_SIZE


@pytest.mark.parametrize("damage", ["cut", "altered", "emptied", "foreign", "garbage behind"])
def test_publishing_heals_a_damaged_object(
    archive: ArtifactArchive,
    sink: ArtifactSink,
    captured: CapturedStream,
    tmp_path: Path,
    damage: str,
) -> None:
    stored = archive.publish(captured)
    good = stored_bytes(sink, stored.path)
    bad = {
        "cut": good[:-3],
        "altered": good[:12] + bytes([good[12] ^ 1]) + good[13:],
        "emptied": b"",
        "foreign": encode(b"something else"),
        "garbage behind": good + b"garbage",
    }[damage]
    put_raw(sink, stored.path, bad)
    with pytest.raises(DamageError):
        archive.verify(stored.path)
    assert archive.publish(captured) == stored
    assert archive.verify(stored.path, size=stored.size) == len(PLAIN)
    assert archive.publish(captured) == stored
    kept = [found.path for found in sink.list("damaged/")]
    assert len(kept) == 1
    name = re.escape(hex_of(stored.digest))
    assert re.fullmatch(rf"damaged/{name}-[0-9a-f]{{8}}\.zst", kept[0])
    assert stored_bytes(sink, kept[0]) == bad


def test_a_damaged_object_that_cannot_be_kept_aside_is_not_replaced(
    archive: ArtifactArchive, sink: ArtifactSink, captured: CapturedStream, tmp_path: Path
) -> None:
    stored = archive.publish(captured)
    put_raw(sink, stored.path, b"damaged")
    with pytest.raises(UnavailableError, match="cannot write a temporary file"):
        archive.publish(captured, scratch=Path("/dev/null/scratch"))
    assert stored_bytes(sink, stored.path) == b"damaged"


def damaged_versions(good: bytes) -> Iterator[tuple[str, bytes]]:
    for offset in range(len(good)):
        yield f"cut at {offset}", good[:offset]
        yield f"{offset} bytes more", good + good[:offset] if offset else good + b"\0"
        for bit in range(8):
            altered = bytes([good[offset] ^ (1 << bit)])
            yield f"bit {bit} at {offset}", good[:offset] + altered + good[offset + 1 :]
    yield "a frame twice", good + good
    yield "another frame", good + encode(b"x")
    yield "zeros", good + bytes(100)


def harmless_versions(good: bytes, index: FrameIndex) -> set[str]:
    """Versions that lack nothing and lie about nothing.

    Of a frame's descriptor two bits change no plain byte: bit 4 is unused, which decoders must
    ignore (RFC 8878, 3.1.1.1.1.4); without bit 5 the next byte, our content size, is read as a
    window size instead.
    """
    starts = [index.stored_span(n)[0] for n in range(len(index))]
    assert len(starts) == len(LINES)
    assert all(good.startswith(ZSTD_MAGIC, start) for start in starts)
    return {f"bit {bit} at {start + 4}" for start in starts for bit in (4, 5)}


@pytest.mark.parametrize("with_size", [True, False])
def test_every_flip_cut_and_addition_anywhere_is_damage(tmp_path: Path, with_size: bool) -> None:
    sink = open_sink(f"memory://{uuid.uuid4()}", create=True)
    archive = ArtifactArchive(sink)
    made = Framed.of(LINES)
    put_raw(sink, made.path, made.stored)
    stored, index = archive.publish(captured_from(tmp_path, LINES)), made.index
    size = stored.size if with_size else None
    good = stored_bytes(sink, stored.path)
    harmless = harmless_versions(good, index)
    versions = dict(damaged_versions(good))
    assert len(versions) > 9 * len(good)
    for what, bad in versions.items():
        put_raw(sink, stored.path, bad)
        if what in harmless:
            assert archive.verify(stored.path, size=size) == len(PLAIN), what
            continue
        with pytest.raises(DamageError) as caught:
            archive.verify(stored.path, size=size)
        assert caught.value.path == stored.path, what
        is_in_frames = bad[: index.frames_size] != good[: index.frames_size]
        read_whole_or_damaged(archive, stored, size, may_be_whole=not is_in_frames)


def read_whole_or_damaged(
    archive: ArtifactArchive, stored: StoredArtifact, size: int | None, *, may_be_whole: bool
) -> None:
    """Read to the end: what is altered is never handed out, and an index is not needed for it."""
    with archive.open(stored.path, size=size) as reader:
        try:
            plain = reader.read()
        except DamageError:
            return
    # With a size the digest is compared before the end of the last frame is looked at.
    assert may_be_whole or size is not None
    assert plain == PLAIN


def test_a_cut_at_a_frame_and_more_and_other_bytes_are_a_mismatch_and_stay_one(
    archive: ArtifactArchive, sink: ArtifactSink
) -> None:
    path = artifact_path(digest_of(PLAIN))
    put_raw(sink, path, encode(LINES[0]) + encode(LINES[1]))
    with archive.open(path) as reader:
        assert reader.readline() == LINES[0]
        for _ in range(3):
            with pytest.raises(DigestMismatchError, match="another digest than its path"):
                reader.read()
    for plain, size in ((LINES[0], 16), (PLAIN + b"more", 46)):
        put_raw(sink, path, encode(plain))
        with pytest.raises(DigestMismatchError, match=f"it has {size} bytes, but 42 were stored"):
            archive.verify(path, size=len(PLAIN))
    put_raw(sink, path, encode(b"X" * len(PLAIN)))
    reader = archive.open(path, size=len(PLAIN))
    with reader, pytest.raises(DigestMismatchError, match="another digest"):
        reader.read(len(PLAIN))  # the last bytes are never handed out


def test_what_is_absent_is_missing(archive: ArtifactArchive) -> None:
    path = artifact_path(digest_of(b"never stored"))
    assert not archive.exists(path)
    for method in (archive.open, archive.verify, archive.stat):
        with pytest.raises(MissingArtifactError):
            method(path)


def test_only_paths_of_artifacts_are_taken(archive: ArtifactArchive) -> None:
    for method in (archive.open, archive.verify, archive.stat, archive.exists):
        with pytest.raises(PathEscapeError):
            method("../sha256")
        with pytest.raises(InvalidRecordError):
            method("sha256/notes.txt")


def test_objects_of_another_codec_level_are_read(
    archive: ArtifactArchive, sink: ArtifactSink, tmp_path: Path
) -> None:
    plain = b"line\n" * FRAME_SIZE
    path = artifact_path(digest_of(plain))
    frame = zstandard.ZstdCompressor(19, write_checksum=True).compress(plain)
    newlines, checksum = plain.count(b"\n"), int.from_bytes(frame[-4:], "little")
    index = FrameIndex([len(frame)], [len(plain)], [newlines], [checksum])
    put_raw(sink, path, frame + index.to_bytes())
    assert archive.verify(path, size=len(plain)) == len(plain)
    archive.publish(captured_from(tmp_path, [plain]))


@given(st.binary(max_size=2000), st.lists(st.integers(-1, 500), min_size=1, max_size=20))
def test_reads_of_any_size_give_the_stream_in_order(data: bytes, sizes: list[int]) -> None:
    archive = ArtifactArchive(open_sink(f"memory://{uuid.uuid4()}", create=True))
    path = archive.publish(CapturedStream(StreamRecord.from_bytes("x", data), None)).path
    expected = io.BytesIO(data)
    with archive.open(path, size=len(data)) as reader:
        for size in sizes:
            assert reader.read(size) == expected.read(size)
        assert reader.read() == expected.read()


class StubbornSink:
    """A sink on a disk that damages whatever is stored on it."""

    def __init__(self, sink: ArtifactSink, folder: Path) -> None:
        self.sink = sink
        self.folder = folder
        self.capabilities = sink.capabilities
        self.url = sink.url
        self.stat = sink.stat
        self.read = sink.read
        self.exists = sink.exists
        self.delete = sink.delete
        self.list = sink.list

    def put(self, path: str, source: Path) -> bool:
        bad = self.folder / f"bad-{uuid.uuid4()}"
        bad.write_bytes(source.read_bytes()[:-1])
        self.sink.put(path, bad)
        return False

    def open(self, path: str) -> BinaryIO:
        return self.sink.open(path)


class UnreadableSink(StubbornSink):
    """A sink whose objects open and cannot be read."""

    def open(self, path: str) -> BinaryIO:
        return Path("/proc/self/mem").open("rb", buffering=0)


def test_an_object_that_stays_damaged_is_reported(
    sink: ArtifactSink, captured: CapturedStream, tmp_path: Path
) -> None:
    archive = ArtifactArchive(StubbornSink(sink, tmp_path))
    with pytest.raises(DamageError, match="is damaged and cannot be replaced"):
        archive.publish(captured)


@needs_proc
def test_an_object_that_cannot_be_compared_is_unavailable_and_stays(
    sink: ArtifactSink, captured: CapturedStream, tmp_path: Path
) -> None:
    archive = ArtifactArchive(UnreadableSink(sink, tmp_path))
    with pytest.raises(UnavailableError, match="cannot be compared: Input/output error"):
        archive.publish(captured)
    assert len(list(sink.list())) == 1
