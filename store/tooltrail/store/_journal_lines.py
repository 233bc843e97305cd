"""The lines of one file: `sha256:<hex of the rest> <canonical JSON>`, each with a newline.

A line counts when it is whole. What a torn append left behind the last one was never acknowledged,
and is removed before anything is added.
"""

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

from tooltrail.records.digests import digest_of

_DIGEST_BYTES = len("sha256:") + 64
_CHUNK = 1 << 20


class Line(NamedTuple):
    """One line of a file.

    Attributes:
        number: counted from 1.
        raw: as it stands there, without the newline.
        data: the JSON of it; None when the line is not what its digest names.
    """

    number: int
    raw: bytes
    data: bytes | None


class Progress:
    """How far this process has come in a file that nobody changes any more.

    For one thread at a time, which is the one that delivers.
    """

    def __init__(self) -> None:
        self._file: tuple[int | bytes, ...] = ()
        self._count = 0
        self._beyond: set[int] = set()

    def begin(self, path: Path) -> None:
        """Go on with a file; of another one than before nothing is done yet.

        Raises:
            OSError: the file cannot be asked.
        """
        found = _identity(path)
        if found != self._file:
            self._file, self._count, self._beyond = found, 0, set()

    def is_done(self, number: int) -> bool:
        """Whether a line need not be looked at again."""
        return number <= self._count or number in self._beyond

    def note(self, numbers: Iterable[int]) -> None:
        """Remember that lines are done, in whatever order."""
        self._beyond.update(numbers)
        while self._count + 1 in self._beyond:
            self._count += 1
            self._beyond.remove(self._count)


def iter_lines(path: Path, *, is_ended: bool = False) -> Iterator[Line]:
    """The lines of a file, at the memory of one; what a torn append left at its end is none.

    Args:
        path: of the file.
        is_ended: whether nobody appends to it any more; then what was torn there is removed, and
            a line without its newline was damaged since.

    Raises:
        OSError: it cannot be read; `FileNotFoundError` when it was delivered meanwhile.
    """
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            raw = line.removesuffix(b"\n")
            data = _data_of(raw)
            if is_ended or raw is not line or data is not None:
                yield Line(number, raw, data)


def add_line(descriptor: int, data: bytes, end: int) -> int:
    """Put a line where the last one ends, in a file that is locked; where it ends.

    Raises:
        OSError: whatever the file system says; then nothing was added.
    """
    try:
        write_at(descriptor, b"%b %b\n" % (digest_of(data).encode(), data), end)
        os.fdatasync(descriptor)
    except OSError:
        # If that is not possible either, the next one does it.
        with suppress(OSError):
            os.ftruncate(descriptor, end)
        raise
    return end + _DIGEST_BYTES + len(data) + 2


def whole_end(descriptor: int) -> int:
    """Where the last whole line of a locked file ends; what is behind it is removed."""
    size = os.fstat(descriptor).st_size
    if size == 0 or os.pread(descriptor, 1, size - 1) == b"\n":
        return size
    start = _last_newline(descriptor, size) + 1
    tail = _read(descriptor, start, size)
    for whole in (tail, tail[:-1]):
        # All but its newline was written, or that is what was damaged.
        if _data_of(whole) is not None:
            write_at(descriptor, b"\n", start + len(whole))
            return start + len(whole) + 1
    os.ftruncate(descriptor, start)
    return start


def _identity(path: Path) -> tuple[int | bytes, ...]:
    """Another file may get name, inode and time of one that is gone; never its first entry."""
    with path.open("rb") as file:
        found = os.fstat(file.fileno())
        return found.st_dev, found.st_ino, found.st_size, file.read(_DIGEST_BYTES)


def _data_of(raw: bytes) -> bytes | None:
    data = raw[_DIGEST_BYTES + 1 :]
    is_whole = raw[: _DIGEST_BYTES + 1] == digest_of(data).encode() + b" "
    return data if is_whole else None


def _last_newline(descriptor: int, size: int) -> int:
    """The place of the last newline, -1 when there is none."""
    stop = size
    while stop:
        begin = max(0, stop - _CHUNK)
        found = _read(descriptor, begin, stop).rfind(b"\n")
        if found >= 0:
            return begin + found
        stop = begin
    return -1


def _read(descriptor: int, start: int, stop: int) -> bytes:
    parts: list[bytes] = []
    while start < stop and (part := os.pread(descriptor, min(stop - start, 1 << 30), start)):
        parts.append(part)
        start += len(part)
    return b"".join(parts)


def write_at(descriptor: int, data: bytes, place: int) -> None:
    """Write all of it."""
    left = memoryview(data)
    while left:
        written = os.pwrite(descriptor, left, place)
        left, place = left[written:], place + written
