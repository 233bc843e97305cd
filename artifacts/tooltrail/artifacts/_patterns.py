"""What `grep` looks for: which lines of a block match, found at the speed of the C library."""

import re
from collections.abc import Iterator

from tooltrail.artifacts._block_counts import Counter, expression_counter, literal_counter
from tooltrail.artifacts._expressions import compiled, refuse_newline
from tooltrail.artifacts._one_line import for_blocks

Span = tuple[int, int]
"""Where a line begins and where its text ends, that is at its newline or at the block's end."""


class LinePattern:
    """A pattern, and how it is searched for in blocks of whole lines. Safe for threads."""

    def __init__(self, pattern: str | bytes, *, literal: bool, ignore_case: bool) -> None:
        """Compile a pattern; see `ArtifactReader.grep`.

        Raises:
            InvalidRecordError: it is no regular expression, or asks for a newline.
        """
        wanted = _bytes_of(pattern)
        self._literal = wanted if literal and not ignore_case else None
        source = re.escape(wanted) if literal else wanted
        flags = re.MULTILINE | (re.IGNORECASE if ignore_case else 0)
        self._line = compiled(source, flags)
        refuse_newline(self._line)
        in_blocks = source if literal else for_blocks(source)
        self._block = None if in_blocks is None else compiled(in_blocks, flags)
        self._count = self._counter(in_blocks, flags)

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
        """How many lines match; a block ends where a line does."""
        if self._count is None:
            return sum(1 for _ in self.spans(block))
        return self._count(block)

    def _counter(self, in_blocks: bytes | None, flags: int) -> Counter | None:
        if self._literal:
            return literal_counter(self._literal)
        return None if in_blocks is None else expression_counter(in_blocks, flags)

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


def _bytes_of(pattern: str | bytes) -> bytes:
    # What came through the command line and is no UTF-8 is the same bytes again.
    return pattern.encode("utf-8", "surrogateescape") if isinstance(pattern, str) else pattern
