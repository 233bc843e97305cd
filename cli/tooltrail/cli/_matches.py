"""Prints the lines that `artifact grep` found, like grep or as JSON."""

import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from tooltrail.cli._output import print_array, write, write_block

if TYPE_CHECKING:
    from tooltrail.artifacts import Match

_BLOCK = 64 * 1024
"""Minimum bytes per write. On a terminal, each line is written at once."""


@dataclass(frozen=True, slots=True)
class Style:
    """The prefix of each line.

    Attributes:
        numbers: whether to print the number of the line.
        offsets: whether to print the offset of the first byte of the line.
        separated: whether to print `--` between lines that are not adjacent.
    """

    numbers: bool
    offsets: bool
    separated: bool


def print_lines(matches: Iterable["Match"], style: Style) -> int:
    """Print the exact bytes of lines, add a missing last newline, return the number of matches."""
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
        # Lines that were found before an error are printed.
        write_block(sys.stdout.buffer, b"".join(waiting))
    return counted.found


def print_lines_as_json(matches: Iterable["Match"]) -> int:
    """Print each line when found, as one JSON array (`print_array`); return the match count."""
    counted = _Counted(matches)
    print_array(map(_record, counted))
    return counted.found


def print_count(count: int, *, as_json: bool) -> int:
    """Print the number of matching lines, and return it."""
    if as_json:
        print_array([{"count": count}])
    else:
        write(f"{count}\n")
    return count


class _Counted:
    """An iterable of matches that counts the matches, without lines of context."""

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
        # A byte that is not UTF-8 becomes a lone surrogate, which Python can convert back.
        "line": match.line.removesuffix(b"\n").decode("utf-8", "surrogateescape"),
        "is_context": match.is_context,
    }
