"""Publish objects on a local file system: durable, exclusive and atomic, with hard links.

Creating a link fails if the name exists, atomically and for every process. Nothing else provides
the exclusion. The order provides durability: sync the bytes, create the name, sync the folder that
contains the name.

The mode of the root decides who may read. The default is 0700. A team can set 2770, for instance:
new folders inherit the mode, and whoever may read the root may read the objects.
"""

import errno
import io
import os
import stat
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Self

from tooltrail.artifacts._entries import FileFacts
from tooltrail.artifacts._ranges import clip
from tooltrail.artifacts.paths import PART_SUFFIX
from tooltrail.artifacts.private_files import (
    PRIVATE_FOLDER,
    create_private,
    open_without_links,
    sync_path,
)
from tooltrail.records.frozen import Frozen

COPY_SIZE = 1024 * 1024
"""Bytes per step of a copy."""

_READERS = stat.S_IRGRP | stat.S_IROTH

CANNOT_LINK = frozenset(
    {errno.EXDEV, errno.EPERM, errno.EACCES, errno.EMLINK, errno.ENOSYS, errno.EOPNOTSUPP}
)
"""Errors after which a source cannot be linked, but a copy of it may be."""


class LocalPublisher:
    """Publishes below one root folder. Safe for threads and processes.

    If the source is on the same file system, the object *is* the source under a second name, so
    the source gets the mode and group of an object too. Otherwise the source is first copied to a
    part beside the target.
    """

    def __init__(self, root: Path) -> None:
        """Publish below `root`, an absolute path without symbolic links that exists."""
        self._root = root
        self._durable_folders: set[Path] = set()

    def publish(self, source: Path, target: Path) -> bool:
        """Publish a file; True if `target` was created, False if it exists already.

        Raises:
            OSError: from the file system.
        """
        access = _Access.below(self._root)
        self._make_folder(target.parent, access)
        is_new = not target.is_file() and _create(source, target, access)
        # If the target exists, its creator may not have synced the folder yet.
        sync_path(target.parent)
        return is_new

    def _make_folder(self, folder: Path, access: "_Access") -> None:
        """Make `folder` and its parents below the root, and make each name durable.

        Another process may have just made an existing folder, so its parent is synced the first
        time that this publisher uses the folder.
        """
        if folder == self._root or (folder in self._durable_folders and folder.is_dir()):
            return
        self._make_folder(folder.parent, access)
        try:
            folder.mkdir(PRIVATE_FOLDER)
        except FileExistsError:
            if not folder.is_dir():
                raise
        else:
            # The umask removes bits from the mode of mkdir, and mkdir ignores the set-group-id bit.
            folder.chmod(access.folder_mode)
        sync_path(folder.parent)
        self._durable_folders.add(folder)


def read_range(path: Path, start: int, stop: int | None) -> bytes:
    """Read a range of a file, clipped at its end; see `ArtifactSink.read`.

    Raises:
        OSError: from the file system.
    """
    with open_without_links(path) as file:
        position, end = clip(start, stop, os.fstat(file.fileno()).st_size)
        pieces: list[bytes] = []
        # One call returns about 2 GiB at most, and less if the file is cut during the read.
        while piece := os.pread(file.fileno(), end - position, position):
            pieces.append(piece)
            position += len(piece)
    return b"".join(pieces)


def read_facts(path: Path) -> FileFacts:
    """The size and time of a file.

    Raises:
        FileNotFoundError: the file does not exist, or is not a regular file.
        OSError: another error of the file system.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise FileNotFoundError(errno.ENOENT, "not a file", str(path))
    return FileFacts(status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))


class _Access(Frozen):
    """The access rights of new folders and objects below a root.

    Attributes:
        folder_mode: mode of folders: the mode of the root, and all rights for the owner.
        object_mode: mode of objects: the read rights of the root, and no write rights.
        group_id: group that may read objects, if others may not; else None.
    """

    folder_mode: int
    object_mode: int
    group_id: int | None

    @classmethod
    def below(cls, root: Path) -> Self:
        status = root.stat()
        mode = stat.S_IMODE(status.st_mode)
        return cls(
            folder_mode=mode | PRIVATE_FOLDER,
            object_mode=stat.S_IRUSR | mode & _READERS,
            group_id=status.st_gid if mode & _READERS == stat.S_IRGRP else None,
        )

    def grant(self, descriptor: int) -> None:
        """Give a file the mode of an object; readable by its owner alone if the group fails."""
        mode = self.object_mode
        if self.group_id is not None and os.fstat(descriptor).st_gid != self.group_id:
            try:
                os.fchown(descriptor, -1, self.group_id)
            except PermissionError:
                # Not a member of the group; or not the owner, and then fchmod fails as well.
                mode &= ~_READERS
        os.fchmod(descriptor, mode)


def _create(source: Path, target: Path, access: _Access) -> bool:
    with io.BufferedReader(open_without_links(source)) as file:
        try:
            os.fsync(file.fileno())
        except OSError as error:
            # Name the file: its disk may be another one than that of the root.
            raise OSError(error.errno, error.strerror, str(source)) from error
        try:
            if not _link(file, source, target, access):
                _copy(file, target, access)
        except FileExistsError:
            if not target.is_file():
                raise
            return False
    return True


def _link(file: BinaryIO, source: Path, target: Path, access: _Access) -> bool:
    """Link the source to the target; False if a copy is needed instead."""
    if os.fstat(file.fileno()).st_dev != target.parent.stat().st_dev:
        return False
    try:
        access.grant(file.fileno())
        os.link(source, target)
    except OSError as error:
        if error.errno not in CANNOT_LINK:
            raise
        return False
    return True


def _copy(file: BinaryIO, target: Path, access: _Access) -> None:
    import shutil  # noqa: PLC0415  slow, not for readers

    part = target.with_name(f"{target.name}.{os.urandom(8).hex()}{PART_SUFFIX}")
    try:
        with io.BufferedWriter(create_private(part)) as copy:
            shutil.copyfileobj(file, copy, COPY_SIZE)
            copy.flush()
            access.grant(copy.fileno())
            os.fsync(copy.fileno())
        os.link(part, target)
    finally:
        part.unlink(missing_ok=True)
