"""An object in an object store that is read in order, in few requests and with little read-ahead.

fsspec's own files differ between stores, and some read 50 MB ahead. Here the first request reads
one block, and each request doubles the size up to a limit. So a reader of the complete object needs
few requests, and a reader that stops early fetches at most about twice its bytes.
"""

import io
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

FIRST_BLOCK = 1024 * 1024
"""Bytes of the first request."""

LARGEST_BLOCK = 8 * 1024 * 1024
"""Bytes per request at most; this limits the memory of a reader."""

_BUFFER = 128 * 1024


class RangedReader(io.RawIOBase):
    """The bytes of one object. Not safe for threads, like any file."""

    def __init__(self, fetch: Callable[[int, int], bytes], size: int) -> None:
        """Read an object of `size` bytes with `fetch(start, stop)`, which raises OSError."""
        self._fetch = fetch
        self._size = size
        self._fetched = 0
        self._block = memoryview(b"")
        self._block_size = FIRST_BLOCK

    def readable(self) -> bool:
        """True."""
        return True

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Fill `buffer` or a part of it; return the number of bytes, 0 at the end."""
        if not self._block and self._fetched < self._size:
            self._block = memoryview(b"")  # freed first, so that memory holds one block
            stop = min(self._fetched + self._block_size, self._size)
            self._block = memoryview(self._fetch(self._fetched, stop))
            self._fetched += len(self._block)
            self._block_size = min(2 * self._block_size, LARGEST_BLOCK)
        view = memoryview(buffer)
        part = self._block[: len(view)]
        view[: len(part)] = part
        self._block = self._block[len(part) :]
        return len(part)


def open_ranged(fetch: Callable[[int, int], bytes], size: int) -> BinaryIO:
    """A buffered `RangedReader`."""
    return io.BufferedReader(RangedReader(fetch, size), _BUFFER)
