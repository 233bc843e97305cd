"""Capture one complete stream of a running tool at constant memory.

Bytes are collected in a block of the size of a frame. Other threads compress a full block; then the
block is hashed, counted and appended to the spool file, in order. Once a second, a part of the
frame of an unfinished block is written, so that other processes can follow. The state of the *kept*
bytes advances only when a frame is complete on disk. So if the spool fails, the record ends there,
and the capture only counts further bytes.
"""

import contextlib
import os
import threading
from collections.abc import Generator, Iterable
from pathlib import Path
from typing import Self

from tooltrail.artifacts._flusher import FLUSHER
from tooltrail.artifacts._frame_queue import Compressed, FrameQueue
from tooltrail.artifacts._progress import Edges, Progress, Tally
from tooltrail.artifacts._spool import SpoolFile
from tooltrail.artifacts.captured import CapturedStream
from tooltrail.artifacts.codec import GrowingFrame, compress_frame, count_newlines
from tooltrail.artifacts.limits import DEFAULT_LIMITS, CaptureLimits
from tooltrail.artifacts.sink import FRAME_SIZE
from tooltrail.records.counted_streams import (
    INLINE_BYTES,
    CountedStream,
    check_role,
    count_lines,
)
from tooltrail.records.digests import digest_of
from tooltrail.records.errors import InvalidRecordError, UnavailableError

INTERRUPTED = "interrupted while it was written"
"""The reason for missing bytes after a call of `write` ended in an exception."""

_RESCUED_BYTES = 16 << 10
"""Bytes that the record keeps if the spool has fewer: even a nearly full disk may have room."""


