"""The lock on a journal, and the hint where its newest segment ends.

The folder itself is locked, so that no file can be deleted under the lock. The hint is a file that
is written after each append and never synced. So the hint may be stale, and after a power cut ahead
of the segment. `tooltrail.journal.ends` checks it against the segment.
"""

import contextlib
import errno
import fcntl
import os
import struct
import zlib
from pathlib import Path
from typing import Final, NamedTuple

from tooltrail.journal.frames import HASH_SIZE
from tooltrail.journal.segments import sync_folder

HINT_NAME: Final = "end"

ID_SIZE: Final = 16
_HINT: Final = struct.Struct(f"<{ID_SIZE}sQQQQ{HASH_SIZE}s")
_CRC: Final = struct.Struct("<I")
_HINT_SIZE: Final = _HINT.size + _CRC.size


class Tail(NamedTuple):
    """Where the newest segment ends.

    Attributes:
        journal: id of the journal.
        segment: its number.
        last: offset of its last frame; `end` where it has none.
        end: offset behind its last frame.
        next_index: index of the next frame.
        hash: of the last frame.
    """

    journal: bytes
    segment: int
    last: int
    end: int
    next_index: int
    hash: bytes


class JournalLock:
    """The lock on a journal, as one process uses it.

    Attributes:
        folder: of the journal. Made with mode 0700 when the lock is taken for the first time.
        descriptor: of the folder, which is locked; -1 while it is not open. The owner of the lock
            releases it with `fcntl.flock`.
    """

    descriptor = -1
    _hint = -1

    def __init__(self, folder: Path) -> None:
        """Prepare. Nothing is made yet."""
        self.folder = folder

    def take(self) -> None:
        """Wait for the lock.

        Raises:
            OSError: the folder or the hint cannot be made or opened.
        """
        while True:
            if self.descriptor < 0 or self._hint < 0:
                self._open()
            fcntl.flock(self.descriptor, fcntl.LOCK_EX)
            if os.fstat(self._hint).st_nlink:
                return
            self.close()  # somebody deleted the hint, or the folder with all that was in it

    def close(self) -> None:
        """Give the descriptors back. A lock that this process holds is released."""
        # A fork or an interrupt between the two must not close a number a second time.
        descriptor, self.descriptor = self.descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)
        descriptor, self._hint = self._hint, -1
        if descriptor >= 0:
            os.close(descriptor)

    def __del__(self) -> None:
        self.close()

    def read_hint(self) -> Tail | None:
        """What the hint says of the end; None where it says nothing readable."""
        return _tail_in(os.pread(self._hint, _HINT_SIZE, 0))

    def write_hint(self, tail: Tail) -> None:
        """Say where the newest segment ends. Without it, the next writer looks for the end."""
        data = _HINT.pack(*tail)
        with contextlib.suppress(OSError):  # a full disk: the facts themselves are written
            os.pwrite(self._hint, data + _CRC.pack(zlib.crc32(data)), 0)

    def _open(self) -> None:
        self.close()
        make_private_folder(self.folder)
        flags = os.O_CLOEXEC | os.O_NOFOLLOW
        self.descriptor = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY | flags)
        hint = self.folder / HINT_NAME
        self._hint = os.open(hint, os.O_RDWR | os.O_CREAT | flags, 0o600)


def peek_hint(folder: Path) -> Tail | None:
    """What the hint says of the end, without the lock; None where it says nothing readable."""
    try:
        return _tail_in((folder / HINT_NAME).read_bytes())
    except OSError:
        return None


def _tail_in(data: bytes) -> Tail | None:
    if len(data) < _HINT_SIZE:
        return None
    (crc,) = _CRC.unpack_from(data, _HINT.size)
    return Tail(*_HINT.unpack_from(data)) if zlib.crc32(data[: _HINT.size]) == crc else None


def make_private_folder(folder: Path) -> None:
    """Make a folder and its parents durably, each with mode 0700.

    Raises:
        OSError: whatever the file system says.
    """
    if folder.is_dir():
        return
    make_private_folder(folder.parent)
    with contextlib.suppress(FileExistsError):
        folder.mkdir(mode=0o700)
    sync_folder(folder.parent)


def sync_names(folder: Path) -> None:
    """Make the names in a folder durable, and its own name, and those of its parents.

    The process that made them may have been killed before it did so.

    Raises:
        OSError: the disk failed.
    """
    sync_folder(folder)
    for parent in folder.absolute().parents:
        try:
            sync_folder(parent)
        except OSError as error:
            # A folder that this user may not read, or not sync, is not one that was made here.
            if error.errno == errno.EIO:
                raise
