"""The format of a stored object: independent zstd frames, one after the other, and their index.

Each frame has at most `frame_size` plain bytes, announces their number and ends with a checksum. So
each complete frame on disk can be decoded, also by `zstd -d`. An empty stream is one empty frame.
`frame_index` describes the index; decoders skip it.

The reader avoids two traps. `ZstdDecompressor.decompress` ignores all frames after the first, and
zstandard reports no error at the end of a cut file. This module detects a cut inside a frame. A
cut between frames changes only size and digest, which the archive compares.
"""

import io
import threading
from typing import TYPE_CHECKING, BinaryIO, Protocol, cast

import zstandard

from tooltrail.artifacts.frame_index import Frame, FrameIndex, IndexBuilder
from tooltrail.artifacts.sink import FRAME_SIZE
from tooltrail.records.errors import DamageError, UnavailableError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


LEVEL = 3
"""Compression level, the default of zstd: higher levels halve the speed to save a few per cent."""

_SMALL_SIZE = 128 * 1024
"""Bytes of the largest source for which the default tables of zstd at this level are small."""

READ_SIZE = 128 * 1024
"""Bytes per read from a sink, the input size that zstd recommends."""

_SEAL = b"\x50\x2a\x4d\x18" + (2 * FRAME_SIZE).to_bytes(4, "little") + b"\xff" * (2 * FRAME_SIZE)
"""A skippable frame that the reader appends to each stored object; it has no plain bytes.

If the object ends inside a frame, the decoder reads the seal as the rest of that frame. The seal is
invalid as a header, as a block and as a checksum, and longer than any block. So decoding fails.
Without the seal, zstandard reports no error for a missing checksum or a cut header of a frame.
"""


class RawWriter(Protocol):
    """An unbuffered file: its `write` may write only a part of the data."""

    def write(self, data: memoryview, /) -> int | None:
        """Write and return the number of bytes that were written."""
        ...


class _Decoder(Protocol):
    def readinto(self, buffer: "WriteableBuffer", /) -> int: ...


class _Sealed:
    """A stored object followed by `_SEAL`."""

    def __init__(self, stored: BinaryIO) -> None:
        self._stored = stored
        self._seal: BinaryIO | None = None

    def read(self, size: int) -> bytes:
        if self._seal is None:
            data = self._stored.read(size)
            if data:
                return data
            self._seal = io.BytesIO(_SEAL)
        return self._seal.read(size)


def write_whole(raw: RawWriter, data: bytes) -> None:
    """Write all data; one `write` of a raw file may write a part, for instance on a full disk.

    Raises:
        OSError: from the file.
    """
    rest = memoryview(data)
    while rest:
        rest = rest[raw.write(rest) or 0 :]


class FrameWriter:
    """Appends frames to an unbuffered file, and then their index.

    Not safe for threads. After an exception the file may end in an unfinished frame: cut it to
    `stored_size`.

    Attributes:
        plain_size: plain bytes in the complete frames.
        stored_size: stored bytes of the complete frames: the offset at which the next frame starts.
        open_size: stored bytes of an unfinished frame behind the complete frames.
    """

    def __init__(self, raw: RawWriter) -> None:
        """Write to `raw`; the caller closes it."""
        self._raw = raw
        self._index = IndexBuilder()
        self.plain_size = 0
        self.stored_size = 0
        self.open_size = 0

    def extend(self, part: bytes) -> None:
        """Append a part of an unfinished frame.

        Raises:
            OSError: from the file.
        """
        write_whole(self._raw, part)
        self.open_size += len(part)

    def append(self, frame: Frame) -> None:
        """Append one frame, or the rest of it if its first parts were appended before.

        Raises:
            OSError: from the file.
        """
        write_whole(self._raw, frame.data[self.open_size :])
        self.stored_size, self.open_size = self.stored_size + len(frame.data), 0
        self._index.add(frame)
        self.plain_size += frame.plain_size

    def go_back(self, frame_count: int) -> None:
        """Keep only the first `frame_count` frames; the caller cuts the file to `stored_size`."""
        self._index.keep(frame_count)
        self.stored_size, self.plain_size = self._index.sizes
        self.open_size = 0

    def close(self) -> FrameIndex:
        """Append the index, after an empty frame if there is no frame; nothing may follow.

        Raises:
            OSError: from the file.
        """
        if not self.stored_size:
            self.append(compress_frame(b""))
        index = self._index.build()
        data = index.to_bytes()
        write_whole(self._raw, data)
        self.stored_size += len(data)
        return index


class _Compressors(threading.local):
    """Two compressors per thread, because threads cannot share them."""

    def __init__(self) -> None:
        self._plain = _compressor()
        # For sources of 128 to 256 KiB, level 3 searches matches of 4 bytes in 512 KiB of tables;
        # for other sizes, matches of 5 bytes. With 5, and tables that fit in a core's cache, text
        # needs 5 to 25 % less time and 0 to 8 % less space, and machine code 1 % more space.
        self._frame = _compressor(min_match=5, hash_log=15, chain_log=15)

    def compress(self, plain: bytes | bytearray | memoryview) -> bytes:
        is_frame = _SMALL_SIZE < len(plain) <= FRAME_SIZE
        return (self._frame if is_frame else self._plain).compress(plain)


