"""Segments: the files of a journal. `00000001.seg`, `00000002.seg`, …

    offset  size  what
    0       4     "TTj1"
    4       4     version
    8       16    id of the journal
    24      8     number of the segment, from 1
    32      8     index of its first frame
    40      32    hash of the frame before that
    72      4     CRC-32 of everything before it; every frame repeats it as its stamp
    76            frames

The blocks behind the last frame exist already, filled with zeros. So an append changes no metadata
of the file, and `fdatasync` writes one place of the disk. A sealed segment ends with its last
frame, byte for byte; only the newest segment is not sealed.
"""

import contextlib
import os
import re
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Final
from uuid import UUID

from tooltrail.journal.frames import (
    HEADER_SIZE,
    MAGIC,
    BrokenFrameError,
    Frame,
    read_header,
    unpack_frame,
)
from tooltrail.records.errors import DamageError
from tooltrail.records.frozen import Frozen

JOURNAL_FOLDER: Final = "journal"
"""Folder of the spool with the segments."""

VERSION: Final = 1
SUFFIX: Final = ".seg"
SEAL_BYTES: Final = 16 << 20
"""A segment of this size is sealed, and the next one begins."""

FIRST_ROOM_BYTES: Final = 64 << 10
MOST_ROOM_BYTES: Final = 1 << 20
"""Zeros that are written ahead: as many as the segment has already, between these limits."""

_HEAD: Final = struct.Struct("<4sI16sQQ32s")
_CRC: Final = struct.Struct("<I")
FRAMES_FROM: Final = _HEAD.size + _CRC.size
"""Offset of the first frame."""

_NUMBER: Final = re.compile("[0-9]{8,16}")
_MAGIC: Final = b"TTj1"
_PRIVATE: Final = 0o600
_OPEN: Final = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW


class SegmentHead(Frozen):
    """What a segment says of itself.

    Attributes:
        journal: id of the journal.
        number: of the segment, from 1.
        first_index: index of its first frame.
        previous_hash: hash of the frame before its first one.
    """

    journal: UUID
    number: int
    first_index: int
    previous_hash: bytes

    def packed(self) -> bytes:
        """The bytes of the head, with their CRC."""
        data = _HEAD.pack(
            _MAGIC,
            VERSION,
            self.journal.bytes,
            self.number,
            self.first_index,
            self.previous_hash,
        )
        return data + _CRC.pack(zlib.crc32(data))

    @property
    def stamp(self) -> int:
        """What every frame of the segment repeats."""
        stamp: int = _CRC.unpack_from(self.packed(), _HEAD.size)[0]
        return stamp


def segment_path(folder: Path, number: int) -> Path:
    """Where a segment is."""
    return folder / f"{number:08d}{SUFFIX}"


def segment_numbers(folder: Path) -> list[int]:
    """Numbers of the segments of a journal, ascending. Empty where there is no journal."""
    try:
        names = os.listdir(folder)  # noqa: PTH208  names are enough, and this is on the hot path
    except FileNotFoundError:
        return []
    found = (name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX))
    return sorted(int(name) for name in found if _NUMBER.fullmatch(name))


def create_segment(folder: Path, head: SegmentHead) -> int:
    """Create a segment durably, and open it.

    Returns:
        Its descriptor, for reading and writing.

    Raises:
        OSError: the folder cannot be written, or the disk is full.
    """
    path = segment_path(folder, head.number)
    part = path.with_suffix(".part")
    # A crash may have left one, of which nothing was acknowledged.
    part.unlink(missing_ok=True)
    descriptor = os.open(part, _OPEN | os.O_CREAT | os.O_EXCL, _PRIVATE)
    try:
        write_all(descriptor, head.packed().ljust(FIRST_ROOM_BYTES, b"\0"), 0)
        os.fsync(descriptor)
        part.rename(path)
        sync_folder(folder)
    except BaseException:
        os.close(descriptor)
        part.unlink(missing_ok=True)
        raise
    return descriptor


def open_segment(folder: Path, number: int) -> int:
    """Open a segment for reading and writing.

    Raises:
        OSError: there is none, it is a link, or access is denied.
    """
    return os.open(segment_path(folder, number), _OPEN)


