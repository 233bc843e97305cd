"""Frames: one fact with its bodies, as bytes of a segment.

    offset  size  what
    0       4     "TTf1"
    4       4     CRC-32 of everything behind it
    8       4     length of the fact
    12      4     length of the bodies
    16      8     index of the frame in the journal, from 0
    24      4     durable to: see below
    28      32    hash
    60      4     stamp of the segment
    64            the fact, canonical JSON
                  the bodies: for each its length in 4 bytes, and its bytes

`hash` is SHA-256(hash of the frame before ‖ fact JSON). It covers the digests of the bodies but not
the bodies, so that a body can be erased later. All integers are little-endian.

`durable to` is the offset up to which the segment was synced before the frame was written. A reader
that finds a broken frame learns from the frames behind it whether that frame was acknowledged.

`stamp` is the CRC-32 of the head of the segment. A body may contain bytes that look like a
frame, but without the stamp, which cannot be guessed.
"""

import contextlib
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Final

from tooltrail.records.digests import Digest, digest_of, sha256
from tooltrail.records.errors import InvalidRecordError
from tooltrail.records.frozen import Frozen

if TYPE_CHECKING:
    from tooltrail.records.facts import Fact

MAGIC: Final = b"TTf1"
_HEADER: Final = struct.Struct("<4sIIIQI32sI")
HEADER_SIZE: Final = _HEADER.size
_CRC: Final = struct.Struct("<I")
CRC_SIZE: Final = _CRC.size
_CHECKED_FROM: Final = len(MAGIC) + CRC_SIZE
_LENGTH: Final = struct.Struct("<I")

MAX_FRAME_BYTES: Final = 1 << 30
"""The longest frame, with its bodies. A longer output must be captured as a stream."""

FRAMES_FROM: Final = 76
"""Offset of the first frame of a segment, behind the head of the segment."""

HASH_SIZE: Final = 32
FIRST_HASH: Final = bytes(HASH_SIZE)
"""The hash before the first frame of a journal."""


class BrokenFrameError(Exception):
    """The bytes at an offset are not a complete frame."""


class Cursor(Frozen):
    """A position between two frames of a journal: segment, offset and index of the next frame.

    `hash` is the hash of the frame before; None behind damage, where that hash is unknown.
    """

    segment: int = 1
    offset: int = FRAMES_FROM
    index: int = 0
    hash: bytes | None = FIRST_HASH

    @property
    def offsets(self) -> tuple[int, int]:
        """Segment and offset, by which the cursors of a journal are ordered."""
        return self.segment, self.offset


class Frame(Frozen):
    """One frame that was read.

    Attributes:
        index: index of the frame in the journal, from 0.
        offset: offset of its first byte in the segment.
        end: offset of the first byte behind it.
        durable_to: offset up to which the segment was synced before the frame was written.
        packed_bodies: the bodies with their lengths, as in the segment.
    """

    index: int
    segment: int
    offset: int
    end: int
    durable_to: int
    previous_hash: bytes
    hash: bytes
    fact_json: bytes
    packed_bodies: bytes

    @property
    def fact(self) -> "Fact":
        """The fact. Raises `InvalidRecordError` if the JSON is no fact that this program knows."""
        # Imported here, since most readers do not need facts.
        from tooltrail.records.fact_spelling import read_fact  # noqa: PLC0415

        return read_fact(self.fact_json)

    @property
    def cursor(self) -> Cursor:
        """The position behind the frame."""
        return Cursor(self.segment, self.end, self.index + 1, self.hash)

    @property
    def is_linked(self) -> bool:
        """Whether the hash of this frame continues the hash of the frame before."""
        return self.hash == link(self.previous_hash, self.fact_json)

    def bodies(self) -> Mapping[Digest, bytes]:
        """The bodies by digest."""
        found: dict[Digest, bytes] = {}
        at = 0
        while at < len(self.packed_bodies):
            (length,) = _LENGTH.unpack_from(self.packed_bodies, at)
            at += _LENGTH.size
            body = self.packed_bodies[at : at + length]
            found[digest_of(body)] = body
            at += length
        return found


class Header(Frozen):
    """The fixed part of a frame."""

    crc: int
    fact_length: int
    bodies_length: int
    index: int
    durable_to: int
    hash: bytes
    stamp: int

    @property
    def frame_size(self) -> int:
        """The size of the frame in bytes, with its fact and bodies."""
        return HEADER_SIZE + self.fact_length + self.bodies_length


def with_crc(data: bytes) -> bytes:
    """The data, followed by its CRC-32."""
    return data + _CRC.pack(zlib.crc32(data))


