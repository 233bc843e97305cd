"""One stream of a running tool, taken in whole at constant memory.

Bytes gather in one block of the size of a frame. A full block is compressed by other threads, and
in its turn hashed, counted and appended to the spool file. Everything that is known of the *kept*
bytes moves forward only when a frame is complete on disk, so when the spool fails the record
simply stops there, and the capture counts on.
"""

import hashlib
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tooltrail.artifacts._flusher import FLUSHER
from tooltrail.artifacts._frame_queue import Compressed, FrameQueue
from tooltrail.artifacts._spool import SpoolFile
from tooltrail.artifacts._tally import Tail, Tally
from tooltrail.artifacts.codec import FRAME_SIZE, compress_frame
from tooltrail.artifacts.frame_index import Frame, FrameIndex
from tooltrail.artifacts.limits import DEFAULT_LIMITS, CaptureLimits
from tooltrail.records.digests import Digest, digest_from_hex, digest_of
from tooltrail.records.errors import InvalidRecordError, UnavailableError
from tooltrail.records.streams import StreamRecord, count_lines


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
    disk or in memory, and says why the rest is missing.

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
        self._prefix = bytearray()
        self._kept = Tally()
        self._produced = Tally()
        self._tail = Tail(edge_bytes)
        self._hasher = hashlib.sha256()
        self._spool = SpoolFile(spool_path, limits, claim)
        self._most = limits.stream_bytes
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
        rest = _bytes_of(chunk)
        with self._lock:
            if self._outcome is not None:
                raise InvalidRecordError(f"the capture of {self._role} is closed")
            if not rest:
                return
            self._spool.create()
            was_empty = not self._buffer
            while rest:
                part = rest[: self._frame_size - len(self._buffer)]
                self._buffer += part
                rest = rest[len(part) :]
                if len(self._buffer) == self._frame_size:
                    self._queue.put(self._take_block())
            self._keep(self._queue.ready())
            # A stream that stops at the end of a block has nothing in the buffer.
            if was_empty and (self._buffer or not self._queue.is_empty):
                FLUSHER.watch(self)

    def flush(self) -> None:
        """End the current frame, so that all bytes so far can be decoded from the spool file.

        Small frames compress badly, and once a second it is done anyway: call it when somebody
        waits for the bytes, not after every write.
        """
        with self._lock:
            self._flush()

    def close(self) -> CapturedStream:
        """End the stream; a second call returns the same."""
        with self._lock:
            if self._outcome is None:
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

    def _flush(self) -> None:
        self._keep(self._queue.drain())
        if self._buffer:
            block = self._take_block()
            self._keep([Compressed(block, compress_frame(block))])

    def _take_block(self) -> bytearray:
        block, self._buffer = self._buffer, bytearray()
        return block

    def _keep(self, ready: Iterable[Compressed]) -> None:
        for block, frame in ready:
            before = self._produced.size
            self._produced.add(len(block), frame.newline_count, block[-1])
            if self._most is None or self._produced.size <= self._most:
                self._keep_block(block, frame)
            elif before < self._most:
                part = block[: self._most - before]
                self._keep_block(part, compress_frame(part))
            if self._most is not None and self._produced.size > self._most:
                self._spool.stop(f"longer than the limit of {self._most:,} bytes for one stream")

    def _keep_block(self, block: bytearray, frame: Frame) -> None:
        self._remember_prefix(block)
        if self._spool.append(frame):
            self._hasher.update(block)
            self._kept.add(len(block), frame.newline_count, block[-1])
            self._tail.add(memoryview(block))

    def _remember_prefix(self, block: bytearray) -> None:
        room = max(self._edge_bytes, self._inline_bytes) - len(self._prefix)
        if room > 0:
            self._prefix += block[:room]

    def _conclude(self) -> CapturedStream:
        staged = self._spool.close()
        in_memory = bytes(self._prefix[: self._inline_bytes])
        kept_size = self._kept.size if staged else 0
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
        size = self._kept.size
        head = bytes(self._prefix[: min(size, self._edge_bytes)])
        return self._record(
            digest=digest_from_hex(self._hasher.hexdigest()),
            size=size,
            line_count=self._kept.line_count,
            head=head,
            tail=self._tail.last(min(size - len(head), self._edge_bytes)),
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
        lost = self._produced.size > size
        return StreamRecord(
            role=self._role,
            digest=digest,
            size=size,
            line_count=line_count,
            head=head,
            tail=tail,
            content=content,
            produced_size=self._produced.size,
            produced_line_count=self._produced.line_count,
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
