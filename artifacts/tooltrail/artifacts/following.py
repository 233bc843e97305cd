"""Read a stream while another process still captures it.

The follower reads all decodable bytes of the spool file, and polls for more after an interval. The
file stays open, so no byte is lost when the file is published and its name is deleted.
"""

import io
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Literal, Self

import zstandard

from tooltrail.artifacts._decoding import Decoder, plain_size_of, read_beginning, read_frame
from tooltrail.artifacts.frame_spans import FRAME_MAGIC, FrameSpan, is_skippable, iter_spans
from tooltrail.artifacts.private_files import open_without_links
from tooltrail.records.errors import DamageError, UnavailableError

READ_SIZE = 16 * 1024
"""Stored bytes per read."""

FOLLOW_INTERVAL_S = 0.2
"""Seconds between two polls. A capture flushes once a second, so more polls would find no more."""

Ending = Literal["closed", "gone", "abandoned"]


class StreamFollower:
    """Reads one growing spool file of another process; a context manager. For one thread.

    Attributes:
        offset: plain offset of the next byte to return.
        ending: how the stream ended; None while it continues. `closed`: the capture was closed,
            and all bytes were returned. `gone`: the folder was removed; the bytes from `offset` on
            are in the store. `abandoned`: the process ended without closing the capture; all
            decodable bytes were returned.
    """

    def __init__(self, folder: Path, role: str, is_running: Callable[[], bool]) -> None:
        """Prepare; nothing is opened yet.

        Args:
            folder: folder of the call in the spool.
            role: role of the stream.
            is_running: returns whether the call has not ended and its program is alive.
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
        """Move to the beginning of the last lines that the file has now; for 0, to its end.

        An unfinished line counts as a line. Call this method before any other, or not at all.

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
        """The bytes since the last poll, in blocks that are not empty; then updates `ending`.

        Raises:
            DamageError: a frame was altered.
            UnavailableError: the file cannot be read.
        """
        # Before the file is read: after the process has ended, no more bytes can come.
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

    def __exit__(self, *_: object) -> None:
        self.close()

    def _new_blocks(self, stored: BinaryIO) -> Iterator[bytes]:
        """The decodable bytes since the end of the last poll; the last frame may be incomplete."""
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
        """The start of the last lines: their first frame, and the offset in its plain bytes."""
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
                wanted += block.endswith(b"\n")  # no line begins after this newline
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
        """The file; None while it does not exist."""
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
