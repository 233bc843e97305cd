"""Files and folders that only their owner may read, because output of tools may be confidential.

The mode is set at creation, so other users can never open a new file.
"""

import errno
import os
from io import FileIO
from pathlib import Path

PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600


def make_private_folders(folder: Path) -> None:
    """Make a folder and its missing parents; existing folders keep their modes.

    Raises:
        OSError: from the file system; `NotADirectoryError` if a name is not a folder.
    """
    if not folder.is_dir():
        make_private_folders(folder.parent)
        try:
            folder.mkdir(PRIVATE_FOLDER, exist_ok=True)
        except FileExistsError as error:  # the same error as for a child of a file
            code = errno.ENOTDIR
            raise NotADirectoryError(code, os.strerror(code), str(folder)) from error


def make_durable_folders(folder: Path) -> None:
    """Like `make_private_folders`, and make the names of new folders durable."""
    if not folder.is_dir():
        make_durable_folders(folder.parent)
        make_private_folders(folder)
        sync_path(folder.parent)


def sync_path(path: Path) -> None:
    """Make the content of a file durable, but not its name; or the names in a folder.

    Raises:
        OSError: from the file system.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def create_private(path: Path) -> FileIO:
    """Create an unbuffered file for writing; its `write` may write only a part of the data.

    Raises:
        OSError: from the file system; `FileExistsError` if the name exists.
    """
    return FileIO(path, "xb", opener=_open_private)


def open_without_links(path: Path) -> FileIO:
    """Open an unbuffered file for reading; refuse a symbolic link, without a race.

    A pipe in place of the file is read as an empty file, and does not block.

    Raises:
        OSError: from the file system; with `ELOOP` if the file is a symbolic link.
    """
    return FileIO(path, "rb", opener=_open_without_links)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, PRIVATE_FILE)


def _open_without_links(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)
