"""Frames go out and come back, for our reader and for the plain program."""

import hashlib
import io
import os
import shutil
import subprocess
from itertools import count, islice
from pathlib import Path

import pytest
import pyzstd
from hypothesis import given
from hypothesis import strategies as st

from tooltrail.artifacts.codec import FrameWriter, PlainReader, compress_frame, encode, open_plain
from tooltrail.artifacts.frame_index import FrameIndex
from tooltrail.artifacts.sink import FRAME_SIZE
from tooltrail.records.errors import DamageError, UnavailableError

needs_zstd = pytest.mark.skipif(shutil.which("zstd") is None, reason="there is no zstd program")

needs_proc = pytest.mark.skipif(
    not Path("/proc/self/mem").exists(), reason="there is no /proc to make a real read error with"
)


class FaultyRaw(io.BytesIO):
    """Takes at most seven bytes at a time, and answers None every other time."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def write(self, data: memoryview, /) -> int | None:  # type: ignore[override]  # as a raw file
        self.calls += 1
        return None if self.calls % 2 else super().write(data[:7])


def decode(stored: bytes) -> bytes:
    with open_plain(io.BytesIO(stored)) as reader:
        return reader.read()


@given(st.lists(st.binary(max_size=200), max_size=20))
def test_frames_of_any_size_decode_to_what_was_written(blocks: list[bytes]) -> None:
    raw = io.BytesIO()
    writer = FrameWriter(raw)
    for block in blocks:
        writer.append(compress_frame(block))
        assert writer.stored_size == len(raw.getvalue())
    writer.close()
    plain = b"".join(blocks)
    assert decode(raw.getvalue()) == plain
    assert writer.plain_size == len(plain)


@given(st.binary(max_size=300), st.integers(0, 3))
def test_encode_and_decode_are_inverse_around_the_size_of_a_frame(data: bytes, frames: int) -> None:
    plain = data + bytes(frames * FRAME_SIZE)
    assert decode(encode(plain)) == plain


def test_closing_adds_the_index_which_decodes_to_nothing() -> None:
    raw = io.BytesIO()
    writer = FrameWriter(raw)
    writer.append(compress_frame(b"two\nlines\n"))
    before = raw.getvalue()
    index = writer.close()
    assert raw.getvalue() == before + index.to_bytes()
    assert writer.stored_size == len(raw.getvalue())
    assert (index.plain_size, index.newline_count, len(index)) == (10, 2, 1)
    assert index.frames_size == len(before)
    assert decode(raw.getvalue()) == b"two\nlines\n"
    assert FrameIndex.from_bytes(raw.getvalue()) == index


def test_a_raw_file_that_takes_little_at_a_time_gets_everything() -> None:
    raw = FaultyRaw()
    block = os.urandom(1000)
    FrameWriter(raw).append(compress_frame(block))
    assert decode(raw.getvalue()) == block


def test_an_object_that_ends_inside_a_frame_is_damage() -> None:
    stored = encode(os.urandom(FRAME_SIZE + 1000))
    end = FrameIndex.from_bytes(stored).frames_size
    for lost in (1, 4, 5, 900, FRAME_SIZE):
        with pytest.raises(DamageError):
            decode(stored[: end - lost])


@needs_zstd
@pytest.mark.parametrize("size", [0, 1, FRAME_SIZE, 2 * FRAME_SIZE + 17])
def test_the_plain_program_reads_it(size: int) -> None:
    plain = os.urandom(size)
    done = subprocess.run(
        ["zstd", "-d", "-c"], input=encode(plain), capture_output=True, check=True
    )
    assert done.stdout == plain


@pytest.mark.parametrize("size", [0, 1, FRAME_SIZE, 3 * FRAME_SIZE + 17])
def test_another_reader_of_the_seekable_format_seeks_in_it(size: int) -> None:
    plain = os.urandom(size)
    with pyzstd.SeekableZstdFile(io.BytesIO(encode(plain))) as reader:
        assert reader.seek(0, io.SEEK_END) == size
        for offset in (2 * FRAME_SIZE + 5, FRAME_SIZE, 1, 0):
            reader.seek(offset)
            assert reader.read(100) == plain[offset : offset + 100]


def test_every_frame_carries_its_size_and_a_checksum() -> None:
    import zstandard

    parameters = zstandard.get_frame_parameters(encode(b"x" * 1000))
    assert parameters.content_size == 1000
    assert parameters.has_checksum


def test_a_full_frame_of_records_takes_less_room_than_its_level_alone_gives() -> None:
    import zstandard

    digest = hashlib.sha256
    lines = (b'{"n":%d,"id":"%s"}\n' % (n, digest(b"%d" % n).hexdigest().encode()) for n in count())
    plain = b"".join(islice(lines, 4_000))[:FRAME_SIZE]
    assert len(plain) == FRAME_SIZE
    level = zstandard.ZstdCompressor(level=3, write_checksum=True).compress(plain)
    frame = compress_frame(plain).data
    assert zstandard.ZstdDecompressor().decompress(frame) == plain
    assert len(frame) < 0.95 * len(level)
    # Shorter ones are as zstd makes them.
    half = plain[: FRAME_SIZE // 2]
    level = zstandard.ZstdCompressor(level=3, write_checksum=True).compress(half)
    assert len(compress_frame(half).data) == len(level)


def test_bytes_that_are_no_frames_are_damage() -> None:
    with pytest.raises(DamageError, match=r"artifact sha256/x\.zst cannot be decoded") as caught:
        open_plain(io.BytesIO(b"this is not zstd at all"), path="sha256/x.zst").read()
    assert caught.value.path == "sha256/x.zst"


@needs_proc
def test_a_stream_that_cannot_be_read_is_unavailable() -> None:
    # A process may not read its own memory at address 0: a real EIO, as of a broken disk.
    with (
        Path("/proc/self/mem").open("rb", buffering=0) as stored,
        pytest.raises(UnavailableError, match=r"sha256/x\.zst cannot be read: Input/output error"),
    ):
        open_plain(stored, path="sha256/x.zst").read()


def test_closing_the_reader_closes_the_stored_stream() -> None:
    stored = io.BytesIO(encode(b"bytes"))
    reader = PlainReader(stored, "stream")
    assert reader.readable()
    reader.close()
    assert stored.closed
    reader.close()
