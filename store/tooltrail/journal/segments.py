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

The blocks behind the last frame exist already and contain zeros. So an append does not change the
metadata of the file, and `fdatasync` writes only the data. A sealed segment ends exactly at the end
of its last frame. Only the newest segment is not sealed.

Functions that use a file raise `OSError` if the disk is full or fails, or if access is denied.
"""

import errno
import os
import re
import stat
import struct
from pathlib import Path
from typing import Final
from uuid import UUID

from tooltrail.artifacts.private_files import sync_path
from tooltrail.journal.frames import (
    FRAMES_FROM,
    HEADER_SIZE,
    BrokenFrameError,
    read_header,
    with_crc,
)
from tooltrail.records.errors import DamageError
from tooltrail.records.frozen import Frozen

JOURNAL_FOLDER: Final = "journal"
"""The folder in the spool that contains the segments."""

VERSION: Final = 1
SUFFIX: Final = ".seg"
SEAL_BYTES: Final = 16 << 20
"""A segment of this size is sealed, and the next one begins."""

FIRST_ROOM_BYTES: Final = 64 << 10
MOST_ROOM_BYTES: Final = 1 << 20
"""Limits of the zeros that are written ahead: as many bytes as the segment has already."""

_HEAD: Final = struct.Struct("<4sI16sQQ32s")
_NUMBER: Final = re.compile("[0-9]{8,16}")
_MAGIC: Final = b"TTj1"
_PRIVATE: Final = 0o600
_OPEN: Final = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW


class SegmentHead(Frozen):
    """The head of a segment.

    Attributes:
        number: number of the segment, from 1.
        first_index: index of its first frame.
        previous_hash: hash of the frame before its first one.
    """

    journal: UUID
    number: int
    first_index: int
    previous_hash: bytes

    def packed(self) -> bytes:
        """The bytes of the head, with their CRC."""
        place = (self.number, self.first_index, self.previous_hash)
        return with_crc(_HEAD.pack(_MAGIC, VERSION, self.journal.bytes, *place))

    @property
    def stamp(self) -> int:
        """The CRC-32 of the head, which every frame of the segment repeats."""
        return int.from_bytes(self.packed()[_HEAD.size :], "little")


def segment_path(folder: Path, number: int) -> Path:
    """The path of a segment."""
    return folder / f"{number:08d}{SUFFIX}"


def segment_numbers(folder: Path) -> list[int]:
    """Numbers of the segments of a journal, ascending. Empty if there is no journal."""
    try:
        names = os.listdir(folder)  # noqa: PTH208  names are enough, and this is on the hot path
    except FileNotFoundError:
        return []
    found = (name.removesuffix(SUFFIX) for name in names if name.endswith(SUFFIX))
    return sorted(int(name) for name in found if _NUMBER.fullmatch(name))


class OpenSegment:
    """A segment that is open for appends. Closed when no thread uses it any more.

    Attributes:
        size: last known size of the file in bytes, with the zeros.
        end: offset behind the last frame that this process found or wrote.
        synced: offset up to which the file survives a power cut.
        repeated: bodies of many facts that this process wrote to the segment.
    """

    descriptor = -1

    def __init__(self, descriptor: int, head: SegmentHead) -> None:
        self.descriptor = descriptor
        self.head = head
        self.number = head.number
        self.stamp = head.stamp
        self.size = os.fstat(descriptor).st_size
        self.end = self.synced = 0
        self.repeated: set[bytes] = set()

    def __del__(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)


def create_segment(folder: Path, head: SegmentHead) -> OpenSegment:
    """Create a segment durably, and open it for appends."""
    path = segment_path(folder, head.number)
    part = path.with_suffix(".part")
    # A crash may have left such a file; no fact in it was acknowledged.
    part.unlink(missing_ok=True)
    segment = OpenSegment(os.open(part, _OPEN | os.O_CREAT | os.O_EXCL, _PRIVATE), head)
    try:
        write_all(segment.descriptor, head.packed().ljust(FIRST_ROOM_BYTES, b"\0"), 0)
        os.fsync(segment.descriptor)
        part.rename(path)
        sync_path(folder)
    except BaseException:
        part.unlink(missing_ok=True)
        raise
    segment.size = FIRST_ROOM_BYTES
    return segment


def open_segment(folder: Path, number: int) -> OpenSegment:
    """Open a segment for appends; raises `DamageError` if its head is altered."""
    path = segment_path(folder, number)
    descriptor = open_regular(path, os.O_RDWR)
    try:
        head = read_head(os.pread(descriptor, FRAMES_FROM, 0), path)
    except BaseException:
        os.close(descriptor)
        raise
    return OpenSegment(descriptor, head)


class IrregularFileError(OSError):
    """A link or a pipe is in the place of a file."""


def open_regular(path: Path, flags: int) -> int:
    """Open an existing file. Raises `OSError` for a link or a pipe, which would block."""
    if not stat.S_ISREG(path.lstat().st_mode):
        problem = f"{path.name} is not a regular file; put the file back, or its facts are lost"
        raise IrregularFileError(errno.EINVAL, problem)
    return os.open(path, flags | os.O_CLOEXEC | os.O_NOFOLLOW)


def read_head(data: bytes, path: Path) -> SegmentHead:
    """Read the head of a segment from its first bytes.

    Raises:
        DamageError: the bytes are not a valid head of this version and of this file name.
    """
    if data[:FRAMES_FROM] != with_crc(data[: _HEAD.size]):
        raise DamageError(f"segment {path} is damaged: its head is altered", path=str(path))
    magic, version, journal, number, first_index, previous_hash = _HEAD.unpack_from(data)
    if magic != _MAGIC or version != VERSION:
        raise DamageError(f"{path} is not a journal segment of version {VERSION}", path=str(path))
    if path.name != segment_path(path.parent, number).name:
        raise DamageError(f"{path} is segment {number} under another name", path=str(path))
    return SegmentHead(UUID(bytes=journal), number, first_index, previous_hash)


def find_stamp(data: bytes, path: Path) -> int | None:
    """The stamp of a segment, from its first frame if its head is altered; None if both are.

    `data` begins with the first `FRAMES_FROM + HEADER_SIZE` bytes of the segment at `path`.
    """
    try:
        return read_head(data, path).stamp
    except DamageError:
        try:
            return read_header(data[FRAMES_FROM : FRAMES_FROM + HEADER_SIZE]).stamp
        except BrokenFrameError:
            return None


def extend(descriptor: int, size: int, needed: int) -> int:
    """Extend a segment with zeros to at least `needed` bytes, with room for later appends.

    Returns the new size. The caller syncs the zeros.
    """
    room = min(max(size, FIRST_ROOM_BYTES), MOST_ROOM_BYTES)
    wanted = max(needed, size + room)
    try:
        write_all(descriptor, bytes(wanted - size), size)
    except OSError:
        # On a nearly full disk, the frame itself may still fit.
        os.ftruncate(descriptor, size)
        write_all(descriptor, bytes(needed - size), size)
        wanted = needed
    return wanted


def write_all(descriptor: int, data: bytes, offset: int) -> None:
    """Write all bytes at an offset. After an error, some bytes may have been written."""
    view = memoryview(data)
    while view:
        written = os.pwrite(descriptor, view, offset)
        view, offset = view[written:], offset + written


def sync_names(folder: Path) -> None:
    """Make the names in a folder durable, and the names of the folder and of its parents.

    The process that created them may have been killed before it synced them.
    """
    sync_path(folder)
    for parent in folder.absolute().parents:
        try:
            sync_path(parent)
        except OSError as error:
            # A folder that this user may not read or sync was not created by this program.
            if error.errno == errno.EIO:
                raise
