"""Ranges of bytes or lines on the command line: `A:B`, `A:`, `:B`, `A`."""

import re
from typing import Any, NamedTuple

import click

_RANGE = re.compile(r"(\d*)(:?)(\d*)", re.ASCII)
_LONGEST = 4000
"""Maximum characters of a range. Python parses integers of at most 4,300 digits."""


class Range(NamedTuple):
    """A range from `first` to `last`; None means the end. `RangeType` says if `last` is in it."""

    first: int
    last: int | None


class RangeType(click.ParamType[Range]):
    """The type of an option that accepts a range.

    Args:
        lowest: number of the first byte or line.
        is_inclusive: whether `B` belongs to `A:B`.
    """

    name = "range"

    def __init__(self, lowest: int, *, is_inclusive: bool) -> None:
        self._lowest = lowest
        self._is_inclusive = is_inclusive

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Range:
        """Parse a range, or fail with a usage error."""
        text = str(value)
        found = _RANGE.fullmatch(text)
        if found is None or text in ("", ":") or len(text) > _LONGEST:
            self.fail(f"{text[:80]!r} is not one of A:B, A:, :B, A", param, ctx)
        begin, colon, end = found.groups()
        first = int(begin) if begin else self._lowest
        if first < self._lowest:
            self.fail(f"{text!r} begins before {self._lowest}", param, ctx)
        if not colon:
            return Range(first, first if self._is_inclusive else first + 1)
        last = int(end) if end else None
        if last is not None and last < first:
            self.fail(f"{text!r} ends before it begins", param, ctx)
        return Range(first, last)


class LineCount(click.IntRange):
    """A number of lines. Refuses `+N`, which means "from line N" in tail(1)."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Parse a number, or fail with a usage error."""
        if str(value).startswith("+"):
            self.fail(f"{value!r} is not a line count; see cat --lines for a range", param, ctx)
        return int(super().convert(value, param, ctx))
