"""The format of a stored object: independent zstd frames, one after the other, and their index.

Each frame holds up to a frame size of plain bytes, tells their number and ends with a checksum, so
whatever is complete on disk can be decoded, by `zstd -d` as well. An empty stream is one empty
frame. The index is described in `frame_index`; a decoder passes over it.

Two traps shape the reader: `ZstdDecompressor.decompress` stops after the first frame without a
word, and a file that was cut reads short without an error. Inside a frame the second is caught
here; between frames only size and digest help, which the archive compares.
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
"""zstd's own default: higher levels halve the speed for a few per cent of size."""

_SMALL_SIZE = 128 * 1024
"""Bytes of the largest source for which zstd's own tables at this level are small."""

READ_SIZE = 128 * 1024
"""Bytes that one read asks of a sink, zstd's recommended input size."""

_SEAL = b"\x50\x2a\x4d\x18" + (2 * FRAME_SIZE).to_bytes(4, "little") + b"\xff" * (2 * FRAME_SIZE)
"""A skippable frame that the reader puts behind every stored object, and that decodes to nothing.

Behind an object that ends inside a frame its bytes are taken for the rest of that frame, and they
are wrong as a header, as a block and as a checksum; they are more than any block can swallow.
Without it zstandard takes a lost checksum, or the first bytes of another frame, for a good end.
"""


class RawWriter(Protocol):
    """An unbuffered file: its write may take a part of what it is given."""

    def write(self, data: memoryview, /) -> int | None:
        """How many bytes were taken."""
        ...


class _Decoder(Protocol):
    def readinto(self, buffer: "WriteableBuffer", /) -> int: ...


class _Sealed:
    """A stored object followed by the seal."""

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
    """Write all of it; a raw file may take a part, and a disk that is nearly full does.

    Raises:
        OSError: as the file raises it.
    """
    rest = memoryview(data)
    while rest:
        rest = rest[raw.write(rest) or 0 :]


class FrameWriter:
    """Appends frames to an unbuffered file, and their index behind them.

    Not safe for several threads. After an exception the file may end in an unfinished frame:
    cut it to `stored_size`.

    Attributes:
        plain_size: plain bytes in the frames completed so far.
        stored_size: bytes of what was completed, that is the offset at which the next frame starts.
        open_size: bytes behind them of a frame that is not complete.
    """

    def __init__(self, raw: RawWriter) -> None:
        """Write to `raw`, which stays the caller's to close."""
        self._raw = raw
        self._index = IndexBuilder()
        self.plain_size = 0
        self.stored_size = 0
        self.open_size = 0

    def extend(self, part: bytes) -> None:
        """Append a part of a frame that is not complete.

        Raises:
            OSError: as the file raises it.
        """
        write_whole(self._raw, part)
        self.open_size += len(part)

    def append(self, frame: Frame) -> None:
        """Append one frame, or the rest of it where its first parts are there.

        Raises:
            OSError: as the file raises it.
        """
        write_whole(self._raw, frame.data[self.open_size :])
        self.stored_size, self.open_size = self.stored_size + len(frame.data), 0
        self._index.add(frame)
        self.plain_size += frame.plain_size

    def go_back(self, frame_count: int) -> None:
        """Forget all frames but the first; the caller cuts the file to `stored_size`."""
        self._index.keep(frame_count)
        self.stored_size, self.plain_size = self._index.sizes
        self.open_size = 0

    def close(self) -> FrameIndex:
        """Append the index, and before it an empty frame when there is none; nothing may follow.

        Raises:
            OSError: as the file raises it.
        """
        if not self.stored_size:
            self.append(compress_frame(b""))
        index = self._index.build()
        data = index.to_bytes()
        write_whole(self._raw, data)
        self.stored_size += len(data)
        return index


