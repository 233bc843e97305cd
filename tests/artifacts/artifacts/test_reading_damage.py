"""Damage is found by the reads that touch it, and by no others."""

import random
import re

import pytest
import zstandard
from tests.support.sinks import Framed, archive_with, framed, put_raw, retold

from tooltrail.artifacts import ArtifactArchive
from tooltrail.artifacts import frame_index as index_module
from tooltrail.artifacts._decoding import MAX_FRAME_SIZE, decode_frame, decode_unknown
from tooltrail.artifacts.codec import compress_frame
from tooltrail.artifacts.frame_index import FrameIndex
from tooltrail.records.errors import DamageError, DigestMismatchError, UnavailableError

FRAME = 1_000
PLAIN = b"".join(b"%d a line of some length\n" % n for n in range(400))
MADE = framed(PLAIN, FRAME)
OTHER = framed(PLAIN, 777)


def flipped(data: bytes, offset: int, bits: int = 1) -> bytes:
    return data[:offset] + bytes([data[offset] ^ bits]) + data[offset + 1 :]


def frames_that_fail(archive: ArtifactArchive) -> list[int]:
    """The frames whose bytes cannot be read; every other one is right."""
    failing: list[int] = []
    reader = archive.reader(MADE.path)
    for frame in range(len(MADE.index)):
        start, stop = MADE.index.plain_span(frame)
        try:
            assert reader.read_bytes(start, stop) == PLAIN[start:stop]
        except DamageError:
            failing.append(frame)
    return failing


def test_a_flipped_byte_fails_the_reads_that_touch_its_frame_and_no_others() -> None:
    chance = random.Random(7)
    for _ in range(60):
        offset = chance.randrange(MADE.index.frames_size)
        archive = archive_with(MADE.path, flipped(MADE.stored, offset, 1 << chance.randrange(8)))
        hit = [n for n in range(len(MADE.index)) if offset < MADE.index.stored_span(n)[1]][:1]
        assert frames_that_fail(archive) == hit


def test_a_damaged_frame_is_named_by_its_beginning() -> None:
    offset = MADE.index.stored_span(3)[0] + 20
    archive = archive_with(MADE.path, flipped(MADE.stored, offset))
    with pytest.raises(DamageError, match=r"in the frame at byte 3,000 of the output: "):
        archive.reader(MADE.path).read_bytes(3_456, 3_460)


def test_every_bit_of_a_frame_counts_but_the_one_that_means_nothing() -> None:
    frame = compress_frame(PLAIN[:200])
    checksum = int.from_bytes(frame.data[-4:], "little")
    assert decode_frame(frame.data, 200, checksum) == PLAIN[:200]
    # RFC 8878, section 3.1.1.1.1.3: a decoder ignores bit 4 of the descriptor.
    bits = {(offset, bit) for offset in range(len(frame.data)) for bit in range(8)} - {(4, 4)}
    for offset, bit in bits:
        with pytest.raises(ValueError, match=r"."):
            decode_frame(flipped(frame.data, offset, 1 << bit), 200, checksum)


def test_a_frame_that_is_cut_or_goes_on_is_another() -> None:
    frame = compress_frame(PLAIN[:200])
    checksum = int.from_bytes(frame.data[-4:], "little")
    for data in (b"", frame.data[:3], frame.data[:-1], frame.data + frame.data):
        with pytest.raises(ValueError, match=r"."):
            decode_frame(data, 200, checksum)


def test_a_frame_that_does_not_tell_its_size_is_decoded_up_to_the_known_one() -> None:
    silent = zstandard.ZstdCompressor(write_content_size=False, write_checksum=True)
    data = silent.compress(PLAIN)
    checksum = int.from_bytes(data[-4:], "little")
    assert decode_frame(data, len(PLAIN), checksum) == PLAIN
    for size in (len(PLAIN) - 1, len(PLAIN) + 1):
        with pytest.raises(ValueError, match=r"."):
            decode_frame(data, size, checksum)


def test_a_frame_that_claims_too_much_is_not_decoded() -> None:
    giant = zstandard.ZstdCompressor().compress(bytes(MAX_FRAME_SIZE + 1))
    with pytest.raises(ValueError, match="it announces 67,108,865 bytes"):
        decode_unknown(giant)
    with pytest.raises(ValueError, match="the size in its header differs"):
        decode_frame(giant, 10, int.from_bytes(giant[-4:], "little"))