def _compressor(**tuned: int) -> zstandard.ZstdCompressor:
    # zstd derives all other parameters from the level and the size of each source.
    parameters = zstandard.ZstdCompressionParameters(
        compression_level=LEVEL, write_checksum=True, write_content_size=True, **tuned
    )
    return zstandard.ZstdCompressor(compression_params=parameters)


_COMPRESSORS = _Compressors()


def compress_frame(plain: bytes | bytearray | memoryview) -> Frame:
    """Compress bytes into one frame. Safe for threads; releases the interpreter lock."""
    data = _COMPRESSORS.compress(plain)
    return Frame(data, len(plain), count_newlines(plain))


class GrowingFrame:
    """One frame of a slow stream: flushed bytes can be decoded before the frame ends.

    Each flush ends a block in the frame, and many blocks compress worse than one block. A higher
    level compensates for this, and costs little time for a slow stream. Not safe for threads.

    Attributes:
        plain_size: plain bytes that were flushed.
    """

    def __init__(self) -> None:
        """Begin a frame; uses about 800 KiB of memory until the frame is finished."""
        self._compressor = zstandard.ZstdCompressor(compression_params=_GROWING).compressobj()
        self._data = bytearray()
        self._newline_count = 0
        self.plain_size = 0

    def flush(self, plain: bytes | bytearray) -> bytes:
        """Add the next bytes, and return the stored bytes that encode them."""
        part = self._compress(plain, zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        self._data += part
        return part

    def finish(self, plain: bytes | bytearray) -> Frame:
        """Add the last bytes, end the frame, and return the complete frame."""
        self._data += self._compress(plain, zstandard.COMPRESSOBJ_FLUSH_FINISH)
        return Frame(bytes(self._data), self.plain_size, self._newline_count)

    def _compress(self, plain: bytes | bytearray, mode: int) -> bytes:
        part = self._compressor.compress(plain) + self._compressor.flush(mode)
        self.plain_size += len(plain)
        self._newline_count += count_newlines(plain)
        return part


_GROWING = zstandard.ZstdCompressionParameters(
    compression_level=6, window_log=18, hash_log=16, chain_log=16, write_checksum=True
)
"""Level 6 finds more matches in earlier blocks. Its default tables would use 3 MiB per stream."""


def count_newlines(plain: bytes | bytearray | memoryview) -> int:
    """The number of newlines in a block."""
    return (plain if isinstance(plain, bytes | bytearray) else bytes(plain)).count(b"\n")


def encode(plain: bytes) -> bytes:
    """The stored object of bytes in memory, as bytes."""
    raw = io.BytesIO()
    encode_into(raw, plain)
    return raw.getvalue()


def encode_into(raw: RawWriter, plain: bytes, frame_size: int = FRAME_SIZE) -> FrameIndex:
    """Write the stored object of bytes in memory, frame by frame.

    Raises:
        OSError: from the file.
    """
    writer = FrameWriter(raw)
    rest = memoryview(plain)
    while rest:
        writer.append(compress_frame(rest[:frame_size]))
        rest = rest[frame_size:]
    return writer.close()


class PlainReader(io.RawIOBase):
    """The plain bytes of a stored object, across all frames, at constant memory.

    Closing the reader closes the stored stream. An object that was cut inside a frame raises
    DamageError. An object that was cut between frames ends early without an error; the reader of
    `ArtifactArchive.open` detects this by the digest.
    """

    def __init__(self, stored: BinaryIO, path: str) -> None:
        """Decode `stored`; `path` names it in errors."""
        self._stored = stored
        self._path = path
        # zstandard calls only `read`.
        sealed = cast("BinaryIO", _Sealed(stored))
        self._decoder: _Decoder = zstandard.ZstdDecompressor().stream_reader(
            sealed, read_size=READ_SIZE, read_across_frames=True
        )

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Fill `buffer`, or a part of it at the end; return the number of bytes.

        Raises:
            DamageError: the bytes are not zstd frames, or a checksum is wrong.
            UnavailableError: the stored bytes cannot be read.
        """
        try:
            return self._decoder.readinto(buffer)
        except zstandard.ZstdError as error:
            raise DamageError(
                f"artifact {self._path} cannot be decoded: {error}", path=self._path
            ) from error
        except OSError as error:
            raise UnavailableError(
                f"artifact {self._path} cannot be read: {error.strerror or error}"
            ) from error

    def close(self) -> None:
        """Close the stored stream too."""
        if not self.closed:
            self._stored.close()
        super().close()


def open_plain(stored: BinaryIO, *, path: str = "stream") -> BinaryIO:
    """The plain bytes of `stored`; only the checksums of the frames are compared.

    Raises:
        DamageError: from a read; see `PlainReader`.
        UnavailableError: from a read; see `PlainReader`.
    """
    return io.BufferedReader(PlainReader(stored, path), READ_SIZE)
