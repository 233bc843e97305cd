"""The log: appends facts to a journal, durably, from many threads and processes at once.

    <spool>/journal/
    ├── 00000001.seg      sealed: ends with its last frame
    ├── 00000002.seg      the newest one, with zeros behind its last frame
    └── lock              held with `flock` during an append; holds where the newest segment ends

An append writes under the lock and syncs outside it, so that callers who come together share a
sync. What the lock file says is only a hint: a writer checks it against the segment, and looks for
the end itself where the two differ. So a writer may be killed at any instruction.
"""

import contextlib
import errno
import fcntl
import os
import struct
import threading
import weakref
import zlib
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple
from uuid import UUID

from tooltrail.journal import segments
from tooltrail.journal.frames import (
    FIRST_HASH,
    HASH_SIZE,
    HEADER_SIZE,
    BrokenFrameError,
    link,
    pack_frame,
    unpack_frame,
)
from tooltrail.journal.segments import FRAMES_FROM, SEAL_BYTES, SegmentHead, segment_path
from tooltrail.records.errors import DiskFullError, UnavailableError
from tooltrail.records.facts import Fact, fact_json

LOCK_NAME: Final = "lock"

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_ZEROS: Final = bytes(HEADER_SIZE)
_HINT: Final = struct.Struct(f"<QQQQ{HASH_SIZE}s")
_CRC: Final = struct.Struct("<I")
_HINT_SIZE: Final = _HINT.size + _CRC.size
_MOST_SHARED: Final = 1024
"""Digests of bodies that a writer remembers to have written to the segment."""


class Entry(NamedTuple):
    """One fact to append, and the bodies that travel with it.

    Attributes:
        fact: what happened.
        bodies: bytes of the bodies that the fact names.
        repeated: bodies that many facts name, such as a policy. A writer puts each one into a
            segment once.
    """

    fact: Fact
    bodies: Sequence[bytes] = ()
    repeated: Sequence[bytes] = ()


@dataclass(frozen=True, slots=True)
class Position:
    """Where an appended fact stands.

    Attributes:
        index: of its frame in the journal, from 0.
        segment: number of its segment.
        end: offset behind its frame.
        hash: of its frame.
    """

    index: int
    segment: int
    end: int
    hash: bytes


@dataclass(frozen=True, slots=True)
class _Tail:
    """Where the newest segment ends.

    Attributes:
        segment: its number.
        last: offset of its last frame; `end` where it has none.
        end: offset behind its last frame.
        next_index: index of the next frame.
        hash: of the last frame.
    """

    segment: int
    last: int
    end: int
    next_index: int
    hash: bytes

    def packed(self) -> bytes:
        """As the lock file holds it."""
        data = _HINT.pack(self.segment, self.last, self.end, self.next_index, self.hash)
        return data + _CRC.pack(zlib.crc32(data))


class _Segment:
    """An open segment. Closed when no thread uses it any more."""

    def __init__(self, descriptor: int, journal: UUID, number: int) -> None:
        self.descriptor = descriptor
        self.journal = journal
        self.number = number
        self.size = os.fstat(descriptor).st_size
        self.synced = 0
        self.repeated: set[bytes] = set()

    def __del__(self) -> None:
        os.close(self.descriptor)


