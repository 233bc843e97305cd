"""One stream of a running tool, taken in whole at constant memory.

Bytes gather in one block of the size of a frame. A full block is compressed by other threads, and
in its turn hashed, counted and appended to the spool file. Everything that is known of the *kept*
bytes moves forward only when a frame is complete on disk, so when the spool fails the record
simply stops there, and the capture counts on.
"""

import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tooltrail.artifacts._flusher import FLUSHER
from tooltrail.artifacts._frame_queue import Compressed, FrameQueue
from tooltrail.artifacts._progress import Edges, Progress
from tooltrail.artifacts._spool import SpoolFile
from tooltrail.artifacts.codec import FRAME_SIZE
from tooltrail.artifacts.frame_index import FrameIndex
from tooltrail.artifacts.limits import DEFAULT_LIMITS, CaptureLimits
from tooltrail.records.digests import Digest, digest_of
from tooltrail.records.errors import InvalidRecordError, UnavailableError
from tooltrail.records.streams import StreamRecord, count_lines

INTERRUPTED = "interrupted while it was written"
"""Why the rest of a stream is missing when a call of `write` ended in an exception."""


@dataclass(frozen=True, slots=True)
class CapturedStream:
    """The outcome of a capture.

    Attributes:
        record: what is known of the stream.
        staged: the closed spool file, which holds exactly the bytes of the record as a stored
            object; None when nothing was written, or when the bytes are in `record.content` only.
        stored_size: bytes of the staged file when it was closed, which publishing compares; None
            without a staged file, and when nobody knows.
        index: of the staged file; None without one, and when there was no room for it.
    """

    record: StreamRecord
    staged: Path | None
    stored_size: int | None = None
    index: FrameIndex | None = None


