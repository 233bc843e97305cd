"""Ranges as they are typed: `A:B`, `A:`, `:B`, `A`."""

import re
from collections.abc import Callable
from typing import Any, NamedTuple

import click

_RANGE = re.compile(r"(\d*)(:?)(\d*)", re.ASCII)
_LONGEST = 4000
"""Digits that Python reads without complaint."""


class Range(NamedTuple):
    """A part of something: from `first` up to or to `last`, which is None where it is the end."""

    first: int
    last: int | None


Reader = Callable[[click.Context, click.Parameter, str | None], Range | None]


def range_from(lowest: int, *, is_inclusive: bool) -> Reader:
    """The callback of an option that is a range.

    Args:
        lowest: what the first one has for a number.
        is_inclusive: whether `B` belongs to `A:B`.
    """

    def read(ctx: click.Context, param: click.Parameter, text: str | None) -> Range | None:
        try:
            return None if text is None else _range(text, lowest, is_inclusive=is_inclusive)
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param) from error

    return read


def _range(text: str, lowest: int, *, is_inclusive: bool) -> Range:
    found = _RANGE.fullmatch(text)
    if found is None or text in ("", ":") or len(text) > _LONGEST:
        raise ValueError(f"{text[:80]!r} is not one of A:B, A:, :B, A")
    begin, colon, end = found.groups()
    first = int(begin) if begin else lowest
    if first < lowest:
        raise ValueError(f"{text!r} begins before {lowest}")
    if not colon:
        return Range(first, first if is_inclusive else first + 1)
    last = int(end) if end else None
    if last is not None and last < first:
        raise ValueError(f"{text!r} ends before it begins")
    return Range(first, last)


class LineCount(click.IntRange):
    """How many lines; not from which one on, as `+N` means to tail(1)."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Read a number, or fail as a usage error."""
        if str(value).startswith("+"):
            self.fail(f"{value!r} is no number of lines; see cat --lines for a range", param, ctx)
        return int(super().convert(value, param, ctx))
