"""How found lines are printed: as grep prints them, or as JSON."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tooltrail.cli._output import print_array, write, write_block

if TYPE_CHECKING:
    from tooltrail.artifacts import Match

_BLOCK = 64 * 1024
"""Bytes that are written at once, unless a terminal wants each line."""


@dataclass(frozen=True, slots=True)
class Style:
    """What stands before each line.

    Attributes:
        numbers: its number.
        offsets: the offset of its first byte.
        separated: whether `--` stands between lines that are not neighbours.
    """

    numbers: bool
    offsets: bool
    separated: bool


def print_lines(matches: Iterable["Match"], style: Style) -> int:
    """Print lines with their exact bytes, a missing last newline added; how many matched."""
    counted = _Counted(matches)
    least = 0 if sys.stdout.isatty() else _BLOCK
    waiting: list[bytes] = []
    size = 0
    try:
        for piece in _pieces(counted, style):
            waiting.append(piece)
            size += len(piece)
            if size >= least:
                block, waiting, size = b"".join(waiting), [], 0
                write_block(sys.stdout.buffer, block)
    finally:
        # What was found is printed, also when the search comes to an end that is none.
        write_block(sys.stdout.buffer, b"".join(waiting))
    return counted.found


def print_lines_as_json(matches: Iterable["Match"]) -> int:
    """Print one JSON array, each line when it was found; how many matched. See `print_array`."""
    counted = _Counted(matches)
    print_array(map(_record, counted))
    return counted.found


def print_count(count: int, *, as_json: bool) -> int:
    """Print how many lines match, and say it again."""
    if as_json:
        print_array([{"count": count}])
    else:
        write(f"{count}\n")
    return count


class _Counted:
    """Matches, and how many were found so far."""

    def __init__(self, matches: Iterable["Match"]) -> None:
        self._matches = matches
        self.found = 0

    def __iter__(self) -> Iterator["Match"]:
        for match in self._matches:
            self.found += not match.is_context
            yield match


def _pieces(matches: Iterable["Match"], style: Style) -> Iterator[bytes]:
    following = 0
    for match in matches:
        if style.separated and following not in (0, match.line_number):
            yield b"--\n"
        following = match.line_number + 1
        mark = b"-" if match.is_context else b":"
        number = b"%d%s" % (match.line_number, mark) if style.numbers else b""
        offset = b"%d%s" % (match.offset, mark) if style.offsets else b""
        end = b"" if match.line.endswith(b"\n") else b"\n"
        yield number + offset + match.line + end


def _record(match: "Match") -> dict[str, Any]:
    return {
        "line_number": match.line_number,
        "offset": match.offset,
        # A byte that is no UTF-8 becomes the lone surrogate that Python turns back into it.
        "line": match.line.removesuffix(b"\n").decode("utf-8", "surrogateescape"),
        "is_context": match.is_context,
    }
