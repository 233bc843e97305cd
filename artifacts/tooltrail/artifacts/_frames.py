"""The plain bytes of one stored object, frame by frame, as they are asked for.

Frames that stand side by side are fetched with one request. What is known by plain offset (how
many newlines come before it, say) belongs to the content and stays true when an object is replaced
by one with the same content in other frames; what is known by frame number does not. So places are
plain offsets here, and a frame that does not fit its index makes the whole object be decoded before
it is called damage: when its content has the digest in its name, its frames as they are found to be
are read on.
"""

import hashlib
import threading
from collections.abc import Callable, Iterator
from typing import NamedTuple, Protocol, TypeVar

from tooltrail.artifacts._content_checks import check_digest, check_size
from tooltrail.artifacts._decoding import FrameFacts, FrameMismatchError, decode_frame
from tooltrail.artifacts._index_checks import PlainCheck
from tooltrail.artifacts._walking import Walked, walk
from tooltrail.artifacts.frame_index import FrameIndex, read_index
from tooltrail.artifacts.paths import digest_of_path
from tooltrail.artifacts.sink import ArtifactSink
from tooltrail.records.errors import DamageError, IndexMismatchError

REQUEST_BYTES = 8 * 1024 * 1024
"""Stored bytes that one request asks for at most, unless one frame alone has more."""

_NOTHING = hashlib.sha256().hexdigest()


class Placed(Protocol):
    """What was made of plain bytes."""

    @property
    def stop(self) -> int:
        """The plain offset behind them."""
        ...


T = TypeVar("T", bound=Placed)


class Block(NamedTuple):
    """Plain bytes of one frame, or of several, and the plain offset at which they begin."""

    start: int
    plain: bytes

    @property
    def stop(self) -> int:
        """The plain offset behind them."""
        return self.start + len(self.plain)

    def cut(self, start: int, stop: int) -> "Block":
        """The part of it that lies between two plain offsets."""
        if start <= self.start and self.stop <= stop:
            return self
        begin = max(start, self.start)
        return Block(begin, self.plain[begin - self.start : stop - self.start])


class _Held(NamedTuple):
    """Stored bytes that were fetched already, and where in the object they begin.

    They are good for whoever reads by the same index: an object that replaced the one that they
    are from has another.
    """

    frame_index: FrameIndex | None
    start: int
    data: bytes

    def slice(self, index: FrameIndex, start: int, stop: int) -> bytes | None:
        is_inside = self.start <= start and stop <= self.start + len(self.data)
        if self.frame_index is index and is_inside:
            return self.data[start - self.start : stop - self.start]
        return None


_NOTHING_HELD = _Held(None, 0, b"")


