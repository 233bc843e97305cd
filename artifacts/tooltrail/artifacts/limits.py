"""How much of a stream a capture keeps. What is beyond is counted and said, and never an error."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

MOST_HELD_BACK = 64 * 1024 * 1024
"""Bytes of a disk that are held back by default, when that is not more than a thousandth of it."""


class DiskRoom(NamedTuple):
    """Room on one disk, in bytes.

    Attributes:
        free: may be written.
        held_back: of these, what no capture takes.
    """

    free: int
    held_back: int


@dataclass(frozen=True, slots=True)
class CaptureLimits:
    """Where a capture stops to keep bytes. By default that is where the disk is nearly full.

    Attributes:
        stream_bytes: plain bytes of one stream.
        free_bytes: bytes that must stay free on the disk of the spool, for the records themselves;
            None for a thousandth of the disk, at most 64 MiB.
    """

    stream_bytes: int | None = None
    free_bytes: int | None = None

    def refusal(self, folder: Path, more: int) -> str | None:
        """Why a stream may not grow, in words; None when it may.

        Args:
            folder: of the spool file; it exists.
            more: bytes that are to be added.

        Raises:
            OSError: the disk cannot be asked.
        """
        free, held = self.disk_room(folder)
        if free - more < held:
            return f"low disk space: of {free:,} free bytes {held:,} are held back, {more:,} needed"
        return None

    def disk_room(self, folder: Path) -> DiskRoom:
        """The room on the disk of a folder, which is there.

        Raises:
            OSError: the disk cannot be asked.
        """
        status = os.statvfs(folder)
        held = self.free_bytes
        if held is None:
            held = min(MOST_HELD_BACK, status.f_blocks * status.f_frsize // 1000)
        return DiskRoom(status.f_bavail * status.f_frsize, held)


DEFAULT_LIMITS = CaptureLimits()
"""No limit but the disk."""
