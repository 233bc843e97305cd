"""The log, which appends facts to a journal durably from many threads and processes at once.

    <spool>/journal/
    ├── 00000001.seg      sealed: ends with its last frame
    ├── 00000002.seg      the newest one, with zeros behind its last frame
    └── end               where the newest segment ends: a hint, checked by every append

An append writes under a lock on the folder and syncs without the lock, so that simultaneous callers
share a sync. A process that opens a segment syncs the segment once. So `durable_to` of a frame is
the offset up to which the segment was durable at that time, even in a short-lived process.
"""

import errno
import fcntl
import os
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, NamedTuple, TypeAlias

import tooltrail.journal.segments as segments  # noqa: PLR0402  the package would read its stub
from tooltrail.artifacts.private_files import sync_path
from tooltrail.journal.ends import JournalLock, Tail, find_end, first_tail, next_head
from tooltrail.journal.forks import resets_in_child
from tooltrail.journal.frames import HEADER_SIZE, Cursor, link, pack_frame
from tooltrail.journal.segments import SEAL_BYTES, OpenSegment, sync_names
from tooltrail.records.digests import sha256
from tooltrail.records.errors import DiskFullError, UnavailableError, unavailable_if_failing
from tooltrail.records.fact_spelling import fact_json
from tooltrail.records.facts import Fact

# Imports hashlib now. If a process forks while another thread imports it, the child waits forever.
sha256(b"")

_FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
_MOST_REPEATED: Final = 1024
"""The most bodies of a segment that a writer remembers having written."""

Acknowledge: TypeAlias = Literal["process", "journal", "store"]
"""Which failures a record survives once it is acknowledged.

`process`: the end of this program. `journal`: a power cut of this machine. `store`: the loss of
this machine; its rows are committed in the database and its artifacts are in the sink.
"""


class Entry(NamedTuple):
    """One fact to append, with its bodies.

    Attributes:
        fact: the fact.
        bodies: bytes of the bodies that the fact names.
        repeated: bodies that many facts name, such as a policy. A writer puts each one into a
            segment once.
        files: spool files that the fact names, which `sync_files` makes durable.
    """

    fact: Fact
    bodies: Sequence[bytes] = ()
    repeated: Sequence[bytes] = ()
    files: Sequence[Path] = ()


def sync_files(entries: Sequence[Entry]) -> None:
    """Make the spool files that facts name durable. Call this before the facts are appended.

    Raises:
        UnavailableError: the disk failed.
    """
    files = [path for entry in entries for path in entry.files]
    if not files:
        return
    with unavailable_if_failing("the spool cannot be synced"):
        for path in files:
            sync_path(path)
        for folder in {path.parent for path in files}:
            sync_path(folder)
            sync_path(folder.parent)


