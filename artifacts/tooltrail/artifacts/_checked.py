"""Compare the content of an artifact with the digest in its path and the size in its row.

`CheckedReader` compares while the content is read in order. It raises an error instead of
reporting the end of a damaged artifact as a normal end.
"""

import hashlib
import io
from typing import TYPE_CHECKING, BinaryIO

from tooltrail.artifacts.codec import READ_SIZE, PlainReader
from tooltrail.artifacts.paths import digest_of_path
from tooltrail.records.digests import hex_of
from tooltrail.records.errors import DamageError, DigestMismatchError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


def check_digest(path: str, digits: str) -> None:
    """Compare the digest of a complete content, as hex digits, with the digest in its path.

    Raises:
        DigestMismatchError: they differ.
    """
    if digits != hex_of(digest_of_path(path)):
        raise DigestMismatchError(
            f"artifact {path} is damaged: its content has another digest than its path", path=path
        )


def check_size(path: str, found: int, stored: int | None) -> None:
    """Compare the plain size of an artifact with the size that was stored; None if unknown.

    Raises:
        DigestMismatchError: they differ.
    """
    if stored is not None and found != stored:
        raise DigestMismatchError(
            f"artifact {path} is damaged: it has {found:,} bytes, but {stored:,} were stored",
            path=path,
        )


def open_checked(stored: BinaryIO, path: str, size: int | None) -> BinaryIO:
    """The plain bytes of the object of an artifact, wherever it is stored; see `CheckedReader`."""
    return io.BufferedReader(CheckedReader(PlainReader(stored, path), path, size), READ_SIZE)


class CheckedReader(io.RawIOBase):
    """A reader of plain bytes that compares them with the digest in their path and with a size.

    If the size is known, the comparison happens before the last bytes are returned. The index
    behind the content is not compared: `ArtifactArchive.verify` does that. After damage was found,
    each further read raises the same error. Closing the reader closes the underlying reader.
    """

    def __init__(self, plain: PlainReader, path: str, size: int | None) -> None:
        self._plain = plain
        self._path = path
        self._size = size
        self._count = 0
        self._hasher = hashlib.sha256()
        self._damage: DamageError | None = None
        self._is_at_end = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        if self._damage is not None:
            raise self._damage
        try:
            return self._read_checked(memoryview(buffer))
        except DamageError as error:
            self._damage = error
            raise

    def close(self) -> None:
        self._plain.close()
        super().close()

    def _read_checked(self, view: memoryview) -> int:
        if self._is_at_end or not len(view):
            return 0
        if self._size is not None:
            view = view[: self._size - self._count]
        count = self._plain.readinto(view) if len(view) else 0
        self._hasher.update(view[:count])
        self._count += count
        if count == 0 or self._count == self._size:
            rest = self._rest_size() if count else 0
            check_size(self._path, self._count + rest, self._size)
            check_digest(self._path, self._hasher.hexdigest())
            self._is_at_end = True
        return count

    def _rest_size(self) -> int:
        """The plain bytes beyond the stored size."""
        size, buffer = 0, memoryview(bytearray(1 << 16))
        try:
            while count := self._plain.readinto(buffer):
                size += count
        except DamageError:
            return size  # a cut or altered index contains no plain bytes
        return size
