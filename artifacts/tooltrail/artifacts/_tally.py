"""What a capture counts and remembers, at constant memory. All values here are immutable."""

from typing import NamedTuple

NEWLINE = 0x0A


class Tally(NamedTuple):
    """Bytes and lines of a stream, added up block by block."""

    size: int = 0
    newline_count: int = 0
    ends_line: bool = True

    def plus(self, size: int, newline_count: int, last_byte: int) -> "Tally":
        """With one more block, which is not empty."""
        return Tally(self.size + size, self.newline_count + newline_count, last_byte == NEWLINE)

    @property
    def line_count(self) -> int:
        """Newlines, plus one for an unfinished last line."""
        return self.newline_count + (not self.ends_line)


def end_of(before: bytes, block: bytes | bytearray, limit: int) -> bytes:
    """The last `limit` bytes of a stream that ended with `before` and goes on with a block."""
    if len(block) >= limit:
        return bytes(block[len(block) - limit :])
    return before[max(0, len(before) + len(block) - limit) :] + block
