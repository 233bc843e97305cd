"""A reader that does not let the end of a damaged artifact pass for its end."""

import hashlib
import io
from typing import TYPE_CHECKING

from tooltrail.artifacts._content_checks import check_digest
from tooltrail.artifacts.codec import PlainReader
from tooltrail.records.errors import DamageError, DigestMismatchError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer


class CheckedReader(io.RawIOBase):
    """Plain bytes, compared with the digest in their path and with a size when they end.

    With a known size the comparison comes before the last bytes are handed out. Once damage was
    found every further read says so again. Closes the reader underneath with itself.
    """

    def __init__(self, plain: PlainReader, path: str, size: int | None) -> None:
        self._plain = plain
        self._path = path
        self._size = size
        self._count = 0
        self._hasher = hashlib.sha256()
        self._damage: DamageError | None = None

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
        count = self._plain.readinto(view)
        self._hasher.update(view[:count])
        self._count += count
        is_at_end = count == 0 and len(view) > 0
        has_all = self._size is not None and self._count >= self._size
        if is_at_end or has_all:
            self._check_size()
            check_digest(self._path, self._hasher.hexdigest())
        return count

    def _check_size(self) -> None:
        if self._size is not None and self._count != self._size:
            more_or_less = "more" if self._count > self._size else "less"
            raise DigestMismatchError(
                f"artifact {self._path} is damaged: it holds {more_or_less} than the"
                f" {self._size} bytes that were stored",
                path=self._path,
            )
