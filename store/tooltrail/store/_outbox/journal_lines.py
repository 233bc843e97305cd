"""The lines of one file: `sha256:<hex of the rest> <canonical JSON>`, each with a newline.

A line counts when it is whole. What a torn append left behind the last one was never acknowledged,
and is removed before anything is added. A newline says where a line ends and no more than that:
where it was altered the two lines that it parted are found by their digests.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from tooltrail.records.digests import digest_of

DIGEST_BYTES = len("sha256:") + 64
"""What a line begins with."""

_CHUNK = 1 << 20
_BEGINNING = re.compile(rb"sha256:[0-9a-f]{64} ")
_TORN_BEGINNING = re.compile(rb"(?:sha256:[0-9a-f]{0,64}|sha256|sha25|sha2|sha|sh|s)\Z")
_MOST_ATTEMPTS = 16
"""Places in what is damaged at which a line is looked for: a text that quotes many digests would
be read as often."""


class Line(NamedTuple):
    """One line of a file.

    Attributes:
        number: counted from 1, where a newline was altered as if it were there.
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

    def forget(self) -> None:
        """Begin anew: the file is removed, and the next one may be taken for it."""
        self._file, self._count, self._beyond = (), 0, set()

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
    number = 0
    with path.open("rb") as file:
        for line in file:
            for raw, data in parts_of(line, is_ended=is_ended):
                number += 1
                yield Line(number, raw, data)


def parts_of(line: bytes, *, is_ended: bool = False) -> Iterator[tuple[bytes, bytes | None]]:
    """The lines in what stands up to a newline: one, unless it was altered; see `Line`.

    Args:
        line: with its newline, which the last of a file may have not.
        is_ended: as for `iter_lines`.
    """
    raw = line.removesuffix(b"\n")
    spans = [_Span(0, len(raw), is_whole=True)] if _is_whole(raw) else _spans_of(raw)
    # What a torn append left is the last of what has no newline.
    is_cut = raw is line and not is_ended and not spans[-1].is_whole
    for span in spans[:-1] if is_cut else spans:
        part = raw[span.begin : span.stop]
        yield part, part[DIGEST_BYTES + 1 :] if span.is_whole else None


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
    return end + DIGEST_BYTES + len(data) + 2


def whole_end(descriptor: int) -> int:
    """Where the last whole line of a locked file ends; what is behind it is removed."""
    size = os.fstat(descriptor).st_size
    if size == 0 or os.pread(descriptor, 1, size - 1) == b"\n":
        return size
    start = _last_newline(descriptor, size) + 1
    spans = _spans_of(_read(descriptor, start, size))
    # All but its newline was written, or that is what was damaged.
    ends = [start + span.stop for span in spans if span.is_whole]
    if not ends:
        os.ftruncate(descriptor, start)
        return start
    write_at(descriptor, b"\n", ends[-1])
    os.ftruncate(descriptor, ends[-1] + 1)
    return ends[-1] + 1


def write_at(descriptor: int, data: bytes, place: int) -> None:
    """Write all of it at a place of a file.

    Raises:
        OSError: whatever the file system says; some of it may be there.
    """
    left = memoryview(data)
    while left:
        written = os.pwrite(descriptor, left, place)
        left, place = left[written:], place + written


class _Span(NamedTuple):
    begin: int
    stop: int
    is_whole: bool


def _spans_of(raw: bytes) -> list[_Span]:
    """The whole lines in what is none as a whole, and what is damaged between them."""
    begins = [found.start() for found in _BEGINNING.finditer(raw)]
    spans: list[_Span] = []
    place = attempts = 0
    for begin in begins:
        if begin < place or attempts == _MOST_ATTEMPTS:
            continue
        attempts += 1
        stop = _end_of_line(raw, begin, begins)
        if stop is None:
            continue
        attempts = 0
        if place < begin:
            spans.append(_Span(place, begin, is_whole=False))
        spans.append(_Span(begin, stop, is_whole=True))
        # Behind what was a newline, unless that is lost.
        place = stop if stop in begins else stop + 1
    if place < len(raw) or not spans:
        spans.append(_Span(place, len(raw), is_whole=False))
    return spans


def _end_of_line(raw: bytes, begin: int, begins: Sequence[int]) -> int | None:
    """Where the line ends that begins there, None when there is none."""
    place = begin + DIGEST_BYTES + 1
    # Up to another beginning, or all; and without the byte that was a newline.
    torn = _TORN_BEGINNING.search(raw)
    others = (*begins, len(raw) if torn is None else torn.start(), len(raw))
    ends = {stop - lost for stop in others for lost in (0, 1)}
    wanted, digest, view = raw[begin : begin + DIGEST_BYTES], sha256(), memoryview(raw)
    for stop in sorted(one for one in ends if one > place):
        digest.update(view[place:stop])
        place = stop
        if wanted == b"sha256:" + digest.hexdigest().encode():
            return stop
    return None


def _identity(path: Path) -> tuple[int | bytes, ...]:
    """Another file may get name, inode and time of one that is gone, or its first entry.

    That one only when it is tried again, and so not at the time at which it was sealed before.
    """
    with path.open("rb") as file:
        found = os.fstat(file.fileno())
        numbers = found.st_dev, found.st_ino, found.st_size, found.st_ctime_ns
        return *numbers, file.read(DIGEST_BYTES)


def _is_whole(raw: bytes) -> bool:
    data = raw[DIGEST_BYTES + 1 :]
    return raw[: DIGEST_BYTES + 1] == digest_of(data).encode() + b" "


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
