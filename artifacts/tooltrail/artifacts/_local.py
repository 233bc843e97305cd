"""Publishing on a local file system: durable, exclusive and atomic, by hard links.

Linking fails when the name is taken, atomically and for every process; that is the whole of the
exclusion. The order is what makes it durable: bytes synced, then the name made, then the folder
that holds the name synced.
"""

import errno
import os
import secrets
import shutil
from pathlib import Path
from typing import BinaryIO

from tooltrail.artifacts.paths import PART_SUFFIX

COPY_SIZE = 1024 * 1024
"""Bytes per step of a copy."""

READ_ONLY = 0o444
"""Mode bits that an object may have; it has those that its source has too."""

CANNOT_LINK = frozenset(
    {errno.EXDEV, errno.EPERM, errno.EACCES, errno.EMLINK, errno.ENOSYS, errno.EOPNOTSUPP}
)
"""Reasons for which a source cannot be linked although a copy of it may be."""


class LocalPublisher:
    """Publishes under one root folder. Safe for threads and processes.

    Where the source is on the same file system the object *is* the source under a second name, so
    the source becomes read-only too; elsewhere it is copied to a part beside its target first.
    """

    def __init__(self, root: Path) -> None:
        """Publish below `root`, an absolute path without symbolic links that exists."""
        self._root = root
        self._durable_folders: set[Path] = set()

    def publish(self, source: Path, target: Path) -> bool:
        """True when `target` was created, False when it stands there already.

        Raises:
            OSError: whatever the file system says.
        """
        self._make_folder(target.parent)
        is_new = not target.is_file() and _create(source.resolve(), target)
        # For a loser too: the winner may not have come this far yet.
        sync_folder(target.parent)
        return is_new

    def _make_folder(self, folder: Path) -> None:
        """Make `folder` and its parents below the root, each with its name durable.

        A folder that was there may have been made by another process a moment ago, so its parent
        is synced the first time that this publisher meets it.
        """
        if folder == self._root or (folder in self._durable_folders and folder.is_dir()):
            return
        self._make_folder(folder.parent)
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)
        self._durable_folders.add(folder)


def make_durable_folders(folder: Path) -> None:
    """Make a folder and its missing parents, and their names durable.

    Raises:
        OSError: whatever the file system says.
    """
    if not folder.is_dir():
        make_durable_folders(folder.parent)
        folder.mkdir(exist_ok=True)
        sync_folder(folder.parent)


def sync_folder(folder: Path) -> None:
    """Make the names in a folder durable.

    Raises:
        OSError: whatever the file system says.
    """
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _create(source: Path, target: Path) -> bool:
    with source.open("rb") as file:
        os.fsync(file.fileno())
        try:
            if not _link(file, source, target):
                _copy(file, target)
        except FileExistsError:
            if not target.is_file():
                raise
            return False
    return True


def _link(file: BinaryIO, source: Path, target: Path) -> bool:
    """False when the file system wants a copy instead."""
    status = os.fstat(file.fileno())
    if status.st_dev != target.parent.stat().st_dev:
        return False
    try:
        os.fchmod(file.fileno(), status.st_mode & READ_ONLY)
        os.link(source, target)
    except OSError as error:
        if error.errno not in CANNOT_LINK:
            raise
        return False
    return True


def _copy(file: BinaryIO, target: Path) -> None:
    part = target.with_name(f"{target.name}.{secrets.token_hex(8)}{PART_SUFFIX}")
    try:
        with part.open("xb") as copy:
            shutil.copyfileobj(file, copy, COPY_SIZE)
            copy.flush()
            os.fchmod(copy.fileno(), os.fstat(file.fileno()).st_mode & READ_ONLY)
            os.fsync(copy.fileno())
        os.link(part, target)
    finally:
        part.unlink(missing_ok=True)
