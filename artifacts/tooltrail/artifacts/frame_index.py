"""The index of a stored object: offset, size, newlines and checksum of each frame.

With the index, any part of the object can be read directly. The index ends the object, in two
skippable frames, which every zstd decoder skips:

    lines       0x184D2A5A, size, "TtLi", newlines in each frame (u32 each), CRC-32
    seek table  0x184D2A5E, size, (stored size, plain size, checksum) of each frame (u32 each),
                frame count u32, descriptor u8, 0x8F92EAB1

All numbers are little-endian. The second frame is the seek table of the zstd seekable format 0.1.0
(contrib/seekable_format of the reference implementation), so its readers can seek in these objects.
The table must cover all bytes before it, so its last entry is the `lines` frame, with no plain
bytes. A checksum is the one at the end of the frame: the low 32 bits of XXH64 of the plain bytes.
The CRC-32 covers newline counts and entries of the data frames, and detects an altered index.
"""

import sys
import zlib
from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterable
from itertools import accumulate, pairwise
from operator import le
from struct import Struct
from typing import NamedTuple, Self

from tooltrail.records.errors import DamageError

_LINES_MAGIC = 0x184D2A5A
_LINES_NAME = b"TtLi"
_TABLE_MAGIC = 0x184D2A5E
_SEEKABLE_MAGIC = 0x8F92EAB1
_HAS_CHECKSUMS = 0x80

_HEADER = Struct("<II")
_FOOTER = Struct("<IBI")
_ENTRY_SIZE = 12
_CRC = Struct("<I")

_MAX_FRAMES = 0x800_0000
"""Most frames that the seekable format allows."""

_SUFFIX_SIZE = 64 * 1024
"""Bytes that the first request reads; enough for the index of about a gigabyte."""


class Frame(NamedTuple):
    """One independent zstd frame.

    Attributes:
        data: stored bytes of the frame.
        plain_size: plain bytes in the frame.
        newline_count: newlines in the plain bytes.
    """

    data: bytes
    plain_size: int
    newline_count: int


class FrameIndex:
    """The index of one stored object. Immutable; frames are numbered from 0."""

    __slots__ = ("_checksums", "_newline_ends", "_newlines", "_plain_ends", "_stored_ends")

    def __init__(
        self,
        stored_sizes: Iterable[int],
        plain_sizes: Iterable[int],
        newline_counts: Iterable[int],
        checksums: Iterable[int],
    ) -> None:
        self._stored_ends = array("Q", accumulate(stored_sizes, initial=0))
        self._plain_ends = array("Q", accumulate(plain_sizes, initial=0))
        self._newline_ends = array("Q", accumulate(newline_counts, initial=0))
        self._checksums = array("I", checksums)

    def __len__(self) -> int:
        return len(self._checksums)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, FrameIndex) and self.to_bytes() == other.to_bytes()

    def __hash__(self) -> int:
        return hash(self.to_bytes())

    @property
    def plain_size(self) -> int:
        """The plain size of all frames."""
        return self._plain_ends[-1]

    @property
    def frames_size(self) -> int:
        """The stored size of all frames: the offset at which the index begins."""
        return self._stored_ends[-1]

    @property
    def object_size(self) -> int:
        """The stored size of the object: its frames and this index."""
        return self.frames_size + _index_size(len(self))

    @property
    def newline_count(self) -> int:
        """The number of newlines in all frames."""
        return self._newline_ends[-1]

    def stored_span(self, frame: int) -> tuple[int, int]:
        """The offsets in the stored object at which a frame begins and ends."""
        return self._stored_ends[frame], self._stored_ends[frame + 1]

    def plain_span(self, frame: int) -> tuple[int, int]:
        """The plain offsets at which a frame begins and ends."""
        return self._plain_ends[frame], self._plain_ends[frame + 1]

    def checksum(self, frame: int) -> int:
        """The checksum at the end of a frame, as a number."""
        return self._checksums[frame]

    def newlines_before(self, frame: int) -> int:
        """The newlines in all frames before this one; `frame` may be the number of frames."""
        return self._newline_ends[frame]

    def newlines_in(self, frame: int) -> int:
        """The number of newlines in one frame."""
        return self._newline_ends[frame + 1] - self._newline_ends[frame]

    def frame_at(self, offset: int) -> int:
        """The frame with the plain byte at `offset`; the number of frames if there is none."""
        return bisect_right(self._plain_ends, offset) - 1

    def frame_of_newline(self, number: int) -> int:
        """The frame with the newline of this number, from 1; `number` MUST NOT exceed the count."""
        return bisect_left(self._newline_ends, number) - 1

    def to_bytes(self) -> bytes:
        """The two skippable frames that end a stored object."""
        newlines = _u32(_steps(self._newline_ends))
        stored, plain = _steps(self._stored_ends), _steps(self._plain_ends)
        entries = _u32(
            n for entry in zip(stored, plain, self._checksums, strict=True) for n in entry
        )
        lines = _lines_frame(newlines, zlib.crc32(entries, zlib.crc32(newlines)))
        table = entries + _u32((len(lines), 0, 0))
        footer = _FOOTER.pack(len(self) + 1, _HAS_CHECKSUMS, _SEEKABLE_MAGIC)
        return lines + _HEADER.pack(_TABLE_MAGIC, len(table) + len(footer)) + table + footer

    @classmethod
    def from_bytes(cls, data: bytes, *, path: str = "stream") -> Self:
        """Read the output of `to_bytes`, or bytes that end with it; `path` is for errors.

        Raises:
            DamageError: `data` is not the end of a stored object, or was altered.
        """
        count = _frame_count(data)
        if count is not None and _index_size(count) <= len(data):
            data = data[-_index_size(count) :]
            index = cls._unpacked(data, count)
            # Encoding the index again must give equal bytes, so each altered byte is found.
            if index.to_bytes() == data and index.is_possible:
                return index
        raise DamageError(f"the index of {path} is damaged", path=path)

    @property
    def is_possible(self) -> bool:
        """Whether no frame has more newlines than bytes."""
        return all(map(le, _steps(self._newline_ends), _steps(self._plain_ends)))

    @classmethod
    def _unpacked(cls, data: bytes, count: int) -> Self:
        begin = _HEADER.size + len(_LINES_NAME)
        newlines = _from_u32(data[begin : begin + 4 * count])
        begin = _lines_size(count) + _HEADER.size
        entries = _from_u32(data[begin : begin + _ENTRY_SIZE * count])
        return cls(entries[0::3], entries[1::3], newlines, entries[2::3])


