"""How far a capture has come, at constant memory.

A `KeyboardInterrupt` may come between any two steps. So what is known of a stream is one immutable
value, its hasher included: the next one is made beside it and replaces it in one assignment.
"""

import hashlib
from typing import NamedTuple, Protocol, Self

from tooltrail.artifacts._frame_queue import Compressed
from tooltrail.records.digests import Digest, digest_from_hex

_NEWLINE = 0x0A


class Tally(NamedTuple):
    """Bytes and lines of a stream, added up block by block."""

    size: int = 0
    newline_count: int = 0
    ends_line: bool = True

    def plus(self, size: int, newline_count: int, last_byte: int) -> "Tally":
        """With one more block, which is not empty."""
        return Tally(self.size + size, self.newline_count + newline_count, last_byte == _NEWLINE)

    def then(self, other: "Tally") -> "Tally":
        """With the bytes that follow."""
        return Tally(
            self.size + other.size,
            self.newline_count + other.newline_count,
            other.ends_line if other.size else self.ends_line,
        )

    @property
    def line_count(self) -> int:
        """Newlines, plus one for an unfinished last line."""
        return self.newline_count + (not self.ends_line)


class Hasher(Protocol):
    """What `hashlib` makes."""

    def update(self, data: bytes | bytearray, /) -> None:
        """Go on with more bytes."""
        ...

    def copy(self) -> Self:
        """One that has come as far."""
        ...

    def hexdigest(self) -> str:
        """Of all bytes so far."""
        ...


class Edges(NamedTuple):
    """How many bytes of the beginning and of the end are remembered."""

    prefix: int
    tail: int


class Progress(NamedTuple):
    """What is known of a stream up to the end of a block.

    Attributes:
        produced: what was taken in.
        kept: what of it is in frames on disk.
        frame_count: these frames.
        hasher: of what is kept.
        prefix: the first bytes, which may be more than what is on disk.
        tail: the last bytes of what is kept.
        block: the last one that is in all this.
    """

    produced: Tally = Tally()
    kept: Tally = Tally()
    frame_count: int = 0
    hasher: Hasher = hashlib.sha256()
    prefix: bytes = b""
    tail: bytes = b""
    block: bytearray | None = None

    @property
    def digest(self) -> Digest:
        """Of what is kept."""
        return digest_from_hex(self.hasher.hexdigest())

    def after(self, compressed: Compressed, edges: Edges, *, is_kept: bool) -> "Progress":
        """With one more block; `is_kept` says whether its frame is on disk."""
        block, frame = compressed
        room = max(0, edges.prefix - len(self.prefix))
        longer = self._replace(
            produced=self.produced.plus(len(block), frame.newline_count, block[-1]),
            prefix=self.prefix + block[:room],
            block=block,
        )
        if not is_kept:
            return longer
        hasher = self.hasher.copy()
        hasher.update(block)
        return longer._replace(
            kept=self.kept.plus(len(block), frame.newline_count, block[-1]),
            frame_count=self.frame_count + 1,
            hasher=hasher,
            tail=end_of(self.tail, block, edges.tail),
        )


def end_of(before: bytes, block: bytes | bytearray, limit: int) -> bytes:
    """The last `limit` bytes of a stream that ended with `before` and goes on with a block."""
    if len(block) >= limit:
        return bytes(block[len(block) - limit :])
    return before[max(0, len(before) + len(block) - limit) :] + block
