"""How much room there is on the disk of an SQLite database."""

import os
from pathlib import Path

SIDE_FILES_BYTES = 64 * 1024
"""Room below which SQLite may fail to make the files beside a database: 32 KiB are for its index
of the log alone."""


def free_bytes(folder: Path) -> int | None:
    """Bytes that may be written to the disk of a folder; None when it cannot be asked."""
    try:
        status = os.statvfs(folder)
    except OSError:
        return None
    return status.f_bavail * status.f_frsize


def is_below(folder: Path, size: int) -> bool:
    """Whether less than so many bytes are free; False when that cannot be found out."""
    free = free_bytes(folder)
    return free is not None and free < size
