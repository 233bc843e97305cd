"""Publishing on a local file system: durable, exclusive and atomic, by hard links.

Linking fails when the name is taken, atomically and for every process; that is the whole of the
exclusion. The order is what makes it durable: bytes synced, then the name made, then the folder
that holds the name synced.

Who may read is decided by the mode of the root, which is 0700 when it is made here. A team sets
it to 2770, say: folders below take it over, and objects are readable for whom the root is.
"""

import errno
import io
import os
import secrets
import shutil
import stat
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import BinaryIO, Self

from tooltrail.artifacts._entries import FileFacts
from tooltrail.artifacts._private import (
    PRIVATE_FOLDER,
    create_private,
    make_private_folders,
    open_without_links,
)
from tooltrail.artifacts._ranges import clip
from tooltrail.artifacts.paths import PART_SUFFIX

COPY_SIZE = 1024 * 1024
"""Bytes per step of a copy."""

_READERS = stat.S_IRGRP | stat.S_IROTH

CANNOT_LINK = frozenset(
    {errno.EXDEV, errno.EPERM, errno.EACCES, errno.EMLINK, errno.ENOSYS, errno.EOPNOTSUPP}
)
"""Reasons for which a source cannot be linked although a copy of it may be."""


class LocalPublisher:
    """Publishes under one root folder. Safe for threads and processes.

    Where the source is on the same file system the object *is* the source under a second name, so
    the source takes mode and group of an object too; elsewhere it is copied to a part beside its
    target first.
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
        access = _Access.below(self._root)
        self._make_folder(target.parent, access)
        is_new = not target.is_file() and _create(source, target, access)
        # For a loser too: the winner may not have come this far yet.
        sync_folder(target.parent)
        return is_new

    def _make_folder(self, folder: Path, access: "_Access") -> None:
        """Make `folder` and its parents below the root, each with its name durable.

        A folder that was there may have been made by another process a moment ago, so its parent
        is synced the first time that this publisher meets it.
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
            # From the mode that mkdir is given the umask takes bits, the set-group-id bit too.
            folder.chmod(access.folder_mode)
        sync_folder(folder.parent)
        self._durable_folders.add(folder)


def make_durable_folders(folder: Path) -> None:
    """Make a folder and its missing parents, with mode 0700, and their names durable.

    Raises:
        OSError: see `make_private_folders`, or it cannot be synced.
    """
    if not folder.is_dir():
        make_durable_folders(folder.parent)
        make_private_folders(folder)
        sync_folder(folder.parent)


def sync_file(file: Path) -> None:
    """Make what is in a file durable; not its name.

    Raises:
        OSError: whatever the file system says.
    """
    descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


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


def read_range(path: Path, start: int, stop: int | None) -> bytes:
    """A range of a file, clipped at its end; see `ArtifactSink.read`.

    Raises:
        OSError: whatever the file system says.
    """
    with open_without_links(path) as file:
        position, end = clip(start, stop, os.fstat(file.fileno()).st_size)
        pieces: list[bytes] = []
        # One call gives some 2 GiB at most, and less where a file is cut meanwhile.
        while piece := os.pread(file.fileno(), end - position, position):
            pieces.append(piece)
            position += len(piece)
    return b"".join(pieces)


def read_facts(path: Path) -> FileFacts:
    """What is known of a file.

    Raises:
        FileNotFoundError: it is not there, or something that no sink has made.
        OSError: whatever else the file system says.
    """
    status = path.stat()
    if not stat.S_ISREG(status.st_mode):
        raise FileNotFoundError(errno.ENOENT, "not a file", str(path))
    return FileFacts(status.st_size, datetime.fromtimestamp(status.st_mtime, UTC))


@dataclass(frozen=True, slots=True)
class _Access:
    """Who may use what is made below a root.

    Attributes:
        folder_mode: of folders: that of the root, and all for the owner.
        object_mode: of objects: readable for whom the root is, writable for nobody.
        group_id: the group for which objects are readable when they are not for all, else None.
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
        """Give a file the mode of an object; its group only when that is the group meant."""
        mode = self.object_mode
        if self.group_id is not None and os.fstat(descriptor).st_gid != self.group_id:
            try:
                os.fchown(descriptor, -1, self.group_id)
            except PermissionError:
                # Not a member of it, or not the owner, who is then refused the mode as well.
                mode &= ~_READERS
        os.fchmod(descriptor, mode)


def _create(source: Path, target: Path, access: _Access) -> bool:
    with io.BufferedReader(open_without_links(source)) as file:
        os.fsync(file.fileno())
        try:
            if not _link(file, source, target, access):
                _copy(file, target, access)
        except FileExistsError:
            if not target.is_file():
                raise
            return False
    return True


def _link(file: BinaryIO, source: Path, target: Path, access: _Access) -> bool:
    """False when the file system wants a copy instead."""
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
    part = target.with_name(f"{target.name}.{secrets.token_hex(8)}{PART_SUFFIX}")
    try:
        with io.BufferedWriter(create_private(part)) as copy:
            shutil.copyfileobj(file, copy, COPY_SIZE)
            copy.flush()
            access.grant(copy.fileno())
            os.fsync(copy.fileno())
        os.link(part, target)
    finally:
        part.unlink(missing_ok=True)
