"""The progress of a capture, at constant memory.

A `KeyboardInterrupt` may come between any two steps. So the progress, with its hasher, is one
immutable value: the next value is built separately and replaces the old one in one assignment.
"""

import hashlib
from typing import NamedTuple, Protocol, Self

from tooltrail.artifacts._frame_queue import Compressed
from tooltrail.records.digests import Digest, digest_from_hex

_NEWLINE = 0x0A


class Tally(NamedTuple):
    """The number of bytes and lines of a stream, summed block by block."""

    size: int = 0
    newline_count: int = 0
    ends_line: bool = True

    def plus(self, size: int, newline_count: int, last_byte: int) -> "Tally":
        """The tally after one more block, which is not empty."""
        return Tally(self.size + size, self.newline_count + newline_count, last_byte == _NEWLINE)

    def then(self, other: "Tally") -> "Tally":
        """The tally of these bytes followed by the bytes of `other`."""
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
    """A hash object of `hashlib`."""

    def update(self, data: bytes | bytearray, /) -> None:
        """Add bytes."""
        ...

    def copy(self) -> Self:
        """A copy with the same state."""
        ...

    def hexdigest(self) -> str:
        """The digest of all bytes so far."""
        ...


class Edges(NamedTuple):
    """The number of bytes that are remembered from the beginning and from the end."""

    prefix: int
    tail: int


class Progress(NamedTuple):
    """The state of a capture after a block.

    Attributes:
        produced: bytes and lines that the capture accepted.
        kept: bytes and lines of these in frames on disk.
        frame_count: number of frames on disk.
        hasher: hash of the kept bytes.
        prefix: first bytes of the stream; may be more than the kept bytes.
        tail: last bytes of the kept bytes.
        block: last block that this state includes.
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
        """The digest of the kept bytes."""
        return digest_from_hex(self.hasher.hexdigest())

    def after(self, compressed: Compressed, edges: Edges, *, is_kept: bool) -> "Progress":
        """The progress after one more block; `is_kept` says whether its frame is on disk."""
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
    """The last `limit` bytes of a stream whose last bytes are `before` and then `block`."""
    if len(block) >= limit:
        return bytes(block[len(block) - limit :])
    return before[max(0, len(before) + len(block) - limit) :] + block