def link(previous_hash: bytes, fact_json: bytes) -> bytes:
    """The hash of a frame."""
    return sha256(previous_hash + fact_json)


def pack_frame(
    fact_json: bytes,
    bodies: Sequence[bytes],
    *,
    index: int,
    durable_to: int,
    frame_hash: bytes,
    stamp: int,
) -> bytes:
    """The bytes of a frame.

    Raises `InvalidRecordError` if the frame is longer than `MAX_FRAME_BYTES`.
    """
    size = HEADER_SIZE + len(fact_json) + sum(len(body) + _LENGTH.size for body in bodies)
    if size > MAX_FRAME_BYTES:
        raise InvalidRecordError(
            f"a record of {size:,} bytes is longer than a journal frame may be "
            f"({MAX_FRAME_BYTES:,}); capture long output as a stream"
        )
    bodies_length = size - HEADER_SIZE - len(fact_json)
    header = (MAGIC, 0, len(fact_json), bodies_length, index, durable_to, frame_hash, stamp)
    parts = [_HEADER.pack(*header)[_CHECKED_FROM:], fact_json]
    for body in bodies:
        parts += [_LENGTH.pack(len(body)), body]
    checked = b"".join(parts)
    return MAGIC + _CRC.pack(zlib.crc32(checked)) + checked


def read_header(data: bytes | memoryview) -> Header:
    """The header at the beginning of `data`; raises `BrokenFrameError` if there is none."""
    if len(data) < HEADER_SIZE:
        raise BrokenFrameError("cut off")
    magic, *values = _HEADER.unpack_from(data)
    if magic != MAGIC:
        raise BrokenFrameError("not a frame")
    return Header(*values)


def unpack_frame(data: bytes | memoryview, cursor: Cursor) -> Frame:
    """The frame at a cursor, where `data` begins. Its index is not compared with the cursor.

    Raises `BrokenFrameError` if there is no complete frame.
    """
    header = read_header(data)
    if len(data) < header.frame_size:
        raise BrokenFrameError("cut off")
    if zlib.crc32(memoryview(data)[_CHECKED_FROM : header.frame_size]) != header.crc:
        raise BrokenFrameError("altered")
    facts_end = HEADER_SIZE + header.fact_length
    return Frame(
        index=header.index,
        segment=cursor.segment,
        offset=cursor.offset,
        end=cursor.offset + header.frame_size,
        durable_to=header.durable_to,
        previous_hash=cursor.hash or b"",
        hash=header.hash,
        fact_json=bytes(data[HEADER_SIZE:facts_end]),
        packed_bodies=bytes(data[facts_end : header.frame_size]),
    )


def read_frames(data: bytes | memoryview, cursor: Cursor) -> Iterator[Frame]:
    """The complete frames at a cursor, where `data` begins, that continue the chain.

    A frame that breaks the chain is the remainder of a longer tail that a power cut undid. Reading
    stops there. If the hash of the cursor is unknown, the first frame is accepted unchecked.
    """
    view, begin = memoryview(data), cursor.offset
    while True:
        try:
            frame = unpack_frame(view[cursor.offset - begin :], cursor)
        except BrokenFrameError:
            return
        if cursor.hash is not None and (frame.index != cursor.index or not frame.is_linked):
            return
        yield frame
        cursor = frame.cursor


def find_acknowledged(
    data: bytes, cursor: Cursor, *, stamp: int | None, is_sealed: bool = False
) -> Frame | None:
    """The first complete frame behind a broken one that proves the broken one was acknowledged.

    If the bytes at the broken frame were synced before a frame was written, its `durable_to` shows
    that. Every frame of a sealed segment was synced. None if the bytes from there on are a torn
    tail.

    `data` begins at `cursor`, the position of the broken frame. `stamp` is that of the segment;
    None if unknown.
    """
    view = memoryview(data)
    for at in _places(data):
        try:
            header = read_header(view[at : at + HEADER_SIZE])
            is_ours = header.index > cursor.index and stamp in {None, header.stamp}
            if is_ours and (is_sealed or header.durable_to > cursor.offset):
                return unpack_frame(view[at:], Cursor(cursor.segment, cursor.offset + at, 0, None))
        except BrokenFrameError:
            pass
    return None


def _places(data: bytes) -> Iterator[int]:
    """The offsets in `data` where a frame behind the broken one may begin."""
    with contextlib.suppress(BrokenFrameError):
        # If only the fact or the bodies are altered, the header still shows where the frame ends.
        yield read_header(data).frame_size
    at = data.find(MAGIC, 1)
    while at >= 0:
        yield at
        at = data.find(MAGIC, at + 1)
