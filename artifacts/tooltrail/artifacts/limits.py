"""Limits for the bytes that a capture keeps. Bytes above a limit are counted, without an error."""

import os
from pathlib import Path

from tooltrail.records.frozen import Frozen

MOST_HELD_BACK = 64 * 1024 * 1024
"""Bytes that are held back on a large disk; on a smaller disk a thousandth of its size."""


class CaptureLimits(Frozen):
    """The limits at which a capture stops keeping bytes. By default only a nearly full disk.

    Attributes:
        stream_bytes: most plain bytes of one stream; None for no limit.
        free_bytes: bytes that must stay free on the disk of the spool, for records; None for a
            thousandth of the disk, at most 64 MiB.
    """

    stream_bytes: int | None = None
    free_bytes: int | None = None

    def refusal(self, folder: Path, more: int) -> str | None:
        """The reason why a stream may not grow, in words; None if it may.

        Args:
            folder: existing folder of the spool file.
            more: bytes to add.

        Raises:
            OSError: the free space is unknown.
        """
        status = os.statvfs(folder)
        free, held = status.f_bavail * status.f_frsize, self.free_bytes
        if held is None:
            held = min(MOST_HELD_BACK, status.f_blocks * status.f_frsize // 1000)
        if free - more < held:
            return (
                f"low disk space: of {free:,} free bytes {held:,} are held back, "
                f"up to {more:,} needed to store the next part"
            )
        return None


DEFAULT_LIMITS = CaptureLimits()
"""No limit except the free space of the disk."""
