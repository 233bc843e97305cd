"""Searches files in a process of its own: a request as JSON comes in, counts and lines go out.

A request with a `root` names files in that folder; any other is about what comes from stdin.

The first line printed is JSON with `match_count` and `returned`; the matches follow. What cannot
be done is a sentence on stderr, and the exit status 1.
"""

import json
import os
import re
import stat
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, BinaryIO

from tooltrail.agents.workspace._folder import (
    Parts,
    WorkspaceFolder,
    iter_entries,
    open_file,
    spelled,
    split_path,
)

_MAX_MATCHES = 200

_MAX_UNREAD = 20
"""Files and folders that are said to be unread."""

_LOOKED_AT = 8192
"""Bytes at the beginning of a file of which none is zero in a text, as git has it."""

_PIECE = 1 << 20
"""Bytes of a line that are looked at together."""

_LINE_CHARS = 500
"""Characters of a line that are given back."""

_MAX_PRINTED = 8 << 20
"""Bytes that are given back."""


@dataclass(slots=True)
class Findings:
    """What was found so far."""

    most: int
    count: int = 0
    size: int = 0
    lines: list[str] = field(default_factory=list[str])
    unread: list[str] = field(default_factory=list[str])

    def add(self, label: str, number: int, text: str) -> None:
        """Count a line, and keep it where there is room."""
        self.count += 1
        if len(self.lines) < self.most and self.size < _MAX_PRINTED:
            hidden = len(text) - _LINE_CHARS
            shown = text if hidden <= 0 else f"{text[:_LINE_CHARS]}… [{hidden:,} more characters]"
            self.lines.append(f"{label}{number}:{shown}")
            self.size += len(shown) + len(label)


def search(request: dict[str, Any]) -> Findings:
    """Look through what the request names.

    Raises:
        OSError: it is not there, or cannot be read.
        ValueError: the pattern is none, or the path leads out of the workspace.
    """
    pattern = _compiled(request)
    findings = Findings(request.get("max_matches", _MAX_MATCHES))
    if "root" not in request:
        _search_lines(sys.stdin.buffer, "", pattern, findings)
        return findings
    workspace, parts = WorkspaceFolder(Path(request["root"])), split_path(request.get("path", "."))
    for path, file in _iter_files(workspace, parts, request.get("glob", "*"), findings):
        with file:
            if b"\0" not in file.read(_LOOKED_AT):
                file.seek(0)
                _search_lines(file, f"{path}:", pattern, findings)
    return findings


def _compiled(request: dict[str, Any]) -> re.Pattern[str]:
    text = re.escape(request["pattern"]) if request.get("literal") else request["pattern"]
    try:
        return re.compile(text, re.IGNORECASE if request.get("ignore_case") else 0)
    except (re.error, OverflowError, RecursionError) as error:
        raise ValueError(f"the pattern is no regular expression: {error}") from error


def _iter_files(
    workspace: WorkspaceFolder, parts: Parts, glob: str, findings: Findings
) -> Iterator[tuple[str, BinaryIO]]:
    if parts and _is_file(workspace, parts):
        with workspace.reading(parts) as file:
            yield spelled(parts), file
        return
    for entry in iter_entries(workspace, parts, deep=True):
        path = spelled(entry.parts)
        if entry.is_unread:
            findings.unread.append(path)
        elif stat.S_ISREG(entry.mode) and fnmatchcase(entry.parts[-1], glob):
            try:
                yield path, open_file(entry.parts, entry.folder)
            except OSError:
                findings.unread.append(path)


def _is_file(workspace: WorkspaceFolder, parts: Parts) -> bool:
    with workspace.opened(parts[:-1]) as folder:
        try:
            mode = os.stat(parts[-1], dir_fd=folder, follow_symlinks=False).st_mode
        except FileNotFoundError as error:
            raise FileNotFoundError(f"there is no file or folder {spelled(parts)}") from error
    return not stat.S_ISDIR(mode)


def _search_lines(file: BinaryIO, label: str, pattern: re.Pattern[str], findings: Findings) -> None:
    number, is_new = 0, True
    while piece := file.readline(_PIECE):
        number += is_new
        is_new = piece.endswith(b"\n")
        text = piece.decode(errors="replace").rstrip("\r\n")
        if pattern.search(text):
            findings.add(label, number, text)


def main() -> int:
    """Answer the request that is the one argument."""
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
    sys.exit(main())
