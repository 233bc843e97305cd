"""Files beneath one folder, opened step by step from there: no path leads out of it.

Each step is opened relative to the one before and is refused if it is a link, so that nobody can
put a link in the way between a look and a use.
"""

import os
import stat
from collections.abc import Generator, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path, PurePosixPath

from tooltrail.records import PathEscapeError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC

SKIPPED = frozenset({".git", ".hg", ".svn", "node_modules", "__pycache__", ".venv"})
"""Folders that are not gone through: what is in them is nobody's own text."""


class Beneath:
    """The files of a folder. Safe to share between threads.

    Attributes:
        root: the folder; links in its own path are followed, once.
    """

    def __init__(self, root: Path) -> None:
        self.root = root.resolve()

    def read(self, path: str) -> bytes:
        """The content of a regular file.

        Raises:
            PathEscapeError: the path leads out of the folder, or over a link.
            OSError: it cannot be read.
        """
        with self._parent(path) as (folder, name):
            handle = _open(name, _READ, folder)
            with os.fdopen(handle, "rb") as file:
                if not stat.S_ISREG(os.fstat(handle).st_mode):
                    raise IsADirectoryError(f"{path} is no regular file")
                return file.read()

    def write(self, path: str, data: bytes) -> bool:
        """Give a file a content, as a whole or not at all; whether it was there before.

        Folders that are missing are made. The access rights of a file stay.

        Raises:
            PathEscapeError: see `read`.
            OSError: it cannot be written, or is no regular file.
        """
        with self._parent(path, make=True) as (folder, name):
            before = _status(name, folder)
            if before is not None and not stat.S_ISREG(before.st_mode):
                raise IsADirectoryError(f"{path} is no regular file")
            part = f".{name[:200]}.{os.getpid()}.part"
            handle = os.open(part, _NEW, 0o666, dir_fd=folder)
            try:
                with os.fdopen(handle, "wb") as file:
                    if before is not None:
                        os.fchmod(handle, stat.S_IMODE(before.st_mode))
                    file.write(data)
                    file.flush()
                    os.fsync(handle)
                os.replace(part, name, src_dir_fd=folder, dst_dir_fd=folder)
            except BaseException:
                with suppress(OSError):
                    os.unlink(part, dir_fd=folder)
                raise
            return before is not None

    def names(self, path: str) -> list[str]:
        """What is in a folder, in order; folders with a slash at the end.

        Raises:
            PathEscapeError, OSError: see `read`.
        """
        with self._folder(path) as folder:
            return sorted(
                f"{entry.name}/" if entry.is_dir(follow_symlinks=False) else entry.name
                for entry in os.scandir(folder)
            )

    def files(self, path: str) -> Iterator[str]:
        """All regular files below a folder, in order, by their paths from the root.

        Raises:
            PathEscapeError, OSError: see `read`.
        """
        parts = _parts(path)
        with self._folder(path) as folder:
            for below, folders, files, handle in os.fwalk(dir_fd=folder, top="."):
                folders[:] = sorted(name for name in folders if name not in SKIPPED)
                for name in sorted(files):
                    status = _status(name, handle)
                    if status is not None and stat.S_ISREG(status.st_mode):
                        yield str(PurePosixPath(*parts, below, name))

    @contextmanager
    def _parent(self, path: str, *, make: bool = False) -> Generator[tuple[int, str]]:
        """The folder of a file, open, and its name in there."""
        parts = _parts(path)
        if not parts:
            raise IsADirectoryError(f"{path or '.'} is a folder")
        with self._opened(parts[:-1], make=make) as folder:
            yield folder, parts[-1]

    @contextmanager
    def _folder(self, path: str) -> Generator[int]:
        with self._opened(_parts(path)) as folder:
            yield folder

    @contextmanager
    def _opened(self, parts: tuple[str, ...], *, make: bool = False) -> Generator[int]:
        handle = os.open(self.root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            for part in parts:
                if make:
                    with suppress(FileExistsError):
                        os.mkdir(part, dir_fd=handle)
                inner = _open(part, _FOLDER, handle)
                os.close(handle)
                handle = inner
            yield handle
        finally:
            os.close(handle)


def _parts(path: str) -> tuple[str, ...]:
    """The steps of a path from the root.

    Raises:
        PathEscapeError: it does not begin there, or goes upwards.
    """
    pure = PurePosixPath(path or ".")
    if pure.is_absolute() or ".." in pure.parts or "\0" in path:
        raise PathEscapeError(f"the path {path!r} leads out of the folder")
    return pure.parts


def _open(name: str, flags: int, folder: int) -> int:
    status = _status(name, folder)
    if status is not None and stat.S_ISLNK(status.st_mode):
        raise PathEscapeError(f"{name!r} is a link, which is not followed")
    # Should it become one just now, the flags refuse it.
    return os.open(name, flags, dir_fd=folder)


def _status(name: str, folder: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return None
