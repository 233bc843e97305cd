"""What a killed program leaves of a stream: whole frames, and perhaps a part of one more.

The file is evidence and is never changed. What can be decoded is captured anew into another file,
which becomes an object with an index. What cannot is counted as far as the frames say what they
hold; what was never written, nobody can count.
"""

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tooltrail.artifacts._decoding import announced_size, read_beginning, read_frame
from tooltrail.artifacts._private import open_without_links
from tooltrail.artifacts.capture import Capture
from tooltrail.artifacts.captured import CapturedStream
from tooltrail.artifacts.frame_spans import (
    HEADER_SIZE,
    is_skippable,
    iter_spans,
)
from tooltrail.artifacts.sink import FRAME_SIZE
from tooltrail.records.errors import DamageError, UnavailableError

_UNFINISHED = "the program that recorded it ended in the middle of a frame"


class SpoolReader:
    """The plain bytes that can be decoded in a spool file, in order. Iterate once.

    Attributes:
        size: plain bytes given so far.
        lost_size: plain bytes, at the least, behind those that were given; known at the end.
        problem: what is damaged, in one sentence; None for a file that merely ends early.
    """

    def __init__(self, stored: BinaryIO, path: str) -> None:
        """Read `stored`, a file that can seek; `path` names it in problems."""
        self._stored = stored
        self._path = path
        self.size = 0
        self.lost_size = 0
        self.problem: str | None = None

    def __iter__(self) -> Iterator[bytes]:
        """One block for each frame, and one for what is there of an unfinished frame.

        Raises:
            OSError: as the file raises it.
        """
        stop, is_closed = 0, False
        try:
            for span in iter_spans(self._stored, self._path):
                is_closed |= not span.is_data
                if span.is_data:
                    yield self._counted(read_frame(self._stored, span, self._path).plain)
                stop = span.stop
        except DamageError as error:
            self.problem = str(error)
        if self.problem is not None:
            self.lost_size = max(1, self._announced(stop))
            return
        self._stored.seek(stop)
        rest = self._stored.read(HEADER_SIZE)
        # The beginning of an index holds no plain bytes.
        if rest and not is_closed and not is_skippable(rest):
            yield from self._unfinished(stop)

    def _unfinished(self, start: int) -> Iterator[bytes]:
        # A frame that announces its size was written at once, and ends with its only checksum.
        self.lost_size = announced_size(self._stored, start)
        if self.lost_size:
            return
        found = read_beginning(self._stored, start, self._path)
        self.problem = found.problem
        if found.plain:
            yield self._counted(found.plain)
        self.lost_size = 0 if found.is_flushed and found.plain else 1

    def _counted(self, block: bytes) -> bytes:
        self.size += len(block)
        return block

    def _announced(self, start: int) -> int:
        """Plain bytes that the headers of frames from `start` on announce."""
        total = 0
        try:
            for span in iter_spans(self._stored, self._path, start):
                total += announced_size(self._stored, span.start) if span.is_data else 0
                start = span.stop
        except DamageError:
            return total
        return total + announced_size(self._stored, start)


@dataclass(frozen=True, slots=True)
class Salvaged:
    """What was got out of one spool file.

    Attributes:
        captured: the stream, staged anew; its record says what is lost.
        problem: what is damaged, in one sentence; None when the file merely ends early.
    """

    captured: CapturedStream
    problem: str | None


def salvage(
    spool_file: Path,
    role: str,
    staged: Path,
    *,
    edge_bytes: int,
    frame_size: int = FRAME_SIZE,
    moves_to: Path | None = None,
) -> Salvaged:
    """Capture what is whole in a spool file once more; the file stays as it is.

    Args:
        spool_file: what the killed program left.
        role: of the record.
        staged: the file to create, which needs as much room again.
        edge_bytes: see `Capture`.
        frame_size: see `Capture`.
        moves_to: where the file will be when it is damaged, which is what the record says of it;
            where it is by default.

    Raises:
        InvalidRecordError: no record can have this role.
        UnavailableError: the file cannot be read, or there is no room for another.
    """
    with Capture(role, staged, edge_bytes=edge_bytes, frame_size=frame_size) as capture:
        try:
            with io.BufferedReader(open_without_links(spool_file)) as stored:
                reader = SpoolReader(stored, str(moves_to or spool_file))
                for block in reader:
                    capture.write(block)
        except OSError as error:
            raise UnavailableError(f"{spool_file} cannot be read: {error.strerror}") from error
    captured = capture.close()
    if captured.record.loss_reason is not None:
        raise UnavailableError(f"{spool_file} cannot be recovered: {captured.record.loss_reason}")
    return Salvaged(_counting(captured, reader), reader.problem)


def _counting(captured: CapturedStream, reader: SpoolReader) -> CapturedStream:
    if not reader.lost_size:
        return captured
    record = captured.record.model_copy(
        update={
            "produced_size": captured.record.size + reader.lost_size,
            "loss_reason": reader.problem or _UNFINISHED,
        }
    )
    return captured.replaced(counted=record)
