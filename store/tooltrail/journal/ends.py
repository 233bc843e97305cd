"""Finding where a journal ends, whoever wrote to it last and however that writer died.

The caller holds the lock.
"""

import os
from pathlib import Path
from typing import Final
from uuid import UUID

import tooltrail.journal.segments as segments  # noqa: PLR0402  the package would read its stub
from tooltrail.journal.frames import (
    FIRST_HASH,
    HEADER_SIZE,
    BrokenFrameError,
    Frame,
    unpack_frame,
)
from tooltrail.journal.lock import ID_SIZE, Tail
from tooltrail.journal.segments import FRAMES_FROM, SegmentHead, segment_path
from tooltrail.records.errors import DamageError

_ZEROS: Final = bytes(HEADER_SIZE)


class OpenSegment:
    """A segment that is open for appends. Closed when no thread uses it any more.

    Attributes:
        descriptor: of the file.
        head: what the segment says of itself.
        number: of the segment.
        stamp: of its frames.
        size: bytes of the file, with the zeros, when this process looked last.
        synced: offset up to which the file survives a power cut.
        repeated: bodies that this process put into the segment for many facts.
    """

    descriptor = -1

    def __init__(self, descriptor: int, head: SegmentHead) -> None:
        self.descriptor = descriptor
        self.head = head
        self.number = head.number
        self.stamp = head.stamp
        self.size = os.fstat(descriptor).st_size
        self.synced = 0
        self.repeated: set[bytes] = set()

    def __del__(self) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)

    def has_end_at(self, offset: int) -> bool:
        """Whether no frame begins at an offset, and the segment is not sealed there."""
        return os.pread(self.descriptor, HEADER_SIZE, offset) == _ZEROS


def find_end(folder: Path, hint: Tail | None) -> tuple[OpenSegment | None, Tail]:
    """Open the newest segment, find its end, and cut a torn tail off.

    Returns:
        The segment, and where it ends. No segment where the next append has to begin one: in a new
        journal, and where the newest segment is missing or has an altered head.

    Raises:
        OSError: a file cannot be read or written.
    """
    numbers = segments.segment_numbers(folder)
    newest = numbers[-1] if numbers else 0
    if hint is not None and hint.segment > newest:
        return None, hint
    if not numbers:
        return None, Tail(os.urandom(ID_SIZE), 0, 0, 0, 0, FIRST_HASH)
    try:
        segment = open_segment(folder, newest)
    except DamageError:
        return None, _end_of_damaged(folder, numbers, hint)
    if hint is not None and _is_right(segment, hint) and segment.has_end_at(hint.end):
        return segment, hint
    return segment, _walk(segment)


def open_segment(folder: Path, number: int) -> OpenSegment:
    """Open a segment for appends.

    Raises:
        DamageError: its head is altered.
        OSError: there is none, it is a link, or access is denied.
    """
    descriptor = segments.open_segment(folder, number)
    try:
        head = segments.read_head(descriptor, segment_path(folder, number))
    except BaseException:
        os.close(descriptor)
        raise
    return OpenSegment(descriptor, head)


def first_tail(head: SegmentHead) -> Tail:
    """The end of a segment that has no frames."""
    return Tail(
        head.journal.bytes,
        head.number,
        FRAMES_FROM,
        FRAMES_FROM,
        head.first_index,
        head.previous_hash,
    )


def next_head(tail: Tail) -> SegmentHead:
    """The head of the segment that goes on behind an end."""
    return SegmentHead(UUID(bytes=tail.journal), tail.segment + 1, tail.next_index, tail.hash)


def _is_right(segment: OpenSegment, hint: Tail) -> bool:
    """Whether the frames before the end that a hint names are all there.

    After a power cut, the last frame may be on the disk and the one before it not. What was synced
    before the last frame was written is there for certain; the frames behind that are read.
    """
    if (hint.journal, hint.segment) != (segment.head.journal.bytes, segment.number):
        return False
    if hint == first_tail(segment.head):
        return True
    if not FRAMES_FROM <= hint.last < hint.end <= segment.size:
        return False
    try:
        data = os.pread(segment.descriptor, hint.end - hint.last, hint.last)
        last = unpack_frame(data, segment=hint.segment, offset=hint.last, previous_hash=b"")
    except BrokenFrameError:
        return False
    begin = max(FRAMES_FROM, last.durable_to)
    frames = list(
        segments.read_frames(
            os.pread(segment.descriptor, hint.end - begin, begin),
            segment=segment.number,
            offset=begin,
            index=0,
            previous_hash=None,
        )
    )
    return bool(frames) and hint == _behind(hint, frames[-1])


def _behind(tail: Tail, frame: Frame) -> Tail:
    return Tail(tail.journal, tail.segment, frame.offset, frame.end, frame.index + 1, frame.hash)


def _walk(segment: OpenSegment) -> Tail:
    """Follow the frames of the newest segment to their end, and cut a torn tail off."""
    data = _content(segment.descriptor)
    tail = _last(data, first_tail(segment.head), segment.stamp)
    rest = data[tail.end - FRAMES_FROM :]
    if len(rest) < HEADER_SIZE or rest.strip(b"\0"):
        # Frames that a crash cut off before they were acknowledged.
        os.ftruncate(segment.descriptor, tail.end)
        segment.size = tail.end
    return tail


def _content(descriptor: int) -> bytes:
    return os.pread(descriptor, os.fstat(descriptor).st_size, FRAMES_FROM)


def _last(data: bytes, tail: Tail, stamp: int | None) -> Tail:
    """The end of the last frame in the bytes of a segment."""
    view, previous_hash = memoryview(data), tail.hash or None
    while True:
        for frame in segments.read_frames(
            view[tail.end - FRAMES_FROM :],
            segment=tail.segment,
            offset=tail.end,
            index=tail.next_index,
            previous_hash=previous_hash,
        ):
            tail = _behind(tail, frame)
        behind = segments.find_acknowledged(
            data[tail.end - FRAMES_FROM :], tail.end, index=tail.next_index, stamp=stamp
        )
        if behind is None:
            return tail
        # Acknowledged frames stand behind damage. They stay, and readers report the damage.
        tail = _behind(tail, behind)
        previous_hash = tail.hash


def _end_of_damaged(folder: Path, numbers: list[int], hint: Tail | None) -> Tail:
    """Where a journal ends whose newest segment has an altered head: behind its last frame."""
    newest = numbers[-1]
    journal = hint.journal if hint is not None else _find_journal(folder, numbers)
    for number in reversed(numbers):
        descriptor = segments.open_segment(folder, number)
        try:
            stamp = segments.find_stamp(descriptor, segment_path(folder, number))
            nothing = Tail(journal, newest, FRAMES_FROM, FRAMES_FROM, 0, b"")
            tail = _last(_content(descriptor), nothing, stamp)
        finally:
            os.close(descriptor)
        if tail.hash:
            return tail
    if hint is not None:
        return hint
    return Tail(journal, newest, FRAMES_FROM, FRAMES_FROM, 0, FIRST_HASH)


def _find_journal(folder: Path, numbers: list[int]) -> bytes:
    """The id of a journal, from a head that is not altered; a new id where there is none."""
    for number in numbers:
        descriptor = segments.open_segment(folder, number)
        try:
            return segments.read_head(descriptor, segment_path(folder, number)).journal.bytes
        except DamageError:
            continue
        finally:
            os.close(descriptor)
    return os.urandom(ID_SIZE)
