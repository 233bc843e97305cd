"""Reading, listing, searching, writing and editing files, with the typed results of families."""

import difflib
import re
from collections.abc import Iterator
from typing import Any

from tooltrail.agents.workspace.beneath import Beneath
from tooltrail.records import (
    FileChange,
    FileMutationOutput,
    FileReadOutput,
    LineRange,
    SearchOutput,
    StreamRecord,
)

MAX_MATCHES = 1_000
"""Lines that a search gives back; all are counted."""

_BINARY_LOOK = 8 << 10
"""Bytes at the beginning of a file in which a NUL tells that it is no text."""

_MAX_DIFF_LINES = 20_000
"""Of both contents together; a longer comparison would take for ever."""


class FileTools:
    """The handlers of the tools for files; each takes checked arguments.

    Attributes:
        files: that they work on.
    """

    def __init__(self, files: Beneath) -> None:
        self.files = files

    def read(self, arguments: dict[str, Any]) -> FileReadOutput:
        """A file, or some of its lines, counted from 1, both ends included."""
        path: str = arguments["path"]
        data = self.files.read(path)
        start, end = arguments.get("start_line"), arguments.get("end_line")
        if start is None and end is None:
            return FileReadOutput(path=path, content=StreamRecord.from_bytes("content", data))
        lines = data.splitlines(keepends=True)
        wanted = LineRange(start=start or 1, end=max(end or len(lines), start or 1))
        content = b"".join(lines[wanted.start - 1 : wanted.end])
        record = StreamRecord.from_bytes("content", content)
        return FileReadOutput(path=path, content=record, line_range=wanted)

    def list_folder(self, arguments: dict[str, Any]) -> str:
        """The names in a folder, one on a line."""
        return "".join(f"{name}\n" for name in self.files.names(arguments.get("path", ".")))

    def search(self, arguments: dict[str, Any]) -> SearchOutput:
        """The lines that have a text, or match an expression, as `PATH:LINE: TEXT`.

        Raises:
            ValueError: the expression is none.
        """
        pattern: str = arguments["pattern"]
        spelled = pattern if arguments.get("is_regex") else re.escape(pattern)
        try:
            expression = re.compile(spelled)
        except re.error as error:
            raise ValueError(f"the pattern is no regular expression: {error}") from error
        found = list(self._matches(expression, arguments.get("path", ".")))
        shown = "".join(found[:MAX_MATCHES])
        matches = StreamRecord.from_bytes("matches", shown.encode("utf-8", "surrogateescape"))
        returned = min(len(found), MAX_MATCHES)
        return SearchOutput(match_count=len(found), returned=returned, matches=matches)

    def _matches(self, expression: re.Pattern[str], path: str) -> Iterator[str]:
        for name in self.files.files(path):
            try:
                data = self.files.read(name)
            except OSError:
                continue  # gone meanwhile, or not to be read by this user
            if b"\0" in data[:_BINARY_LOOK]:
                continue
            text = data.decode("utf-8", "surrogateescape")
            for number, line in enumerate(text.splitlines(), 1):
                if expression.search(line):
                    yield f"{name}:{number}: {line}\n"

    def write(self, arguments: dict[str, Any]) -> FileMutationOutput:
        """Give a file a content; a new one is made."""
        path: str = arguments["path"]
        data = arguments["content"].encode("utf-8", "surrogatepass")
        before = self._content(path)
        self.files.write(path, data)
        return _changed(path, before, data)

    def edit(self, arguments: dict[str, Any]) -> FileMutationOutput:
        """Replace a text that stands in a file exactly once.

        Raises:
            ValueError: it stands there never, or more than once.
        """
        path: str = arguments["path"]
        before = self.files.read(path)
        old, new = (arguments[name].encode("utf-8", "surrogatepass") for name in ("old", "new"))
        count = before.count(old)
        if count != 1:
            raise ValueError(f"the text to replace stands {count:,} times in {path}, and not once")
        after = before.replace(old, new)
        self.files.write(path, after)
        return _changed(path, before, after)

    def _content(self, path: str) -> bytes | None:
        try:
            return self.files.read(path)
        except FileNotFoundError:
            return None


def _changed(path: str, before: bytes | None, after: bytes) -> FileMutationOutput:
    diff = StreamRecord.from_bytes("diff.0", _diff(path, before or b"", after))
    change = FileChange(action="add" if before is None else "modify", path=path, diff=diff)
    return FileMutationOutput(changed_files=(change,))


def _diff(path: str, before: bytes, after: bytes) -> bytes:
    """The unified difference; of two large contents a line that says so."""
    was, now = before.splitlines(keepends=True), after.splitlines(keepends=True)
    if len(was) + len(now) > _MAX_DIFF_LINES:
        return f"{path}: {len(was):,} lines became {len(now):,}, too many to compare\n".encode()
    name = path.encode("utf-8", "surrogatepass")
    lines = difflib.diff_bytes(difflib.unified_diff, was, now, b"a/" + name, b"b/" + name)
    return b"".join(line if line.endswith(b"\n") else line + b"\n" for line in lines)
