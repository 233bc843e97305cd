"""The index says where every byte and every line is, or that it was altered."""

import io
import struct
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tooltrail.artifacts.codec import FrameWriter, compress_frame
from tooltrail.artifacts.frame_index import FrameIndex, read_index
from tooltrail.records.errors import DamageError

BLOCKS = [b"one\ntwo\n", b"three", b"", b" and\n\n", b"four"]
blocks = st.lists(st.binary(max_size=40) | st.text("ab\n", max_size=40).map(str.encode), min_size=1)


def written(parts: list[bytes]) -> tuple[bytes, FrameIndex, list[int]]:
    """A stored object, its index, and the offsets of its frames."""
    raw = io.BytesIO()
    writer = FrameWriter(raw)
    offsets = [0]
    for part in parts:
        writer.append(compress_frame(part))
        offsets.append(writer.stored_size)
    index = writer.close()
    return raw.getvalue(), index, offsets


@given(blocks)
def test_frames_are_where_they_were_written(parts: list[bytes]) -> None:
    stored, index, offsets = written(parts)
    plain_ends = [*accumulate(map(len, parts), initial=0)]
    newlines = [*accumulate((part.count(b"\n") for part in parts), initial=0)]
    assert len(index) == len(parts)
    for n in range(len(parts)):
        assert index.stored_span(n) == (offsets[n], offsets[n + 1])
        assert index.plain_span(n) == (plain_ends[n], plain_ends[n + 1])
        assert index.newlines_before(n) == newlines[n]
    assert index.newlines_before(len(parts)) == index.newline_count == newlines[-1]
    assert index.plain_size == plain_ends[-1]
    assert index.frames_size == offsets[-1]
    assert FrameIndex.from_bytes(stored) == index
    assert FrameIndex.from_bytes(index.to_bytes()) == index


@given(blocks)
def test_every_byte_and_every_newline_is_found_in_its_frame(parts: list[bytes]) -> None:
    _, index, _ = written(parts)
    places = [n for n, part in enumerate(parts) for _ in part]
    for offset, frame in enumerate(places):
        assert index.frame_at(offset) == frame
    assert index.frame_at(len(places)) == len(parts)
    lines = [n for n, part in enumerate(parts) for byte in part if byte == 0x0A]
    for number, frame in enumerate(lines, 1):
        assert index.frame_of_newline(number) == frame


def test_the_seek_table_is_that_of_the_seekable_format() -> None:
    stored, index, offsets = written([b"hello\n", b"world"])
    count, descriptor, magic = struct.unpack("<IBI", stored[-9:])
    assert (count, descriptor, magic) == (3, 0x80, 0x8F92EAB1)
    table = stored[-9 - 3 * 12 - 8 : -9]
    assert struct.unpack("<II", table[:8]) == (0x184D2A5E, 3 * 12 + 9)
    entries = [struct.unpack("<III", table[at : at + 12]) for at in range(8, len(table), 12)]
    assert [(stored_size, plain_size) for stored_size, plain_size, _ in entries[:2]] == [
        (offsets[1], 6),
        (offsets[2] - offsets[1], 5),
    ]
    # A frame ends with the low four bytes of the XXH64 of its content (RFC 8878, 3.1.1).
    for (_, _, checksum), end in zip(entries[:2], offsets[1:], strict=True):
        assert checksum == int.from_bytes(stored[end - 4 : end], "little")
    lines_size = len(stored) - offsets[2] - len(table) - 9
    assert entries[2] == (lines_size, 0, 0)
    assert index.frames_size == offsets[2]


def test_every_altered_byte_of_an_index_is_found() -> None:
    _, index, _ = written(BLOCKS)
    good = index.to_bytes()
    for offset in range(len(good)):
        for bit in range(8):
            altered = good[:offset] + bytes([good[offset] ^ (1 << bit)]) + good[offset + 1 :]
            with pytest.raises(DamageError, match=r"the index of x\.zst is damaged") as caught:
                FrameIndex.from_bytes(altered, path="x.zst")
            assert caught.value.path == "x.zst"


@pytest.mark.parametrize("size", [0, 1, 8, 9, 40])
def test_a_part_of_an_index_is_damage(size: int) -> None:
    _, index, _ = written(BLOCKS)
    with pytest.raises(DamageError):
        FrameIndex.from_bytes(index.to_bytes()[len(index.to_bytes()) - size :])


class Ends:
    """Counts how often the end of an object is asked for, and for how much."""

    def __init__(self, stored: bytes) -> None:
        self.stored = stored
        self.sizes: list[int] = []

    def __call__(self, size: int) -> bytes:
        self.sizes.append(size)
        return self.stored[-size:]


def test_a_long_index_is_read_in_two_reads() -> None:
    stored, index, _ = written([b"%d\n" % n for n in range(5000)])
    ends = Ends(stored)
    assert read_index(ends, "x") == index
    assert ends.sizes[1:] == [len(index.to_bytes())]


def test_a_short_object_that_claims_a_long_index_is_damaged() -> None:
    stored, _, _ = written(BLOCKS)
    lying = stored[:-9] + struct.pack("<IBI", 6000, 0x80, 0x8F92EAB1)
    ends = Ends(lying)
    with pytest.raises(DamageError, match="the index of x is damaged"):
        read_index(ends, "x")
    assert len(ends.sizes) == 1


def test_an_object_without_an_index_has_none() -> None:
    stored, index, _ = written(BLOCKS)
    for end in (stored[: index.frames_size], b"", b"short"):
        assert read_index(Ends(end), "x") is None
