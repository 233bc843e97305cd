"""The end of a journal: its lock, the hint of the last writer, and the search without a hint.

The lock is on the folder, since a lock file could be deleted while it is locked. The hint is a file
that is written after each append and never synced. So the hint may be stale, or ahead of the
segment after a power cut. `find_end` always checks the hint against the segment.
"""

import contextlib
import fcntl
import os
import struct
from pathlib import Path
from typing import Final, NamedTuple
from uuid import UUID

from tooltrail.artifacts.private_files import create_private, make_durable_folders
from tooltrail.journal.frames import (
    CRC_SIZE,
    FIRST_HASH,
    FRAMES_FROM,
    HASH_SIZE,
    HEADER_SIZE,
    BrokenFrameError,
    Cursor,
    Frame,
    find_acknowledged,
    read_frames,
    unpack_frame,
    with_crc,
)
from tooltrail.journal.segments import (
    OpenSegment,
    SegmentHead,
    find_stamp,
    open_regular,
    open_segment,
    read_head,
    segment_numbers,
    segment_path,
)
from tooltrail.records.errors import DamageError

HINT_NAME: Final = "end"
_ZEROS: Final = bytes(HEADER_SIZE)

ID_SIZE: Final = 16
_HINT: Final = struct.Struct(f"<{ID_SIZE}sQQQQ{HASH_SIZE}s")
_HINT_SIZE: Final = _HINT.size + CRC_SIZE


class Tail(NamedTuple):
    """Where the newest segment ends.

    Attributes:
        last: offset of its last frame; equal to `end` if the segment has no frames.
        end: offset of the first byte behind the last frame.
        hash: hash of the last frame.
    """

    journal: bytes
    segment: int
    last: int
    end: int
    next_index: int
    hash: bytes

    @property
    def cursor(self) -> Cursor:
        """The position of the next frame."""
        return Cursor(self.segment, self.end, self.next_index, self.hash or None)

    def is_end_of(self, segment: OpenSegment) -> bool:
        """Whether no frame begins at this end of a segment, and the segment is not sealed there."""
        is_same = (self.segment, self.journal) == (segment.number, segment.head.journal.bytes)
        return is_same and os.pread(segment.descriptor, HEADER_SIZE, self.end) == _ZEROS


class JournalLock:
    """The lock on a journal, as one process uses it.

    Attributes:
        folder: folder of the journal. The first `take` creates it with mode 0700.
        descriptor: descriptor of the locked folder; -1 while the folder is not open. The holder of
            the lock releases it with `fcntl.flock`.
    """

    descriptor = -1
    _hint = -1

    def __init__(self, folder: Path) -> None:
        """Prepare. Nothing is created yet."""
        self.folder = folder

    def take(self) -> None:
        """Wait for the lock. Raises `OSError` if the folder or the hint cannot be opened."""
        while True:
            if self.descriptor < 0 or self._hint < 0:
                self._open()
            fcntl.flock(self.descriptor, fcntl.LOCK_EX)
            if os.fstat(self._hint).st_nlink:
                return
            self.close()  # the hint, or the folder with its files, was deleted

    def close(self) -> None:
        """Close the descriptors. If this process holds the lock, the lock is released."""
        # A fork or an interrupt between the statements must not close a descriptor twice.
        descriptors = (self.descriptor, self._hint)
        self.descriptor = self._hint = -1
        for descriptor in descriptors:
            if descriptor >= 0:
                os.close(descriptor)

    def __del__(self) -> None:
        self.close()

    def read_hint(self) -> Tail | None:
        """The end according to the hint; None if the hint is unreadable."""
        return _tail_in(os.pread(self._hint, _HINT_SIZE, 0))

    def write_hint(self, tail: Tail) -> None:
        """Write where the newest segment ends. Without the hint, the next writer has to search."""
        with contextlib.suppress(OSError):  # a full disk: the facts themselves are written
            os.pwrite(self._hint, with_crc(_HINT.pack(*tail)), 0)

    def _open(self) -> None:
        self.close()
        make_durable_folders(self.folder)
        self.descriptor = os.open(self.folder, os.O_DIRECTORY | os.O_CLOEXEC | os.O_NOFOLLOW)
        hint = self.folder / HINT_NAME
        with contextlib.suppress(FileExistsError):
            create_private(hint).close()
        self._hint = open_regular(hint, os.O_RDWR)


def peek_hint(folder: Path) -> Tail | None:
    """The end according to the hint, read without the lock; None if the hint is unreadable."""
    hint = folder / HINT_NAME
    with contextlib.suppress(OSError), os.fdopen(open_regular(hint, os.O_RDONLY), "rb") as file:
        return _tail_in(file.read())
    return None


