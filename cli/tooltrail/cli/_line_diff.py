"""Compares two contents of any size line by line, in bounded memory.

`difflib` compares windows of lines. A window grows until enough of its lines are found on the other
side: the time of a comparison grows faster than its window. Hunks are yielded as they are found:
applied to the first content, they give the second.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple, TypeVar

from tooltrail.records.errors import TooltrailError
from tooltrail.store.read.streams import part_of

T = TypeVar("T")

_BLOCK = 256 * 1024
"""Bytes that are read at once: a frame of an artifact."""

_MAX_LINE = 1 << 20

CONTEXT = 3
"""Equal lines around a difference."""

_WINDOW, _MAX_WINDOW = 1_000, 32_000
"""Lines of a window at first, and at most."""

_MAX_WINDOW_BYTES = 8 << 20
_COMMON_SHARE = 8
"""One of this many lines must have an equal line; otherwise the window grows."""

_MAX_HUNK = 10_000
"""Lines of a hunk; a longer hunk is divided."""

_MAX_STEPS = 250_000
"""Steps of an exact comparison. Beyond it, `difflib` skips frequent elements."""

_INEXACT = (
    "from line {:,} on, the contents have too little in common for an exact comparison: more lines"
    " than necessary may be shown as replaced"
)


class Content(NamedTuple):
    """Bytes that can be read in part: `part` returns the bytes from an offset up to another."""

    size: int
    part: Callable[[int, int], bytes]


def in_memory(data: bytes) -> Content:
    """Bytes in memory as a content."""
    return Content(len(data), part_of(data))


class Hunk(NamedTuple):
    """Lines that differ, with the lines around them, as in a unified diff.

    `before` and `after` are the numbers of the first line in both contents. Before each of `lines`
    is ` `, `-` or `+`.
    """

    before: int
    after: int
    lines: Sequence[bytes]

    @property
    def ranges(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """First line and number of lines in each content.

        As in a unified diff, an empty range has the number of the line before it.
        """
        marks = b"".join(line[:1] for line in self.lines)
        first, second = (len(marks) - marks.count(mark) for mark in (b"+", b"-"))
        return (self.before - (not first), first), (self.after - (not second), second)


class _NoLinesError(Exception):
    """A content cannot be compared by lines."""


class LineDiff:
    """The differences of two contents.

    Attributes:
        first_difference: offset of the first byte that differs; None before `hunks` has begun.
        notes: sentences about what could not be compared, or not exactly; complete when `hunks`
            has ended.
        error: why a content could not be read to its end; None until `hunks` has ended.
    """

    def __init__(self, before: Content, after: Content) -> None:
        self.first_difference: int | None = None
        self.notes: list[str] = []
        self.error: TooltrailError | None = None
        self._sides = before, after

    def hunks(self) -> Iterator[Hunk]:
        """The hunks in order, as they are found."""
        try:
            self.first_difference = _common_beginning(*self._sides)
            yield from _grouped(self._edits(*map(_lines, self._sides)))
        except _NoLinesError as reason:
            sizes = " and ".join(f"{one.size:,}" for one in self._sides)
            self.notes.append(
                f"{reason}: not compared by lines from here on; {sizes} bytes,"
                f" the first difference is at byte {self.first_difference:,}"
            )
        except TooltrailError as error:
            self.error = error
            self.notes.append(f"cannot be compared: {error}")

    def _edits(self, before: Iterator[bytes], after: Iterator[bytes]) -> Iterator[bytes]:
        """The lines of both contents, each behind ` `, `-` or `+`."""
        a, b, line, limit = list[bytes](), list[bytes](), 1, _WINDOW
        is_end = False
        while not is_end:
            is_end = _fill(a, before, limit) & _fill(b, after, limit)
            blocks = matching_blocks(a, b, is_end=is_end)
            common = sum(size for _, _, size in blocks) * _COMMON_SHARE
            if not is_end and common < min(len(a), len(b)):
                if limit < _MAX_WINDOW:
                    limit *= 4
                    continue
                if not self.notes:
                    self.notes.append(_INEXACT.format(line))
            if is_end or not blocks:
                blocks.append((len(a), len(b), 0))
            for one, other in aligned(a, b, blocks):
                if one is None:
                    yield b"+" + (other or b"")
                else:
                    yield (b"-" if other is None else b" ") + one
            i, j, size = blocks[-1]
            del a[: i + size], b[: j + size]
            line, limit = line + i + size, _WINDOW


def matching_blocks(
    a: Sequence[bytes], b: Sequence[bytes], *, is_end: bool
) -> list[tuple[int, int, int]]:
    """Blocks of equal elements in order: the position in `a`, that in `b`, and the size.

    Like `SequenceMatcher.get_matching_blocks`, but the time is bounded: if elements are repeated
    very often, equal elements may be left out. `is_end` says that nothing follows.
    """
    head = _equal_count(a, b)
    tail = _equal_count(a[head:][::-1], b[head:][::-1]) if is_end else 0
    a_rest, b_rest = a[head : len(a) - tail], b[head : len(b) - tail]
    counts = Counter(b_rest)
    steps = sum(counts[one] for one in a_rest)
    matcher = SequenceMatcher(None, a_rest, b_rest, autojunk=steps > _MAX_STEPS)
    found = [(i + head, j + head, size) for i, j, size in matcher.get_matching_blocks()[:-1]]
    ends = (0, 0, head), (len(a) - tail, len(b) - tail, tail)
    return [block for block in (ends[0], *found, ends[1]) if block[2]]


def aligned(
    a: Sequence[T], b: Sequence[T], blocks: Iterable[tuple[int, int, int]]
) -> Iterator[tuple[T | None, T | None]]:
    """The elements side by side, up to the last block: equal ones in pairs, others beside None."""
    i = j = 0
    for to_i, to_j, size in blocks:
        yield from ((one, None) for one in a[i:to_i])
        yield from ((None, one) for one in b[j:to_j])
        i, j = to_i + size, to_j + size
        yield from zip(a[to_i:i], b[to_j:j], strict=True)


def _fill(lines: list[bytes], source: Iterator[bytes], limit: int) -> bool:
    """Read on up to `limit` lines or `_MAX_WINDOW_BYTES`; return whether no line follows."""
    size = sum(map(len, lines))
    while len(lines) < limit and size < _MAX_WINDOW_BYTES:
        if (line := next(source, None)) is None:
            return True
        lines.append(line)
        size += len(line)
    return False


def _lines(content: Content) -> Iterator[bytes]:
    """The lines of a content. A NUL anywhere in a block makes the content binary, as in git."""
    rest = b""
    for offset in range(0, content.size, _BLOCK):
        block = content.part(offset, min(offset + _BLOCK, content.size))
        if b"\0" in block:
            raise _NoLinesError("binary content")
        *complete, rest = (rest + block).split(b"\n")
        for line in complete:
            yield line + b"\n"
        if len(rest) > _MAX_LINE:
            raise _NoLinesError(f"a line is longer than {_MAX_LINE:,} bytes")
    if rest:
        yield rest


def _common_beginning(before: Content, after: Content) -> int:
    """The number of bytes with which both contents begin."""
    most = min(before.size, after.size)
    for offset in range(0, most, _BLOCK):
        x, y = (one.part(offset, min(offset + _BLOCK, most)) for one in (before, after))
        if x != y:
            return offset + _equal_count(x, y)
    return most


def _equal_count(x: Sequence[object], y: Sequence[object]) -> int:
    """The number of equal elements at the beginning."""
    unequal = (n for n, (one, other) in enumerate(zip(x, y, strict=False)) if one != other)
    return next(unequal, min(len(x), len(y)))


def _grouped(edits: Iterator[bytes]) -> Iterator[Hunk]:
    before = after = 1
    lines: list[bytes] = []
    quiet = 0  # equal lines at the end of `lines`
    for line in edits:
        lines.append(line)
        quiet = quiet + 1 if line.startswith(b" ") else 0
        if quiet == len(lines):
            if quiet > CONTEXT:
                del lines[0]
                before, after, quiet = before + 1, after + 1, CONTEXT
        elif quiet == 2 * CONTEXT or len(lines) >= _MAX_HUNK:
            quiet = CONTEXT if quiet == 2 * CONTEXT else 0
            hunk = Hunk(before, after, lines[: len(lines) - quiet])
            yield hunk
            (_, first), (_, second) = hunk.ranges
            before, after = before + first, after + second
            del lines[: len(hunk.lines)]
    if quiet < len(lines):
        yield Hunk(before, after, lines[: len(lines) - max(0, quiet - CONTEXT)])
