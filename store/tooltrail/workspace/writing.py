"""`fs:write` and `fs:edit`: write a file, or replace a text in it.

A write is atomic: the new content is durable before it replaces the old content.
"""

import os
import secrets
import stat
from contextlib import suppress
from dataclasses import dataclass, field
from threading import Lock
from typing import Any

from tooltrail.agents.definitions import PATH, define
from tooltrail.agents.wrong_calls import WrongCallError
from tooltrail.records import FileChange, FileMutationOutput, StreamRecord
from tooltrail.workspace._diffs import unified_diff
from tooltrail.workspace._folder import (
    UNVISITED,
    NotAFileError,
    Parts,
    WorkspaceFolder,
    open_file,
    spelled,
    split_path,
)
from tooltrail.workspace.reading import MAX_READ

_NEW_FILE_MODE = 0o666
"""Before the umask is applied, as for any new file."""

WRITE = define(
    "fs:write",
    "Write the whole content of a file of the workspace. Missing folders are created.",
    ["path", "content"],
    path=PATH,
    content={"type": "string", "description": "The complete new content of the file."},
)

EDIT = define(
    "fs:edit",
    "Replace a text in a file of the workspace. The file must contain the text exactly once.",
    ["path", "old_text", "new_text"],
    path=PATH,
    old_text={
        "type": "string",
        "minLength": 1,
        "description": "The text to replace, exactly as in the file.",
    },
    new_text={"type": "string", "description": "The text that replaces it."},
    replace_all={"type": "boolean", "description": "Replace every occurrence."},
)


@dataclass(frozen=True, slots=True)
class Editor:
    """Changes files, one at a time among all threads. Other programs are not locked out."""

    workspace: WorkspaceFolder
    _turns: Lock = field(default_factory=Lock, repr=False, compare=False)

    def write(self, arguments: dict[str, Any]) -> FileMutationOutput:
        """Write the content of a file, which may be new."""
        parts = _writable(arguments["path"])
        with self._turns, self.workspace.opened(parts[:-1], create=True) as folder:
            old = _content_of(parts, folder)
            return _replaced(parts, folder, old, _encoded(arguments["content"]))

    def edit(self, arguments: dict[str, Any]) -> FileMutationOutput:
        """Replace a text of a file."""
        parts = _writable(arguments["path"])
        old_text, new_text = _encoded(arguments["old_text"]), _encoded(arguments["new_text"])
        with self._turns, self.workspace.opened(parts[:-1]) as folder:
            old = _content_of(parts, folder)
            if old is None:
                raise FileNotFoundError(f"file {spelled(parts)} does not exist")
            _check_occurrences(
                old, old_text, spelled(parts), many=arguments.get("replace_all", False)
            )
            return _replaced(parts, folder, old, old.replace(old_text, new_text))


def _writable(path: str) -> Parts:
    parts = split_path(path)
    if not parts:
        raise NotAFileError("the path names the workspace itself, which is a folder")
    # Git runs programs that files in this folder name.
    if any(part.casefold() in UNVISITED for part in parts):
        raise PermissionError(f"{spelled(parts)} belongs to git and cannot be written")
    return parts


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise WrongCallError(f"the text cannot be written as UTF-8: {error}") from error


def _content_of(parts: Parts, folder: int) -> bytes | None:
    try:
        with open_file(parts, folder) as file:
            content = file.read(MAX_READ + 1)
    except FileNotFoundError:
        return None
    if len(content) > MAX_READ:
        raise WrongCallError(
            f"{spelled(parts)} is larger than {MAX_READ >> 20} MiB, and this tool changes only "
            "smaller files; write a new file under another name"
        )
    return content


def _check_occurrences(content: bytes, text: bytes, path: str, *, many: bool) -> None:
    count = content.count(text)
    if count == 0:
        hint = "; its lines end in CR LF" if b"\r\n" in content and b"\r" not in text else ""
        raise WrongCallError(f"old_text is not in {path}{hint}")
    if many:
        return
    more = "; add more of the text around it"
    if count > 1:
        raise WrongCallError(f"old_text is {count} times in {path}{more}")
    if content.find(text, content.find(text) + 1) >= 0:
        raise WrongCallError(f"old_text is in two overlapping places in {path}{more}")


def _replaced(parts: Parts, folder: int, old: bytes | None, new: bytes) -> FileMutationOutput:
    path = spelled(parts)
    if new != old:
        _put(parts[-1], folder, new)
    diff, hunks = unified_diff(path, old, new)
    change = FileChange(
        action="add" if old is None else "modify",
        path=path,
        hunks=hunks,
        diff=StreamRecord.from_bytes("diff.0", diff),
    )
    return FileMutationOutput(changed_files=() if new == old else (change,))


def _put(name: str, folder: int, content: bytes) -> None:
    """Write a temporary file with the same mode, then rename it over the old file."""
    temporary = f".{secrets.token_hex(8)}.tmp"
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    try:
        with os.fdopen(os.open(temporary, flags, _NEW_FILE_MODE, dir_fd=folder), "wb") as file:
            with suppress(FileNotFoundError):
                mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
                # Without setuid and setgid, because a model wrote the content.
                os.fchmod(file.fileno(), stat.S_IMODE(mode) & 0o777)
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, name, src_dir_fd=folder, dst_dir_fd=folder)
    except BaseException:
        with suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=folder)
        raise
    os.fsync(folder)