class Frames:
    """One object's frames; made by `open_frames`.

    Holds up to `REQUEST_BYTES` of stored bytes and the plain bytes of one frame. Safe for threads.
    """

    def __init__(self, sink: ArtifactSink, path: str, index: FrameIndex, held: _Held) -> None:
        """Read `path` by `index`; `held` is what was fetched of it already."""
        self._sink = sink
        self._path = path
        self._held = held
        self._last = Block(0, b"")
        self._reloading = threading.Lock()
        self.index = index

    @property
    def frame_size(self) -> int:
        """Plain bytes in a frame that is read well from here."""
        return self._sink.capabilities.frame_size

    def hold_from(self, start: int) -> None:
        """Fetch all frames from a plain offset on, with one request, unless they are too many."""
        index = self.index
        begin, end = index.stored_span(index.frame_at(start))[0], index.frames_size
        if end - begin <= REQUEST_BYTES and self._held.slice(index, begin, end) is None:
            self._held = _Held(index, begin, self._sink.read(self._path, begin, end))

    def blocks(self, start: int, stop: int) -> Iterator[Block]:
        """The plain bytes from `start` up to `stop`, in blocks of up to a frame.

        Raises:
            DamageError: a frame fits no index.
            MissingArtifactError: the object is gone.
            UnavailableError: the sink cannot serve.
        """
        yield from self.resumed(self._blocks, start, stop)

    def counted_blocks(self, start: int, stop: int) -> Iterator[Block]:
        """The same for one who counts lines: newlines are compared with the index as well.

        Raises:
            DamageError: see `blocks`; or the index counts other newlines than a frame has.
        """
        for block in self.blocks(start, stop):
            self._check_newlines(block)
            yield block

    def resumed(
        self, source: Callable[[FrameIndex, int, int], Iterator[T]], start: int, stop: int
    ) -> Iterator[T]:
        """What a source gives of exactly these bytes, begun anew where its frames fit no more.

        Args:
            source: gives it by an index, from a plain offset up to another.
            start: plain offset of the first byte.
            stop: plain offset behind the last.
        """
        while start < stop:
            # One for all of it: another thread may take a new one at any time.
            index = self.index
            try:
                for piece in source(index, start, stop):
                    yield piece
                    start = piece.stop
            except FrameMismatchError as error:
                self._reload(index, error)
            else:
                return

    def decode_batch(self, index: FrameIndex, first: int, end: int) -> Iterator[Block]:
        """Fetch some frames with one request and decode each when it is asked for.

        Raises:
            FrameMismatchError: the stored bytes are other frames.
        """
        begin = index.stored_span(first)[0]
        stored = memoryview(self._fetch(index, begin, index.stored_span(end - 1)[1]))
        for frame in range(first, end):
            start, stop = index.stored_span(frame)
            yield self._decoded(index, frame, bytes(stored[start - begin : stop - begin]))

    def _blocks(self, index: FrameIndex, start: int, stop: int) -> Iterator[Block]:
        last = self._last
        if last.start <= start < last.stop:
            yield last.cut(start, stop)
            start = last.stop
        if start >= stop:
            return
        for first, end in batches(index, start, stop, index.plain_size):
            for block in self.decode_batch(index, first, end):
                self._last = block
                yield block.cut(start, stop)

    def _fetch(self, index: FrameIndex, start: int, stop: int) -> bytes:
        held = self._held.slice(index, start, stop)
        return self._sink.read(self._path, start, stop) if held is None else held

    def _decoded(self, index: FrameIndex, frame: int, data: bytes) -> Block:
        start, stop = index.plain_span(frame)
        plain = decode_frame(data, FrameFacts(stop - start, index.checksum(frame), start))
        if len(plain) == index.plain_size:
            # It costs little here, and nothing else finds one whole object in another's place.
            check_digest(self._path, hashlib.sha256(plain).hexdigest())
        return Block(start, plain)

    def _check_newlines(self, block: Block) -> None:
        index = self.index
        frame = index.frame_at(block.start)
        # Where the index was just found by decoding a block may begin inside of a frame.
        if index.plain_span(frame) != (block.start, block.stop):
            return
        found, told = block.plain.count(b"\n"), index.newlines_in(frame)
        if found != told:
            raise DamageError(
                f"the index of artifact {self._path} is damaged: it counts other newlines than"
                f" frame {frame:,} has, {told:,} instead of {found:,}",
                path=self._path,
            )

    def _reload(self, used: FrameIndex, reason: FrameMismatchError) -> None:
        """Take the index of the object as it is now, once its whole content was found right.

        Args:
            used: the index that a frame did not fit.
            reason: how it did not.

        Raises:
            DamageError: there is no other, or none of the same content.
        """
        with self._reloading:
            if self.index is used:
                self._take_own(used, reason)

    def _take_own(self, used: FrameIndex, reason: FrameMismatchError) -> None:
        held = _read_own(self._sink, self._path)
        if held.frame_index == used:
            raise DamageError(
                f"artifact {self._path} is damaged in the frame at byte {reason.start:,} of the"
                f" output: {reason}",
                path=self._path,
            ) from reason
        check = PlainCheck(used)
        found = _proven(self._sink, self._path, held.frame_index, None, check.see)
        # Places were found by the old index, and go on to be used.
        if wrong := list(check.differences()):
            raise IndexMismatchError(
                self._path, [f"the index that it was read by: {difference}" for difference in wrong]
            )
        self._held, self.index = held._replace(frame_index=found.index), found.index


def batches(index: FrameIndex, start: int, stop: int, plain_size: int) -> Iterator[tuple[int, int]]:
    """Frames that are fetched together: first and last, half-open, at least one.

    Args:
        index: of the artifact.
        start: plain offset in the first of all.
        stop: plain offset in or behind the last of all.
        plain_size: plain bytes of a batch at most.
    """
    frame, end = index.frame_at(start), index.frame_at(stop - 1) + 1
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


def open_frames(
    sink: ArtifactSink,
    path: str,
    index: FrameIndex | bytes | None,
    size: int | None,
    line_count: int | None,
) -> Frames:
    """The frames of an object; see `ArtifactArchive.reader`."""
    digest_of_path(path)
    known, held = FrameIndex.unaltered(index), _NOTHING_HELD
    if known is None or not _fits(known, size, line_count):
        held = _read_own(sink, path)
        own = held.frame_index
        if own is None or index is not None or not _fits(own, size, line_count):
            own = _proven(sink, path, own, size).index
        known = own
    check_size(path, known.plain_size, size)
    if not known.plain_size:
        check_digest(path, _NOTHING)
    return Frames(sink, path, known, held._replace(frame_index=known))


def fits_lines(index: FrameIndex, line_count: int) -> bool:
    """Whether an artifact with this index can have so many lines."""
    return line_count - index.newline_count in (0, 1)


def _fits(index: FrameIndex, size: int | None, line_count: int | None) -> bool:
    return size in (None, index.plain_size) and (
        line_count is None or fits_lines(index, line_count)
    )


def _proven(
    sink: ArtifactSink,
    path: str,
    own: FrameIndex | None,
    size: int | None,
    see: Callable[[bytes], object] | None = None,
) -> Walked:
    """What the frames of an object are, when its content has the digest in its name.

    Where two who should know tell different things of an object, neither is believed.
    """
    found = walk(sink, path, own, see)
    check_size(path, found.index.plain_size, size)
    check_digest(path, found.digits)
    return found


def _read_own(sink: ArtifactSink, path: str) -> _Held:
    """The index that the object itself has, None without one; and what was read."""
    data = b""

    def read_end(size: int) -> bytes:
        nonlocal data
        data = sink.read(path, -size, None)
        return data

    index = read_index(read_end, path)
    return _NOTHING_HELD if index is None else _Held(index, index.object_size - len(data), data)