class Capture:
    """Takes one stream in, chunk by chunk, and ends in a `CapturedStream`.

    The spool file is created exclusively at the first byte, with its folders, and grows by whole
    frames, so another process can decode what is there; other users cannot. What was taken is in
    it after a second at most, whether or not more follows. It is not synced: publishing does that.
    As a context manager a capture closes at the end and keeps what was taken. A file that cannot
    be written never breaks the caller: the record then covers the longest prefix that is safe, on
    disk or in memory, and says why the rest is missing. So it is when an exception from outside, a
    `KeyboardInterrupt` for instance, ends a call at any moment: what was taken by then is kept, and
    what is written later is counted only if bytes of that call are missing before it.

    Memory is about 12 MiB or ten frames, and `edge_bytes` and `inline_bytes` once or twice,
    whatever the size of the stream. Safe for threads, whose chunks follow each other in some order.
    """

    def __init__(
        self,
        role: str,
        spool_path: Path,
        *,
        edge_bytes: int,
        inline_bytes: int,
        frame_size: int = FRAME_SIZE,
        limits: CaptureLimits = DEFAULT_LIMITS,
        claim: Callable[[], object] | None = None,
    ) -> None:
        """Prepare; nothing is created yet.

        Args:
            role: of the record, such as `stdout`.
            spool_path: the file to create, by custom `<role>.zst` in a folder of its invocation.
            edge_bytes: how much of the head, and of the tail, the record quotes.
            inline_bytes: up to this size the record carries all bytes as its `content`.
            frame_size: plain bytes in a full frame; see `SinkCapabilities`.
            limits: where it stops to keep bytes; all of them are counted.
            claim: called before the file is made, `SpoolOwner.claim` for instance; when it raises
                `OSError`, the file cannot be written.

        Raises:
            InvalidRecordError: no record can have this role. It is said here, because at the end
                of the stream it would cost all bytes of it.
        """
        _check_role(role)
        self._role = role
        self._edge_bytes = edge_bytes
        self._inline_bytes = inline_bytes
        self._frame_size = frame_size
        self._buffer = bytearray()
        self._queue = FrameQueue(frame_size)
        self._edges = Edges(max(edge_bytes, inline_bytes), edge_bytes)
        self._counted_size = 0
        self._uncounted: list[int] = []
        self._mended_count = 0
        self._progress = Progress()
        self._is_torn = False
        self._spool = SpoolFile(spool_path, limits, claim)
        self._most = limits.stream_bytes
        self._stop_reason = f"longer than the limit of {self._most or 0:,} bytes for one stream"
        self._outcome: CapturedStream | None = None
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def write(self, chunk: bytes | bytearray | memoryview) -> None:
        """Take the next bytes in, of items of any type; `chunk` may be reused afterwards.

        Raises:
            InvalidRecordError: the capture is closed.
        """
        size = memoryview(chunk).nbytes
        is_counted = False
        try:
            with self._lock:
                self._refuse_closed()
                self._begin()
                self._counted_size += size
                is_counted = True
                if size:
                    self._take(_bytes_of(chunk))
                self._is_torn = False
        except BaseException:
            # As when it is interrupted while it waits for another thread.
            if not is_counted:
                self._uncounted.append(size)
            raise

    def flush(self) -> None:
        """End the current frame, so that all bytes so far can be decoded from the spool file.

        Small frames compress badly, and once a second it is done anyway: call it when somebody
        waits for the bytes, not after every write.
        """
        with self._lock:
            if self._outcome is None:
                self._begin()
                self._flush()
                self._is_torn = False

    def close(self) -> CapturedStream:
        """End the stream; a second call returns the same, or goes on where one was interrupted."""
        with self._lock:
            if self._outcome is None:
                self._begin()
                self._flush()
                self._outcome = self._conclude()
            return self._outcome

    def discard(self) -> None:
        """End the stream and delete the spool file; nothing happens to one that is gone.

        Raises:
            UnavailableError: the file cannot be deleted.
        """
        staged = self.close().staged
        if staged is None:
            return
        try:
            staged.unlink(missing_ok=True)
        except OSError as error:
            raise UnavailableError(f"cannot delete {staged}: {error.strerror}") from error

    def _refuse_closed(self) -> None:
        if self._outcome is not None:
            raise InvalidRecordError(f"the capture of {self._role} is closed")

    def _begin(self) -> None:
        """Before each step that changes something; at its end `_is_torn` is false again.

        A `KeyboardInterrupt` may come at any moment, in here, too. Then the next step mends.
        """
        uncounted = len(self._uncounted)
        is_torn = self._is_torn or uncounted > self._mended_count
        # Before anything is mended, for that may be interrupted as well.
        self._is_torn = True
        if is_torn:
            self._mend()
            self._mended_count = uncounted

    @property
    def _offered_size(self) -> int:
        """Bytes that were written, whatever became of them."""
        # Other threads add to the list without the lock, so nothing is ever taken out of it.
        return self._counted_size + sum(self._uncounted)

    def _mend(self) -> None:
        """Make whole what an interrupted step left, and keep nothing behind bytes that are gone.

        Each step may be done again, and the one that says that bytes are gone comes last.
        """
        self._spool.go_back(self._progress.frame_count)
        self._queue.drop(self._progress.block)
        if self._queue.ends_with(self._buffer):
            self._buffer = bytearray()
        if len(self._buffer) == self._frame_size:
            self._queue_block()
        taken = self._progress.produced.size + self._queue.size + len(self._buffer)
        is_short = taken < self._offered_size or self._spool.is_closed
        if is_short and (self._most is None or taken < self._most):
            if not taken:
                # There may be a file that nobody holds.
                self._spool.stop(INTERRUPTED)
            self._stop_reason = INTERRUPTED
            self._most = taken

    def _take(self, rest: memoryview) -> None:
        self._spool.create()
        if not self._buffer:
            # Before it is filled, so that what was taken is watched whenever this is interrupted.
            # A stream that stops at the end of a block has nothing in the buffer, but in the queue.
            FLUSHER.watch(self)
        self._fill(rest)
        self._keep(self._queue.ready())

    def _fill(self, rest: memoryview) -> None:
        while rest:
            part = rest[: self._frame_size - len(self._buffer)]
            self._buffer += part
            rest = rest[len(part) :]
            if len(self._buffer) == self._frame_size:
                self._queue_block()

    def _queue_block(self) -> None:
        self._queue.put(self._buffer)
        self._buffer = bytearray()

    def _flush(self) -> None:
        if self._buffer:
            self._queue.put_compressed(self._buffer)
            self._buffer = bytearray()
        self._keep(self._queue.drain())

    def _keep(self, ready: Iterable[Compressed]) -> None:
        for compressed in ready:
            self._progress = self._progress.after(compressed, self._spool, self._edges, self._most)

    def _conclude(self) -> CapturedStream:
        if self._most is not None and self._offered_size > self._most:
            self._spool.stop(self._stop_reason)
        staged = self._spool.close()
        in_memory = self._progress.prefix[: self._inline_bytes]
        kept_size = self._progress.kept.size if staged else 0
        if len(in_memory) >= kept_size:
            record = self._record_in_memory(in_memory)
        else:
            record = self._record_on_disk()
        if staged is None or record.size != kept_size:
            # The file holds less than memory does, or nothing that can be trusted.
            self._spool.remove()
            return CapturedStream(record, None)
        return CapturedStream(record, staged, self._spool.stored_size, self._spool.index)

    def _record_in_memory(self, data: bytes) -> StreamRecord:
        head = data[: self._edge_bytes]
        return self._record(
            digest=digest_of(data),
            size=len(data),
            line_count=count_lines(data),
            head=head,
            tail=data[max(len(head), len(data) - self._edge_bytes) :],
            content=data,
        )

    def _record_on_disk(self) -> StreamRecord:
        known = self._progress
        size = known.kept.size
        head = known.prefix[: min(size, self._edge_bytes)]
        tail_size = min(size - len(head), self._edge_bytes)
        return self._record(
            digest=known.digest,
            size=size,
            line_count=known.kept.line_count,
            head=head,
            tail=known.tail[len(known.tail) - tail_size :],
            content=None,
        )

    def _record(
        self,
        *,
        digest: Digest,
        size: int,
        line_count: int,
        head: bytes,
        tail: bytes,
        content: bytes | None,
    ) -> StreamRecord:
        lost = self._offered_size > size
        return StreamRecord(
            role=self._role,
            digest=digest,
            size=size,
            line_count=line_count,
            head=head,
            tail=tail,
            content=content,
            produced_size=self._offered_size,
            produced_line_count=self._progress.produced.line_count,
            loss_reason=self._spool.failure if lost else None,
        )


def _check_role(role: str) -> None:
    try:
        StreamRecord.from_bytes(role, b"")
    except ValueError as error:
        raise InvalidRecordError(f"no stream can have the role {role[:80]!r}") from error


def _bytes_of(chunk: bytes | bytearray | memoryview) -> memoryview:
    view = memoryview(chunk)
    # A view cannot be cast when it has gaps, or no items in some dimension.
    return view.cast("B") if view.c_contiguous and view.nbytes else memoryview(view.tobytes())
