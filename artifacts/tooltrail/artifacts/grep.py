"""Search the lines of an artifact, block by block."""

import sys
from collections.abc import Iterator
from itertools import islice

from tooltrail.artifacts._frames import Frames
from tooltrail.artifacts._line_blocks import count_lines, line_blocks
from tooltrail.artifacts._lines_around import LinesAround, Match
from tooltrail.artifacts._patterns import Counter, LinePattern, Span, inverted, lines_of
from tooltrail.records.errors import InvalidRecordError

__all__ = ["Grep", "LinePattern", "Match"]


class Grep:
    """One search: a pattern and its options. Safe for threads."""

    def __init__(
        self,
        pattern: str | bytes,
        *,
        literal: bool,
        ignore_case: bool,
        invert: bool,
        max_count: int | None,
    ) -> None:
        """See `ArtifactReader.grep`."""
        self._pattern = LinePattern(pattern, literal=literal, ignore_case=ignore_case)
        self._invert = invert
        count = self._pattern.count
        self._count: Counter = inverted(count) if invert else count
        self._max_count = None if max_count is None else _number(max_count, "matches")

    def matches(self, frames: Frames, path: str, before: int, after: int) -> Iterator[Match]:
        """The matching lines with their context lines; see `ArtifactReader.grep`."""
        context = LinesAround(_number(before, "lines"), _number(after, "lines"))
        return self._matches(frames, path, context)

    def count(self, frames: Frames, path: str) -> int:
        """The number of matching lines, up to `max_count`; see `ArtifactReader.count_matches`."""
        limit = self._max_count
        if limit is None:
            return sum(self._counts(frames, path))
        parts = self._counts(frames, path) if limit else iter(())
        count = 0
        while count < limit and (found := next(parts, None)) is not None:
            count += found
        return min(count, limit)

    def _counts(self, frames: Frames, path: str) -> Iterator[int]:
        """The number of matching lines in each part in turn."""
        if self._pattern.needle is not None:
            return count_lines(frames, path, self._count)
        # An expression can run for ever without releasing the interpreter lock. In this thread, a
        # signal still interrupts it. If another thread ran it, this thread would get no signal.
        return (self._count(block.plain) for block in line_blocks(frames, path))

    def _matches(self, frames: Frames, path: str, context: "LinesAround") -> Iterator[Match]:
        left = self._max_count
        if left == 0:
            return
        is_alone = not (self._invert or context.is_needed)
        needle = self._pattern.needle if is_alone else None
        for block in line_blocks(frames, path, needle):
            for match in context.lines(block, islice(self._spans(block.plain), left)):
                if left is not None and not match.is_context:
                    left -= 1
                yield match
            if left == 0 and not context.is_wanted:
                return

    def _spans(self, block: bytes) -> Iterator[Span]:
        found = self._pattern.spans(block)
        return _not_matching(block, found) if self._invert else found


def _not_matching(block: bytes, found: Iterator[Span]) -> Iterator[Span]:
    """The lines of a block that do not match."""
    start = 0
    for begin, end in found:
        yield from lines_of(block, start, begin)
        start = end + 1
    yield from lines_of(block, start, len(block))


def _number(number: int, what: str) -> int:
    """Refuse a negative number; reduce a large one to the maximum of `islice`."""
    if number < 0:
        raise InvalidRecordError(f"not a number of {what}: {number}")
    return min(number, sys.maxsize)
