"""Segments: their heads, their names, their frames, and what follows damage."""

import struct
import zlib
from pathlib import Path
from uuid import UUID

import pytest

from tooltrail.journal import segments
from tooltrail.journal.segments import FRAMES_FROM, SegmentHead, segment_path
from tooltrail.records.errors import DamageError

HEAD = SegmentHead(UUID(int=5), 12, 345, bytes(range(32)))


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