def read_head(descriptor: int, path: Path) -> SegmentHead:
    """What a segment says of itself.

    Raises:
        DamageError: the head is not one of a segment of this version.
    """
    data = os.pread(descriptor, FRAMES_FROM, 0)
    if len(data) < FRAMES_FROM or _CRC.unpack_from(data, _HEAD.size)[0] != zlib.crc32(
        data[: _HEAD.size]
    ):
        raise DamageError(f"segment {path} is damaged: its head is altered", path=str(path))
    magic, version, journal, number, first_index, previous_hash = _HEAD.unpack_from(data)
    if magic != _MAGIC or version != VERSION:
        raise DamageError(f"{path} is not a journal segment of version {VERSION}", path=str(path))
    if path.name != segment_path(path.parent, number).name:
        raise DamageError(f"{path} is segment {number} under another name", path=str(path))
    return SegmentHead(UUID(bytes=journal), number, first_index, previous_hash)


def find_stamp(descriptor: int, path: Path) -> int | None:
    """The stamp of a segment, from its first frame if its head is altered; None if both are."""
    try:
        return read_head(descriptor, path).stamp
    except DamageError:
        try:
            return read_header(os.pread(descriptor, HEADER_SIZE, FRAMES_FROM)).stamp
        except BrokenFrameError:
            return None


def extend(descriptor: int, size: int, needed: int) -> int:
    """Write zeros behind a segment until it has `needed` bytes, and more for later appends.

    Returns:
        The new size. The caller syncs the zeros.

    Raises:
        OSError: the disk is full.
    """
    room = min(max(size, FIRST_ROOM_BYTES), MOST_ROOM_BYTES)
    wanted = max(needed, size + room)
    try:
        write_all(descriptor, bytes(wanted - size), size)
    except OSError:
        # On a nearly full disk the frame itself may fit yet.
        os.ftruncate(descriptor, size)
        write_all(descriptor, bytes(needed - size), size)
        wanted = needed
    return wanted


def read_frames(
    data: bytes | memoryview,
    *,
    segment: int,
    offset: int,
    index: int,
    previous_hash: bytes | None,
) -> Iterator[Frame]:
    """The complete frames at the beginning of `data` that continue the chain.

    A frame that breaks the chain is left over from a longer tail that a power cut took back.
    Reading stops there.

    Args:
        data: bytes of the segment.
        segment: number of the segment.
        offset: where in the segment `data` begins.
        index: of the first frame.
        previous_hash: hash of the frame before it; None behind damage, where nobody knows it and
            the first frame is taken as it is.
    """
    view = memoryview(data)
    at = 0
    while True:
        try:
            frame = unpack_frame(
                view[at:],
                segment=segment,
                offset=offset + at,
                previous_hash=previous_hash or b"",
            )
        except BrokenFrameError:
            return
        if previous_hash is not None and (frame.index != index or not frame.is_linked):
            return
        yield frame
        at, index, previous_hash = frame.end - offset, frame.index + 1, frame.hash


def find_acknowledged(
    data: bytes, offset: int, *, index: int, stamp: int | None, is_sealed: bool = False
) -> Frame | None:
    """The first complete frame behind a broken one that proves the broken one was acknowledged.

    A frame that was written after the bytes at `offset` were synced says so in `durable_to`. Every
    frame of a sealed segment was synced. None where everything from `offset` on is a torn tail.

    Args:
        data: the bytes of the segment from `offset` on.
        offset: where the broken frame begins.
        index: of the broken frame.
        stamp: of the segment; None where nobody knows it.
        is_sealed: whether the segment is sealed.
    """
    view = memoryview(data)
    for at in _places(data):
        try:
            header = read_header(view[at : at + HEADER_SIZE])
            is_ours = header.index > index and stamp in {None, header.stamp}
            if is_ours and (is_sealed or header.durable_to > offset):
                return unpack_frame(view[at:], segment=0, offset=offset + at, previous_hash=b"")
        except BrokenFrameError:
            pass
    return None


def _places(data: bytes) -> Iterator[int]:
    """Where the frame behind a broken one may begin."""
    with contextlib.suppress(BrokenFrameError):
        # If only its fact or its bodies are altered, the header says where the frame ends.
        yield read_header(data).frame_size
    at = data.find(MAGIC, 1)
    while at >= 0:
        yield at
        at = data.find(MAGIC, at + 1)


def write_all(descriptor: int, data: bytes, offset: int) -> None:
    """Write all bytes at an offset.

    Raises:
        OSError: the disk is full or failing; some bytes may be written.
    """
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, offset)
        view, offset = view[written:], offset + written


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable.

    Raises:
        OSError: whatever the file system says.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
