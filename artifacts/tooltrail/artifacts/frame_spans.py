"""Find the frames of a file without an index by their headers, without decompressing them.

A spool file has no index while it grows, or after its program was killed. RFC 8878, sections 3.1.1
and 3.1.2, defines the layout of frames and blocks.
"""

import os
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

import zstandard

from tooltrail.records.errors import DamageError

FRAME_MAGIC = b"\x28\xb5\x2f\xfd"
_SKIPPABLE = b"\x2a\x4d\x18"
"""Bytes 2 to 4 of a skippable frame; the first byte is 0x50 to 0x5F."""

HEADER_SIZE = 18
"""Bytes of the longest frame header."""

_BLOCK_HEADER_SIZE = 3
_CHECKSUM_SIZE = 4
_RLE = 1


class FrameSpan(NamedTuple):
    """The offsets of one frame in a file.

    Attributes:
        start: offset of the first byte.
        stop: offset after the last byte.
        is_data: whether the frame has plain bytes; a skippable frame has none.
    """

    start: int
    stop: int
    is_data: bool


def iter_spans(stored: BinaryIO, path: str, start: int = 0) -> Iterator[FrameSpan]:
    """Every complete frame from `start` on, up to the end of the file or an incomplete frame.

    Args:
        stored: seekable file; it may grow during the iteration.
        path: path of the file, for errors.
        start: offset at which a frame begins.

    Raises:
        DamageError: the bytes are not a frame.
        OSError: from the file.
    """
    while True:
        stored.seek(start)
        header = stored.read(HEADER_SIZE)
        span = _span(stored, header, start, path)
        if span is None or not _has_bytes(stored, span.stop):
            return
        yield span
        start = span.stop


def is_skippable(header: bytes) -> bool:
    """Whether a frame with this header, or the beginning of one, is skippable, like an index."""
    return bool(header) and header[0] >> 4 == 5 and header[1:4] == _SKIPPABLE[: len(header) - 1]


def block_stops(stored: BinaryIO, start: int) -> Iterator[int]:
    """The end offsets of the header and of each complete block of a frame, up to an empty block.

    A capture never flushes an empty block. A power loss can leave zeros, which look like one.

    Raises:
        OSError: from the file.
    """
    stored.seek(start)
    header = stored.read(HEADER_SIZE)
    try:
        offset = start + zstandard.frame_header_size(header)
    except zstandard.ZstdError:
        return
    size = stored.seek(0, os.SEEK_END)
    while offset <= size:
        yield offset
        stored.seek(offset)
        block = stored.read(_BLOCK_HEADER_SIZE)
        if len(block) < _BLOCK_HEADER_SIZE or not any(block):
            return
        offset += _BLOCK_HEADER_SIZE + _block_size(block)


def _span(stored: BinaryIO, header: bytes, start: int, path: str) -> FrameSpan | None:
    """The frame that begins with `header`; None if the file ends inside the frame."""
    if is_skippable(header):
        if len(header) < 8:
            return None
        return FrameSpan(start, start + 8 + int.from_bytes(header[4:8], "little"), is_data=False)
    if header[:4] != FRAME_MAGIC[: len(header)]:
        raise _no_frame(start, path)
    try:
        parameters = zstandard.get_frame_parameters(header)
        offset = start + zstandard.frame_header_size(header)
    except zstandard.ZstdError:
        if len(header) < HEADER_SIZE:
            return None
        raise _no_frame(start, path) from None
    end = _end_of_blocks(stored, offset)
    if end is None:
        return None
    return FrameSpan(start, end + _CHECKSUM_SIZE * parameters.has_checksum, is_data=True)


def _end_of_blocks(stored: BinaryIO, offset: int) -> int | None:
    while True:
        stored.seek(offset)
        header = stored.read(_BLOCK_HEADER_SIZE)
        if len(header) < _BLOCK_HEADER_SIZE:
            return None
        offset += _BLOCK_HEADER_SIZE + _block_size(header)
        if header[0] & 1:
            return offset


def _block_size(header: bytes) -> int:
    number = int.from_bytes(header, "little")
    return 1 if number >> 1 & 3 == _RLE else number >> 3


def _has_bytes(stored: BinaryIO, stop: int) -> bool:
    """Whether the file has at least `stop` bytes."""
    stored.seek(stop - 1)
    return len(stored.read(1)) == 1


def _no_frame(start: int, path: str) -> DamageError:
    return DamageError(
        f"{path} is damaged: no frame begins at byte {start:,} of the stored file", path=path
    )
