"""`fs:read` and `fs:list`: read a file, and list a folder."""

import stat
from typing import Any, BinaryIO

from tooltrail.agents.definitions import LINES, PATH, define
from tooltrail.agents.wrong_calls import WrongCallError
from tooltrail.records import FileReadOutput, LineRange, SearchOutput, StreamRecord
from tooltrail.records.authoring import one_line_path
from tooltrail.workspace._folder import (
    Entry,
    WorkspaceFolder,
    iter_entries,
    spelled,
    split_path,
)

MAX_READ = 16 << 20
"""Bytes that one call reads at most. Any receipt shows less."""

MAX_ENTRIES = 10_000
"""Entries that one call lists. Further entries are counted."""

_CHUNK = 1 << 20

READ = define(
    "fs:read",
    "Read a file of the workspace, or some of its lines.",
    ["path"],
    path=PATH,
    **LINES,
)

LIST = define(
    "fs:list",
    "List a folder of the workspace. Folders end in `/`, symbolic links in `@`.",
    [],
    path={**PATH, "description": "Path relative to the workspace; the workspace itself if absent."},
    recursive={"type": "boolean", "description": "Also list the folders in it."},
)


def read_file(workspace: WorkspaceFolder, arguments: dict[str, Any]) -> FileReadOutput:
    """Read a file, or a range of its lines."""
    parts = split_path(arguments["path"])
    start, end = arguments.get("start_line"), arguments.get("end_line")
    with workspace.reading(parts) as file:
        if start is None and end is None:
            content = file.read(MAX_READ + 1)
            _check_size(len(content), spelled(parts))
            lines = None
        else:
            content, lines = _read_lines(file, spelled(parts), start or 1, end)
    stream = StreamRecord.from_bytes("content", content)
    return FileReadOutput(path=spelled(parts), content=stream, line_range=lines)


def _read_lines(file: BinaryIO, path: str, start: int, end: int | None) -> tuple[bytes, LineRange]:
    """The lines from `start` to `end`, or to the last line, with the range that was read."""
    if end is not None and end < start:
        raise WrongCallError(f"line {end} is before line {start}")
    kept, size, number, piece = list[bytes](), 0, 0, b"\n"
    while chunk := file.readline(_CHUNK):
        # A long line comes in several pieces.
        number += piece.endswith(b"\n")
        if end is not None and number > end:
            break
        piece = chunk
        if number >= start:
            kept.append(piece)
            size += len(piece)
            _check_size(size, path)
    if not kept:
        raise WrongCallError(f"{path} has no line {start}; it has {number:,} lines")
    return b"".join(kept), LineRange(start=start, end=number if end is None else min(number, end))


def _check_size(size: int, path: str) -> None:
    if size > MAX_READ:
        raise WrongCallError(
            f"{path} is larger than {MAX_READ >> 20} MiB; read a range of its lines, or search it"
        )


def list_folder(workspace: WorkspaceFolder, arguments: dict[str, Any]) -> SearchOutput:
    """The entries of a folder, one per line."""
    parts = split_path(arguments.get("path", "."))
    lines, count = list[str](), 0
    for entry in iter_entries(workspace, parts, deep=arguments.get("recursive", False)):
        count += 1
        if count <= MAX_ENTRIES:
            lines.append(_line_of(entry, len(parts)))
    matches = "".join(f"{line}\n" for line in lines).encode()
    return SearchOutput(
        match_count=count,
        returned=len(lines),
        matches=StreamRecord.from_bytes("matches", matches),
    )


def _line_of(entry: Entry, skipped: int) -> str:
    name = one_line_path(spelled(entry.parts[skipped:]))
    if stat.S_ISDIR(entry.mode):
        return f"{name}/  (not read)" if entry.is_unread else f"{name}/"
    return f"{name}@" if stat.S_ISLNK(entry.mode) else name