class JournalLog:
    """A journal that is open for appends. Safe for threads, forked children and other processes.

    `append` returns when the facts survive the end of this process; `sync` makes them survive a
    power cut. The order of frames is the order of appends.

    Attributes:
        folder: folder of the journal. The first append creates it with mode 0700.
    """

    def __init__(self, folder: Path) -> None:
        """Prepare. Nothing is created or opened yet."""
        self.folder = folder
        self._lock = JournalLock(folder)
        self.reset()
        resets_in_child.add(self)

    def reset(self) -> None:
        """Begin without descriptors and locks. In a forked child, they belong to the parent."""
        # A copy of the descriptor would hold the lock on if the parent is killed during an append.
        self._lock.close()
        self._mutex = threading.Lock()
        self._syncing = threading.Lock()
        self._segment: OpenSegment | None = None
        self._failed: set[int] = set()

    def record(self, entries: Sequence[Entry]) -> list[Cursor]:
        """Sync the spool files that facts name, then append the facts and sync them.

        Raises:
            InvalidRecordError, DiskFullError, UnavailableError: see `append` and `sync`.
        """
        sync_files(entries)
        cursors = self.append(entries)
        if cursors:
            self.sync(cursors[-1])
        return cursors

    def append(self, entries: Sequence[Entry]) -> list[Cursor]:
        """Append facts in their order, without a sync. Returns the cursor behind each fact.

        After an error or the end of this process, the journal may contain the first of the facts.

        Raises:
            InvalidRecordError: a fact is not JSON, or too long. None of the facts is appended.
            DiskFullError: the disk has no room for the facts.
            UnavailableError: the journal cannot be written.
        """
        spelled = [(fact_json(entry.fact), entry) for entry in entries]
        if not spelled:
            return []
        with self._mutex:
            try:
                self._lock.take()
                return self._append(spelled)
            except OSError as error:
                raise _translated(error, self.folder) from error
            finally:
                # No statement may precede this call: Python could be interrupted there.
                if self._lock.descriptor >= 0:
                    fcntl.flock(self._lock.descriptor, fcntl.LOCK_UN)

    def sync(self, cursor: Cursor) -> None:
        """Make everything before a cursor survive a power cut.

        Raises:
            UnavailableError: the disk failed. The facts may be lost.
        """
        # Read `_segment` first: a thread adds a failed segment to `_failed` before it replaces
        # `_segment`.
        segment = self._segment
        self._refuse_failed(cursor.segment)
        # A thread that replaces or closes a segment has synced the old one.
        if segment is None or segment.number != cursor.segment:
            return
        if segment.synced >= cursor.offset:
            return
        with self._syncing:
            if segment.synced < cursor.offset:  # no other thread synced these, too
                # Other threads may have appended since. One sync covers their frames, too.
                ahead = segment.end
                self._sync(segment)
                segment.synced = ahead

    def _sync(self, segment: OpenSegment, how: Callable[[int], None] = os.fdatasync) -> None:
        self._refuse_failed(segment.number)
        try:
            how(segment.descriptor)
        except OSError as error:
            # The system reports a lost page only once. Nothing more is written to this segment.
            self._failed.add(segment.number)
            raise _translated(error, self.folder) from error

    def _refuse_failed(self, number: int) -> None:
        if number in self._failed:
            raise UnavailableError(
                f"journal {self.folder}: the disk failed to sync segment {number}; facts in it may "
                "be lost"
            )

    def close(self) -> None:
        """Sync pending frames, and close the descriptors. The next append opens them again."""
        with self._mutex:
            segment = self._segment
            if segment is not None and segment.synced < segment.end:
                # A thread that waits for a sync finds the error in `_failed`.
                with suppress(UnavailableError):
                    self._sync(segment)
            self._segment = None
            self._lock.close()

    def _append(self, spelled: Sequence[tuple[bytes, Entry]]) -> list[Cursor]:
        segment, tail = self._end()
        if tail.end >= SEAL_BYTES or segment.number in self._failed:
            segment, tail = self._seal(segment, tail)
        begin, parts, cursors = tail.end, list[bytes](), list[Cursor]()
        written: set[bytes] = set()
        for json, entry in spelled:
            frame_hash = link(tail.hash, json)
            frame = pack_frame(
                json,
                [*entry.bodies, *_unwritten(entry.repeated, segment.repeated, written)],
                index=tail.next_index,
                durable_to=segment.synced,
                frame_hash=frame_hash,
                stamp=segment.stamp,
            )
            end = tail.end + len(frame)
            tail = Tail(tail.journal, tail.segment, tail.end, end, tail.next_index + 1, frame_hash)
            cursors.append(tail.cursor)
            parts.append(frame)
        self._make_room(segment, tail.end)
        segments.write_all(segment.descriptor, b"".join(parts), begin)
        segment.repeated |= written
        segment.end = tail.end
        self._lock.write_hint(tail)
        return cursors

    def _make_room(self, segment: OpenSegment, end: int) -> None:
        # A reader finds the end by a header of zeros behind the frames.
        needed = end + HEADER_SIZE
        if needed > segment.size:
            segment.size = os.fstat(segment.descriptor).st_size  # other writers extend it, too
        if needed > segment.size:
            segment.size = segments.extend(segment.descriptor, segment.size, needed)
            self._sync(segment)

    def _end(self) -> tuple[OpenSegment, Tail]:
        """The newest segment and where it ends, even if another process wrote to it last."""
        segment, hint = self._segment, self._lock.read_hint()
        if segment is not None and hint is not None and hint.is_end_of(segment):
            return segment, hint
        # The segment is not open yet, or another writer sealed it or died during an append.
        if segment is not None and segment.number not in self._failed:
            self._sync(segment)  # only this descriptor is certain to report a lost page
        newest, tail = find_end(self.folder, hint)
        if newest is None:
            return self._begin_segment(tail)
        if hint is None or hint.segment != newest.number:
            sync_names(self.folder)  # the writer that began the segment may have died first
        newest.end = tail.end
        if newest.number not in self._failed:
            self._sync(newest)
            newest.synced = tail.end
        self._segment = newest
        return newest, tail

    def _seal(self, segment: OpenSegment, tail: Tail) -> tuple[OpenSegment, Tail]:
        """Seal the newest segment durably, and begin the next one."""
        os.ftruncate(segment.descriptor, tail.end)
        if segment.number in self._failed:
            os.fsync(segment.descriptor)
        else:
            self._sync(segment, os.fsync)
            segment.synced = tail.end
        return self._begin_segment(tail)

    def _begin_segment(self, tail: Tail) -> tuple[OpenSegment, Tail]:
        """Begin the segment that continues the journal at `tail`."""
        head = next_head(tail)
        segment = segments.create_segment(self.folder, head)
        if not tail.segment:
            sync_names(self.folder)
        self._segment, begin = segment, first_tail(head)
        self._lock.write_hint(begin)
        return segment, begin


def _unwritten(bodies: Sequence[bytes], before: set[bytes], written: set[bytes]) -> Iterator[bytes]:
    """The bodies that this writer has not written to the segment yet."""
    for body in bodies:
        if body in before or body in written:
            continue
        if len(before) + len(written) < _MOST_REPEATED:
            written.add(body)
        yield body


def _translated(error: OSError, folder: Path) -> UnavailableError:
    if error.errno in _FULL:
        return DiskFullError(f"no room on the disk of journal {folder}: {error.strerror}")
    return UnavailableError(f"journal {folder} cannot be written: {error.strerror or error}")