@pytest.mark.parametrize("part", ["lines", "table", "footer"])
def test_an_altered_index_is_said_to_be_and_the_whole_is_read_all_the_same(part: str) -> None:
    size = len(MADE.stored)
    begin = MADE.index.frames_size
    offsets = {
        "lines": range(begin, begin + 8 + 4 + 4 * len(MADE.index)),
        "table": range(size - 9 - 12 * (len(MADE.index) + 1), size - 9),
        "footer": range(size - 9, size),
    }
    for offset in offsets[part]:
        archive = archive_with(MADE.path, flipped(MADE.stored, offset))
        with pytest.raises(DamageError) as caught:
            archive.reader(MADE.path)
        assert caught.value.path == MADE.path
    archive = archive_with(MADE.path, flipped(MADE.stored, size - 30))
    with archive.open(MADE.path) as whole:
        assert whole.read() == PLAIN


@pytest.mark.parametrize("is_replaced", [True, False])
def test_an_object_that_is_replaced_while_it_is_read_is_to_be_read_again(
    monkeypatch: pytest.MonkeyPatch, is_replaced: bool
) -> None:
    # So that no frame is fetched with the index.
    monkeypatch.setattr(index_module, "_SUFFIX_SIZE", 9)
    archive = archive_with(MADE.path, MADE.stored)
    reader = archive.reader(MADE.path)
    assert reader.read_bytes(0, 1_500) == PLAIN[:1_500]
    put_raw(archive.sink, MADE.path, OTHER.stored if is_replaced else MADE.stored)
    if not is_replaced:
        assert reader.read_bytes(0, len(PLAIN)) == PLAIN
        return
    with pytest.raises(UnavailableError, match="was replaced while it was read; read it again"):
        reader.read_bytes(0, len(PLAIN))
    assert archive.reader(MADE.path).read_bytes(0, len(PLAIN)) == PLAIN


def test_an_object_with_other_content_is_damage() -> None:
    archive = archive_with(MADE.path, framed(PLAIN[:-100], FRAME).stored)
    with pytest.raises(DigestMismatchError):
        archive.reader(MADE.path, size=len(PLAIN))


@pytest.mark.parametrize("content", [b"", b"a", b"another text\n"])
def test_an_object_of_one_frame_is_compared_with_its_digest(content: bytes) -> None:
    archive = archive_with(MADE.path, framed(content, FRAME).stored)
    with pytest.raises(DigestMismatchError, match="another digest than its path"):
        archive.reader(MADE.path).read_bytes(0, 1)


@pytest.mark.parametrize("kept", [0.2, 0.5, 0.9])
def test_an_object_that_was_cut_is_damage(kept: float) -> None:
    archive = archive_with(MADE.path, MADE.stored[: int(MADE.index.frames_size * kept)])
    with pytest.raises(DamageError, match="it was cut, or the index at its end is missing"):
        archive.reader(MADE.path)


@pytest.mark.parametrize("first", [1, 40, 120, 300])
def test_a_frame_with_other_newlines_than_the_index_counts_is_named(first: int) -> None:
    index = MADE.index
    lying = retold(index, newlines={n: 1 if n % 2 else -1 for n in range(len(index))})
    archive = archive_with(MADE.path, MADE.frames + lying.to_bytes())
    reader = archive.reader(MADE.path)
    frame = lying.frame_of_newline(first - 1) if first > 1 else 0
    has, counted = index.newlines_in(frame), lying.newlines_in(frame)
    said = (
        f"the index of artifact {MADE.path} is damaged: it counts {counted} newlines in frame"
        f" {frame}, but the frame has {has}"
    )
    with pytest.raises(DamageError, match=re.escape(said)):
        reader.read_lines(first, first + 1)
    with pytest.raises(DamageError, match=r"it counts \d+ newlines in frame"):
        b"".join(reader.iter_lines())
    # Bytes are found without them.
    assert reader.read_bytes(700, 9_000) == PLAIN[700:9_000]


def test_more_newlines_than_bytes_are_no_index() -> None:
    lying = retold(MADE.index, newlines={2: 1_000})
    archive = archive_with(MADE.path, MADE.frames + lying.to_bytes())
    with pytest.raises(DamageError, match=f"the index of {MADE.path} is damaged"):
        archive.reader(MADE.path)


def test_newlines_of_an_empty_frame_are_missed_when_they_are_wanted() -> None:
    made = Framed.of([b"a\n", b"", b"b\n"])
    index = made.index
    newlines = [2, 0, 0]
    sizes = [index.stored_span(n)[1] - index.stored_span(n)[0] for n in range(3)]
    lying = FrameIndex(sizes, [2, 0, 2], newlines, [index.checksum(n) for n in range(3)])
    archive = archive_with(made.path, made.frames + lying.to_bytes())
    with pytest.raises(DamageError, match="it counts 2 newlines in frame 0, but the frame has 1"):
        archive.reader(made.path).read_lines(2, 2)
