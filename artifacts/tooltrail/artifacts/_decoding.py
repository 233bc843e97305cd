"""Decodes single frames, and believes nothing that they say of themselves.

A frame's header says how much memory its bytes take, so it is compared with what is known before
anything is decompressed. `ZstdDecompressor.decompress` stops after one frame without an error
unless `allow_extra_data` is false.
"""

import threading
from typing import BinaryIO, NamedTuple, Protocol

import zstandard

from tooltrail.artifacts.frame_spans import HEADER_SIZE, FrameSpan, block_stops
from tooltrail.records.errors import DamageError

MAX_FRAME_SIZE = 64 * 1024 * 1024
"""Plain bytes of the largest frame that is decoded when no index says how many there are."""

_CHECKSUM_SIZE = 4
_STEP = 1024
_ZEROS = 3


class Decoder(Protocol):
    """What `zstandard.ZstdDecompressor.decompressobj` makes: decodes one frame in parts."""

    @property
    def eof(self) -> bool:
        """Whether the frame is complete."""
        ...

    @property
    def unused_data(self) -> bytes:
        """What follows the frame in the last part."""
        ...

    def decompress(self, data: bytes, /) -> bytes:
        """The plain bytes of the next part."""
        ...


class FrameFacts(NamedTuple):
    """What an index says of a frame.

    Attributes:
        plain_size: plain bytes in it.
        checksum: the number that it ends with.
    """

    plain_size: int
    checksum: int


class _Decompressors(threading.local):
    """One for each thread, for none can be shared."""

    def __init__(self) -> None:
        self.own = zstandard.ZstdDecompressor()


_DECOMPRESSORS = _Decompressors()


def decode_frame(data: bytes, facts: FrameFacts) -> bytes:
    """The plain bytes of one whole frame; safe for threads, which it does not hold up.

    Raises:
        ValueError: it is another frame, or was cut or altered.
    """
    try:
        return _decoded(data, facts)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error


def decode_unknown(data: bytes) -> bytes:
    """The plain bytes of one whole frame of which nothing is known.

    Raises:
        ValueError: it was altered, or is larger than any that this program writes.
    """
    try:
        size = zstandard.get_frame_parameters(data).content_size
        if size == zstandard.CONTENTSIZE_UNKNOWN:
            plain, is_whole = _decode_beginning(data)
            if not is_whole:
                raise ValueError("it was cut")
            return plain
        if size <= MAX_FRAME_SIZE:
            return _decompress(data, MAX_FRAME_SIZE)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error
    raise ValueError(f"it announces {size:,} bytes, and none above {MAX_FRAME_SIZE:,} is decoded")


def _decode_beginning(data: bytes) -> tuple[bytes, bool]:
    decoder = _DECOMPRESSORS.own.decompressobj()
    pieces: list[bytes] = []
    size = 0
    # In small steps, so that a frame that claims little and holds much is found in time.
    for start in range(0, len(data), _STEP):
        pieces.append(decoder.decompress(data[start : start + _STEP]))
        size += len(pieces[-1])
        if size > MAX_FRAME_SIZE:
            raise ValueError(f"it has more than {MAX_FRAME_SIZE:,} bytes")
        if decoder.eof:
            break
    return b"".join(pieces), decoder.eof


def _decoded(data: bytes, facts: FrameFacts) -> bytes:
    if checksum_of(data) != facts.checksum:
        raise ValueError("it ends with another checksum")
    size = zstandard.get_frame_parameters(data).content_size
    if size not in (facts.plain_size, zstandard.CONTENTSIZE_UNKNOWN):
        raise ValueError("it announces another size")
    plain = _decompress(data, facts.plain_size)
    if len(plain) != facts.plain_size:
        raise ValueError("it holds another number of bytes")
    return plain


def checksum_of(data: bytes) -> int:
    """The number that a frame ends with."""
    return int.from_bytes(data[-_CHECKSUM_SIZE:], "little")


def _decompress(data: bytes, limit: int) -> bytes:
    if not zstandard.get_frame_parameters(data).content_size:
        # `decompress` does not look behind the header of such a frame.
        stream = _DECOMPRESSORS.own.decompressobj()
        plain = stream.decompress(data)
        if not stream.eof or stream.unused_data:
            raise ValueError("it was cut, or bytes follow it")
        return plain
    return _DECOMPRESSORS.own.decompress(data, max_output_size=limit, allow_extra_data=False)


class ReadFrame(NamedTuple):
    """One frame, as it is stored and as it was written."""

    stored: bytes
    plain: bytes


def read_frame(file: BinaryIO, span: FrameSpan, path: str) -> ReadFrame:
    """Read and decode one frame; `path` names the file in errors.

    Raises:
        DamageError: it was altered, or claims to be larger than any that this program writes.
        OSError: as the file raises it.
    """
    file.seek(span.start)
    stored = file.read(span.stop - span.start)
    try:
        return ReadFrame(stored, decode_unknown(stored))
    except ValueError as error:
        raise DamageError(
            f"{path} is damaged: the frame at byte {span.start:,} of the stored file cannot be"
            f" decoded: {error}",
            path=path,
        ) from error


def announced_size(file: BinaryIO, start: int) -> int:
    """The plain bytes that the header of the frame at `start` announces; 0 when it does not.

    Raises:
        OSError: as the file raises it.
    """
    file.seek(start)
    try:
        size = zstandard.get_frame_parameters(file.read(HEADER_SIZE)).content_size
    except zstandard.ZstdError:
        return 0
    return size if size <= MAX_FRAME_SIZE else 0


class Beginning(NamedTuple):
    """What is there of a frame that is not complete.

    Attributes:
        plain: what can be decoded.
        is_flushed: whether the file ends behind that, as a flush leaves it.
        problem: why no more can be decoded, in one sentence; None for a frame that is merely cut.
    """

    plain: bytes
    is_flushed: bool
    problem: str | None


def read_beginning(file: BinaryIO, start: int, path: str) -> Beginning:
    """Decode the frame at `start`, with which the file ends so far, block by block.

    Raises:
        OSError: as the file raises it.
    """
    decoder = zstandard.ZstdDecompressor().decompressobj()
    plain, position = bytearray(), start
    reason: str | None = None
    for stop in block_stops(file, start):
        file.seek(position)
        try:
            plain += decoder.decompress(file.read(stop - position))
        except zstandard.ZstdError as error:
            reason = str(error)
            break
        position = stop
        if len(plain) > MAX_FRAME_SIZE:
            break
    file.seek(position)
    rest = file.read(_ZEROS)
    if reason is None and len(rest) == _ZEROS and not any(rest):
        reason = "zeros follow"
    problem = (
        f"{path} is damaged: the frame at byte {start:,} of the stored file ends there: {reason}"
    )
    return Beginning(bytes(plain), not rest, problem if reason else None)


def plain_size_of(file: BinaryIO, span: FrameSpan, path: str) -> int:
    """The plain bytes of a whole frame, which is decoded when it does not announce them.

    Raises:
        DamageError, OSError: see `read_frame`.
    """
    return announced_size(file, span.start) or len(read_frame(file, span, path).plain)
