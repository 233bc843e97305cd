"""What the limit of a store leaves for the output that its captures keep.

What is kept of output is on a disk at every moment: as an artifact, or in the spool until its
record is committed. So whoever looks at the spool first and then asks the database counts all of
it, some of it twice for a moment, whichever thread or process of this machine it is of. That is
done when a capture is at its end: content that is an artifact already costs nothing, and of other
content as much is kept as fits. Until then nobody knows which of the two it is, so a capture may
grow `STEP` beyond what is left.

What is in memory alone is in no spool. From when it is to be published until it is committed only
the process that does so counts it, however often it has the store open; what several processes
publish so within the same moment may go beyond.
"""

import os
import sys
import threading
from collections.abc import Collection, Generator, Iterator
from contextlib import contextmanager
from pathlib import Path

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
from tooltrail.store._engines.database import Database
from tooltrail.store._roots.references import ASKED_AT_ONCE, in_chunks
from tooltrail.store.tables import ArtifactRow

_ALL = sys.maxsize
"""Room, in bytes, for whatever is there."""

STEP = 64 * 1024 * 1024
"""Stored bytes by which a capture grows before it asks for what is left."""


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

    @contextmanager
    def share(self) -> Generator["RoomShare"]:
        """For what is published from memory before the block ends, by when it is committed."""
        share = RoomShare(self)
        _shares.add(self._store_id, share)
        try:
            yield share
        finally:
            _shares.remove(self._store_id, share)

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
            held = _shares.held(self._store_id)
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

    def _left_for(self, digest: Digest, file: Path | None) -> int | None:
        return None if self.is_known(artifact_path(digest)) else self.left(file)

    def is_known(self, path: str) -> bool:
        """Whether an artifact is committed, or nobody can say."""
        try:
            with self._database.read() as connection:
                return bool(_known_of(connection, [path]))
        except UnavailableError:
            return True

    def _spool_files(self) -> Iterator[Path]:
        for folder in iter_spool_folders(self._spool):
            if folder.store_id in (None, self._store_id):
                yield from spooled_streams(folder.path).values()


class RoomShare:
    """What one call, or some that are committed together, publishes from memory. One thread.

    Others may ask meanwhile for what it holds.
    """

    def __init__(self, room: StoreRoom) -> None:
        self._room = room
        self._held: dict[str, int] = {}

    @property
    def held(self) -> dict[str, int]:
        """Stored bytes by path; a copy."""
        return self._held.copy()

    @property
    def reason(self) -> str:
        """See `StoreRoom.reason`."""
        return self._room.reason

    def refuses(self, stream: StreamRecord, file: Path | None) -> bool:
        """Whether there is no room for an artifact of a stream that is wholly in memory.

        Its room is taken before it is asked for, so that of two at once neither gets that of the
        other; and given back where it is refused.

        Args:
            stream: that is to be published.
            file: of the spool, where it is there as well.
        """
        path = artifact_path(stream.digest)
        if stream.content is None or self._room.is_known(path):
            return False
        size = len(encode(stream.content))
        if file is None:
            self._held[path] = size
        left = self._room.left(file, path)
        if left is None or size <= left:
            return False
        self._held.pop(path, None)
        return True


class _Shares:
    """What this process publishes from memory, by store. Safe to share between threads."""

    def __init__(self) -> None:
        # Taken again by whoever records in the handler of a signal that came meanwhile.
        self._lock = threading.RLock()
        self._of: dict[str, set[RoomShare]] = {}

    def add(self, store_id: str, share: RoomShare) -> None:
        with self._lock:
            self._of.setdefault(store_id, set()).add(share)

    def remove(self, store_id: str, share: RoomShare) -> None:
        with self._lock:
            self._of[store_id].discard(share)

    def held(self, store_id: str) -> dict[str, int]:
        """Stored bytes by path: two who publish the same content take its room once."""
        with self._lock:
            shares = list(self._of.get(store_id, ()))
        return {path: size for share in shares for path, size in share.held.items()}

    def forget(self) -> None:
        """Begin anew, as a forked child: its parent's threads are not its own."""
        self._lock = threading.RLock()
        self._of = {}


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
    known: set[str] = set()
    for some in in_chunks(paths, ASKED_AT_ONCE):
        query = select(ArtifactRow.path).where(ArtifactRow.path.in_(some))
        known.update(connection.scalars(query))
    return known


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        # Its record was committed since it was listed, and the database has it.
        return 0


_shares = _Shares()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_shares.forget)