class Capture:
    """Captures one stream, chunk by chunk; `close` returns a `CapturedStream`.

    The `content` of a record has all bytes if they are at most `INLINE_BYTES`.

    The spool file is created exclusively at the first byte, with its folders. It grows by frames
    and parts of frames, so another process of the user can decode it during the capture. It
    contains each byte after a second at most. It is not synced: publishing does that. As a context
    manager, a capture closes at the end and keeps its bytes.

    A file that cannot be written raises no error. The record then covers the longest prefix that
    is safe, on disk or in memory, and gives the reason why the rest is missing. If an exception
    such as `KeyboardInterrupt` interrupts a call, the stream is over: complete frames are kept, and
    later bytes are only counted. The record gives this reason too.

    Memory is about 12 MiB or ten frames, plus `edge_bytes` and `INLINE_BYTES` once or twice, for
    streams of any size. Safe for threads; their chunks are captured in some order.

    A capture belongs to the process that made it. In a forked child, every method of an open
    capture raises `InvalidRecordError`, and the end of a `with` block leaves it to the parent.

    Attributes:
        is_discarded: whether the stream is not to be recorded.
    """

    def __init__(
        self,
        role: str,
        spool_path: Path,
        *,
        edge_bytes: int,
        frame_size: int = FRAME_SIZE,
        limits: CaptureLimits = DEFAULT_LIMITS,
    ) -> None:
        """Prepare; nothing is created yet.

        Args:
            role: role of the record, such as `stdout`.
            spool_path: file to create, usually `<role>.zst` in the folder of the invocation.
            edge_bytes: bytes of the head, and of the tail, that the record quotes.
            frame_size: plain bytes in a full frame; see `SinkCapabilities`.
            limits: limits for the bytes to keep; bytes above the limits are only counted.

        Raises:
            InvalidRecordError: no record can have this role. An error at the end of the stream
                would lose all bytes.
        """
        check_role(role)
        self.is_discarded = False
        self._role = role
        self._edge_bytes = edge_bytes
        self._frame_size = frame_size
        self._buffer = bytearray()
        self._growing: GrowingFrame | None = None
        self._queue = FrameQueue(frame_size)
        self._edges = Edges(max(edge_bytes, INLINE_BYTES), edge_bytes)
        self._counted_size = 0
        self._accepted_size = 0
        self._dropped = Tally()
        self._interrupted: list[int] = []
        self._handled_count = 0
        self._progress = Progress()
        self._spool = SpoolFile(spool_path, limits)
        self._most = limits.stream_bytes
        self._outcome: CapturedStream | None = None
        self._process = os.getpid()
        self._lock = threading.Lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process == os.getpid():
            self.close()

    def write(self, chunk: bytes | bytearray | memoryview) -> None:
        """Capture the next bytes, of items of any type; the caller may reuse `chunk` afterwards.

        Raises:
            InvalidRecordError: the capture is closed, or was made by the parent of this process, or
                `chunk` has another type.
        """
        try:
            size = memoryview(chunk).nbytes
        except TypeError:
            kind = type(chunk).__name__
            raise InvalidRecordError(f"a capture takes bytes, not {kind}") from None
        is_counted = False
        try:
            self._refuse_child()
            with self._lock:
                self._refuse_closed()
                self._abandon_if_interrupted()
                self._counted_size += size
                is_counted = True
                if size:
                    self._take(_bytes_of(chunk))
        except InvalidRecordError:
            raise
        except BaseException:
            self._interrupted.append(0 if is_counted else size)
            raise

    def flush(self) -> None:
        """Make all bytes so far decodable from the spool file.

        A thread does this once a second anyway. Call `flush` if a reader waits for the bytes.
        """
        self._refuse_child()
        with self._lock, self._noting_interruption():
            if self._outcome is None:
                self._abandon_if_interrupted()
                self._flush()

    def close(self) -> CapturedStream:
        """End the stream and return its outcome; later calls return the same outcome."""
        self._refuse_child()
        with self._lock, self._noting_interruption():
            if self._outcome is None:
                self._abandon_if_interrupted()
                self._end_block()
                self._keep(self._queue.drain())
                self._outcome = self._conclude()
            return self._outcome

    def discard(self) -> None:
        """End the stream and delete the spool file, if it exists.

        Raises:
            UnavailableError: the file cannot be deleted.
        """
        staged = self.close().staged
        self.is_discarded = True
        if staged is None:
            return
        try:
            staged.unlink(missing_ok=True)
        except OSError as error:
            raise UnavailableError(f"cannot delete {staged}: {error.strerror}") from error

    def _refuse_child(self) -> None:
        """Raise in a forked child: both processes would write at one offset of the file.

        A capture that was closed before the fork has its outcome, and the child may use that.
        """
        if self._process != os.getpid() and self._outcome is None:
            raise InvalidRecordError(
                f"the capture of {self._role} belongs to process {self._process}; a forked child"
                " needs a capture of its own"
            )

    def _refuse_closed(self) -> None:
        if self._outcome is not None:
            raise InvalidRecordError(f"the capture of {self._role} is closed")

    @contextlib.contextmanager
    def _noting_interruption(self) -> Generator[None]:
        try:
            yield
        except BaseException:
            self._interrupted.append(0)
            raise

    def _abandon_if_interrupted(self) -> None:
        """After an interrupted call, keep no further bytes: some of its bytes may be missing.

        Earlier bytes are kept. If this method is interrupted too, the next call repeats it.
        """
        count = len(self._interrupted)
        if count == self._handled_count:
            return
        blocks = self._queue.blocks
        if not blocks or blocks[-1] is not self._buffer:
            blocks.append(self._buffer)
        done = [number for number, block in enumerate(blocks, 1) if block is self._progress.block]
        self._spool.go_back(self._progress.frame_count)
        for block in filter(None, blocks[done[0] if done else 0 :]):
            self._keep([Compressed(block, compress_frame(block))])
        self._queue.clear()
        self._buffer, self._growing = bytearray(), None
        self._spool.stop(INTERRUPTED)
        self._handled_count = count

    @property
    def _offered_size(self) -> int:
        """Bytes that callers wrote, whether they were kept or not."""
        # Other threads append to the list without the lock, so no item is ever removed.
        return self._counted_size + sum(self._interrupted)

    @property
    def _flushed_size(self) -> int:
        """Bytes at the beginning of the buffer that are in the spool file."""
        return 0 if self._growing is None else self._growing.plain_size

    def _take(self, chunk: memoryview) -> None:
        is_over = self._handled_count > 0
        wanted = 0 if is_over else len(chunk)
        if self._most is not None:
            wanted = min(wanted, max(0, self._most - self._accepted_size))
        if rest := chunk[wanted:]:
            self._dropped = self._dropped.plus(len(rest), count_newlines(rest), rest[-1])
        if is_over:
            return
        self._spool.create()
        if len(self._buffer) == self._flushed_size:
            # Before the buffer is filled, so that all bytes are flushed in time.
            FLUSHER.watch(self)
        self._accepted_size += wanted
        self._fill(chunk[:wanted])
        self._keep(self._queue.ready())

    def _fill(self, rest: memoryview) -> None:
        while rest:
            part = rest[: self._frame_size - len(self._buffer)]
            self._buffer += part
            rest = rest[len(part) :]
            if len(self._buffer) == self._frame_size:
                self._end_block()

    def _end_block(self) -> None:
        """End the frame of the bytes in the buffer."""
        block, growing = self._buffer, self._growing
        if growing is not None:
            self._queue.put_compressed(block, growing.finish(block[growing.plain_size :]))
        elif len(block) == self._frame_size:
            self._queue.put(block)
        elif block:
            self._queue.put_compressed(block)
        self._buffer, self._growing = bytearray(), None

    def _flush(self) -> None:
        self._keep(self._queue.drain())
        flushed = self._flushed_size
        if len(self._buffer) == flushed:
            return
        self._growing = self._growing or GrowingFrame()
        reason = self._spool.extend(self._growing.flush(self._buffer[flushed:]))
        if reason is not None:
            self._keep_flushed(flushed, reason)

    def _keep_flushed(self, flushed: int, reason: str) -> None:
        """Keep the bytes that were flushed before, after a flush failed."""
        block = self._buffer[:flushed]
        frame = compress_frame(block) if block else None
        is_kept = self._spool.end_with(frame, reason)
        if frame is not None:
            self._progress = self._progress.after(
                Compressed(block, frame), self._edges, is_kept=is_kept
            )
        del self._buffer[:flushed]
        self._growing = None

    def _keep(self, ready: Iterable[Compressed]) -> None:
        for compressed in ready:
            is_kept = self._spool.append(compressed.frame)
            self._progress = self._progress.after(compressed, self._edges, is_kept=is_kept)

    def _conclude(self) -> CapturedStream:
        if self._most is not None and self._offered_size > self._most:
            self._spool.stop(f"longer than the limit of {self._most:,} bytes for one stream")
        staged = self._spool.close()
        counted = self._count(self._progress.kept.size if staged else 0)
        if staged is None or counted.size != self._progress.kept.size:
            # The file has fewer bytes than memory, or is damaged.
            self._spool.remove()
            return CapturedStream(counted, None)
        return CapturedStream(counted, staged, self._spool.stored_size, self._spool.index)

    def _count(self, kept_size: int) -> CountedStream:
        """The facts about the bytes in the file, or in memory if memory has as many."""
        known, most = self._progress, self._edge_bytes
        in_memory = known.prefix[: max(kept_size, _RESCUED_BYTES)]
        if len(in_memory) >= kept_size:
            data, size, end = in_memory, len(in_memory), in_memory
            digest, line_count = digest_of(data), count_lines(data)
        else:
            data, size, end = None, kept_size, known.tail
            digest, line_count = known.digest, known.kept.line_count
        head = known.prefix[: min(size, most)]
        tail_size = min(size - len(head), most)
        return CountedStream(
            role=self._role,
            digest=digest,
            size=size,
            line_count=line_count,
            head=head,
            tail=end[len(end) - tail_size :],
            content=data,
            produced_size=self._offered_size,
            produced_line_count=known.produced.then(self._dropped).line_count,
            loss_reason=self._spool.failure if self._offered_size > size else None,
        )


def _bytes_of(chunk: bytes | bytearray | memoryview) -> memoryview:
    view = memoryview(chunk)
    # A view with gaps, or without items in some dimension, cannot be cast.
    return view.cast("B") if view.c_contiguous and view.nbytes else memoryview(view.tobytes())