class JournalLog:
    """A journal that is written. Safe for threads, for forked children and for other processes.

    `append` returns when the facts survive the end of this process; `sync` makes them survive a
    power cut. The order of frames is the order of appends.

    Attributes:
        folder: of the journal. Made with mode 0700 by the first append.
    """

    def __init__(self, folder: Path) -> None:
        """Prepare. Nothing is created or opened yet."""
        self.folder = folder
        self._lock_descriptor: int | None = None
        self.reset()
        _logs.add(self)

    def reset(self) -> None:
        """Begin anew in a forked child, where descriptors and locks are the parent's."""
        # A copy of the descriptor would keep the lock of a parent that is killed while it appends.
        if self._lock_descriptor is not None:
            os.close(self._lock_descriptor)
        self._mutex = threading.Lock()
        self._lock_descriptor = None
        self._segment: _Segment | None = None
        self._tail: _Tail | None = None
        self._syncing = threading.Lock()
        self._failed: set[int] = set()

    def record(self, entries: Sequence[Entry]) -> list[Position]:
        """Append facts and sync them.

        Raises:
            InvalidRecordError, DiskFullError, UnavailableError: see `append` and `sync`.
        """
        positions = self.append(entries)
        self.sync(positions[-1])
        return positions

    def append(self, entries: Sequence[Entry]) -> list[Position]:
        """Append facts, all or none of them, without a sync.

        Raises:
            InvalidRecordError: a fact is not JSON, or too long.
            DiskFullError: the disk has no room for the facts.
            UnavailableError: the journal cannot be written.
            DamageError: the head of the newest segment is altered.
        """
        spelled = [(fact_json(entry.fact), entry) for entry in entries]
        try:
            with self._mutex, self._locked():
                return self._append(spelled)
        except OSError as error:
            self._segment = None
            raise _translated(error, self.folder) from error

    def sync(self, position: Position) -> None:
        """Return when everything up to a position survives a power cut.

        Raises:
            UnavailableError: the disk failed. The facts may be lost.
        """
        segment = self._segment
        if segment is None:
            self._sync_closed(position)
            return
        if segment.number != position.segment or segment.synced >= position.end:
            return  # whoever sealed a segment synced it
        with self._syncing:
            if segment.synced >= position.end:
                return
            # Other threads may have appended since. One sync covers their frames, too.
            tail = self._tail
            is_same = tail is not None and tail.segment == segment.number
            ahead = tail.end if tail is not None and is_same else position.end
            self._sync_descriptor(segment.descriptor, segment.number)
            segment.synced = max(ahead, position.end)

    def _sync_closed(self, position: Position) -> None:
        """Sync a segment that another thread closed after a failure."""
        try:
            descriptor = segments.open_segment(self.folder, position.segment)
        except FileNotFoundError:
            return  # ingested already, and so synced
        except OSError as error:
            raise _translated(error, self.folder) from error
        try:
            self._sync_descriptor(descriptor, position.segment)
        finally:
            os.close(descriptor)

    def _sync_descriptor(self, descriptor: int, number: int) -> None:
        if number in self._failed:
            raise UnavailableError(f"journal {self.folder}: an earlier sync of the disk failed")
        try:
            os.fdatasync(descriptor)
        except OSError as error:
            # The system reports a lost page once. Nothing goes into this segment any more.
            self._failed.add(number)
            raise _translated(error, self.folder) from error

    def close(self) -> None:
        """Give the descriptors back. The next append opens the journal again."""
        with self._mutex:
            self._segment = self._tail = None
            if self._lock_descriptor is not None:
                os.close(self._lock_descriptor)
                self._lock_descriptor = None

    def _append(self, spelled: Sequence[tuple[bytes, Entry]]) -> list[Position]:
        segment, tail = self._end()
        if tail.end >= SEAL_BYTES or segment.number in self._failed:
            segment, tail = self._next_segment(segment, tail)
        begin, parts, positions = tail.end, list[bytes](), list[Position]()
        written: set[bytes] = set()
        for json, entry in spelled:
            bodies = [*entry.bodies, *_unwritten(entry.repeated, segment.repeated, written)]
            frame_hash = link(tail.hash, json)
            frame = pack_frame(
                json,
                bodies,
                index=tail.next_index,
                durable_to=segment.synced,
                frame_hash=frame_hash,
            )
            end = tail.end + len(frame)
            positions.append(Position(tail.next_index, tail.segment, end, frame_hash))
            tail = _Tail(tail.segment, tail.end, end, tail.next_index + 1, frame_hash)
            parts.append(frame)
        # Room for a header of zeros behind the frames: that is how a reader knows the end.
        needed = tail.end + HEADER_SIZE
        if needed > segment.size:
            segment.size = os.fstat(segment.descriptor).st_size  # other writers extend it, too
        if needed > segment.size:
            segment.size = segments.extend(segment.descriptor, segment.size, needed)
        segments.write_all(segment.descriptor, b"".join(parts), begin)
        segment.repeated |= written
        self._keep(tail)
        return positions

    def _end(self) -> tuple[_Segment, _Tail]:
        """The newest segment and where it ends, whoever wrote it last."""
        hint = self._read_hint()
        segment, tail = self._segment, self._tail
        if segment is None or tail is None or hint is None or hint.segment != segment.number:
            segment, tail = self._open_newest(hint)
        else:
            tail = hint
        if os.pread(segment.descriptor, HEADER_SIZE, tail.end) != _ZEROS:
            # The writer before died in the middle of an append, or of sealing the segment.
            segment, tail = self._open_newest(tail)
            tail = self._walk(segment, tail)
        self._segment, self._tail = segment, tail
        return segment, tail

    def _open_newest(self, hint: _Tail | None) -> tuple[_Segment, _Tail]:
        """Open the newest segment, and tell a frame of it from which the end can be found."""
        numbers = segments.segment_numbers(self.folder)
        if not numbers:
            return self._first_segment()
        segment = self._open(numbers[-1])
        if hint is not None and hint.segment == segment.number and _holds(segment, hint):
            return segment, hint
        head = segments.read_head(segment.descriptor, segment_path(self.folder, segment.number))
        return segment, _Tail(
            head.number, FRAMES_FROM, FRAMES_FROM, head.first_index, head.previous_hash
        )

    def _walk(self, segment: _Segment, tail: _Tail) -> _Tail:
        """Follow the frames to the end of the newest segment, and cut a torn tail off."""
        begin = tail.end
        data = os.pread(segment.descriptor, segment.size, begin)
        while True:
            for frame in segments.read_frames(
                memoryview(data)[tail.end - begin :],
                segment=segment.number,
                offset=tail.end,
                index=tail.next_index,
                previous_hash=tail.hash,
            ):
                tail = _Tail(tail.segment, frame.offset, frame.end, frame.index + 1, frame.hash)
            rest = data[tail.end - begin :]
            acknowledged = segments.find_acknowledged(rest, tail.end)
            if acknowledged is None:
                if len(rest) < HEADER_SIZE or rest.strip(b"\0"):
                    self._cut(segment, tail.end)
                return tail
            # Acknowledged frames stand behind damage. They stay, and readers report the damage.
            tail = _Tail(
                segment.number,
                acknowledged.offset,
                acknowledged.end,
                acknowledged.index + 1,
                acknowledged.hash,
            )

    def _cut(self, segment: _Segment, end: int) -> None:
        """Remove a torn tail: frames that a crash cut off before they were acknowledged."""
        os.ftruncate(segment.descriptor, end)
        segment.size = segments.extend(segment.descriptor, end, end + HEADER_SIZE)

    def _next_segment(self, segment: _Segment, tail: _Tail) -> tuple[_Segment, _Tail]:
        """Seal the newest segment, durably, and begin the next one."""
        os.ftruncate(segment.descriptor, tail.end)
        os.fsync(segment.descriptor)
        segment.synced = tail.end
        head = SegmentHead(segment.journal, segment.number + 1, tail.next_index, tail.hash)
        return self._created(head)

    def _first_segment(self) -> tuple[_Segment, _Tail]:
        journal = UUID(bytes=os.urandom(16), version=4)
        return self._created(SegmentHead(journal, 1, 0, FIRST_HASH))

    def _created(self, head: SegmentHead) -> tuple[_Segment, _Tail]:
        segment = _Segment(segments.create_segment(self.folder, head), head.journal, head.number)
        tail = _Tail(head.number, FRAMES_FROM, FRAMES_FROM, head.first_index, head.previous_hash)
        self._segment = segment
        self._keep(tail)
        return segment, tail

    def _open(self, number: int) -> _Segment:
        descriptor = segments.open_segment(self.folder, number)
        try:
            head = segments.read_head(descriptor, segment_path(self.folder, number))
        except BaseException:
            os.close(descriptor)
            raise
        return _Segment(descriptor, head.journal, number)

    def _keep(self, tail: _Tail) -> None:
        self._tail = tail
        if self._lock_descriptor is not None:
            os.pwrite(self._lock_descriptor, tail.packed(), 0)

    def _read_hint(self) -> _Tail | None:
        if self._lock_descriptor is None:
            return None
        data = os.pread(self._lock_descriptor, _HINT_SIZE, 0)
        if len(data) < _HINT_SIZE:
            return None
        (crc,) = _CRC.unpack_from(data, _HINT.size)
        if zlib.crc32(data[: _HINT.size]) != crc:
            return None
        return _Tail(*_HINT.unpack_from(data))

    @contextlib.contextmanager
    def _locked(self) -> Generator[None]:
        if self._lock_descriptor is None:
            make_private_folder(self.folder)
            self._lock_descriptor = os.open(
                self.folder / LOCK_NAME,
                os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW,
                0o600,
            )
        descriptor = self._lock_descriptor
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        try:
            yield
        finally:
            fcntl.flock(descriptor, fcntl.LOCK_UN)


