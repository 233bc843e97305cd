"""The outcome of a capture."""

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
        counted: facts about the stream, as counted by a capture or as stored in a record.
        staged: closed spool file, which is a stored object with exactly the bytes of the stream;
            None if the stream is empty or its bytes are only in `content`.
        stored_size: bytes of the staged file when it was closed, for a comparison when it is
            published; None if there is no staged file or its size is unknown.
        index: index of the staged file; None if there is no file, or the disk was full.
    """

    counted: "CountedStream | StreamRecord"
    staged: Path | None
    stored_size: int | None = None
    index: "FrameIndex | None" = None

    @cached_property
    def record(self) -> "StreamRecord":
        """The facts about the stream in the form of a record."""
        from tooltrail.records.streams import StreamRecord  # noqa: PLC0415  models take 100 ms

        if isinstance(self.counted, StreamRecord):
            return self.counted
        return StreamRecord(**self.counted._asdict())
