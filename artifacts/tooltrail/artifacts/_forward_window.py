"""A stream that is read once from its beginning to its end, and can go back a little meanwhile."""

from typing import BinaryIO

from tooltrail.artifacts._decoding import MAX_FRAME_SIZE
from tooltrail.artifacts.codec import READ_SIZE
from tooltrail.records.errors import DamageError

LARGEST_FRAME = MAX_FRAME_SIZE + MAX_FRAME_SIZE // 64
"""Stored bytes of a frame at most: what cannot be compressed grows by less than a sixty-fourth."""


class ForwardWindow:
    """What iterating spans asks of a file, over a stream that is read in order. One thread.

    Going back in an object store costs a request each time, and ends its reading ahead.
    """

    def __init__(self, stored: BinaryIO, path: str, limit: int = LARGEST_FRAME) -> None:
        """Read `stored`; `path` names it in errors, `limit` is how many bytes are held at most."""
        self._stored = stored
        self._path = path
        self._limit = limit
        self._held = bytearray()
        self._start = 0
        self._position = 0

    def seek(self, offset: int) -> int:
        """Move to an offset, not before the one of `forget`; nothing is read."""
        self._position = offset
        return offset

    def read(self, size: int) -> bytes:
        """So many bytes, less at the end.

        Raises:
            DamageError: more would be held than any frame has.
            OSError: as the stream raises it.
        """
        begin = self._position - self._start
        self._hold(begin + size)
        data = bytes(self._held[begin : begin + size])
        self._position += len(data)
        return data

    def forget(self, offset: int) -> None:
        """Let go of what lies before an offset that was read, or reached."""
        del self._held[: offset - self._start]
        self._start = offset

    def _hold(self, size: int) -> None:
        if size > self._limit:
            raise DamageError(
                f"artifact {self._path} is damaged: the frame at byte {self._start:,} of the stored"
                f" file has more than {self._limit:,} bytes",
                path=self._path,
            )
        while len(self._held) < size and (data := self._stored.read(READ_SIZE)):
            self._held += data
