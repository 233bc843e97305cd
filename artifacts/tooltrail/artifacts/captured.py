"""What a capture gives at its end."""

from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tooltrail.records.frozen import Frozen

if TYPE_CHECKING:
    from tooltrail.artifacts.frame_index import FrameIndex
    from tooltrail.records.counted_streams import CountedStream
    from tooltrail.records.streams import StreamRecord


class CapturedStream(Frozen):
    """The outcome of a capture.

    Attributes:
        counted: what is known of the stream, as a capture counts it or as a record has it.
        staged: the closed spool file, which holds exactly the bytes of the stream as a stored
            object; None when nothing was written, or when the bytes are in `content` only.
        stored_size: bytes of the staged file when it was closed, which publishing compares; None
            without a staged file, and where the size is not known.
        index: of the staged file; None without one, and when there was no room for it.
    """

    counted: "CountedStream | StreamRecord"
    staged: Path | None
    stored_size: int | None = None
    index: "FrameIndex | None" = None

    @cached_property
    def record(self) -> "StreamRecord":
        """What is known of the stream, as records have it."""
        from tooltrail.records.streams import StreamRecord  # noqa: PLC0415  models take 100 ms

        if isinstance(self.counted, StreamRecord):
            return self.counted
        return StreamRecord(**self.counted._asdict())
