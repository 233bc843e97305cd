"""Opens files below a folder, and never a file outside it.

A path is walked from the root. Each part is opened relative to the folder before it, and no
symbolic link is followed. So a link that another program creates between a check and the use of
the path has no effect.
"""

import errno
import os
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

from tooltrail.agents.wrong_calls import WrongCallError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# Non-blocking: the file may have been replaced by a pipe since it was checked.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}

MAX_LEVELS = 100
"""Deepest level of nested folders that is visited. Each open level takes a descriptor."""

UNVISITED = frozenset({".git"})
"""Folders that are listed but not visited: people do not write the files in them."""

Parts = tuple[str, ...]
"""The parts of a path below the root; empty for the root itself."""


class NotAFileError(OSError):
    """The path does not name a regular file."""


@dataclass(frozen=True, slots=True)
class WorkspaceFolder:
    """A folder by its path. Safe to share between threads and processes.

    Attributes:
        root: absolute, without symbolic links in it.
    """

    root: Path

    @contextmanager
    def opened(self, parts: Parts, *, create: bool = False) -> Generator[int]:
        """The descriptor of a folder, open inside the block.

        Args:
            parts: its path.
            create: whether missing folders are created.

        Raises:
            OSError: the folder does not exist, is not a folder, or cannot be opened.
        """
        descriptor = os.open(self.root, _FOLDER)
        try:
            for depth, name in enumerate(parts):
                if create:
                    with suppress(FileExistsError):
                        os.mkdir(name, dir_fd=descriptor)
                inner = open_folder(parts[: depth + 1], descriptor)
                os.close(descriptor)
                descriptor = inner
            yield descriptor
        finally:
            os.close(descriptor)

    @contextmanager
    def reading(self, parts: Parts) -> Generator[BinaryIO]:
        """A regular file, open for reading inside the block.

        Raises:
            NotAFileError: the path names something else.
            OSError: the file does not exist, or cannot be opened.
        """
        if not parts:
            raise NotAFileError("the path names the workspace itself, which is a folder")
        with self.opened(parts[:-1]) as folder, open_file(parts, folder) as file:
            yield file


def open_folder(parts: Parts, folder: int) -> int:
    """Open a folder inside an open folder; the caller closes the descriptor.

    Args:
        parts: its path from the root; the last part is its name.
        folder: the descriptor of the folder around it.

    Raises:
        OSError: the folder does not exist, is not a folder, or cannot be opened.
    """
    name, path = parts[-1], spelled(parts)
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"folder {path} does not exist") from error
    except OSError as error:
        if error.errno not in {errno.ENOTDIR, errno.ELOOP}:
            raise
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        what = "a file" if stat.S_ISREG(mode) else kind_of(mode)
        raise NotADirectoryError(f"{path} is {what}, not a folder") from error


def open_file(parts: Parts, folder: int) -> BinaryIO:
    """Open a regular file inside an open folder for reading.

    Args:
        parts: its path from the root; the last part is its name.
        folder: the descriptor of the folder around it.

    Raises:
        NotAFileError: the path names something else.
        OSError: the file does not exist, or cannot be opened.
    """
    name, path = parts[-1], spelled(parts)
    try:
        # Checked by name first, because opening a device may have an effect.
        _check_regular(os.stat(name, dir_fd=folder, follow_symlinks=False), path)
        descriptor = os.open(name, _FILE, dir_fd=folder)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"file {path} does not exist") from error
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENXIO}:
            raise NotAFileError(f"{path} is not a regular file any more") from error
        raise
    try:
        _check_regular(os.fstat(descriptor), path)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def split_path(path: str) -> Parts:
    """The parts of a path of the workspace.

    Raises:
        WrongCallError: the path is absolute, has a part `..`, or has a NUL.
    """
    if "\0" in path:
        raise WrongCallError("a path cannot contain a NUL")
    if path.startswith("/"):
        raise WrongCallError("the path is absolute; give it relative to the workspace")
    parts = tuple(part for part in path.split("/") if part not in {"", "."})
    if ".." in parts:
        raise WrongCallError("a path of the workspace cannot contain `..`")
    return parts


def spelled(parts: Parts) -> str:
    """A path as results show it; `.` for the root."""
    return "/".join(parts) or "."


def kind_of(mode: int) -> str:
    """The kind of a file, in words."""
    return _KINDS.get(stat.S_IFMT(mode), "a special file")


def _check_regular(found: os.stat_result, path: str) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise NotAFileError(f"{path} is {kind_of(found.st_mode)}, not a file")


@dataclass(frozen=True, slots=True)
class Entry:
    """A file, a folder or a link inside a folder.

    Attributes:
        mode: its mode, from `lstat`.
        folder: the descriptor of the folder around it, open until the next entry is requested.
        is_unread: whether it is a folder that could not be read, or is nested too deep.
    """

    parts: Parts
    mode: int
    folder: int
    is_unread: bool = False


def iter_entries(workspace: WorkspaceFolder, parts: Parts, *, deep: bool) -> Iterator[Entry]:
    """The entries of a folder; each folder comes before its own entries.

    Args:
        workspace: the workspace of the folder.
        parts: its path.
        deep: whether folders inside it are visited, too.

    Raises:
        OSError: the folder itself does not exist, or cannot be listed.
    """
    with workspace.opened(parts) as folder:
        yield from _iter_below(folder, parts, MAX_LEVELS if deep else 0)


def _iter_below(folder: int, parts: Parts, levels: int) -> Iterator[Entry]:
    for name in sorted(os.listdir(folder)):
        try:
            mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        except FileNotFoundError:
            continue  # deleted since the folder was listed
        entry = Entry((*parts, name), mode, folder)
        if levels == 0 or not stat.S_ISDIR(mode) or name in UNVISITED:
            yield entry
            continue
        inner = None
        if levels > 1:
            with suppress(OSError):
                # The right to list a folder is not the right to look at its entries.
                os.stat(f"{name}/.", dir_fd=folder)
                inner = open_folder(entry.parts, folder)
        if inner is None:
            yield replace(entry, is_unread=True)
            continue
        try:
            yield entry
            yield from _iter_below(inner, entry.parts, levels - 1)
        finally:
            os.close(inner)
