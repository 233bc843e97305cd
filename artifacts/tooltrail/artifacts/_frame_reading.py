"""One frame at a time, from a file that nobody vouches for."""

from typing import BinaryIO

import zstandard

from tooltrail.artifacts.frame_spans import FrameSpan
from tooltrail.records.errors import DamageError

MAX_FRAME_SIZE = 64 * 1024 * 1024
"""Plain bytes of a frame beyond which its header is not believed."""

_HEADER_SIZE = 18
"""Bytes of the longest header of a frame."""


def read_frame(stored: BinaryIO, span: FrameSpan, path: str) -> bytes:
    """The plain bytes of one frame; `path` names the file in errors.

    Raises:
        DamageError: it was altered.
        OSError: as the file raises it.
    """
    stored.seek(span.start)
    data = stored.read(span.stop - span.start)
    try:
        # Else a header that was altered could ask for more memory than there is.
        if 0 <= zstandard.frame_content_size(data) <= MAX_FRAME_SIZE:
            return zstandard.ZstdDecompressor().decompress(data)
    except zstandard.ZstdError:
        pass
    raise DamageError(
        f"{path} is damaged: the frame at byte {span.start:,} cannot be decoded", path=path
    )


def announced_size(stored: BinaryIO, start: int) -> int:
    """The plain bytes that the header of the frame at `start` speaks of; 0 when it does not.

    Raises:
        OSError: as the file raises it.
    """
    stored.seek(start)
    try:
        size = zstandard.get_frame_parameters(stored.read(_HEADER_SIZE)).content_size
    except zstandard.ZstdError:
        return 0
    return size if size <= MAX_FRAME_SIZE else 0
