"""What a killed program leaves of a stream: whole frames, and perhaps the beginning of one more.

The file is evidence and is never changed. What can be decoded is captured anew into another file,
which becomes an object with an index. What cannot is counted as far as the frames say what they
hold; what was never written, nobody can count.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from tooltrail.artifacts._decoding import announced_size, read_frame
from tooltrail.artifacts.capture import Capture, CapturedStream
from tooltrail.artifacts.codec import FRAME_SIZE
from tooltrail.artifacts.frame_spans import iter_spans
from tooltrail.records.errors import DamageError, UnavailableError

_UNFINISHED = "the program that recorded it ended in the middle of a frame"


class SpoolReader:
    """The plain bytes of the whole frames of a spool file, in order. Iterate once.

    Attributes:
        size: plain bytes given so far.
        lost_size: plain bytes, at the least, behind the last whole frame; known at the end.
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
        """One block for each frame.

        Raises:
            OSError: as the file raises it.
        """
        stop, is_closed = 0, False
        try:
            for span in iter_spans(self._stored, self._path):
                is_closed |= not span.is_data
                if span.is_data:
                    block = read_frame(self._stored, span, self._path).plain
                    self.size += len(block)
                    yield block
                stop = span.stop
        except DamageError as error:
            self.problem = str(error)
        self._look_behind(stop, is_closed=is_closed)

    def _look_behind(self, stop: int, *, is_closed: bool) -> None:
        self._stored.seek(stop)
        rest = self._stored.read(1)
        is_index = bool(rest) and (is_closed or rest[0] >> 4 == 5)
        # The beginning of an index holds no plain bytes.
        if rest and not (is_index and self.problem is None):
            self.lost_size = max(1, self._announced(stop))

    def _announced(self, start: int) -> int:
        """Plain bytes that the headers of frames from `start` on speak of."""
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
    inline_bytes: int,
    frame_size: int = FRAME_SIZE,
    moves_to: Path | None = None,
) -> Salvaged:
    """Capture what is whole in a spool file once more; the file stays as it is.

    Args:
        spool_file: what the killed program left.
        role: of the record.
        staged: the file to create, which needs as much room again.
        edge_bytes: see `Capture`.
        inline_bytes: see `Capture`.
        frame_size: see `Capture`.
        moves_to: where the file will be when it is damaged, which is what the record says of it;
            where it is by default.

    Raises:
        InvalidRecordError: no record can have this role.
        UnavailableError: the file cannot be read, or there is no room for another.
    """
    with Capture(
        role, staged, edge_bytes=edge_bytes, inline_bytes=inline_bytes, frame_size=frame_size
    ) as capture:
        try:
            with spool_file.open("rb") as stored:
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
    return replace(captured, record=record)
