"""The bytes of a stream while another process still captures it.

What can be decoded in the spool file is read, and more is looked for after an interval. The file
stays open, so that nothing is missed when it is published and its name goes.
"""

import io
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import BinaryIO, Literal, Self

import zstandard

from tooltrail.artifacts._decoding import Decoder, plain_size_of, read_beginning, read_frame
from tooltrail.artifacts._private import open_without_links
from tooltrail.artifacts.frame_spans import FRAME_MAGIC, FrameSpan, is_skippable, iter_spans
from tooltrail.records.errors import DamageError, UnavailableError

READ_SIZE = 16 * 1024
"""Stored bytes that are decoded at once."""

FOLLOW_INTERVAL_S = 0.2
"""Seconds between two looks. A capture flushes every second, so more looks would find no more."""

Ending = Literal["closed", "gone", "abandoned"]


class StreamFollower:
    """Reads one growing spool file from another process; a context manager. One thread.

    Attributes:
        offset: plain bytes before the next one that is given.
        ending: how the stream ended; None while it goes on. `closed`: its capture was closed, and
            everything was given. `gone`: its folder was removed; what was not given, from
            `offset` on, is in the store. `abandoned`: its process ended without closing it; all
            that can be decoded was given.
    """

    def __init__(self, folder: Path, role: str, is_running: Callable[[], bool]) -> None:
        """Prepare; nothing is opened yet.

        Args:
            folder: of the call, in the spool.
            role: of the stream.
            is_running: whether the call has not ended and its program lives.
        """
        self._is_running = is_running
        self._folder = folder
        self._file = folder / f"{role}.zst"
        self._stored: BinaryIO | None = None
        self._decoder: Decoder | None = None
        self._stop = 0
        self._skip = 0
        self.offset = 0
        self.ending: Ending | None = None

    def skip_to_last(self, lines: int) -> None:
        """Go to the beginning of the last lines of what is there now; to its end for 0.

        An unfinished line counts. To be called first, if at all.

        Raises:
            DamageError: a frame was altered.
            UnavailableError: the file cannot be read.
        """
        stored = self._open()
        if stored is None:
            return
        try:
            self._go_to(stored, *self._start_of_last(stored, lines))
        except OSError as error:
            raise self._unreadable(error) from error

    def poll(self) -> Iterator[bytes]:
        """What came since the last time, in blocks that are not empty; then `ending` is up to date.

        Raises:
            DamageError: a frame was altered.
            UnavailableError: the file cannot be read.
        """
        # Asked first: what a process wrote before it ended is then there to be read.
        is_running = self._is_running()
        stored = self._open()
        if stored is not None:
            try:
                yield from self._new_blocks(stored)
            except OSError as error:
                raise self._unreadable(error) from error
        if self.ending is None and not is_running:
            self.ending = "abandoned" if self._file.exists() else "gone"

    def close(self) -> None:
        """Close the file."""
        if self._stored is not None:
            self._stored.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _new_blocks(self, stored: BinaryIO) -> Iterator[bytes]:
        """What can be decoded from where the last look ended; a frame may be there in part."""
        while True:
            stored.seek(self._stop)
            data = stored.read(READ_SIZE)
            if self._decoder is None:
                if len(data) < len(FRAME_MAGIC):
                    return
                if is_skippable(data):
                    self.ending = "closed"
                    return
                self._decoder = zstandard.ZstdDecompressor().decompressobj()
            elif not data:
                return
            yield from self._decoded(self._decoder, data)

    def _decoded(self, decoder: Decoder, data: bytes) -> Iterator[bytes]:
        try:
            plain = decoder.decompress(data)
        except zstandard.ZstdError as error:
            raise DamageError(
                f"{self._file} is damaged: bytes {self._stop:,} to {self._stop + len(data):,} of"
                f" the stored file cannot be decoded: {error}",
                path=str(self._file),
            ) from error
        self._stop += len(data) - len(decoder.unused_data)
        if decoder.eof:
            self._decoder = None
        block, self._skip = plain[self._skip :], max(0, self._skip - len(plain))
        self.offset += len(block)
        if block:
            yield block

    def _start_of_last(self, stored: BinaryIO, lines: int) -> tuple[FrameSpan | None, int]:
        """Where the last lines begin: their frame, and the offset in its plain bytes."""
        path = str(self._file)
        spans = [span for span in iter_spans(stored, path) if span.is_data]
        stop = spans[-1].stop if spans else 0
        last = read_beginning(stored, stop, path).plain
        if last:
            spans.append(FrameSpan(stop, stop, is_data=True))
        wanted = lines
        for number, span in enumerate(reversed(spans)):
            is_unfinished = span.stop == span.start
            block = last if is_unfinished else read_frame(stored, span, path).plain
            if not number:
                if not lines:
                    return span, len(block)
                wanted += block.endswith(b"\n")  # that newline begins no line
            count = block.count(b"\n")
            if count >= wanted:
                end = len(block)
                for _ in range(wanted):
                    end = block.rindex(b"\n", 0, end)
                return span, end + 1
            wanted -= count
        return None, 0

    def _go_to(self, stored: BinaryIO, start: FrameSpan | None, skip: int) -> None:
        self._stop, self._skip, self.offset = start.start if start else 0, skip, skip
        for span in iter_spans(stored, str(self._file)):
            if span.start >= self._stop:
                return
            self.offset += plain_size_of(stored, span, str(self._file))

    def _open(self) -> BinaryIO | None:
        """The file, None as long as there is none."""
        if self._stored is None:
            try:
                self._stored = io.BufferedReader(open_without_links(self._file))
            except FileNotFoundError:
                return None
            except OSError as error:
                raise self._unreadable(error) from error
        return self._stored

    def _unreadable(self, error: OSError) -> UnavailableError:
        return UnavailableError(f"{self._file} cannot be read: {error.strerror}")


def follow(
    folder: Path,
    role: str,
    is_running: Callable[[], bool],
    *,
    last_lines: int | None = None,
    interval_s: float = FOLLOW_INTERVAL_S,
) -> Iterator[bytes]:
    """The plain bytes of a stream as they come, until its capture is closed or its process ends.

    A stream that has not begun is waited for. Nothing is given twice.

    Args:
        folder: of the call, in the spool.
        role: of the stream.
        is_running: see `StreamFollower`.
        last_lines: begin with so many lines of what is there now; with all of it when None.
        interval_s: seconds between two looks.

    Raises:
        DamageError: a frame was altered.
        UnavailableError: the file cannot be read.
    """
    pause = threading.Event()
    with StreamFollower(folder, role, is_running) as follower:
        if last_lines is not None:
            follower.skip_to_last(last_lines)
        while True:
            yield from follower.poll()
            if follower.ending is not None:
                return
            pause.wait(interval_s)
