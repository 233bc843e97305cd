"""Decodes single frames, and believes nothing that they say of themselves.

A frame's header tells how much memory its bytes take, so it is compared with what is known before
anything is decompressed. `ZstdDecompressor.decompress` stops after one frame without a word unless
it is told that nothing may follow.
"""

import threading
from typing import NamedTuple

import zstandard

MAX_FRAME_SIZE = 64 * 1024 * 1024
"""Plain bytes of the largest frame that is decoded when no index says how many there are."""

_CHECKSUM_SIZE = 4


class FrameMismatchError(Exception):
    """Stored bytes are not the frame that an index describes; the damage, or the index, is old.

    Attributes:
        start: plain offset at which the frame begins.
    """

    def __init__(self, message: str, start: int) -> None:
        super().__init__(message)
        self.start = start


class FrameFacts(NamedTuple):
    """What an index says of a frame.

    Attributes:
        plain_size: plain bytes in it.
        checksum: the number that it ends with.
        start: plain offset at which it begins.
    """

    plain_size: int
    checksum: int
    start: int = 0


class _Decompressors(threading.local):
    """One for each thread, for none can be shared."""

    def __init__(self) -> None:
        self.own = zstandard.ZstdDecompressor()


_DECOMPRESSORS = _Decompressors()


def decode_frame(data: bytes, facts: FrameFacts) -> bytes:
    """The plain bytes of one whole frame; safe for threads, which it does not hold up.

    Raises:
        FrameMismatchError: it is another frame, or was cut or altered.
    """
    try:
        return _decoded(data, facts)
    except (ValueError, zstandard.ZstdError) as error:
        raise FrameMismatchError(str(error), facts.start) from error


def decode_unknown(data: bytes) -> bytes:
    """The plain bytes of one whole frame of which nothing is known.

    Raises:
        ValueError: it was altered, or is larger than any that this program writes.
    """
    try:
        told = zstandard.get_frame_parameters(data).content_size
        if told == zstandard.CONTENTSIZE_UNKNOWN or told <= MAX_FRAME_SIZE:
            return _decompress(data, MAX_FRAME_SIZE)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error
    raise ValueError(f"it speaks of {told:,} bytes, and none above {MAX_FRAME_SIZE:,} is decoded")


def _decoded(data: bytes, facts: FrameFacts) -> bytes:
    if checksum_of(data) != facts.checksum:
        raise ValueError("it ends with another checksum")
    told = zstandard.get_frame_parameters(data).content_size
    if told not in (facts.plain_size, zstandard.CONTENTSIZE_UNKNOWN):
        raise ValueError("it tells another size")
    plain = _decompress(data, facts.plain_size)
    if len(plain) != facts.plain_size:
        raise ValueError("it holds another number of bytes")
    return plain


def checksum_of(data: bytes) -> int:
    """The number that a frame ends with."""
    return int.from_bytes(data[-_CHECKSUM_SIZE:], "little")


def _decompress(data: bytes, limit: int) -> bytes:
    return _DECOMPRESSORS.own.decompress(data, max_output_size=limit, allow_extra_data=False)
