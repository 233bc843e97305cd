"""Recover a stream from the spool file of a killed program.

The file contains complete frames, and perhaps a part of one more. It is evidence, so it is never
changed. All decodable bytes are captured into another file, which becomes an object with an index.
Other bytes are counted if frame headers announce them. Bytes that were never written are unknown.
"""

import io
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from tooltrail.artifacts._decoding import announced_size, read_beginning, read_frame
from tooltrail.artifacts.capture import Capture
from tooltrail.artifacts.captured import CapturedStream
from tooltrail.artifacts.frame_spans import (
    HEADER_SIZE,
    is_skippable,
    iter_spans,
)
from tooltrail.artifacts.private_files import open_without_links
from tooltrail.artifacts.sink import FRAME_SIZE
from tooltrail.records.errors import DamageError, UnavailableError
from tooltrail.records.frozen import Frozen

_UNFINISHED = "the program that recorded it ended in the middle of a frame"


class SpoolReader:
    """The decodable plain bytes of a spool file, in order. Iterate once.

    Attributes:
        size: plain bytes returned so far.
        lost_size: minimum of the plain bytes that cannot be decoded; known after the iteration.
        problem: the damage, in one sentence; None if the file is undamaged or only ends early.
    """

    def __init__(self, stored: BinaryIO, path: str) -> None:
        """Read `stored`, a seekable file; `path` names the file in `problem`."""
        self._stored = stored
        self._path = path
        self.size = 0
        self.lost_size = 0
        self.problem: str | None = None

    def __iter__(self) -> Iterator[bytes]:
        """One block per frame, and one for the decodable part of an unfinished frame.

        Raises:
            OSError: from the file.
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
        # The beginning of an index has no plain bytes.
        if rest and not is_closed and not is_skippable(rest):
            yield from self._unfinished(stop)

    def _unfinished(self, start: int) -> Iterator[bytes]:
        # A frame that announces its size was written in one piece: only its end has a checksum.
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
        """The plain bytes that frame headers from `start` on announce."""
        total = 0
        try:
            for span in iter_spans(self._stored, self._path, start):
                total += announced_size(self._stored, span.start) if span.is_data else 0
                start = span.stop
        except DamageError:
            return total
        return total + announced_size(self._stored, start)


class Salvaged(Frozen):
    """The recovered stream of one spool file.

    Attributes:
        captured: the stream in a new staged file; its record gives the lost bytes and the reason.
        problem: the damage, in one sentence; None if the file is undamaged or only ends early.
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
    """Capture the decodable bytes of a spool file into a new file; `spool_file` is not changed.

    Args:
        spool_file: spool file of the killed program.
        role: role of the record.
        staged: file to create; it needs about as much space as `spool_file`.
        edge_bytes: see `Capture`.
        frame_size: see `Capture`.
        moves_to: path to which the caller will move a damaged file, to be named in the record; by
            default the path of `spool_file`.

    Raises:
        InvalidRecordError: no record can have this role.
        UnavailableError: the file cannot be read, or the disk has no space for a new file.
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
