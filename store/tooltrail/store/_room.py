"""What the limit of a store leaves for the output that its captures keep.

What is kept of output is on a disk at every moment: as an artifact, or in the spool until its
record is committed. So whoever looks at the spool first and then asks the database counts all of
it, some of it twice for a moment, whichever thread or process of this machine it is of. That is
done when a capture is at its end: content that is an artifact already costs nothing, and of other
content as much is kept as fits. Until then nobody knows which of the two it is, so a capture may
grow `STEP` beyond what is left.

What is in memory alone is in no spool. From when it is to be published until it is committed only
the process that does so counts it; what several publish so within the same moment may go beyond.
"""

import sys
import threading
import weakref
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Protocol

from sqlalchemy import Connection, func, select

from tooltrail.artifacts import (
    CapturedStream,
    CaptureLimits,
    artifact_path,
    as_it_stands,
    encode,
    in_full_frames,
    iter_spool_folders,
    shortened,
    spooled_streams,
)
from tooltrail.records import (
    DamageError,
    Digest,
    InvalidRecordError,
    StreamRecord,
    UnavailableError,
)
from tooltrail.store._database import Database
from tooltrail.store.tables import ArtifactRow

_ALL = sys.maxsize
"""Room, in bytes, for whatever is there."""

STEP = 64 * 1024 * 1024
"""Stored bytes by which a capture grows before it asks for what is left."""


class Publishing(Protocol):
    """Somebody who publishes what is in memory alone; counted for as long as it lives."""

    @property
    def held(self) -> Mapping[str, int]:
        """Stored bytes of what it publishes or has published so, by path; committed or not."""
        ...


class StoreRoom:
    """The room of one store, as one process may use it. Safe to share between threads.

    While the spool or the database cannot say how much there is, there is no limit.
    """

    def __init__(self, limit: int, database: Database, spool: Path, store_id: str) -> None:
        """Prepare; nothing is asked yet.

        Args:
            limit: stored bytes of all artifacts, and of what is to become some.
            database: of the store.
            spool: where this process captures.
            store_id: of the store; what others have in the spool does not count.
        """
        self._limit = limit
        self._database = database
        self._spool = spool
        self._store_id = store_id
        self._lock = threading.Lock()
        self._publishing: weakref.WeakSet[Publishing] = weakref.WeakSet()

    def count(self, publishing: Publishing) -> None:
        """Count from now on what somebody publishes from memory."""
        with self._lock:
            self._publishing.add(publishing)

    @property
    def reason(self) -> str:
        """Why something was not kept, in words."""
        return f"the store has reached its limit of {self._limit:,} bytes"

    def for_capture(self) -> "CaptureRoom":
        """For one capture that begins."""
        return CaptureRoom(self)

    def left(self, beside: Path | None, path: str | None = None) -> int | None:
        """Stored bytes that are left, below 0 when it is more than full; None when nobody knows.

        Args:
            beside: a spool file that does not count.
            path: of an artifact that does not count, unless it is committed.
        """
        try:
            spooled = sum(_size(file) for file in self._spool_files() if file != beside)
            # Before the database is asked, as the spool is: then nothing is in neither.
            held = self._held_in_memory()
            with self._database.read() as connection:
                stored = connection.scalar(select(func.sum(ArtifactRow.stored_size)))
                known = _known_of(connection, held)
        except UnavailableError:
            return None
        waiting = sum(size for one, size in held.items() if one not in {*known, path})
        return self._limit - spooled - waiting - int(stored or 0)

    def fit(
        self,
        captured: CapturedStream,
        *,
        edge_bytes: int,
        inline_bytes: int,
        frame_size: int,
        free_bytes: int | None,
        begun: set[Path],
    ) -> CapturedStream:
        """What is kept of a closed capture; see `in_full_frames`, and then `shortened`.

        A file that is not as its capture left it is given back as it is, since not the room is at
        fault.

        Args:
            captured: the closed capture.
            edge_bytes: see `shortened`.
            inline_bytes: see there.
            frame_size: see `in_full_frames`.
            free_bytes: see `CaptureLimits`.
            begun: files that calls for the same invocation have begun to shorten, also this one:
                nobody may have got their answer, and they hold a part of their stream since.
        """
        record, file = captured.record, captured.staged
        if file is None or captured.stored_size is None or record.content is not None:
            return captured
        left = self._left_for(record.digest, file)
        if file in begun:
            # The file may have lost its end already, whatever room there is for it now.
            left = _ALL if left is None else left
        elif left is None:
            return captured
        else:
            try:
                captured = _as_small_as_can_be(captured, left, frame_size, free_bytes)
            except (DamageError, InvalidRecordError, UnavailableError):
                return captured  # what is wrong with it is said when it is published
            if _size(file) <= left:
                return captured
        begun.add(file)
        return shortened(
            captured, left, self.reason, edge_bytes=edge_bytes, inline_bytes=inline_bytes
        )

    def refuses(self, stream: StreamRecord, file: Path | None, held: dict[str, int]) -> bool:
        """Whether there is no room for an artifact of a stream that is wholly in memory.

        Args:
            stream: that is to be published.
            file: of the spool, where it is there as well.
            held: of whoever asks, see `Publishing`. It takes its room before it is asked for, so
                that of two at once neither gets that of the other; and gives it back if refused.
        """
        path = artifact_path(stream.digest)
        if stream.content is None or self._is_known(path):
            return False
        size = len(encode(stream.content))
        if file is None:
            held[path] = size
        left = self.left(file, path)
        if left is None or size <= left:
            return False
        held.pop(path, None)
        return True

    def _left_for(self, digest: Digest, file: Path | None) -> int | None:
        return None if self._is_known(artifact_path(digest)) else self.left(file)

    def _is_known(self, path: str) -> bool:
        try:
            with self._database.read() as connection:
                return bool(_known_of(connection, [path]))
        except UnavailableError:
            return True

    def _held_in_memory(self) -> dict[str, int]:
        with self._lock:
            publishing = list(self._publishing)
        return {path: size for one in publishing for path, size in one.held.items()}

    def _spool_files(self) -> Iterator[Path]:
        for folder in iter_spool_folders(self._spool):
            if folder.store_id in (None, self._store_id):
                yield from spooled_streams(folder.path).values()


class CaptureRoom:
    """What one capture may grow to; see `tooltrail.artifacts.Room`."""

    def __init__(self, room: StoreRoom) -> None:
        self._room = room
        self._granted = STEP

    def refusal(self, file: Path, stored_size: int) -> str | None:
        """Why the spool file may not become so large, in words; None when it may."""
        if stored_size <= self._granted:
            return None
        left = self._room.left(file)
        if left is not None and stored_size > left:
            return self._room.reason
        self._granted = stored_size + STEP
        return None


def _as_small_as_can_be(
    captured: CapturedStream, room: int, frame_size: int, free_bytes: int | None
) -> CapturedStream:
    """A capture with its file as it is now; in full frames when it does not fit otherwise.

    Raises:
        InvalidRecordError, DamageError, UnavailableError: see `as_it_stands`.
    """
    captured = as_it_stands(captured)
    if captured.stored_size is None or captured.stored_size <= room:
        return captured
    return in_full_frames(captured, frame_size, CaptureLimits(free_bytes=free_bytes))


def _known_of(connection: Connection, paths: Collection[str]) -> set[str]:
    """Which of some artifacts are committed."""
    if not paths:
        return set()
    query = select(ArtifactRow.path).where(ArtifactRow.path.in_(list(paths)))
    return set(connection.scalars(query))


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        # Its record was committed since it was listed, and the database has it.
        return 0