def make_private_folder(folder: Path) -> None:
    """Make a folder and its parents durably, each with mode 0700.

    Raises:
        OSError: whatever the file system says.
    """
    if folder.is_dir():
        return
    make_private_folder(folder.parent)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    segments.sync_folder(folder.parent)


def _unwritten(bodies: Sequence[bytes], before: set[bytes], written: set[bytes]) -> Iterator[bytes]:
    """Those of some bodies that this writer has not put into the segment yet."""
    for body in bodies:
        if body in before or body in written:
            continue
        if len(before) + len(written) < _MOST_SHARED:
            written.add(body)
        yield body


def _holds(segment: _Segment, hint: _Tail) -> bool:
    """Whether the last frame that a hint names is in the segment."""
    if hint.last == hint.end == FRAMES_FROM:
        return True
    if not FRAMES_FROM <= hint.last < hint.end <= segment.size:
        return False
    data = os.pread(segment.descriptor, hint.end - hint.last, hint.last)
    try:
        frame = unpack_frame(data, segment=0, offset=hint.last, previous_hash=b"")
    except BrokenFrameError:
        return False
    found = (frame.end, frame.index + 1, frame.hash)
    return found == (hint.end, hint.next_index, hint.hash)


def _translated(error: OSError, folder: Path) -> UnavailableError:
    if error.errno in _FULL:
        return DiskFullError(f"no room on the disk of journal {folder}: {error.strerror}")
    return UnavailableError(f"journal {folder} cannot be written: {error.strerror or error}")


_logs: "weakref.WeakSet[JournalLog]" = weakref.WeakSet()


def _reset_in_child() -> None:
    for log in list(_logs):
        log.reset()


os.register_at_fork(after_in_child=_reset_in_child)
