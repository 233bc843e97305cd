"""Any part of an artifact, without touching the rest of it.

Bytes are counted from 0, and a range of them is half-open; lines are counted from 1, and a range
of them is inclusive. A line ends with a newline, which belongs to it; the last one may lack it. As
with slices, what lies beyond the end is not there, which is no error.
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING

from tooltrail.artifacts._frames import Block, Frames, open_frames
from tooltrail.artifacts._line_ends import after_newlines
from tooltrail.artifacts.frame_index import FrameIndex
from tooltrail.artifacts.sink import ArtifactSink
from tooltrail.records.errors import DamageError, InvalidRecordError

if TYPE_CHECKING:
    from tooltrail.artifacts.grep import Grep, Match


class ArtifactReader:
    """Reads parts of one artifact; opened by `ArtifactArchive.reader`.

    Only the frames that hold what is asked for are fetched and decoded: neighbours with one
    request, of at most `REQUEST_BYTES`. Each frame is compared with its checksum and with the index
    at the end of the object. Damage in other frames is not looked for, and the digest is compared
    only when the whole is one frame: call `check` first where that matters.

    Holds up to 8 MiB of stored bytes and one frame of plain ones, besides what a method returns:
    those that give an iterator hold no more than a frame (`iter_lines` a line). Safe for threads.

    Every reading method raises DamageError (a frame that is asked for is cut or altered),
    MissingArtifactError (the object is gone) and UnavailableError (the sink cannot serve).
    """

    def __init__(self, frames: Frames, path: str) -> None:
        """Read `frames`, which are those of `path`."""
        self._frames = frames
        self._path = path
        self._line_count: int | None = None

    @property
    def path(self) -> str:
        """The artifact's path."""
        return self._path

    @property
    def size(self) -> int:
        """Plain bytes."""
        return self._frames.index.plain_size

    @property
    def line_count(self) -> int:
        """Newlines, plus one for an unfinished last line; reads the last frame when it must."""
        if self._line_count is None:
            self._line_count = self._frames.index.newline_count + self._is_unfinished()
        return self._line_count

    def check(self) -> None:
        """Read the artifact through once, and compare its digest with the one in its path.

        Raises:
            DigestMismatchError: the content has another digest.
        """
        # Threads take longer to import than the end of an artifact to be read.
        from tooltrail.artifacts._verifying import check_content  # noqa: PLC0415

        check_content(self._frames, self._path)

    def read_bytes(self, start: int, stop: int) -> bytes:
        """The bytes from `start` up to `stop`, all in memory.

        Raises:
            InvalidRecordError: a negative offset, or `stop` before `start`.
        """
        return b"".join(self.iter_bytes(start, stop))

    def iter_bytes(self, start: int = 0, stop: int | None = None) -> Iterator[bytes]:
        """The same in blocks of up to a frame; to the end without `stop`.

        Raises:
            InvalidRecordError: see `read_bytes`.
        """
        if start < 0 or (stop is not None and stop < start):
            raise InvalidRecordError(f"not a range of bytes: {start} up to {stop}")
        return self._plain(start, self.size if stop is None else min(stop, self.size))

    def read_lines(self, first: int, last: int) -> bytes:
        """The lines from `first` to `last` with their newlines, all in memory.

        Raises:
            InvalidRecordError: `first` below 1, or `last` before `first`.
        """
        return b"".join(self.iter_line_bytes(first, last))

    def iter_line_bytes(self, first: int = 1, last: int | None = None) -> Iterator[bytes]:
        """The same in blocks of up to a frame, however long a line is; to the end without `last`.

        Raises:
            InvalidRecordError: see `read_lines`.
        """
        if first < 1 or (last is not None and last < first):
            raise InvalidRecordError(f"not a range of lines: {first} to {last}")
        return self._lines(first, last)

    def iter_lines(self, first: int = 1, last: int | None = None) -> Iterator[bytes]:
        """The same line by line, each with its newline; holds a whole line, however long it is.

        Raises:
            InvalidRecordError: see `read_lines`.
        """
        return _split(self.iter_line_bytes(first, last))

    def head(self, lines: int) -> bytes:
        """The first lines, all in memory.

        Raises:
            InvalidRecordError: `lines` is negative.
        """
        return b"".join(self.iter_head(lines))

    def iter_head(self, lines: int) -> Iterator[bytes]:
        """The same in blocks of up to a frame.

        Raises:
            InvalidRecordError: see `head`.
        """
        return self._lines(1, _checked(lines))

    def tail(self, lines: int) -> bytes:
        """The last lines, all in memory; see `head`."""
        return b"".join(self.iter_tail(lines))

    def iter_tail(self, lines: int) -> Iterator[bytes]:
        """The same in blocks of up to a frame; see `iter_head`."""
        if not _checked(lines):
            return iter(())
        if self._line_count is None and self.size:
            # So that the last frame, which says how many lines there are, comes with the others.
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
        """The lines that match, in order, each once, with the lines around them.

        Args:
            pattern: a regular expression of Python's `re` over bytes, which is searched for in
                each line without its newline; a text stands for its UTF-8 bytes.
            literal: take the pattern as the bytes that it is.
            ignore_case: of ASCII letters.
            invert: the lines that do not match.
            before: lines of context before each match.
            after: lines of context after it.
            max_count: end after so many matches and the context of the last.

        Holds some blocks of 8 frames, and whole lines: see `_line_blocks.LINE_BYTES`.

        Raises:
            InvalidRecordError: no regular expression, a newline in the pattern, a negative number;
                and while it is iterated, a line longer than can be held.
        """
        found = _grep(
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
        """How many lines match, at most `max_count`; see `grep` for arguments and errors."""
        found = _grep(
            pattern, literal=literal, ignore_case=ignore_case, invert=invert, max_count=max_count
        )
        return found.count(self._frames, self._path)

    def _plain(self, start: int, stop: int) -> Iterator[bytes]:
        for block in self._frames.blocks(start, stop):
            yield block.plain

    def _lines(self, first: int, last: int | None) -> Iterator[bytes]:
        """The bytes of these lines; nothing when `last` is before `first`."""
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
        """What follows so many newlines, up to the end of so many more."""
        for block in blocks:
            begin, skipped = after_newlines(block.plain, skipped)
            if skipped:
                continue
            end = len(block.plain)
            if wanted is not None:
                end, wanted = after_newlines(block.plain, wanted, begin)
            if begin < end:
                yield block.plain[begin:end]
        if skipped or wanted:
            raise DamageError(
                f"the index of artifact {self._path} is damaged: it counts other newlines",
                path=self._path,
            )

    def _is_unfinished(self) -> bool:
        return self.size > 0 and self.read_bytes(self.size - 1, self.size) != b"\n"


def _grep(
    pattern: str | bytes,
    *,
    literal: bool,
    ignore_case: bool,
    invert: bool,
    max_count: int | None,
) -> "Grep":
    # Threads and expressions take longer to import than the end of an artifact to be read.
    from tooltrail.artifacts.grep import Grep  # noqa: PLC0415

    return Grep(
        pattern, literal=literal, ignore_case=ignore_case, invert=invert, max_count=max_count
    )


def open_reader(sink: ArtifactSink, path: str, *, size: int | None = None) -> ArtifactReader:
    """See `ArtifactArchive.reader`, which needs more to be imported than this."""
    return ArtifactReader(open_frames(sink, path, size), path)


def _frame_with(index: FrameIndex, newline: int) -> tuple[int, int]:
    """Where the frame with the newline of this number begins, and the newline's number in it."""
    if newline <= 0:
        return 0, 0
    frame = index.frame_of_newline(newline)
    return index.plain_span(frame)[0], newline - index.newlines_before(frame)


def _checked(lines: int) -> int:
    if lines < 0:
        raise InvalidRecordError(f"not a number of lines: {lines}")
    return lines


def _split(blocks: Iterator[bytes]) -> Iterator[bytes]:
    """Whole lines from blocks that end anywhere."""
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
