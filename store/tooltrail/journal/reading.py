"""Reading a journal from a cursor on, while other processes append to it.

A reader needs no lock. It stops at the first offset without a complete frame, unless later frames
prove that the bytes there are damaged: then it reports a `Gap` and continues behind the damage.

Every function raises `UnavailableError` if a file cannot be read, synced or deleted, and
`DamageError` if a link or a pipe is in its place.
"""

import os
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final, TypeAlias
from uuid import UUID

import tooltrail.journal.segments as segments  # noqa: PLR0402  the package would read its stub
from tooltrail.artifacts.private_files import sync_path
from tooltrail.journal.ends import peek_hint
from tooltrail.journal.frames import (
    FRAMES_FROM,
    HEADER_SIZE,
    Cursor,
    Frame,
    find_acknowledged,
    read_frames,
)
from tooltrail.journal.segments import segment_path
from tooltrail.records.errors import DamageError, UnavailableError, unavailable_if_failing
from tooltrail.records.frozen import Frozen

_CHUNK_BYTES: Final = 1 << 20
"""Bytes of one read. If a frame is longer, the rest of its segment is read."""

_LOOK_BYTES: Final = 16 << 10


class Gap(Frozen):
    """Bytes of a journal that contained acknowledged facts and are not readable any more.

    Attributes:
        offset: offset of the damage in the segment.
        data: the damaged bytes; empty if frames are missing.
        reason: description of the damage, one sentence.
        cursor: position behind the damage.
    """

    segment: int
    offset: int
    data: bytes
    reason: str
    cursor: Cursor


Item: TypeAlias = Frame | Gap


def read_journal_id(folder: Path) -> UUID | None:
    """The id of a journal; None if nothing was recorded yet. Without segments, the hint has the id.

    Raises `DamageError` if the heads of all segments are altered.
    """
    damage: DamageError | None = None
    for number in _segment_numbers(folder):
        try:
            with _opened(folder, number) as segment:
                data = os.pread(segment, FRAMES_FROM, 0)
            return segments.read_head(data, segment_path(folder, number)).journal
        except FileNotFoundError:
            continue  # deleted after the folder was listed
        except DamageError as error:
            damage = error
    if damage is not None:
        raise damage
    hint = peek_hint(folder)
    return None if hint is None else UUID(bytes=hint.journal)


def _segment_numbers(folder: Path) -> list[int]:
    with unavailable_if_failing(f"journal {folder} cannot be read"):
        return segments.segment_numbers(folder)


def has_frames(folder: Path, cursor: Cursor) -> bool:
    """Whether frames follow a cursor, or the journal does not end at the cursor.

    A journal that was cut off, or restored from an older copy, ends before the cursor, or ends
    there with another frame. If its newest segment is missing, it ends behind the cursor. Usually
    opens two files, and reads a few bytes of each.
    """
    with suppress(FileNotFoundError), _opened(folder, cursor.segment) as segment:
        # Read more than a header: a failing disk may replace the beginning of a frame by zeros.
        if os.pread(segment, _LOOK_BYTES, cursor.offset).strip(b"\0"):
            return True
        if cursor.hash is not None and os.fstat(segment).st_size < cursor.offset:
            return True  # the file was cut, and the hint is older
    if any(number > cursor.segment for number in _segment_numbers(folder)):
        return True
    hint = peek_hint(folder)
    if hint is None or hint.cursor == cursor:
        return False
    end = hint.cursor
    if end.offsets > cursor.offsets or (end.offsets == cursor.offsets and cursor.hash is None):
        end = cursor
    for one in read_journal(folder, end):
        end = one.cursor
    return end != cursor


def read_journal(folder: Path, cursor: Cursor) -> Iterator[Item]:
    """The items behind a cursor: frames in their order, and gaps where frames are damaged."""
    if cursor.offset == FRAMES_FROM and cursor.hash is not None:
        with suppress(FileNotFoundError):
            cursor = yield from _enter(folder, cursor.segment, cursor)
    while True:
        cursor = yield from _read_segment(folder, cursor)
        following = next((one for one in _segment_numbers(folder) if one > cursor.segment), None)
        if following is None:
            yield from _lost_end(folder, cursor)
            return
        # The segment is sealed now. Read again: frames may have been appended before the seal.
        cursor = yield from _read_segment(folder, cursor, is_sealed=True)
        with suppress(FileNotFoundError):  # deleted after the folder was listed
            cursor = yield from _enter(folder, following, cursor)


def _lost_end(folder: Path, cursor: Cursor) -> Iterator[Gap]:
    """The lost frames behind a cursor, if the newest segment is missing."""
    hint = peek_hint(folder)
    # Listed after the hint was read, since writers begin segments. The hint never names a segment
    # that a power cut can take. But it may be ahead of the frames in an existing segment.
    if hint is None or hint.next_index <= cursor.index:
        return
    if hint.segment > max(_segment_numbers(folder), default=0):
        yield _missing(
            cursor, hint.cursor.replaced(hash=None), f"segment {hint.segment} is missing"
        )


def _missing(cursor: Cursor, begin: Cursor, problem: str) -> Gap:
    first, last = cursor.index, begin.index - 1
    frames = f"frames {first:,} to {last:,} of the journal are missing"
    if last <= first:
        lost = f"frame {first:,} of the journal is missing"
        frames = lost if last == first else f"the journal does not go on with its frame {first:,}"
    return Gap(cursor.segment, cursor.offset, b"", f"{frames}: {problem}", begin)


