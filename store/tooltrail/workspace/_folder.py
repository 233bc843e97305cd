"""A folder that nothing leads out of, whatever stands in it and whoever changes it meanwhile.

A path is walked from the root, one part after the other, each opened in the folder that is open
already and none of them through a symbolic link. So a link that is put in the way between a check
and its use leads nowhere: what was checked is what is used.
"""

import errno
import os
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import BinaryIO

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
# A pipe that somebody put there since it was looked at must not be waited for.
_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFLNK: "a symbolic link, which is not followed",
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}

MAX_LEVELS = 100
"""Folders inside of each other that are gone into; each of them is held open meanwhile."""

UNVISITED = frozenset({".git"})
"""Folders that are named and not gone into: what is in them is not what people wrote."""

Parts = tuple[str, ...]
"""The names that a path is made of, from the root; none for the root itself."""


class NotAFileError(OSError):
    """What stands at a path is no regular file."""


@dataclass(frozen=True, slots=True)
class WorkspaceFolder:
    """A folder by its path. Safe to share between threads and processes.

    Attributes:
        root: absolute, without symbolic links in it.
    """

    root: Path

    @contextmanager
    def opened(self, parts: Parts, *, create: bool = False) -> Generator[int]:
        """The descriptor of a folder, open inside of the block.

        Args:
            parts: its path.
            create: whether folders that are not there are made.

        Raises:
            OSError: it is not there, no folder, or cannot be opened.
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
        """A regular file, open for reading inside of the block.

        Raises:
            NotAFileError: something else stands there.
            OSError: it is not there, or cannot be opened.
        """
        if not parts:
            raise NotAFileError("the workspace itself is a folder, and no file")
        with self.opened(parts[:-1]) as folder, open_file(parts, folder) as file:
            yield file


def open_folder(parts: Parts, folder: int) -> int:
    """The descriptor of a folder that is in an open one; the caller closes it.

    Args:
        parts: its path, the last of which is its name.
        folder: the descriptor of the folder that it is in.

    Raises:
        OSError: it is not there, no folder, or cannot be opened.
    """
    name, path = parts[-1], spelled(parts)
    try:
        return os.open(name, _FOLDER, dir_fd=folder)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"there is no folder {path}") from error
    except OSError as error:
        if error.errno not in {errno.ENOTDIR, errno.ELOOP}:
            raise
        mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        what = "a file" if stat.S_ISREG(mode) else kind_of(mode)
        raise NotADirectoryError(f"{path} is no folder, but {what}") from error


def open_file(parts: Parts, folder: int) -> BinaryIO:
    """A regular file that is in an open folder, for reading.

    Args:
        parts: its path, the last of which is its name.
        folder: the descriptor of the folder that it is in.

    Raises:
        NotAFileError: something else stands there.
        OSError: it is not there, or cannot be opened.
    """
    name, path = parts[-1], spelled(parts)
    try:
        # First by name: to open a device may do something already.
        _check_regular(os.stat(name, dir_fd=folder, follow_symlinks=False), path)
        descriptor = os.open(name, _FILE, dir_fd=folder)
    except FileNotFoundError as error:
        raise FileNotFoundError(f"there is no file {path}") from error
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENXIO}:
            raise NotAFileError(f"{path} is no regular file any more") from error
        raise
    try:
        _check_regular(os.fstat(descriptor), path)
        return os.fdopen(descriptor, "rb")
    except BaseException:
        os.close(descriptor)
        raise


def split_path(path: str) -> Parts:
    """The names that a path of the workspace is made of.

    Raises:
        ValueError: it is absolute, has a part `..`, or is none at all.
    """
    if "\0" in path:
        raise ValueError("a path cannot have a NUL in it")
    if path.startswith("/"):
        raise ValueError("paths are relative to the workspace, and this one is absolute")
    parts = tuple(part for part in path.split("/") if part not in {"", "."})
    if ".." in parts:
        raise ValueError("a path of the workspace cannot have `..` in it")
    return parts


def spelled(parts: Parts) -> str:
    """A path as it is given back; `.` for the root."""
    return "/".join(parts) or "."


def kind_of(mode: int) -> str:
    """What stands there, in words."""
    return _KINDS.get(stat.S_IFMT(mode), "no regular file")


def _check_regular(found: os.stat_result, path: str) -> None:
    if not stat.S_ISREG(found.st_mode):
        raise NotAFileError(f"{path} is no file, but {kind_of(found.st_mode)}")


@dataclass(frozen=True, slots=True)
class Entry:
    """Something in a folder.

    Attributes:
        mode: its kind, as `lstat` tells it.
        folder: the descriptor of the folder that it is in, open until the next entry is asked for.
        is_unread: whether it is a folder that could not be gone into, or is too deep for it.
    """

    parts: Parts
    mode: int
    folder: int
    is_unread: bool = False


def iter_entries(workspace: WorkspaceFolder, parts: Parts, *, deep: bool) -> Iterator[Entry]:
    """What is in a folder, each folder before what is in it.

    Args:
        workspace: that the folder is in.
        parts: its path.
        deep: whether the folders in it are gone into.

    Raises:
        OSError: the folder itself is not there, or cannot be listed.
    """
    with workspace.opened(parts) as folder:
        yield from _iter_below(folder, parts, MAX_LEVELS if deep else 0)


def _iter_below(folder: int, parts: Parts, levels: int) -> Iterator[Entry]:
    for name in sorted(os.listdir(folder)):
        try:
            mode = os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode
        except FileNotFoundError:
            continue  # somebody deleted it meanwhile
        entry = Entry((*parts, name), mode, folder)
        if levels == 0 or not stat.S_ISDIR(mode) or name in UNVISITED:
            yield entry
            continue
        inner = None
        if levels > 1:
            with suppress(OSError):
                inner = open_folder(entry.parts, folder)
        if inner is None:
            yield replace(entry, is_unread=True)
            continue
        try:
            yield entry
            yield from _iter_below(inner, entry.parts, levels - 1)
        finally:
            os.close(inner)