def _tail_in(data: bytes) -> Tail | None:
    hint = data[: _HINT.size]
    return Tail(*_HINT.unpack(hint)) if data[:_HINT_SIZE] == with_crc(hint) else None


def find_end(folder: Path, hint: Tail | None) -> tuple[OpenSegment | None, Tail]:
    """Open the newest segment, find its end, and cut a torn tail off.

    Returns the segment, and where it ends. The segment is None if the next append must begin one:
    in a new journal, or if the newest segment is missing or has an altered head. Raises `OSError`
    if a file cannot be read or written.
    """
    numbers = segment_numbers(folder)
    if hint is not None and hint.segment > max(numbers, default=0):
        return None, hint
    if not numbers:
        return None, Tail(os.urandom(ID_SIZE), 0, 0, 0, 0, FIRST_HASH)
    try:
        segment = open_segment(folder, numbers[-1])
    except DamageError:
        return None, _end_of_damaged(folder, numbers, hint)
    if hint is not None and _is_right(segment, hint) and hint.is_end_of(segment):
        return segment, hint
    return segment, _walk(segment)


def first_tail(head: SegmentHead) -> Tail:
    """The end of a segment that has no frames."""
    end = (head.number, FRAMES_FROM, FRAMES_FROM)
    return Tail(head.journal.bytes, *end, head.first_index, head.previous_hash)


def next_head(tail: Tail) -> SegmentHead:
    """The head of the segment that continues the journal at `tail`."""
    return SegmentHead(UUID(bytes=tail.journal), tail.segment + 1, tail.next_index, tail.hash)


def _is_right(segment: OpenSegment, hint: Tail) -> bool:
    """Whether all frames before the end in a hint exist.

    After a power cut, the last frame may be on the disk although the frame before it is not. Frames
    that were synced before the last frame was written exist for certain; later ones are checked.
    """
    if hint == first_tail(segment.head):
        return True
    if not FRAMES_FROM <= hint.last < hint.end <= segment.size:
        return False
    try:
        data = os.pread(segment.descriptor, hint.end - hint.last, hint.last)
        last = unpack_frame(data, Cursor(hint.segment, hint.last))
    except BrokenFrameError:
        return False
    begin = Cursor(segment.number, max(FRAMES_FROM, last.durable_to), 0, None)
    data = os.pread(segment.descriptor, hint.end - begin.offset, begin.offset)
    frames = list(read_frames(data, begin))
    return bool(frames) and hint == _behind(hint, frames[-1])


def _behind(tail: Tail, frame: Frame) -> Tail:
    return Tail(tail.journal, tail.segment, frame.offset, frame.end, frame.index + 1, frame.hash)


def _walk(segment: OpenSegment) -> Tail:
    """Follow the frames of the newest segment to their end, and cut a torn tail off."""
    data = os.pread(segment.descriptor, os.fstat(segment.descriptor).st_size, 0)
    tail = _last(data, first_tail(segment.head), segment.stamp)
    rest = data[tail.end :]
    if len(rest) < HEADER_SIZE or rest.strip(b"\0"):
        # A crash cut these frames off before they were acknowledged.
        os.ftruncate(segment.descriptor, tail.end)
        segment.size = tail.end
    return tail


def _last(data: bytes, tail: Tail, stamp: int | None) -> Tail:
    """The end of the last frame in a segment, searched from a known end on."""
    view = memoryview(data)
    while True:
        for frame in read_frames(view[tail.end :], tail.cursor):
            tail = _behind(tail, frame)
        behind = find_acknowledged(data[tail.end :], tail.cursor, stamp=stamp)
        if behind is None:
            return tail
        # There are acknowledged frames behind damage. They are kept; readers report the damage.
        tail = _behind(tail, behind)


def _end_of_damaged(folder: Path, numbers: list[int], hint: Tail | None) -> Tail:
    """The end of a journal whose newest segment has an altered head: behind its last frame.

    The id of the journal is read from the hint or from an unaltered head; otherwise it is new.
    """
    journal = b"" if hint is None else hint.journal
    tail = nothing = Tail(b"", numbers[-1], FRAMES_FROM, FRAMES_FROM, 0, b"")
    for number in reversed(numbers):
        path = segment_path(folder, number)
        data = path.read_bytes()
        with contextlib.suppress(DamageError):
            journal = journal or read_head(data, path).journal.bytes
        if not tail.hash:
            tail = _last(data, nothing, find_stamp(data, path))
        if tail.hash and journal:
            break
    if not tail.hash:
        tail = hint or nothing._replace(hash=FIRST_HASH)
    return tail._replace(journal=journal or os.urandom(ID_SIZE))
