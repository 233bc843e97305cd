"""What a capture counts and remembers, at constant memory."""

from collections import deque

NEWLINE = 0x0A


class Tally:
    """Bytes and lines of a stream, added up block by block."""

    def __init__(self) -> None:
        self.size = 0
        self._newline_count = 0
        self._ends_line = True

    def add(self, size: int, newline_count: int, last_byte: int) -> None:
        """Count one block that is not empty."""
        self.size += size
        self._newline_count += newline_count
        self._ends_line = last_byte == NEWLINE

    @property
    def line_count(self) -> int:
        """Newlines, plus one for an unfinished last line."""
        return self._newline_count + (not self._ends_line)


class Tail:
    """The last bytes of a stream.

    Blocks are kept as they came and dropped whole from the front, so a block is copied once
    however many follow it.
    """

    def __init__(self, limit: int) -> None:
        """Remember at most `limit` bytes, plus less than one block."""
        self._limit = limit
        self._blocks: deque[bytes] = deque()
        self._size = 0

    def add(self, block: memoryview) -> None:
        """Append one block, of which at most the last `limit` bytes are copied."""
        kept = bytes(block[max(0, len(block) - self._limit) :])
        self._blocks.append(kept)
        self._size += len(kept)
        while self._size - len(self._blocks[0]) >= self._limit and len(self._blocks) > 1:
            self._size -= len(self._blocks.popleft())

    def last(self, size: int) -> bytes:
        """The last `size` bytes, where `size` is at most the limit."""
        joined = b"".join(self._blocks)
        return joined[len(joined) - size :]
