"""The plain bytes of one stored object, frame by frame, found by the index at its end.

The object's own index is the only one: no other place says where its frames are. Frames that stand
side by side are fetched with one request. Each is compared with its checksum and with the index.
"""

import hashlib
from collections.abc import Iterator
from typing import NamedTuple, TypeVar

from tooltrail.artifacts._checked import check_digest, check_size
from tooltrail.artifacts._decoding import FrameFacts, decode_frame
from tooltrail.artifacts.frame_index import FrameIndex, read_index
from tooltrail.artifacts.paths import digest_of_path
from tooltrail.artifacts.sink import ArtifactSink
from tooltrail.records.errors import DamageError, UnavailableError

REQUEST_BYTES = 8 * 1024 * 1024
"""Stored bytes that one request asks for at most, unless one frame alone has more."""

_NOTHING = hashlib.sha256().hexdigest()

T = TypeVar("T")


class Block(NamedTuple):
    """Plain bytes of one frame, or a part of them, and the plain offset at which they begin."""

    start: int
    plain: bytes

    @property
    def stop(self) -> int:
        """The plain offset behind them."""
        return self.start + len(self.plain)

    def cut(self, start: int, stop: int) -> "Block":
        """The part of the block that lies between two plain offsets."""
        if start <= self.start and self.stop <= stop:
            return self
        begin = max(start, self.start)
        return Block(begin, self.plain[begin - self.start : stop - self.start])


class _Held(NamedTuple):
    """Stored bytes that were fetched already, and where in the object they begin."""

    start: int
    data: bytes

    def slice(self, start: int, stop: int) -> bytes | None:
        if self.start <= start and stop <= self.start + len(self.data):
            return self.data[start - self.start : stop - self.start]
        return None


class Frames:
    """One object's frames; made by `open_frames`.

    Holds up to `REQUEST_BYTES` of stored bytes and the plain bytes of one frame. Safe for threads.
    """

    def __init__(self, sink: ArtifactSink, path: str, index: FrameIndex, held: _Held) -> None:
        """Read `path` by `index`; `held` is what was fetched of the object already."""
        self._sink = sink
        self._path = path
        self._held = held
        self._last = Block(0, b"")
        self.index = index

    @property
    def frame_size(self) -> int:
        """Plain bytes in a full frame; see `SinkCapabilities`."""
        return self._sink.capabilities.frame_size

    def hold_from(self, start: int) -> None:
        """Fetch all frames from a plain offset on with one request, unless they are too many."""
        index = self.index
        begin, end = index.stored_span(index.frame_at(start))[0], index.frames_size
        if end - begin <= REQUEST_BYTES and self._held.slice(begin, end) is None:
            self._held = _Held(begin, self._sink.read(self._path, begin, end))

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        """The plain bytes from `start` up to `stop`, in blocks of up to a frame.

        Raises:
            DamageError: a frame does not fit the index.
            MissingArtifactError: the object is gone.
            UnavailableError: the sink cannot serve, or the object was replaced meanwhile.
        """
        last = self._last
        if last.start <= start < last.stop:
            yield last.cut(start, stop)
            start = last.stop
        if start >= stop:
            return
        first, last_frame = self.index.frame_at(start), self.index.frame_at(stop - 1)
        for some in self.batches(first, last_frame + 1, self.index.plain_size):
            for block in self.decode_batch(*some):
                self._last = block
                yield block.cut(start, stop)

    def counted_blocks(self, start: int, stop: int) -> Iterator[Block]:
        """Like `blocks`, for a caller who counts lines: a range MUST begin and end with a frame.

        Raises:
            DamageError: see `blocks`; or the index counts other newlines than a frame has.
        """
        for block in self.blocks(start, stop):
            frame = self.index.frame_at(block.start)
            found, counted = block.plain.count(b"\n"), self.index.newlines_in(frame)
            # An empty frame begins where the next one does, and that one is found.
            if block.plain and found != counted:
                raise DamageError(
                    f"the index of artifact {self._path} is damaged: it counts {counted:,} newlines"
                    f" in frame {frame:,}, which has {found:,}",
                    path=self._path,
                )
            yield block

    def batches(self, frame: int, end: int, plain_size: int) -> Iterator[tuple[int, int]]:
        """Frames that are fetched together: first and last, half-open, at least one.

        Args:
            frame: the first of all.
            end: the frame behind the last of all.
            plain_size: plain bytes of a batch at most, unless one frame alone has more.
        """
        index = self.index
        while frame < end:
            first, frame = frame, frame + 1
            begin, offset = index.stored_span(first)[0], index.plain_span(first)[0]
            while (
                frame < end
                and index.stored_span(frame)[1] - begin <= REQUEST_BYTES
                and index.plain_span(frame)[1] - offset <= plain_size
            ):
                frame += 1
            yield first, frame

    def decode_batch(self, first: int, end: int) -> Iterator[Block]:
        """Fetch some frames with one request and decode each when the caller asks for it.

        Raises:
            DamageError, MissingArtifactError, UnavailableError: see `blocks`.
        """
        begin, stop = self.index.stored_span(first)[0], self.index.stored_span(end - 1)[1]
        held = self._held.slice(begin, stop)
        stored = memoryview(self._sink.read(self._path, begin, stop) if held is None else held)
        for frame in range(first, end):
            start, stop = self.index.stored_span(frame)
            yield self._decoded(frame, bytes(stored[start - begin : stop - begin]))

    def _decoded(self, frame: int, data: bytes) -> Block:
        start, stop = self.index.plain_span(frame)
        try:
            plain = decode_frame(data, FrameFacts(stop - start, self.index.checksum(frame)))
        except ValueError as error:
            raise self._mismatch(start, error) from error
        if len(plain) == self.index.plain_size:
            # This costs little, and finds another whole object at this path.
            check_digest(self._path, hashlib.sha256(plain).hexdigest())
        return Block(start, plain)

    def _mismatch(self, start: int, reason: ValueError) -> DamageError | UnavailableError:
        """The error for a frame that does not fit: the object is damaged, or was replaced."""
        if _read_end(self._sink, self._path)[0] != self.index:
            return UnavailableError(
                f"artifact {self._path} was replaced while it was read; read it again"
            )
        return DamageError(
            f"artifact {self._path} is damaged in the frame at byte {start:,} of the output:"
            f" {reason}",
            path=self._path,
        )


def open_frames(sink: ArtifactSink, path: str, size: int | None = None) -> Frames:
    """The frames of an object, by the index at its end; `size` are the plain bytes it must have.

    Raises:
        MissingArtifactError: no object stands there.
        DamageError: the object is cut, or its index is altered or missing.
            `DigestMismatchError` when it has another size.
        InvalidRecordError: not the path of an artifact.
        UnavailableError: the sink cannot serve.
    """
    digest_of_path(path)
    index, held = _read_end(sink, path)
    if index is None:
        raise DamageError(
            f"artifact {path} is damaged: it was cut, or the index at its end is missing", path=path
        )
    check_size(path, index.plain_size, size)
    if not index.plain_size:
        check_digest(path, _NOTHING)
    return Frames(sink, path, index, held)


def _read_end(sink: ArtifactSink, path: str) -> tuple[FrameIndex | None, _Held]:
    """The index at the end of an object, None without one; and the bytes that were read."""
    data = b""

    def read_end(size: int) -> bytes:
        nonlocal data
        data = sink.read(path, -size, None)
        return data

    index = read_index(read_end, path)
    return index, _Held(0 if index is None else index.object_size - len(data), data)
