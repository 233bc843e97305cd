"""A file in an object store that is read in ranges, with little read-ahead.

fsspec's own files differ between stores, and some read 50 MB ahead. Here the first request reads
one block, and each sequential request doubles the size up to a limit. So a reader of the complete
object needs few requests, and a reader of a slice fetches at most about twice its bytes.
"""

import io
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

FIRST_BLOCK = 1024 * 1024
"""Bytes of the first request, and of the first request after each jump."""

LARGEST_BLOCK = 8 * 1024 * 1024
"""Bytes per request at most; this limits the memory of a reader."""

_BUFFER = 128 * 1024


class RangedReader(io.RawIOBase):
    """The bytes of one object. Not safe for threads, like any file."""

    def __init__(self, fetch: Callable[[int, int], bytes], size: int) -> None:
        """Read an object of `size` bytes with `fetch(start, stop)`, which raises OSError."""
        self._fetch = fetch
        self._size = size
        self._position = 0
        self._block = b""
        self._block_start = 0
        self._block_size = FIRST_BLOCK

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move without a request."""
        origin = {os.SEEK_SET: 0, os.SEEK_CUR: self._position, os.SEEK_END: self._size}[whence]
        if origin + offset < 0:
            raise ValueError(f"not a position in a file: {origin + offset}")
        self._position = origin + offset
        return self._position

    def tell(self) -> int:
        """The offset of the next byte."""
        return self._position

    def readinto(self, buffer: "WriteableBuffer") -> int:
        """Fill `buffer` or a part of it; return the number of bytes, 0 at the end."""
        view = memoryview(buffer)
        offset = self._position - self._block_start
        if not 0 <= offset < len(self._block):
            self._read_block()
            offset = 0
        part = self._block[offset : offset + len(view)]
        view[: len(part)] = part
        self._position += len(part)
        return len(part)

    def _read_block(self) -> None:
        is_next = self._block and self._position == self._block_start + len(self._block)
        self._block_size = min(2 * self._block_size, LARGEST_BLOCK) if is_next else FIRST_BLOCK
        stop = min(self._position + self._block_size, self._size)
        self._block = b""  # freed before the next fetch, so that memory holds one block
        self._block_start = self._position
        if stop > self._position:
            self._block = self._fetch(self._position, stop)


def open_ranged(fetch: Callable[[int, int], bytes], size: int) -> BinaryIO:
    """A buffered `RangedReader`."""
    return io.BufferedReader(RangedReader(fetch, size), _BUFFER)
