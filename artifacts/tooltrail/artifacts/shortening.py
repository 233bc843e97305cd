"""The beginning of a captured stream, when a store has not the room for all of it.

Nothing that is known of the file is trusted but its frames: it may have been shortened or put into
full frames before, by a call that was interrupted.

The spool file is cut in place, at the end of a frame, so that it takes no room on a disk that may
have none. It is cut before its new index is written: a kill between the two leaves whole frames,
which is how any spool file looks that somebody was writing. On a disk without room for the index
the frames are kept without one.
"""

import hashlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tooltrail.artifacts._frame_reading import read_frame
from tooltrail.artifacts._staged import FoundFrames, find_frames
from tooltrail.artifacts._tally import end_of
from tooltrail.artifacts.capture import CapturedStream
from tooltrail.artifacts.codec import write_whole
from tooltrail.artifacts.frame_index import FrameIndex
from tooltrail.artifacts.frame_spans import iter_spans
from tooltrail.records.digests import digest_from_hex, digest_of
from tooltrail.records.errors import DamageError
from tooltrail.records.streams import StreamRecord, count_lines


def shortened(
    captured: CapturedStream, room: int, reason: str, *, edge_bytes: int, inline_bytes: int
) -> CapturedStream:
    """Keep as many whole frames of a stream as a room takes; the rest is counted as lost.

    Up to `inline_bytes` are kept in memory, without any room, when that is more; then the staged
    file is deleted. Of a file that was altered the frames before that are kept, and the record says
    so. Never raises for a file that cannot be read or cut: then the head of the record is what is
    kept. A call that was interrupted may be made again, with the same capture.

    Args:
        captured: a closed capture with a staged file.
        room: bytes that the object may take as stored, with its index.
        reason: why, in words.
        edge_bytes: as the capture had it.
        inline_bytes: the same.
    """
    file, record = captured.staged, captured.record
    assert file is not None
    prefix = _prefix(file, record, inline_bytes)
    for found in _found(captured, file):
        index = found.index.fitting(room)
        if index is None or index.plain_size <= inline_bytes:
            break
        why = found.problem if index == found.index and found.problem else reason
        with suppress(OSError, DamageError):
            shorter = _described(record, file, index, edge_bytes, why)
            if _cut(file, index):
                return CapturedStream(shorter, file, index.object_size, index)
            return CapturedStream(shorter, file, index.frames_size)
    in_memory = CapturedStream(_in_memory(record, prefix, edge_bytes, reason), None)
    # What is left behind is found by its place.
    with suppress(OSError):
        file.unlink(missing_ok=True)
    return in_memory


def _found(captured: CapturedStream, file: Path) -> Iterator[FoundFrames]:
    """The frames that a file should have, unless that is known to be wrong; then those it has."""
    with suppress(OSError):
        if captured.index is not None and file.stat().st_size == captured.stored_size:
            yield FoundFrames(captured.index)
        yield find_frames(file)


def _prefix(file: Path, record: StreamRecord, inline_bytes: int) -> bytes:
    try:
        return b"".join(_blocks(file, min(inline_bytes, record.size)))
    except (OSError, DamageError):
        return record.head[:inline_bytes]


def _cut(file: Path, index: FrameIndex) -> bool:
    """Leave the frames of an index, and it behind them; False when there is no room for it.

    Raises:
        OSError: the file cannot be cut.
    """
    with file.open("r+b", buffering=0) as stored:
        stored.truncate(index.frames_size)
        stored.seek(index.frames_size)
        try:
            write_whole(stored, index.to_bytes())
        except OSError:
            stored.truncate(index.frames_size)
            return False
    return True


def _described(
    record: StreamRecord, file: Path, index: FrameIndex, edge_bytes: int, reason: str
) -> StreamRecord:
    """The record of the frames that an index speaks of."""
    hasher, tail, block = hashlib.sha256(), b"", b""
    for block in _blocks(file, index.plain_size):
        hasher.update(block)
        tail = end_of(tail, block, edge_bytes)
    head = record.head[: index.plain_size]
    tail_size = min(index.plain_size - len(head), edge_bytes)
    facts: dict[str, object] = {
        "digest": digest_from_hex(hasher.hexdigest()),
        "size": index.plain_size,
        "line_count": index.newline_count + (not block.endswith(b"\n")),
        "head": head,
        "tail": tail[len(tail) - tail_size :],
        "loss_reason": _why(record, index.plain_size, reason),
    }
    return record.model_copy(update=facts)


def _in_memory(record: StreamRecord, prefix: bytes, edge_bytes: int, reason: str) -> StreamRecord:
    head = prefix[:edge_bytes]
    facts: dict[str, object] = {
        "digest": digest_of(prefix),
        "size": len(prefix),
        "line_count": count_lines(prefix),
        "head": head,
        "tail": prefix[max(len(head), len(prefix) - edge_bytes) :],
        "content": prefix,
        "loss_reason": _why(record, len(prefix), reason),
    }
    return record.model_copy(update=facts)


def _why(record: StreamRecord, size: int, reason: str) -> str | None:
    return reason if size < record.size else record.loss_reason


def _blocks(file: Path, size: int) -> Iterator[bytes]:
    """The first so many plain bytes of a spool file; nothing behind their frames is decoded.

    Raises:
        DamageError: it does not hold so many.
        OSError: it cannot be read.
    """
    with file.open("rb") as stored:
        spans = iter_spans(stored, str(file))
        while size:
            span = next(spans, None)
            if span is None or not span.is_data:
                raise DamageError(f"{file} is shorter than its capture left it", path=str(file))
            block = read_frame(stored, span, str(file)).plain[:size]
            size -= len(block)
            yield block
