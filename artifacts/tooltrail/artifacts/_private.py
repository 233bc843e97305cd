"""Files and folders that only their owner may read: what tools print is nobody else's business.

Modes are given at creation, so there is no moment at which others can open what is made here.
"""

import errno
import os
from io import FileIO
from pathlib import Path

PRIVATE_FOLDER = 0o700
PRIVATE_FILE = 0o600


def make_private_folders(folder: Path) -> None:
    """Make a folder and its missing parents; those that are there keep their modes.

    Raises:
        OSError: whatever the file system says; `NotADirectoryError` where something else is.
    """
    if not folder.is_dir():
        make_private_folders(folder.parent)
        try:
            folder.mkdir(PRIVATE_FOLDER, exist_ok=True)
        except FileExistsError as error:  # as the file system says of what would be in it
            code = errno.ENOTDIR
            raise NotADirectoryError(code, os.strerror(code), str(folder)) from error


def create_private(path: Path) -> FileIO:
    """A new, unbuffered file for writing; its `write` may take a part of what it is given.

    Raises:
        OSError: whatever the file system says; `FileExistsError` when something is there.
    """
    return FileIO(path, "xb", opener=_open_private)


def open_without_links(path: Path) -> FileIO:
    """An unbuffered file for reading, which is no symbolic link: nobody can exchange it for one.

    Raises:
        OSError: whatever the file system says; with `ELOOP` where a link is.
    """
    return FileIO(path, "rb", opener=_open_without_links)


def _open_private(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, PRIVATE_FILE)


def _open_without_links(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW)
