"""Streams that came slowly are stored in full frames, whatever frames they were captured in.

Each second of waiting ends a frame, so that others can follow: an hour of a build that prints now
and then is 3,600 small frames, which compress badly and make a long index. When it is over nobody
needs them any more. The same content in full frames is the same artifact, for that is named by its
plain bytes; and it is the same object, byte for byte, as if it had come at once.
"""

from pathlib import Path

from tooltrail.artifacts._private import create_private
from tooltrail.artifacts._staged import plain_blocks
from tooltrail.artifacts.codec import FrameWriter, compress_frame
from tooltrail.artifacts.frame_index import FrameIndex
from tooltrail.records.digests import Digest

FEW_FRAMES = 16
"""Up to so many frames nothing is worth the work."""

_FULL_SHARE = 4
"""Frames of less than a quarter of a full one, on average, are small."""


def is_scattered(index: FrameIndex | None, frame_size: int) -> bool:
    """Whether an object has so many and so small frames that it is worth repacking.

    Args:
        index: of the object; without one it is left as it is.
        frame_size: plain bytes in a full frame.
    """
    if index is None or len(index) <= FEW_FRAMES:
        return False
    return index.plain_size * _FULL_SHARE < frame_size * len(index)


def repack(staged: Path, target: Path, digest: Digest, frame_size: int) -> FrameIndex:
    """Write a stored object anew in full frames; holds about two of them.

    Args:
        staged: the object, which stays as it is and may be read by others meanwhile.
        target: the file to create; it is not synced, which publishing does.
        digest: that its plain bytes must have.
        frame_size: plain bytes in a full frame.

    Raises:
        DamageError: the staged file is not what was captured.
        UnavailableError: it cannot be read any further.
        OSError: it cannot be opened, or the target cannot be written, as on a full disk; what was
            written of that is left.
    """
    with create_private(target) as raw:
        writer = FrameWriter(raw)
        for block in plain_blocks(staged, digest, frame_size):
            writer.append(compress_frame(block))
        return writer.close()
