"""Prints the lines that `grep` found, like grep or as JSON."""

import sys
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

from tooltrail.cli._output import copy_blocks, in_blocks, print_array, write

if TYPE_CHECKING:
    from tooltrail.artifacts import ArtifactReader, Match

_BLOCK = 64 * 1024
"""Minimum bytes per write. On a terminal, each line is written at once."""


class Search(NamedTuple):
    """What to search, in which texts by role. `options` are further ones of `grep`."""

    texts: "Mapping[str, ArtifactReader]"
    pattern: str
    before: int
    after: int
    options: Mapping[str, Any]

    def matches(self) -> "Iterator[tuple[str, Match]]":
        """The matching lines and their context, each with the role of its stream."""
        for role, reader in self.texts.items():
            for match in reader.grep(
                self.pattern, before=self.before, after=self.after, **self.options
            ):
                yield role, match


def print_lines(search: Search, *, numbers: bool, offsets: bool) -> int:
    """Print the exact bytes of lines, add a missing last newline, return the number of matches.

    With context, `--` stands between lines that are not adjacent.
    """
    counted = _Counted(search.matches())
    pieces = _pieces(counted, search, numbers=numbers, offsets=offsets)
    blocks = in_blocks(pieces, 0 if sys.stdout.isatty() else _BLOCK)
    copy_blocks(blocks, sys.stdout.buffer)
    return counted.found


def print_lines_as_json(search: Search) -> int:
    """Print each line when found, as one JSON array (`print_array`); return the match count."""
    counted = _Counted(search.matches())
    print_array(_record(role, match) for role, match in counted)
    return counted.found


def print_counts(search: Search, *, as_json: bool) -> int:
    """Print the number of matching lines of each stream, and return their sum."""
    counts = {
        role: reader.count_matches(search.pattern, **search.options)
        for role, reader in search.texts.items()
    }
    if as_json:
        print_array({"stream": role or None, "count": count} for role, count in counts.items())
    else:
        many = len(counts) > 1
        write("".join(f"{f'{role}:' if many else ''}{count}\n" for role, count in counts.items()))
    return sum(counts.values())


class _Counted:
    """An iterable of matches that counts the matches, without lines of context."""

    def __init__(self, matches: "Iterable[tuple[str, Match]]") -> None:
        self._matches = matches
        self.found = 0

    def __iter__(self) -> "Iterator[tuple[str, Match]]":
        for role, match in self._matches:
            self.found += not match.is_context
            yield role, match


def _pieces(
    matches: "Iterable[tuple[str, Match]]", search: Search, *, numbers: bool, offsets: bool
) -> Iterator[bytes]:
    last: tuple[str, int] | None = None
    for role, match in matches:
        if search.before + search.after and last not in (None, (role, match.line_number)):
            yield b"--\n"
        last = (role, match.line_number + 1)
        mark = b"-" if match.is_context else b":"
        stream = role.encode() + mark if len(search.texts) > 1 else b""
        number = b"%d%s" % (match.line_number, mark) if numbers else b""
        offset = b"%d%s" % (match.offset, mark) if offsets else b""
        end = b"" if match.line.endswith(b"\n") else b"\n"
        yield stream + number + offset + match.line + end


def _record(role: str, match: "Match") -> dict[str, Any]:
    return {
        "stream": role or None,
        "line_number": match.line_number,
        "offset": match.offset,
        # A byte that is not UTF-8 becomes a lone surrogate, which Python can convert back.
        "line": match.line.removesuffix(b"\n").decode("utf-8", "surrogateescape"),
        "is_context": match.is_context,
    }
