"""Read the plain bytes of one stored object frame by frame, with the index at its end.

The index in the object is the only one. One request fetches adjacent frames. Each frame is compared
with its checksum and with the index.
"""

import hashlib
from collections.abc import Iterator
from typing import NamedTuple

from tooltrail.artifacts._checked import check_digest, check_size
from tooltrail.artifacts._decoding import decode_frame
from tooltrail.artifacts.frame_index import FrameIndex, read_index
from tooltrail.artifacts.paths import digest_of_path
from tooltrail.artifacts.sink import ArtifactSink
from tooltrail.records.errors import DamageError, UnavailableError

REQUEST_BYTES = 8 * 1024 * 1024
"""Stored bytes per request at most; a single frame may have more."""

_NOTHING = hashlib.sha256().hexdigest()


class Block(NamedTuple):
    """Plain bytes of one frame, or a part of them, and the plain offset at which they begin."""

    start: int
    plain: bytes

    @property
    def stop(self) -> int:
        """The plain offset after the last byte."""
        return self.start + len(self.plain)

    def cut(self, start: int, stop: int) -> "Block":
        """The part of the block that lies between two plain offsets."""
        if start <= self.start and self.stop <= stop:
            return self
        begin = max(start, self.start)
        return Block(begin, self.plain[begin - self.start : stop - self.start])


class _Held(NamedTuple):
    """Stored bytes that were fetched already, and their offset in the object."""

    start: int
    data: bytes

    def slice(self, start: int, stop: int) -> bytes | None:
        if self.start <= start and stop <= self.start + len(self.data):
            return self.data[start - self.start : stop - self.start]
        return None


class Frames:
    """The frames of one object; made by `open_frames`.

    Keeps up to `REQUEST_BYTES` of stored bytes and the plain bytes of one frame. Safe for threads.
    """

    def __init__(self, sink: ArtifactSink, path: str, index: FrameIndex, held: _Held) -> None:
        """Read `path` with `index`; `held` are bytes of the object that were fetched already."""
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
        """Fetch all frames from a plain offset on with one request, if they fit in one."""
        index = self.index
        begin, end = index.stored_span(index.frame_at(start))[0], index.frames_size
        if end - begin <= REQUEST_BYTES and self._held.slice(begin, end) is None:
            self._held = _Held(begin, self._sink.read(self._path, begin, end))

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        """The plain bytes from `start` up to `stop`, in blocks of up to a frame.

        Raises:
            DamageError: a frame does not fit the index.
            MissingArtifactError: the object was deleted.
            UnavailableError: the sink is unavailable, or the object was replaced during the read.
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
        """Like `blocks`, but also compares newlines: a range MUST begin and end with a frame.

        Raises:
            DamageError: see `blocks`; or a frame's newlines differ from the index.
        """
        for block in self.blocks(start, stop):
            frame = self.index.frame_at(block.start)
            found, counted = block.plain.count(b"\n"), self.index.newlines_in(frame)
            # `frame_at` does not find an empty frame, but the frame after it.
            if block.plain and found != counted:
                raise DamageError(
                    f"the index of artifact {self._path} is damaged: it counts {counted:,} newlines"
                    f" in frame {frame:,}, but the frame has {found:,}",
                    path=self._path,
                )
            yield block

    def batches(self, frame: int, end: int, plain_size: int) -> Iterator[tuple[int, int]]:
        """Ranges of frames that are fetched together, each half-open and with at least one frame.

        Args:
            frame: first frame of all ranges.
            end: frame after the last frame of all ranges.
            plain_size: plain bytes per batch at most; a single frame may have more.
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
        """Fetch frames with one request, and decode each one when the caller iterates to it.

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
            plain = decode_frame(data, stop - start, self.index.checksum(frame))
        except ValueError as error:
            raise self._mismatch(start, error) from error
        if len(plain) == self.index.plain_size:
            # This is cheap, and detects that another complete object has this path.
            check_digest(self._path, hashlib.sha256(plain).hexdigest())
        return Block(start, plain)

    def _mismatch(self, start: int, reason: ValueError) -> DamageError | UnavailableError:
        """The error for a frame that differs from the index: damaged object, or replaced object."""
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
    """Read the index of an object and return its frames; `size` is the expected plain size.

    Raises:
        MissingArtifactError: no object has this path.
        DamageError: the object is cut, or its index is altered or missing.
            `DigestMismatchError` if the object has another size.
        InvalidRecordError: not the path of an artifact.
        UnavailableError: the sink is unavailable.
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
    """The index at the end of an object, None if it has none; and the bytes that were read."""
    data = b""

    def read_end(size: int) -> bytes:
        nonlocal data
        data = sink.read(path, -size, None)
        return data

    index = read_index(read_end, path)
    return index, _Held(0 if index is None else index.object_size - len(data), data)
