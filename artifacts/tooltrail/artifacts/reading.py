"""Read any part of an artifact without reading the rest.

Byte offsets begin at 0, and byte ranges are half-open. Line numbers begin at 1, and line ranges
include the last line. A line includes its newline; the last line may lack one. As with slices, a
range beyond the end is shortened without an error.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tooltrail.artifacts._frames import Block, Frames, open_frames
from tooltrail.artifacts._line_ends import after_newlines
from tooltrail.artifacts.frame_index import FrameIndex
from tooltrail.artifacts.sink import ArtifactSink
from tooltrail.records.errors import InvalidRecordError

if TYPE_CHECKING:
    from tooltrail.artifacts.grep import Match


class ArtifactReader:
    """Reads parts of one artifact; opened by `ArtifactArchive.reader`.

    Only the frames of the requested bytes or lines are fetched and decoded; adjacent frames share
    one request of at most `REQUEST_BYTES`. Each frame is compared with its checksum and with the
    index at the end of the object. Damage in other frames is not detected, and the digest is
    compared only if the object is one frame. Call `check` first to compare the complete content.

    Keeps up to 8 MiB of stored bytes and one frame of plain bytes, besides the returned value.
    An iterator keeps no more than a frame (`iter_lines`: a line). Safe for threads.

    Every reading method raises DamageError (a requested frame is cut or altered),
    MissingArtifactError (the object was deleted) and UnavailableError (the sink is unavailable).
    """

    def __init__(self, frames: Frames, path: str) -> None:
        """Read the frames of the artifact `path`."""
        self._frames = frames
        self._path = path
        self._line_count: int | None = None

    @property
    def path(self) -> str:
        """The path of the artifact."""
        return self._path

    @property
    def size(self) -> int:
        """The plain size in bytes."""
        return self._frames.index.plain_size

    @property
    def line_count(self) -> int:
        """Newlines, plus one for an unfinished last line; reads the last frame on first use."""
        if self._line_count is None:
            self._line_count = self._frames.index.newline_count + self._is_unfinished()
        return self._line_count

    def check(self) -> None:
        """Read the complete artifact, and compare its digest with the digest in its path.

        Raises:
            DigestMismatchError: the content has another digest.
        """
        # Importing the threads takes longer than reading the end of an artifact.
        from tooltrail.artifacts._verifying import compare_content  # noqa: PLC0415

        compare_content(self._frames, self._path)

    def read_bytes(self, start: int, stop: int) -> bytes:
        """The bytes from `start` up to `stop`, all in memory.

        Raises:
            InvalidRecordError: an offset is negative, or `stop` is less than `start`.
        """
        return b"".join(self.iter_bytes(start, stop))

    def iter_bytes(self, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """The bytes from `start` up to `stop` or the end, in blocks of up to a frame.

        Raises:
            InvalidRecordError: see `read_bytes`.
        """
        if start < 0 or (stop is not None and stop < start):
            raise InvalidRecordError(f"not a range of bytes: {start} up to {stop}")
        return self._plain(start, self.size if stop is None else min(stop, self.size))

    def read_lines(self, first: int, last: int) -> bytes:
        """The lines from `first` to `last` with their newlines, all in memory.

        Raises:
            InvalidRecordError: `first` is less than 1, or `last` is less than `first`.
        """
        return b"".join(self.iter_line_bytes(first, last))

    def iter_line_bytes(self, first: int = 1, last: int | None = None) -> Iterator[bytes]:
        """The bytes of the lines from `first` to `last` or the end, in blocks of up to a frame.

        Raises:
            InvalidRecordError: see `read_lines`.
        """
        if first < 1 or (last is not None and last < first):
            raise InvalidRecordError(f"not a range of lines: {first} to {last}")
        return self._lines(first, last)

    def iter_lines(self, first: int = 1, last: int | None = None) -> Iterator[bytes]:
        """The lines from `first` to `last` or the end; keeps one line in memory, of any length.

        Raises:
            InvalidRecordError: see `read_lines`.
        """
        return _split(self.iter_line_bytes(first, last))

    def line_offset(self, line: int) -> int:
        """The offset of the first byte of a line; the size if there is no such line.

        Raises:
            InvalidRecordError: `line` is less than 1.
        """
        if line < 1:
            raise InvalidRecordError(f"not the number of a line: {line}")
        index = self._frames.index
        if line - 1 > index.newline_count:
            return self.size
        start, skipped = _frame_with(index, line - 1)
        if not skipped:
            return start
        blocks = self._frames.counted_blocks(start, index.plain_span(index.frame_at(start))[1])
        return start + sum(after_newlines(block.plain, skipped)[0] for block in blocks)

    def head(self, lines: int) -> bytes:
        """The first lines, all in memory.

        Raises:
            InvalidRecordError: `lines` is negative.
        """
        return b"".join(self.iter_head(lines))

    def iter_head(self, lines: int) -> Iterator[bytes]:
        """The first lines, in blocks of up to a frame.

        Raises:
            InvalidRecordError: see `head`.
        """
        return self._lines(1, _checked(lines))

    def tail(self, lines: int) -> bytes:
        """The last lines, all in memory; see `head`."""
        return b"".join(self.iter_tail(lines))

    def iter_tail(self, lines: int) -> Iterator[bytes]:
        """The last lines, in blocks of up to a frame; see `iter_head`."""
        if not _checked(lines):
            return iter(())
        if self._line_count is None and self.size:
            # One request for all frames: `line_count` needs the last one.
            index = self._frames.index
            self._frames.hold_from(_frame_with(index, index.newline_count - lines)[0])
        return self._lines(max(1, self.line_count - lines + 1), None)

    def grep(
        self,
        pattern: str | bytes,
        *,
        literal: bool = False,
        ignore_case: bool = False,
        invert: bool = False,
        before: int = 0,
        after: int = 0,
        max_count: int | None = None,
    ) -> "Iterator[Match]":
        """The matching lines with their context lines, in order, each line once.

        Args:
            pattern: regular expression of Python's `re` over bytes, searched in each line without
                its newline. A `str` is encoded as UTF-8.
            literal: search for the bytes of the pattern, not for a regular expression.
            ignore_case: ignore the case of ASCII letters.
            invert: return the lines that do not match.
            before: context lines before each match.
            after: context lines after each match.
            max_count: most matches to return; the last match has its context too.

        Keeps some batches of 8 frames in memory, and complete lines of up to 64 MiB.

        Raises:
            InvalidRecordError: the pattern is not a regular expression or contains a newline, or a
                number is negative; during the iteration, a line is longer than 64 MiB.
        """
        from tooltrail.artifacts.grep import Grep  # noqa: PLC0415  see `check`

        found = Grep(
            pattern, literal=literal, ignore_case=ignore_case, invert=invert, max_count=max_count
        )
        return found.matches(self._frames, self._path, before, after)

    def count_matches(
        self,
        pattern: str | bytes,
        *,
        literal: bool = False,
        ignore_case: bool = False,
        invert: bool = False,
        max_count: int | None = None,
    ) -> int:
        """The number of matching lines, up to `max_count`; see `grep` for arguments and errors."""
        from tooltrail.artifacts.grep import Grep  # noqa: PLC0415  see `check`

        found = Grep(
            pattern, literal=literal, ignore_case=ignore_case, invert=invert, max_count=max_count
        )
        return found.count(self._frames, self._path)

    def _plain(self, start: int, stop: int) -> Iterator[bytes]:
        for block in self._frames.blocks(start, stop):
            yield block.plain

    def _lines(self, first: int, last: int | None) -> Iterator[bytes]:
        """The bytes of these lines; nothing if `last` is less than `first`."""
        index = self._frames.index
        if first - 1 > index.newline_count or (last is not None and last < first):
            return
        start, skipped = _frame_with(index, first - 1)
        stop, wanted = index.plain_size, None
        if last is not None and last <= index.newline_count:
            stop = index.plain_span(index.frame_of_newline(last))[1]
            wanted = last - first + 1
        yield from self._between(self._frames.counted_blocks(start, stop), skipped, wanted)

    def _between(
        self, blocks: Iterator[Block], skipped: int, wanted: int | None
    ) -> Iterator[bytes]:
        """The bytes after `skipped` newlines, up to and including `wanted` more newlines."""
        for block in blocks:
            begin, skipped = after_newlines(block.plain, skipped)
            if skipped:
                continue
            end = len(block.plain)
            if wanted is not None:
                end, wanted = after_newlines(block.plain, wanted, begin)
            if begin < end:
                yield block.plain[begin:end]

    def _is_unfinished(self) -> bool:
        return self.size > 0 and self.read_bytes(self.size - 1, self.size) != b"\n"


def open_reader(sink: ArtifactSink, path: str, *, size: int | None = None) -> ArtifactReader:
    """Like `ArtifactArchive.reader`, but with fewer imports."""
    return ArtifactReader(open_frames(sink, path, size), path)


def _frame_with(index: FrameIndex, newline: int) -> tuple[int, int]:
    """The plain offset of the frame with this newline, and the newline's number in the frame."""
    if newline <= 0:
        return 0, 0
    frame = index.frame_of_newline(newline)
    return index.plain_span(frame)[0], newline - index.newlines_before(frame)


def _checked(lines: int) -> int:
    if lines < 0:
        raise InvalidRecordError(f"not a number of lines: {lines}")
    return lines


def _split(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Complete lines from blocks that may end inside a line."""
    pieces: list[bytes] = []
    for block in blocks:
        *lines, rest = block.split(b"\n")
        for line in lines:
            pieces.append(line)
            pieces.append(b"\n")
            yield b"".join(pieces)
            pieces.clear()
        if rest:
            pieces.append(rest)
    if pieces:
        yield b"".join(pieces)
