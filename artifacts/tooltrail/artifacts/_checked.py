"""Compares the content of an artifact with what its name and its row promise.

`CheckedReader` does that while a content is read in order, and does not let the end of a damaged
artifact pass for its end.
"""

import hashlib
import io
from typing import TYPE_CHECKING

from tooltrail.artifacts.codec import PlainReader
from tooltrail.artifacts.paths import digest_of_path
from tooltrail.records.digests import hex_of
from tooltrail.records.errors import DamageError, DigestMismatchError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


def check_digest(path: str, digits: str) -> None:
    """Compare the digest of a whole content, as hex digits, with the one in its path.

    Raises:
        DigestMismatchError: they differ.
    """
    if digits != hex_of(digest_of_path(path)):
        raise DigestMismatchError(
            f"artifact {path} is damaged: its content has another digest than its name", path=path
        )


def check_size(path: str, found: int, stored: int | None) -> None:
    """Compare the plain bytes of an artifact with those that were stored; None is not known.

    Raises:
        DigestMismatchError: they differ.
    """
    if stored is not None and found != stored:
        raise DigestMismatchError(
            f"artifact {path} is damaged: it holds {found:,} bytes, and {stored:,} were stored",
            path=path,
        )


class CheckedReader(io.RawIOBase):
    """Plain bytes, compared with the digest in their path and with a size when they end.

    With a known size the comparison comes before the last bytes are handed out. The content is then
    right whatever became of the index behind it, which `ArtifactArchive.verify` checks. Once damage
    was found every further read says so again. Closes the reader underneath with itself.
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
        """Plain bytes behind those that were stored."""
        size, buffer = 0, memoryview(bytearray(1 << 16))
        try:
            while count := self._plain.readinto(buffer):
                size += count
        except DamageError:
            return size  # an index that was cut or altered holds no plain bytes
        return size
