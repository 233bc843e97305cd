"""What `grep` looks for: which lines of a block match, found at the speed of the C library."""

import re
import warnings
from collections.abc import Iterator

from tooltrail.artifacts._one_line import for_blocks
from tooltrail.records.errors import InvalidRecordError

Span = tuple[int, int]
"""Where a line begins and where its text ends, that is at its newline or at the block's end."""

_SPARSE = 32
"""Matches in a block up to which it is quicker to look for one after the other."""


class LinePattern:
    """A pattern, and how it is searched for in blocks of whole lines. Safe for threads."""

    def __init__(self, pattern: str | bytes, *, literal: bool, ignore_case: bool) -> None:
        """Compile a pattern; see `ArtifactReader.grep`.

        Raises:
            InvalidRecordError: it is no regular expression, or a literal of several lines.
        """
        wanted = _bytes_of(pattern)
        if literal and b"\n" in wanted:
            raise InvalidRecordError("a line holds no newline, and so must a literal pattern")
        self._literal = wanted if literal and not ignore_case else None
        source = re.escape(wanted) if literal else wanted
        flags = re.MULTILINE | (re.IGNORECASE if ignore_case else 0)
        self._line = _compiled(source, flags)
        in_blocks = source if literal else for_blocks(source)
        self._block = None if in_blocks is None else _compiled(in_blocks, flags)
        # The empty group makes `findall` build no text of what was found.
        self._counter = _compiled(source + rb"()[^\n]*", flags) if literal and wanted else None

    @property
    def needle(self) -> bytes | None:
        """Bytes without which no line matches, None when there are none to look for."""
        return self._literal or None

    def spans(self, block: bytes) -> Iterator[Span]:
        """The lines that match, in order; a block ends where a line does."""
        if self._block is None:
            return self._each_line(block)
        if self._literal is not None:
            return _literals(block, self._literal)
        return self._found(block, self._block)

    def count(self, block: bytes) -> int:
        """How many lines match."""
        found = 0
        for _, end in self.spans(block):
            found += 1
            if found == _SPARSE and self._counter is not None:
                return found + len(self._counter.findall(block, end))
        return found

    def _found(self, block: bytes, regex: re.Pattern[bytes]) -> Iterator[Span]:
        size, start = len(block), 0
        # At the end of the block there is a line only when the last one is unfinished.
        last = size - block.endswith(b"\n")
        while start < size and (found := regex.search(block, start)) and found.start() <= last:
            begin, end = _line_at(block, found.start())
            # An empty match can be one that only the lines around it make.
            if found.end() > found.start() or self._line.search(block[begin:end]):
                yield begin, end
            start = end + 1

    def _each_line(self, block: bytes) -> Iterator[Span]:
        search = self._line.search
        for begin, end in lines_of(block, 0, len(block)):
            if search(block[begin:end]):
                yield begin, end


def lines_of(block: bytes, start: int, stop: int) -> Iterator[Span]:
    """The lines of a part of a block, which begins and ends where lines do."""
    while start < stop:
        end = block.find(b"\n", start)
        end = len(block) if end < 0 else end
        yield start, end
        start = end + 1


def _literals(block: bytes, literal: bytes) -> Iterator[Span]:
    size, start = len(block), 0
    while start < size and 0 <= (found := block.find(literal, start)) < size:
        span = _line_at(block, found)
        yield span
        start = span[1] + 1


def _line_at(block: bytes, offset: int) -> Span:
    end = block.find(b"\n", offset)
    return block.rfind(b"\n", 0, offset) + 1, len(block) if end < 0 else end


def _compiled(source: bytes, flags: int) -> re.Pattern[bytes]:
    try:
        with warnings.catch_warnings():
            # Of sets that may mean more one day; whoever searches can do nothing about it.
            warnings.simplefilter("ignore", FutureWarning)
            return re.compile(source, flags)
    except (re.error, RecursionError, OverflowError) as error:
        raise InvalidRecordError(f"not a regular expression: {error}") from error


def _bytes_of(pattern: str | bytes) -> bytes:
    # What came through the command line and is no UTF-8 is the same bytes again.
    return pattern.encode("utf-8", "surrogateescape") if isinstance(pattern, str) else pattern
