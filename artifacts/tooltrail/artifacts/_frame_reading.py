"""One frame at a time, from a file that nobody vouches for."""

from typing import BinaryIO, NamedTuple

import zstandard

from tooltrail.artifacts._decoding import MAX_FRAME_SIZE, decode_unknown
from tooltrail.artifacts.frame_spans import HEADER_SIZE, FrameSpan
from tooltrail.records.errors import DamageError


class ReadFrame(NamedTuple):
    """One frame, as it is stored and as it was written."""

    stored: bytes
    plain: bytes


def read_frame(file: BinaryIO, span: FrameSpan, path: str) -> ReadFrame:
    """Read and decode one frame; `path` names the file in errors.

    Raises:
        DamageError: it was altered, or claims to be larger than any that this program writes.
        OSError: as the file raises it.
    """
    file.seek(span.start)
    stored = file.read(span.stop - span.start)
    try:
        return ReadFrame(stored, decode_unknown(stored))
    except ValueError as error:
        raise DamageError(
            f"{path} is damaged: the frame at byte {span.start:,} of the stored file cannot be"
            f" decoded: {error}",
            path=path,
        ) from error


def announced_size(file: BinaryIO, start: int) -> int:
    """The plain bytes that the header of the frame at `start` speaks of; 0 when it does not.

    Raises:
        OSError: as the file raises it.
    """
    file.seek(start)
    try:
        size = zstandard.get_frame_parameters(file.read(HEADER_SIZE)).content_size
    except zstandard.ZstdError:
        return 0
    return size if size <= MAX_FRAME_SIZE else 0
