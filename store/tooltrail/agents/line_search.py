"""The process that searches lines: takes a request as JSON, prints counts and matching lines.

As a program, this module searches standard input. The first line of its output is JSON with
`match_count` and `returned`; the matches follow.
"""

import json
import re
import resource
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, BinaryIO

_MAX_MATCHES = 200

_MAX_UNREAD = 20
"""Unreadable files and folders that the result names at most."""

_MOST_CPU_S = 120

_LINE_BYTES = 64 << 20
"""Bytes of the longest line that is searched, as in `tooltrail artifact grep`."""

_LINE_CHARS = 500
"""Characters of a line that the result shows."""

_PART = re.compile(
    r"\\(?:x..|u.{4}|U.{8}|N\{[^}]*\}|[0-7]{1,3}|.)|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL
)
"""A part of a pattern: an escape, a set, or one character."""

_MAX_PRINTED = 8 << 20
"""Bytes of lines in a result, at most."""


@dataclass(slots=True)
class Findings:
    """The matching lines so far.

    Attributes:
        most: largest number of lines to keep.
        count: number of matching lines, kept or not.
        unread: paths of files and folders that could not be read.
    """

    most: int
    count: int = 0
    size: int = 0
    lines: list[str] = field(default_factory=list[str])
    unread: list[str] = field(default_factory=list[str])

    def add(self, label: str, number: int, text: str) -> None:
        """Count a line, and keep it if there is room."""
        self.count += 1
        if len(self.lines) < self.most and self.size < _MAX_PRINTED:
            hidden = len(text) - _LINE_CHARS
            shown = text if hidden <= 0 else f"{text[:_LINE_CHARS]}… [{hidden:,} more characters]"
            self.lines.append(f"{label}{number}:{shown}")
            self.size += len(shown) + len(label)


def search_stdin(request: dict[str, Any]) -> Findings:
    r"""Search standard input. A byte that is not UTF-8 is one character, and shown as `\xNN`.

    Raises:
        ValueError: the pattern is not valid, or a line is too long.
    """
    pattern, findings = prepared(request)
    for number, line in numbered_lines(sys.stdin.buffer, request.get("first_line", 1)):
        if pattern.search(line.decode(errors="surrogateescape")):
            findings.add("", number, line.decode(errors="backslashreplace"))
    return findings


def prepared(request: dict[str, Any]) -> tuple[re.Pattern[str], Findings]:
    """The compiled pattern of a request, and empty findings with its limit.

    Raises:
        ValueError: the pattern is not valid, or asks for a newline.
    """
    text = re.escape(request["pattern"]) if request.get("literal") else request["pattern"]
    try:
        pattern = re.compile(text, re.IGNORECASE if request.get("ignore_case") else 0)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"the pattern is not a regular expression: {error}") from error
    # All sets of a valid pattern end, so this takes linear time.
    if any(map(_is_newline, set(_PART.findall(text)))):
        raise ValueError("the pattern asks for a newline, but each line is searched without it")
    return pattern, Findings(request.get("max_matches", _MAX_MATCHES))


def _is_newline(part: str) -> bool:
    """Whether a part of a pattern matches a newline and no other of the first characters."""
    try:
        member = re.compile(part)
    except re.error:  # such as a reference to a group, which is not in the part
        return False
    return [one for one in map(chr, range(256)) if member.fullmatch(one)] == ["\n"]


def numbered_lines(file: BinaryIO, first: int = 1) -> Iterator[tuple[int, bytes]]:
    """The lines of a file without their newlines, each with its number.

    Raises:
        ValueError: a line is too long to be searched.
    """
    for number, line in enumerate(iter(lambda: file.readline(_LINE_BYTES + 1), b""), first):
        text = line.removesuffix(b"\n")
        if len(text) > _LINE_BYTES:
            raise ValueError(f"line {number:,} is too long to search: over {_LINE_BYTES:,} bytes")
        yield number, text


def main(search: Callable[[dict[str, Any]], Findings]) -> int:
    """Run the request in the first argument: print a line of counts, then the matching lines.

    A request that fails prints a sentence on standard error, and the exit status is 1.
    """
    # The program that asks may end before a search that takes for ever.
    resource.setrlimit(resource.RLIMIT_CPU, (_MOST_CPU_S, _MOST_CPU_S))
    try:
        findings = search(json.loads(sys.argv[1]))
    except (OSError, ValueError) as error:
        sys.stderr.write(str(error))
        return 1
    counts = {"match_count": findings.count, "returned": len(findings.lines)}
    unread = [f"({path} could not be read)" for path in findings.unread[:_MAX_UNREAD]]
    text = "".join(f"{line}\n" for line in (json.dumps(counts), *findings.lines, *unread))
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
    return 0


if __name__ == "__main__":
    sys.exit(main(search_stdin))
