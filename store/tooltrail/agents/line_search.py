"""The process that searches lines: takes a request as JSON, prints counts and matching lines.

The request is the first line of standard input. As a program, this module searches the lines behind
it. The first line of the output is JSON with `match_count` and `returned`; the matches follow, and
then sentences about what was not searched.
"""

import json
import re
import resource
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, BinaryIO

_MAX_MATCHES = 200

_MAX_NAMED = 20
"""Unreadable files and folders that the result names at most, and lines that are too long."""

REFUSED = 3
"""Exit status for a request that cannot be run, unlike that of an error of this program."""

_MOST_CPU_S = 120

_LINE_BYTES = 64 << 20
"""Bytes of the longest line that is searched, as in `tooltrail artifact grep`."""

_PIECE_BYTES = 1 << 20
"""Bytes that are read at once of a line that is not searched."""

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
        unsearched: the lines that are too long to be searched, as sentences.
    """

    most: int
    count: int = 0
    size: int = 0
    lines: list[str] = field(default_factory=list[str])
    unread: list[str] = field(default_factory=list[str])
    unsearched: list[str] = field(default_factory=list[str])

    def add(self, label: str, number: int, text: str) -> None:
        r"""Count a line, and keep it if there is room. A lone surrogate is shown as `\xNN`."""
        self.count += 1
        if len(self.lines) < self.most and self.size < _MAX_PRINTED:
            beginning = text[:_LINE_CHARS].encode(errors="surrogateescape")
            shown = beginning.decode(errors="backslashreplace")
            if (hidden := len(text) - _LINE_CHARS) > 0:
                shown += f"… [{hidden:,} more characters]"
            self.lines.append(f"{label}{number}:{shown}")
            self.size += len(shown) + len(label)


def search_stdin(request: dict[str, Any]) -> Findings:
    r"""Search standard input. A byte that is not UTF-8 is one character, and shown as `\xNN`.

    Raises:
        ValueError: the pattern is not valid.
    """
    pattern, findings = prepared(request)
    search_lines(sys.stdin.buffer, pattern, findings, first=request.get("first_line", 1))
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


def search_lines(
    file: BinaryIO,
    pattern: re.Pattern[str],
    findings: Findings,
    *,
    label: str = "",
    first: int = 1,
    errors: str = "surrogateescape",
) -> None:
    r"""Add the lines of a file that match a pattern without their endings, `\n` or `\r\n`.

    A line that is too long is not searched. The findings say so.

    Args:
        file: the file.
        pattern: the pattern.
        findings: the findings.
        label: what stands before the number of a line.
        first: number of the first line.
        errors: how bytes that are not UTF-8 are decoded.
    """
    for number, line in enumerate(iter(lambda: file.readline(_LINE_BYTES + 1), b""), first):
        text = line.removesuffix(b"\n")
        if len(text) > _LINE_BYTES:
            why = f"is too long to search: over {_LINE_BYTES >> 20} MiB"
            findings.unsearched.append(f"{label} line {number:,} {why}".lstrip())
            rest = line
            while rest and not rest.endswith(b"\n"):
                rest = file.readline(_PIECE_BYTES)
            continue
        decoded = text.decode(errors=errors)
        if pattern.search(decoded, 0, len(decoded) - decoded.endswith("\r")):
            findings.add(label, number, decoded)


def main(search: Callable[[dict[str, Any]], Findings]) -> int:
    """Run the request in standard input: print counts, the matching lines, and what is missing.

    A request that fails prints a sentence on standard error, and the exit status is `REFUSED`.
    """
    # The program that asks may end before a search that takes for ever.
    resource.setrlimit(resource.RLIMIT_CPU, (_MOST_CPU_S, _MOST_CPU_S))
    try:
        findings = search(json.loads(sys.stdin.buffer.readline()))
    except (OSError, ValueError) as error:
        sys.stderr.write(str(error))
        return REFUSED
    counts = {"match_count": findings.count, "returned": len(findings.lines)}
    unread = _named([f"{path} could not be read" for path in findings.unread], "could not be read")
    unsearched = _named(findings.unsearched, "too long to search")
    lines = (json.dumps(counts), *findings.lines, *unread, *unsearched)
    text = "".join(f"{line}\n" for line in lines)
    sys.stdout.buffer.write(text.encode("utf-8", "backslashreplace"))
    return 0


def _named(sentences: list[str], others: str) -> list[str]:
    """The first sentences in parentheses, and how many there are besides."""
    named = [f"({one})" for one in sentences[:_MAX_NAMED]]
    more = len(sentences) - len(named)
    return [*named, f"({more:,} more: {others})"] if more else named


if __name__ == "__main__":
    sys.exit(main(search_stdin))
