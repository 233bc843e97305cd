"""Ranges of bytes or lines on the command line: `A:B`, `A:`, `:B`, `A`."""

import re
from typing import NamedTuple

from tooltrail.cli._times import Parsed

# Python parses integers of at most 4,300 digits.
_RANGE = re.compile(r"(\d{0,4000})(?:(:)(\d{0,4000}))?", re.ASCII)


class Range(NamedTuple):
    """A range from `first` to `last`; None means the end. `range_type` says if `last` is in it."""

    first: int
    last: int | None


def range_type(lowest: int, *, is_inclusive: bool) -> Parsed:
    """The type of an option that accepts a range; `is_inclusive` says whether `B` is in `A:B`.

    `lowest` is the number of the first byte or line.
    """

    def read(text: str) -> Range:
        found = _RANGE.fullmatch(text)
        if found is None or text in ("", ":"):
            raise ValueError(f"{text[:80]!r} is not one of A:B, A:, :B, A")
        first, last = int(found[1] or lowest), int(found[3]) if found[3] else None
        if first < lowest:
            raise ValueError(f"{text!r} begins before {lowest}")
        if not found[2]:
            last = first if is_inclusive else first + 1
        if last is not None and last < first:
            raise ValueError(f"{text!r} ends before it begins")
        return Range(first, last)

    return Parsed("range", read)


def _line_count(text: str) -> int:
    """The number of lines. `+N` means "from line N" in tail(1)."""
    if not re.fullmatch("[0-9]{1,4000}", text):
        raise ValueError(f"{text!r} is not a line count; see cat --lines for a range")
    return int(text)


LINE_COUNT = Parsed("lines", _line_count)
"""A number of lines."""
