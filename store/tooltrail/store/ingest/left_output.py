"""Reads what a dead program left of its output in the spool: all that can be decoded of it."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final
from uuid import UUID

from tooltrail.artifacts import CapturedStream, salvage
from tooltrail.journal.segments import sync_folder
from tooltrail.records import InvalidRecordError, UnavailableError

DAMAGED: Final = "damaged"
"""Folder of the spool for files that could not be read to their end: evidence, kept for people."""

_SUFFIX: Final = ".zst"
_RECOVERED: Final = ".recovered.zst"

_EDGE_BYTES: Final = 4 << 10
"""Nobody reads the ends that the capture keeps: the ingester reads the file again."""


def read_left_output(spool: Path, owner: UUID, *, inline_bytes: int) -> list[CapturedStream]:
    """The streams in the folder of a call or of an answer, captured once more and synced.

    Args:
        spool: the folder with the captured streams.
        owner: id of the invocation, or of the message of the answer.
        inline_bytes: up to this size a record carries its bytes as `content`.

    Raises:
        UnavailableError: the spool cannot be read or written now.
    """
    folder = spool / str(owner)
    try:
        files = sorted(folder.glob(f"*{_SUFFIX}"))
        found = list[CapturedStream]()
        for file in files:
            if not file.name.endswith(_RECOVERED):
                kept = spool / DAMAGED / f"{owner}-{file.name}"
                found += _salvage(file, kept, inline_bytes)
        if found:
            sync_folder(folder)
    except OSError as error:
        raise UnavailableError(f"{folder} cannot be read: {error.strerror}") from error
    return found


def _salvage(file: Path, kept: Path, inline_bytes: int) -> list[CapturedStream]:
    """What can be decoded of a file; a damaged file is kept at another place, too."""
    role = file.name.removesuffix(_SUFFIX)
    staged = file.with_name(f"{role}{_RECOVERED}")
    # An ingester that was killed may have left one.
    staged.unlink(missing_ok=True)
    try:
        salvaged = salvage(
            file, role, staged, edge_bytes=_EDGE_BYTES, inline_bytes=inline_bytes, moves_to=kept
        )
    except InvalidRecordError:
        return []  # not the file of a stream
    if salvaged.problem is not None:
        kept.parent.mkdir(mode=0o700, exist_ok=True)
        with suppress(FileExistsError):
            kept.hardlink_to(file)
    if salvaged.captured.staged is not None:
        _sync(salvaged.captured.staged)
    return [salvaged.captured]


def _sync(file: Path) -> None:
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