class IndexBuilder:
    """Builds the index of an object while its frames are written."""

    def __init__(self) -> None:
        self._numbers = array("I")

    def add(self, frame: Frame) -> None:
        """Add the next frame, which MUST end with its checksum."""
        checksum = int.from_bytes(frame.data[-4:], "little")
        self._numbers.extend((len(frame.data), frame.plain_size, frame.newline_count, checksum))

    @property
    def sizes(self) -> tuple[int, int]:
        """The stored size and the plain size of all frames so far."""
        return sum(self._numbers[0::4]), sum(self._numbers[1::4])

    def keep(self, frame_count: int) -> None:
        """Keep only the first `frame_count` frames."""
        del self._numbers[4 * frame_count :]

    def build(self) -> FrameIndex:
        """The index of all frames so far."""
        n = self._numbers
        return FrameIndex(n[0::4], n[1::4], n[2::4], n[3::4])


def read_index(read_end: Callable[[int], bytes], path: str) -> FrameIndex | None:
    """Read the index at the end of a stored object, in one or two reads.

    Args:
        read_end: returns the last `size` bytes of the object, or all bytes if it has fewer.
        path: path of the object, for errors.

    Returns:
        The index; None if the object does not end with an index.

    Raises:
        DamageError: the object ends with an index that was altered.
    """
    data = read_end(_SUFFIX_SIZE)
    count = _frame_count(data)
    if count is None:
        return None
    size = _index_size(count)
    if size > len(data) == _SUFFIX_SIZE:
        data = read_end(size)
    return FrameIndex.from_bytes(data, path=path)


def _frame_count(data: bytes) -> int | None:
    """The number of data frames of the object that ends with `data`; None if it has no index."""
    if len(data) < _FOOTER.size:
        return None
    count: int
    count, descriptor, magic = _FOOTER.unpack(data[-_FOOTER.size :])
    if magic != _SEEKABLE_MAGIC or descriptor != _HAS_CHECKSUMS or not 1 < count <= _MAX_FRAMES:
        return None
    return count - 1


def _lines_size(count: int) -> int:
    return _HEADER.size + len(_LINES_NAME) + 4 * count + _CRC.size


def _index_size(count: int) -> int:
    return _lines_size(count) + _HEADER.size + _ENTRY_SIZE * (count + 1) + _FOOTER.size


def _lines_frame(newlines: bytes, crc: int) -> bytes:
    content = _LINES_NAME + newlines + _CRC.pack(crc)
    return _HEADER.pack(_LINES_MAGIC, len(content)) + content


def _steps(ends: "array[int]") -> Iterable[int]:
    return (end - begin for begin, end in pairwise(ends))


def _u32(numbers: Iterable[int]) -> bytes:
    return _little(array("I", numbers)).tobytes()


def _from_u32(data: bytes) -> "array[int]":
    return _little(array("I", data))


def _little(numbers: "array[int]") -> "array[int]":
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
