"""Matching lines with their context lines: each line once, in order, across blocks."""

from collections import deque
from collections.abc import Iterator
from itertools import islice

from tooltrail.artifacts._line_blocks import LineBlock
from tooltrail.artifacts._patterns import Span, lines_of
from tooltrail.records.frozen import Frozen


class Match(Frozen):
    """One matching line, or one context line near it.

    Attributes:
        line_number: number of the line, from 1.
        offset: offset of its first byte in the artifact, from 0.
        line: its bytes, with the newline if it has one.
        is_context: whether the line does not match, and is only context.
    """

    line_number: int
    offset: int
    line: bytes
    is_context: bool = False


class _Cursor:
    """A position in a block: the next line to return. Counts newlines only where needed."""

    def __init__(self, block: LineBlock) -> None:
        self._block = block
        self._number = block.first
        self.plain = block.plain
        self.offset = 0

    def skip_to(self, offset: int) -> None:
        self._number += self.plain.count(b"\n", self.offset, offset)
        self.offset = offset

    def take(self, end: int, *, is_context: bool) -> Match:
        """The line at the cursor, whose text ends at `end`."""
        start, self.offset = self.offset, end + 1
        line = self.plain[start : self.offset]
        match = Match(self._number, self._block.start + start, line, is_context)
        self._number += 1
        return match

    def last_lines(self, stop: int, count: int) -> list[Span]:
        """The last lines before `stop` that were not returned yet, at most `count`."""
        spans: deque[Span] = deque()
        while len(spans) < count and stop > self.offset:
            # The line's own newline, if it has one, is its last byte.
            begin = self.plain.rfind(b"\n", self.offset, stop - 1) + 1 or self.offset
            end = stop - 1 if self.plain[stop - 1] == _NEWLINE else stop
            spans.appendleft((begin, end))
            stop = begin
        return list(spans)


_NEWLINE = 0x0A


class LinesAround:
    """Returns lines with their context; the caller passes the blocks of an artifact in order."""

    def __init__(self, before: int, after: int) -> None:
        """Return `before` lines before each match, and `after` lines after it."""
        self._before = before
        self._after = after
        self._left = 0
        # The last lines of the blocks so far, in case the next block begins with a match.
        self._earlier: deque[Match] = deque(maxlen=before)

    @property
    def is_needed(self) -> bool:
        """Whether the caller wants any context."""
        return self._before + self._after > 0

    @property
    def is_wanted(self) -> bool:
        """Whether context lines after the last match are still missing."""
        return self._left > 0

    def lines(self, block: LineBlock, found: Iterator[Span]) -> Iterator[Match]:
        """The matching lines of one block, and their context lines."""
        cursor = _Cursor(block)
        for begin, end in found:
            yield from self._following(cursor, begin)
            yield from self._preceding(cursor, begin)
            cursor.skip_to(begin)
            yield cursor.take(end, is_context=False)
            self._left = self._after
        yield from self._following(cursor, len(block.plain))
        self._remember(cursor)

    def _following(self, cursor: _Cursor, stop: int) -> Iterator[Match]:
        """Context lines after the last match, up to the limit."""
        lines = lines_of(cursor.plain, cursor.offset, stop)
        for _, end in islice(lines, self._left):
            yield cursor.take(end, is_context=True)
            self._left -= 1

    def _preceding(self, cursor: _Cursor, stop: int) -> Iterator[Match]:
        """Context lines before a match that were not returned yet."""
        spans = cursor.last_lines(stop, self._before)
        if cursor.offset == 0:
            missing = self._before - len(spans)
            yield from list(self._earlier)[max(0, len(self._earlier) - missing) :]
        yield from self._taken(cursor, spans)

    def _remember(self, cursor: _Cursor) -> None:
        if cursor.offset:
            self._earlier.clear()
        spans = cursor.last_lines(len(cursor.plain), self._before)
        self._earlier.extend(self._taken(cursor, spans))

    def _taken(self, cursor: _Cursor, spans: list[Span]) -> Iterator[Match]:
        for begin, end in spans:
            cursor.skip_to(begin)
            yield cursor.take(end, is_context=True)