def furthest_end(folder: Path) -> tuple[int, int]:
    """Number and size of the newest segment: no frame that was appended so far is behind that.

    The last frame may end earlier, since a segment has zeros behind its last frame.
    """
    numbers = _segment_numbers(folder)
    # The journal may not exist, or may be deleted during the call.
    with suppress(IndexError, FileNotFoundError), _opened(folder, numbers[-1]) as segment:
        return numbers[-1], os.fstat(segment).st_size
    return 0, 0


def sync_segment(folder: Path, number: int) -> None:
    """Make the frames that a reader has read from a segment durable.

    An ingester does this before it commits a cursor: a cursor must never be ahead of the disk.
    """
    # A deleted one was ingested durably.
    with suppress(FileNotFoundError), _opened(folder, number) as segment:
        os.fdatasync(segment)


def delete_segments(folder: Path, *, before: int) -> int:
    """Delete the segments with numbers below `before`, and return how many were deleted.

    The newest segment is always kept.
    """
    numbers = _segment_numbers(folder)
    old = [number for number in numbers[:-1] if number < before]
    with unavailable_if_failing(f"segments of {folder} cannot be deleted"):
        for number in old:
            segment_path(folder, number).unlink(missing_ok=True)
        if old:
            sync_path(folder)
    return len(old)


@contextmanager
def _opened(folder: Path, number: int) -> Generator[int]:
    """The descriptor of a segment. Raises `FileNotFoundError` if the segment was deleted.

    Other errors of the block are translated, too.
    """
    path = segment_path(folder, number)
    try:
        descriptor = segments.open_regular(path, os.O_RDONLY)
        try:
            yield descriptor
        finally:
            os.close(descriptor)
    except FileNotFoundError:
        raise
    except OSError as error:
        problem = f"segment {path} cannot be read or synced: {error.strerror}"
        if isinstance(error, segments.IrregularFileError):
            raise DamageError(problem, path=str(path)) from error
        raise UnavailableError(problem) from error


def _enter(folder: Path, number: int, cursor: Cursor) -> Generator[Gap, None, Cursor]:
    """Enter a segment, and return the position of its first frame.

    Yields damage to the head, or a gap for lost frames between the cursor and the segment.
    """
    with _opened(folder, number) as segment:
        data = os.pread(segment, FRAMES_FROM, 0)
    try:
        head = segments.read_head(data, segment_path(folder, number))
    except DamageError as error:
        begin = Cursor(number, FRAMES_FROM, cursor.index, None)
        yield Gap(number, 0, data, str(error), begin)
        return begin
    begin = Cursor(number, FRAMES_FROM, head.first_index, head.previous_hash)
    # Behind reported damage, the number of lost frames is unknown.
    is_next = cursor.hash is None and number == cursor.segment + 1
    if not is_next and (begin.index, begin.hash) != (cursor.index, cursor.hash):
        yield _missing(cursor, begin, f"segment {number} begins with frame {begin.index:,}")
    return begin


def _read_segment(
    folder: Path, cursor: Cursor, *, is_sealed: bool = False
) -> Generator[Item, None, Cursor]:
    """Read a segment to its end, and return the position behind the last item."""
    looks = 0
    with suppress(FileNotFoundError), _opened(folder, cursor.segment) as segment:
        while True:
            rest = max(0, os.fstat(segment).st_size - cursor.offset)
            data = os.pread(segment, rest if looks else _CHUNK_BYTES, cursor.offset)
            last: Frame | None = None
            for frame in read_frames(data, cursor):
                last = frame
                yield frame
            looks += 1
            if last is not None:
                looks, cursor = 0, last.cursor
            elif looks > 1:  # the first read may have cut a long frame
                head = os.pread(segment, FRAMES_FROM + HEADER_SIZE, 0)
                stamp = segments.find_stamp(head, segment_path(folder, cursor.segment))
                gap = _gap(cursor, data, stamp, is_sealed=is_sealed)
                if gap is None:
                    break
                # The frame, and then the frames that prove it acknowledged, may have been written
                # after the search for it. It is damaged only if the next read fails, too.
                if looks > 2:
                    looks, cursor = 0, gap.cursor
                    yield gap
    return cursor


def _gap(cursor: Cursor, rest: bytes, stamp: int | None, *, is_sealed: bool) -> Gap | None:
    """The damage at a cursor without a readable frame; None at the end and at a torn tail.

    `rest` contains the bytes of the segment from the cursor on.
    """
    behind = find_acknowledged(rest, cursor, stamp=stamp, is_sealed=is_sealed)
    if behind is not None:
        size, index = behind.offset - cursor.offset, behind.index
    elif is_sealed and rest.strip(b"\0"):
        size, index = len(rest), cursor.index
    else:
        return None
    reason = (
        f"segment {cursor.segment} of the journal is damaged at byte {cursor.offset:,}: "
        f"{size:,} bytes are not readable"
    )
    end = Cursor(cursor.segment, cursor.offset + size, index, None)
    return Gap(cursor.segment, cursor.offset, rest[:size], reason, end)
