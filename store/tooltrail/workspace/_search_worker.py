"""Searches the files of a folder in a process of its own; see `tooltrail.agents.line_search`."""

import os
import stat
import sys
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, BinaryIO

from tooltrail.agents.line_search import Findings, main, prepared, search_lines
from tooltrail.workspace._folder import (
    Parts,
    WorkspaceFolder,
    iter_entries,
    open_file,
    spelled,
    split_path,
)

_PROBED_BYTES = 8192
"""Bytes at the beginning of a file. A file with a NUL among them is binary, as in git."""


def search(request: dict[str, Any]) -> Findings:
    """Search the file or folder that a request names.

    Raises:
        OSError: the file or folder does not exist, or cannot be read.
        ValueError: the pattern is not valid, or the path leads out of the workspace.
    """
    pattern, findings = prepared(request)
    workspace, parts = WorkspaceFolder(Path(request["root"])), split_path(request.get("path", "."))
    for path, file in _iter_files(workspace, parts, request.get("glob", "*"), findings):
        with file:
            if b"\0" not in file.read(_PROBED_BYTES):
                file.seek(0)
                search_lines(file, pattern, findings, label=f"{path}:", errors="replace")
    return findings


def _iter_files(
    workspace: WorkspaceFolder, parts: Parts, glob: str, findings: Findings
) -> Iterator[tuple[str, BinaryIO]]:
    if parts and _is_file(workspace, parts):
        with workspace.reading(parts) as file:
            yield _shown(parts), file
        return
    for entry in iter_entries(workspace, parts, deep=True):
        path = _shown(entry.parts)
        if entry.is_unread:
            findings.unread.append(path)
        elif stat.S_ISREG(entry.mode) and fnmatchcase(entry.parts[-1], glob):
            try:
                yield path, open_file(entry.parts, entry.folder)
            except OSError:
                findings.unread.append(path)


def _shown(parts: Parts) -> str:
    r"""A path on one line: control characters are escaped, for example as `\n`."""
    path = spelled(parts)
    if path.isprintable():
        return path
    from tooltrail.records.authoring import one_line_path  # noqa: PLC0415  imports pydantic

    return one_line_path(path)


def _is_file(workspace: WorkspaceFolder, parts: Parts) -> bool:
    with workspace.opened(parts[:-1]) as folder:
        try:
            mode = os.stat(parts[-1], dir_fd=folder, follow_symlinks=False).st_mode
        except FileNotFoundError as error:
            raise FileNotFoundError(f"{spelled(parts)} does not exist") from error
    return not stat.S_ISDIR(mode)


if __name__ == "__main__":
    sys.exit(main(search))
