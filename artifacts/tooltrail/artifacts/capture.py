"""One stream of a running tool, taken in whole at constant memory.

Bytes gather in one block of the size of a frame. A full block is compressed by other threads, and
in its turn hashed, counted and appended to the spool file. Of a block that waits for more bytes a
part of its frame is written once a second, so that others can follow. Everything that is known of
the *kept* bytes moves forward only when a frame is complete on disk, so when the spool fails the
record simply stops there, and the capture counts on.
"""

import contextlib
import threading
from collections.abc import Generator, Iterable
from pathlib import Path
from types import TracebackType
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
from tooltrail.records.digests import Digest, digest_of
from tooltrail.records.errors import InvalidRecordError, UnavailableError

INTERRUPTED = "interrupted while it was written"
"""Why the rest of a stream is missing when a call of `write` ended in an exception."""

_RESCUED_BYTES = 16 << 10
"""Bytes that the record holds when the spool keeps fewer: a full disk may still take a short
fact."""


class Capture:
    """Takes one stream in, chunk by chunk, and ends in a `CapturedStream`.

    A record of at most `INLINE_BYTES` carries all bytes as its `content`.

    The spool file is created exclusively at the first byte, with its folders, and grows by frames
    and parts of frames, so another process can decode what is there; other users cannot. What was
    taken is in it after a second at most, whether or not more follows. It is not synced: publishing
    does that. As a context manager a capture closes at the end and keeps what was taken. A file
    that cannot be written never breaks the caller: the record then covers the longest prefix that
    is safe, on disk or in memory, and says why the rest is missing. When an exception from outside,
    a `KeyboardInterrupt` for instance, ends a call, the stream is over: the frames that are
    complete are kept, all that is written later is counted only, and the record says so.

    Memory is about 12 MiB or ten frames, and `edge_bytes` and `INLINE_BYTES` once or twice,
    whatever the size of the stream. Safe for threads, whose chunks follow each other in some order.
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
            role: of the record, such as `stdout`.
            spool_path: the file to create, by custom `<role>.zst` in a folder of its invocation.
            edge_bytes: how much of the head, and of the tail, the record quotes.
            frame_size: plain bytes in a full frame; see `SinkCapabilities`.
            limits: where it stops to keep bytes; all of them are counted.

        Raises:
            InvalidRecordError: no record can have this role. It is said here, because at the end
                of the stream it would cost all bytes of it.
        """
        check_role(role)
        self._role = role
        self._edge_bytes = edge_bytes
        self._frame_size = frame_size
        self._buffer = bytearray()
        self._growing: GrowingFrame | None = None
        self._queue = FrameQueue(frame_size)
        self._edges = Edges(max(edge_bytes, INLINE_BYTES), edge_bytes)
        self._counted_size = 0
        self._taken_size = 0
        self._not_taken = Tally()
        self._missed: list[int] = []
        self._mended_count = 0
        self._progress = Progress()
        self._spool = SpoolFile(spool_path, limits)
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
        size = memoryview(chunk).nbytes
        is_counted = False
        try:
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
            self._missed.append(0 if is_counted else size)
            raise

    def flush(self) -> None:
        """Make all bytes so far decodable from the spool file.

        It is done once a second anyway: call it when somebody waits for the bytes.
        """
        with self._lock, self._noting_interruption():
            if self._outcome is None:
                self._abandon_if_interrupted()
                self._flush()

    def close(self) -> CapturedStream:
        """End the stream; a second call returns the same."""
        with self._lock, self._noting_interruption():
            if self._outcome is None:
                self._abandon_if_interrupted()
                self._end_block()
                self._keep(self._queue.drain())
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

    @contextlib.contextmanager
    def _noting_interruption(self) -> Generator[None]:
        try:
            yield
        except BaseException:
            self._missed.append(0)
            raise

    def _abandon_if_interrupted(self) -> None:
        """Keep nothing more after a call that did not come to its end: bytes of it may be missing.

        What was taken before is kept. This may be interrupted, too, and then begins anew.
        """
        missed = len(self._missed)
        if missed == self._mended_count:
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
        self._mended_count = missed

    @property
    def _offered_size(self) -> int:
        """Bytes that were written, whatever became of them."""
        # Other threads add to the list without the lock, so nothing is ever taken out of it.
        return self._counted_size + sum(self._missed)

    @property
    def _flushed_size(self) -> int:
        """Bytes at the beginning of the buffer that are in the spool file."""
        return 0 if self._growing is None else self._growing.plain_size

    def _take(self, chunk: memoryview) -> None:
        is_over = self._mended_count > 0
        wanted = 0 if is_over else len(chunk)
        if self._most is not None:
            wanted = min(wanted, max(0, self._most - self._taken_size))
        if rest := chunk[wanted:]:
            self._not_taken = self._not_taken.plus(len(rest), count_newlines(rest), rest[-1])
        if is_over:
            return
        self._spool.create()
        if len(self._buffer) == self._flushed_size:
            # Before it is filled, so that all bytes are flushed in time.
            FLUSHER.watch(self)
        self._taken_size += wanted
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
        """End the frame of what is in the buffer."""
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
        """Keep what was flushed before, when nothing more can be."""
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
        kept_size = self._progress.kept.size if staged else 0
        in_memory = self._progress.prefix[: max(kept_size, _RESCUED_BYTES)]
        if len(in_memory) >= kept_size:
            record = self._record_in_memory(in_memory)
        else:
            record = self._record_on_disk()
        if staged is None or record.size != kept_size:
            # The file holds less than memory does, or nothing that can be trusted.
            self._spool.remove()
            return CapturedStream(record, None)
        return CapturedStream(record, staged, self._spool.stored_size, self._spool.index)

    def _record_in_memory(self, data: bytes) -> CountedStream:
        head = data[: self._edge_bytes]
        return self._record(
            digest=digest_of(data),
            size=len(data),
            line_count=count_lines(data),
            head=head,
            tail=data[max(len(head), len(data) - self._edge_bytes) :],
            content=data,
        )

    def _record_on_disk(self) -> CountedStream:
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
    ) -> CountedStream:
        lost = self._offered_size > size
        return CountedStream(
            role=self._role,
            digest=digest,
            size=size,
            line_count=line_count,
            head=head,
            tail=tail,
            content=content,
            produced_size=self._offered_size,
            produced_line_count=self._progress.produced.then(self._not_taken).line_count,
            loss_reason=self._spool.failure if lost else None,
        )


def _bytes_of(chunk: bytes | bytearray | memoryview) -> memoryview:
    view = memoryview(chunk)
    # A view cannot be cast when it has gaps, or no items in some dimension.
    return view.cast("B") if view.c_contiguous and view.nbytes else memoryview(view.tobytes())
