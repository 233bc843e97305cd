"""Prints the lines that `grep` found, like grep or as JSON."""

import sys
from collections.abc import Iterator, Mapping
from itertools import chain
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
            found = reader.grep(self.pattern, before=self.before, after=self.after, **self.options)
            yield from ((role, match) for match in found)


def print_lines(search: Search, *, numbers: bool, offsets: bool) -> bool:
    """Print the exact bytes of lines, add a missing last newline, and return whether any was found.

    With context, `--` stands between lines that are not adjacent.
    """
    pieces = _pieces(search, numbers=numbers, offsets=offsets)
    first = next(pieces, b"")
    blocks = in_blocks(chain([first], pieces), 0 if sys.stdout.isatty() else _BLOCK)
    copy_blocks(blocks, sys.stdout.buffer)
    return bool(first)


def print_lines_as_json(search: Search) -> bool:
    """Print each line when found, as one JSON array (`print_array`); return whether any was."""
    return bool(print_array(_record(role, match) for role, match in search.matches()))


def print_counts(search: Search, *, as_json: bool) -> bool:
    """Print the number of matching lines of each stream, and return whether there are any."""
    counts = {
        role: reader.count_matches(search.pattern, **search.options)
        for role, reader in search.texts.items()
    }
    if as_json:
        print_array({"stream": role or None, "count": count} for role, count in counts.items())
    else:
        many = len(counts) > 1
        write("".join(f"{f'{role}:' if many else ''}{count}\n" for role, count in counts.items()))
    return any(counts.values())


def _pieces(search: Search, *, numbers: bool, offsets: bool) -> Iterator[bytes]:
    last: tuple[str, int] | None = None
    for role, match in search.matches():
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
