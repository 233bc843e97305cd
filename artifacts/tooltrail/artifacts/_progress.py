"""How far a capture has come.

A `KeyboardInterrupt` may come between any two steps. So what is known of a stream is one value of
which nothing is ever changed, not its hasher and not its block either: the next one is made beside
it and takes its place at once, whole or not at all.
"""

import hashlib
from typing import NamedTuple, Protocol, Self

from tooltrail.artifacts._frame_queue import Compressed
from tooltrail.artifacts._tally import Tally, end_of
from tooltrail.artifacts.codec import compress_frame
from tooltrail.artifacts.frame_index import Frame
from tooltrail.records.digests import Digest, digest_from_hex


class FrameSink(Protocol):
    """Where frames go."""

    def append(self, frame: Frame) -> bool:
        """Add one frame; False when it could not be, now and ever after."""
        ...


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

    def after(
        self, compressed: Compressed, frames: FrameSink, edges: Edges, most: int | None
    ) -> "Progress":
        """With one more block, of whose bytes those are kept that are within the first `most`."""
        block, frame = compressed
        before = self.produced.size
        produced = self.produced.plus(len(block), frame.newline_count, block[-1])
        if most is None or produced.size <= most:
            return self._keeping(block, frame, frames, edges)._replace(
                produced=produced, block=block
            )
        if before < most:
            part = block[: most - before]
            kept = self._keeping(part, compress_frame(part), frames, edges)
            return kept._replace(produced=produced, block=block)
        return self._replace(produced=produced, block=block)

    def _keeping(
        self, block: bytearray, frame: Frame, frames: FrameSink, edges: Edges
    ) -> "Progress":
        room = edges.prefix - len(self.prefix)
        longer = self._replace(prefix=self.prefix + block[:room]) if room > 0 else self
        if not frames.append(frame):
            return longer
        hasher = self.hasher.copy()
        hasher.update(block)
        return longer._replace(
            kept=self.kept.plus(len(block), frame.newline_count, block[-1]),
            frame_count=self.frame_count + 1,
            hasher=hasher,
            tail=end_of(self.tail, block, edges.tail),
        )
