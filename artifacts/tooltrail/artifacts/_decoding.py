"""Decode single frames without trusting their headers.

A frame's header announces how much memory its plain bytes need. So the header is compared with the
index, or with `MAX_FRAME_SIZE`, before anything is decompressed. `ZstdDecompressor.decompress`
ignores data behind the first frame unless `allow_extra_data` is false.
"""

import threading
from typing import BinaryIO, NamedTuple, Protocol

import zstandard

from tooltrail.artifacts.frame_spans import HEADER_SIZE, FrameSpan, block_stops
from tooltrail.records.errors import DamageError

MAX_FRAME_SIZE = 64 * 1024 * 1024
"""Plain bytes of the largest frame that is decoded without an index."""

_CHECKSUM_SIZE = 4
_STEP = 1024
_ZEROS = 3


class Decoder(Protocol):
    """An object of `zstandard.ZstdDecompressor.decompressobj`: decodes one frame in parts."""

    @property
    def eof(self) -> bool:
        """Whether the frame is complete."""
        ...

    @property
    def unused_data(self) -> bytes:
        """The bytes behind the frame in the last part."""
        ...

    def decompress(self, data: bytes, /) -> bytes:
        """The plain bytes of the next part."""
        ...


class _Decompressors(threading.local):
    """One decompressor per thread, because threads cannot share one."""

    def __init__(self) -> None:
        self.own = zstandard.ZstdDecompressor()


_DECOMPRESSORS = _Decompressors()


def decode_frame(data: bytes, plain_size: int, checksum: int) -> bytes:
    """The plain bytes of one complete frame with the size and checksum of an index.

    Safe for threads; releases the interpreter lock.

    Raises:
        ValueError: `data` is another frame, or was cut or altered.
    """
    try:
        return _decoded(data, plain_size, checksum)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error


def decode_unknown(data: bytes) -> bytes:
    """The plain bytes of one complete frame that no index describes.

    Raises:
        ValueError: the frame was altered, or has more than `MAX_FRAME_SIZE` plain bytes.
    """
    try:
        size = zstandard.get_frame_parameters(data).content_size
        if size == zstandard.CONTENTSIZE_UNKNOWN:
            plain, is_complete = _decode_beginning(data)
            if not is_complete:
                raise ValueError("it was cut")
            return plain
        if size <= MAX_FRAME_SIZE:
            return _decompress(data, MAX_FRAME_SIZE)
    except zstandard.ZstdError as error:
        raise ValueError(str(error)) from error
    raise ValueError(f"it announces {size:,} bytes, but the limit is {MAX_FRAME_SIZE:,}")


def _decode_beginning(data: bytes) -> tuple[bytes, bool]:
    decoder = _DECOMPRESSORS.own.decompressobj()
    pieces: list[bytes] = []
    size = 0
    # Small steps: a small frame can expand to far more than the limit.
    for start in range(0, len(data), _STEP):
        pieces.append(decoder.decompress(data[start : start + _STEP]))
        size += len(pieces[-1])
        if size > MAX_FRAME_SIZE:
            raise ValueError(f"it has more than {MAX_FRAME_SIZE:,} bytes")
        if decoder.eof:
            break
    return b"".join(pieces), decoder.eof


def _decoded(data: bytes, plain_size: int, checksum: int) -> bytes:
    if checksum_of(data) != checksum:
        raise ValueError("its checksum differs from the index")
    size = zstandard.get_frame_parameters(data).content_size
    if size not in (plain_size, zstandard.CONTENTSIZE_UNKNOWN):
        raise ValueError("the size in its header differs from the index")
    plain = _decompress(data, plain_size)
    if len(plain) != plain_size:
        raise ValueError("its size differs from the index")
    return plain


def checksum_of(data: bytes) -> int:
    """The checksum at the end of a frame, as a number."""
    return int.from_bytes(data[-_CHECKSUM_SIZE:], "little")


def _decompress(data: bytes, limit: int) -> bytes:
    if not zstandard.get_frame_parameters(data).content_size:
        # `decompress` does not read such a frame beyond its header.
        stream = _DECOMPRESSORS.own.decompressobj()
        plain = stream.decompress(data)
        if not stream.eof or stream.unused_data:
            raise ValueError("it was cut, or bytes follow it")
        return plain
    return _DECOMPRESSORS.own.decompress(data, max_output_size=limit, allow_extra_data=False)


class ReadFrame(NamedTuple):
    """The stored bytes and the plain bytes of one frame."""

    stored: bytes
    plain: bytes


def read_frame(file: BinaryIO, span: FrameSpan, path: str) -> ReadFrame:
    """Read and decode one frame; `path` names the file in errors.

    Raises:
        DamageError: the frame was altered, or has more than `MAX_FRAME_SIZE` plain bytes.
        OSError: from the file.
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
    """The plain bytes that the header of the frame at `start` announces; 0 if it announces none.

    Raises:
        OSError: from the file.
    """
    file.seek(start)
    try:
        size = zstandard.get_frame_parameters(file.read(HEADER_SIZE)).content_size
    except zstandard.ZstdError:
        return 0
    return size if size <= MAX_FRAME_SIZE else 0


class Beginning(NamedTuple):
    """The readable part of an incomplete frame.

    Attributes:
        plain: plain bytes that can be decoded.
        is_flushed: whether the file ends directly behind these bytes, as after a flush.
        problem: reason why no more can be decoded, in one sentence; None if the frame is only cut.
    """

    plain: bytes
    is_flushed: bool
    problem: str | None


def read_beginning(file: BinaryIO, start: int, path: str) -> Beginning:
    """Decode the frame at `start`, the last one in the file, block by block.

    Raises:
        OSError: from the file.
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
        f"{path} is damaged: the frame at byte {start:,} of the stored file is incomplete: {reason}"
    )
    return Beginning(bytes(plain), not rest, problem if reason else None)


def plain_size_of(file: BinaryIO, span: FrameSpan, path: str) -> int:
    """The plain size of a complete frame; decodes the frame if its header has no size.

    Raises:
        DamageError, OSError: see `read_frame`.
    """
    return announced_size(file, span.start) or len(read_frame(file, span, path).plain)
