"""Segments: their heads, their names, their frames, and what follows damage."""

import struct
import zlib
from pathlib import Path
from uuid import UUID

import pytest

from tooltrail.journal import segments
from tooltrail.journal.frames import (
    FIRST_HASH,
    FRAMES_FROM,
    Cursor,
    find_acknowledged,
    link,
    pack_frame,
)
from tooltrail.journal.segments import SegmentHead, segment_path
from tooltrail.records.errors import DamageError

HEAD = SegmentHead(UUID(int=5), 12, 345, bytes(range(32)))


def frame(index: int, *, durable_to: int = 0, body: bytes = b"body", stamp: int = 9) -> bytes:
    fact = b'{"n":%d}' % index
    return pack_frame(
        fact,
        [body],
        index=index,
        durable_to=durable_to,
        frame_hash=link(FIRST_HASH, fact),
        stamp=stamp,
    )


def created(folder: Path) -> Path:
    segments.create_segment(folder, HEAD)
    return segment_path(folder, HEAD.number)


def read_head(path: Path) -> SegmentHead:
    return segments.read_head(path.read_bytes(), path)


def test_a_segment_has_the_layout_that_its_module_documents(tmp_path: Path) -> None:
    data = created(tmp_path).read_bytes()
    assert FRAMES_FROM == 76
    assert data[:4] == b"TTj1"
    assert struct.unpack_from("<I16sQQ32sI", data, 4) == (
        1,
        HEAD.journal.bytes,
        12,
        345,
        HEAD.previous_hash,
        zlib.crc32(data[:72]),
    )
    assert data[76:] == bytes(segments.FIRST_ROOM_BYTES - 76)
    assert HEAD.stamp == zlib.crc32(data[:72])


def test_every_flipped_bit_and_every_cut_of_a_head_is_damage(tmp_path: Path) -> None:
    path = created(tmp_path)
    data = path.read_bytes()[:200]
    for place in range(FRAMES_FROM * 8):
        altered = bytearray(data)
        altered[place // 8] ^= 1 << place % 8
        path.write_bytes(altered)
        with pytest.raises(DamageError):
            read_head(path)
    for size in range(FRAMES_FROM):
        path.write_bytes(data[:size])
        with pytest.raises(DamageError):
            read_head(path)


def test_a_segment_under_another_name_is_damage(tmp_path: Path) -> None:
    other = created(tmp_path).rename(tmp_path / "00000013.seg")
    with pytest.raises(DamageError, match="under another name"):
        read_head(other)


def test_what_is_not_named_like_a_segment_is_none(tmp_path: Path) -> None:
    for name in ("00000003.seg", "00000001.seg", "4.seg", "0000000².seg", "lock", "00000002.part"):
        (tmp_path / name).touch()
    assert segments.segment_numbers(tmp_path) == [1, 3]
    assert segments.segment_numbers(tmp_path / "none") == []


def test_what_a_crash_left_of_a_segment_is_replaced(tmp_path: Path) -> None:
    segment_path(tmp_path, HEAD.number).with_suffix(".part").write_bytes(b"rest")
    assert read_head(created(tmp_path)) == HEAD
    assert not list(tmp_path.glob("*.part"))


def test_a_frame_is_proven_acknowledged_by_one_that_was_written_after_its_sync() -> None:
    broken = bytearray(frame(3))
    broken[70] ^= 1
    offset = 1_000
    for durable_to, is_proof in ((0, False), (offset, False), (offset + 1, True)):
        data = bytes(broken) + frame(4, durable_to=durable_to)
        found = find_acknowledged(data, Cursor(1, offset, 3), stamp=9)
        assert (found is not None) == is_proof
        if found is not None:
            assert (found.index, found.offset) == (4, offset + len(broken))
        assert find_acknowledged(data, Cursor(1, offset, 3), stamp=9, is_sealed=True)


@pytest.mark.parametrize(
    "hidden",
    [
        pytest.param(frame(9, durable_to=1 << 31, stamp=8), id="of another segment"),
        pytest.param(frame(2, durable_to=1 << 31), id="an older one of this segment"),
    ],
)
def test_bytes_of_a_body_are_never_taken_for_a_frame(hidden: bytes) -> None:
    broken = bytearray(frame(3, body=b"x" + hidden + b"y"))
    broken[9] ^= 1
    behind = frame(4, durable_to=5_000)
    assert find_acknowledged(bytes(broken), Cursor(1, 1_000, 3), stamp=9) is None
    found = find_acknowledged(bytes(broken) + behind, Cursor(1, 1_000, 3), stamp=9)
    assert found is not None
    assert found.index == 4
