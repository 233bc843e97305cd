"""A frame comes back as it was packed, and any alteration of its bytes is noticed."""

import struct
import zlib
from hashlib import sha256

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tooltrail.journal.frames import (
    FIRST_HASH,
    HEADER_SIZE,
    MAX_FRAME_BYTES,
    BrokenFrameError,
    Cursor,
    link,
    pack_frame,
    read_header,
    unpack_frame,
)
from tooltrail.records.digests import digest_of
from tooltrail.records.errors import InvalidRecordError

FACT = b'{"at":"2026-01-02T00:00:00.000000Z","kind":"session.closed"}'


def packed(fact: bytes = FACT, bodies: tuple[bytes, ...] = (b"one", b"")) -> bytes:
    return pack_frame(
        fact, bodies, index=7, durable_to=4_000, frame_hash=link(FIRST_HASH, fact), stamp=0xABCDEF01
    )


@given(
    st.binary(max_size=300), st.lists(st.binary(max_size=300), max_size=4), st.binary(max_size=50)
)
def test_a_frame_comes_back_as_it_was_packed(fact: bytes, bodies: list[bytes], rest: bytes) -> None:
    frame = unpack_frame(packed(fact, tuple(bodies)) + rest, Cursor(3))
    assert (frame.index, frame.segment, frame.offset, frame.durable_to) == (7, 3, 76, 4_000)
    assert frame.end == 76 + len(packed(fact, tuple(bodies)))
    assert frame.fact_json == fact
    assert frame.bodies() == {digest_of(body): body for body in bodies}
    assert frame.is_linked


def test_every_flipped_bit_of_a_frame_is_noticed() -> None:
    frame = packed()
    for place in range(len(frame) * 8):
        altered = bytearray(frame)
        altered[place // 8] ^= 1 << place % 8
        with pytest.raises(BrokenFrameError):
            unpack_frame(bytes(altered), Cursor())


def test_every_cut_of_a_frame_is_noticed() -> None:
    frame = packed(bodies=(b"", b"one"))
    for size in range(len(frame)):
        for rest in (b"", bytes(len(frame) - size)):
            with pytest.raises(BrokenFrameError):
                unpack_frame(frame[:size] + rest, Cursor())


def test_a_frame_has_the_layout_that_its_module_documents() -> None:
    frame = packed()
    assert HEADER_SIZE == 64
    assert frame[:4] == b"TTf1"
    crc, fact_length, bodies_length, index, durable_to = struct.unpack_from("<IIIQI", frame, 4)
    assert crc == zlib.crc32(frame[8:])
    assert (fact_length, bodies_length) == (len(FACT), 4 + 3 + 4)
    assert (index, durable_to) == (7, 4_000)
    assert frame[28:60] == sha256(bytes(32) + FACT).digest()
    assert struct.unpack_from("<I", frame, 60) == (0xABCDEF01,)
    assert frame[64:] == FACT + b"\x03\0\0\0one" + b"\0\0\0\0"
    assert read_header(frame).frame_size == len(frame)


def test_a_frame_on_another_chain_is_not_linked() -> None:
    frame = unpack_frame(packed(), Cursor(hash=bytes(31) + b"\1"))
    assert not frame.is_linked


def test_a_body_can_be_replaced_and_the_chain_still_holds() -> None:
    assert link(FIRST_HASH, FACT) == read_header(packed(bodies=())).hash


def test_a_frame_that_is_too_long_is_refused() -> None:
    body = bytes(MAX_FRAME_BYTES // 4)
    with pytest.raises(InvalidRecordError, match="capture long output as a stream"):
        packed(bodies=(body, body, body, body))