class _Compressors(threading.local):
    """Two compressors for each thread, for none can be shared."""

    def __init__(self) -> None:
        self._plain = _compressor()
        # For sources of 128 to 256 KiB level 3 looks for matches of 4 bytes in 512 KiB of tables,
        # for shorter and longer ones of 5 bytes. With 5, and tables that stay in a core's cache,
        # text takes 5 to 25 % less time and 0 to 8 % less room, machine code 1 % more room.
        self._frame = _compressor(min_match=5, hash_log=15, chain_log=15)

    def compress(self, plain: bytes | bytearray | memoryview) -> bytes:
        is_frame = _SMALL_SIZE < len(plain) <= FRAME_SIZE
        return (self._frame if is_frame else self._plain).compress(plain)


def _compressor(**tuned: int) -> zstandard.ZstdCompressor:
    # What is not said here zstd takes from the level and the size of each source.
    parameters = zstandard.ZstdCompressionParameters(
        compression_level=LEVEL, write_checksum=True, write_content_size=True, **tuned
    )
    return zstandard.ZstdCompressor(compression_params=parameters)


_COMPRESSORS = _Compressors()


def compress_frame(plain: bytes | bytearray | memoryview) -> Frame:
    """One frame that holds exactly these bytes; safe for threads, which it does not hold up."""
    data = _COMPRESSORS.compress(plain)
    return Frame(data, len(plain), count_newlines(plain))


class GrowingFrame:
    """One frame of a stream that comes slowly: what was flushed can be decoded before it ends.

    Each flush ends a block inside the frame, which compresses worse than one block. A higher level
    makes up for that, and costs little for a stream that is slow. Not safe for several threads.

    Attributes:
        plain_size: plain bytes that were flushed.
    """

    def __init__(self) -> None:
        """Begin a frame; some 800 KiB are held until it is finished."""
        self._compressor = zstandard.ZstdCompressor(compression_params=_GROWING).compressobj()
        self._data = bytearray()
        self._newline_count = 0
        self.plain_size = 0

    def flush(self, plain: bytes | bytearray) -> bytes:
        """Add the next bytes; returns the stored bytes from which they can be decoded."""
        part = self._compress(plain, zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        self._data += part
        return part

    def finish(self, plain: bytes | bytearray) -> Frame:
        """Add the last bytes and end the frame; returns all of it."""
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
"""Level 6 finds more in what came before; its own tables would take 3 MiB for each stream."""


def count_newlines(plain: bytes | bytearray | memoryview) -> int:
    """Newlines in a block."""
    return (plain if isinstance(plain, bytes | bytearray) else bytes(plain)).count(b"\n")


def encode(plain: bytes) -> bytes:
    """The stored object of bytes that are wholly in memory, in memory too."""
    raw = io.BytesIO()
    encode_into(raw, plain)
    return raw.getvalue()


def encode_into(raw: RawWriter, plain: bytes, frame_size: int = FRAME_SIZE) -> FrameIndex:
    """Write the stored object of bytes in memory, frame by frame.

    Raises:
        OSError: as the file raises it.
    """
    writer = FrameWriter(raw)
    rest = memoryview(plain)
    while rest:
        writer.append(compress_frame(rest[:frame_size]))
        rest = rest[frame_size:]
    return writer.close()


class PlainReader(io.RawIOBase):
    """The plain bytes of a stored object, across all frames, at constant memory.

    Closes the stored stream with itself. An object that was cut inside a frame is damage. One that
    was cut between frames ends early without an error: use `ArtifactArchive.open`, which knows
    how it should end.
    """

    def __init__(self, stored: BinaryIO, path: str) -> None:
        """Decode `stored`; `path` names it in errors."""
        self._stored = stored
        self._path = path
        # zstandard calls nothing but read.
        sealed = cast("BinaryIO", _Sealed(stored))
        self._decoder: _Decoder = zstandard.ZstdDecompressor().stream_reader(
            sealed, read_size=READ_SIZE, read_across_frames=True
        )

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Fill `buffer`, or less at the end.

        Raises:
            DamageError: the bytes are not zstd frames, or a checksum does not fit.
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
    """The plain bytes of `stored`, unchecked except for the frames' own checksums.

    Raises:
        DamageError: from its reads; see `PlainReader`.
        UnavailableError: the same.
    """
    return io.BufferedReader(PlainReader(stored, path), READ_SIZE)
