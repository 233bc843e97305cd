"""Find and count the lines of a block that match a pattern, with few calls for many lines.

`findall` returns one match per line if each match extends to the end of its line. With an empty
group, `findall` does not copy the matched text.
"""

import ctypes
import re
from collections.abc import Callable, Iterator
from operator import contains as python_contains

from tooltrail.artifacts._expressions import compiled, for_blocks, refuse_newline

Counter = Callable[[bytes], int]
"""Returns the number of matching lines in a block of complete lines. Safe for threads."""

Span = tuple[int, int]
"""Offsets of a line: its first byte, and the end of its text (its newline or the block's end)."""

_SPARSE = 32
"""Matches in a block up to which repeated `find` is faster than `findall`."""

_BEYOND = re.compile(rb"\(\?[aim]+\)|\\[B89]")
r"""Flags, which are only allowed at the start; `\B`, which matches no empty line; references."""

_GROUP = re.compile(rb"(\\.|\[\^?\]?(?:\\.|[^\]\\])*\])|\((?!\?)", re.DOTALL)
"""An escape or a set, which are kept; or the beginning of a capturing group."""


def best_search() -> Callable[[bytes, bytes], bool]:
    """The C library's `memmem`, or Python's search if it has none (POSIX does not require it).

    `bytes.find` holds the interpreter lock while it searches, so decoding threads wait. `memmem`
    is called without the lock and needs half the time.
    """
    try:
        function = ctypes.CDLL(None).memmem
    except (AttributeError, OSError, TypeError):
        return python_contains
    function.restype = ctypes.c_void_p
    # Pointers with sizes: a zero byte does not end the search.
    function.argtypes = [ctypes.c_char_p, ctypes.c_size_t, ctypes.c_char_p, ctypes.c_size_t]

    def search(data: bytes, needle: bytes) -> bool:
        return function(data, len(data), needle, len(needle)) is not None

    return search


contains = best_search()
"""Whether the first argument contains the second. Safe for threads."""


class LinePattern:
    """A pattern that is searched for in blocks of complete lines. Safe for threads."""

    def __init__(self, pattern: str | bytes, *, literal: bool, ignore_case: bool) -> None:
        """Compile a pattern; see `ArtifactReader.grep`.

        Raises:
            InvalidRecordError: `pattern` is not a regular expression, or contains a newline.
        """
        wanted = _bytes_of(pattern)
        self._literal = wanted if literal and not ignore_case else None
        source = re.escape(wanted) if literal else wanted
        flags = re.MULTILINE | (re.IGNORECASE if ignore_case else 0)
        self._line = compiled(source, flags)
        refuse_newline(self._line)
        in_blocks = source if literal else for_blocks(source)
        self._block = None if in_blocks is None else compiled(in_blocks, flags)
        self._count = self._counter(in_blocks, flags)

    @property
    def needle(self) -> bytes | None:
        """Bytes that every matching line contains; None if no such bytes are known."""
        return self._literal or None

    def spans(self, block: bytes) -> Iterator[Span]:
        """The matching lines of a block of complete lines, in order."""
        if self._block is None:
            return self._each_line(block)
        if self._literal is not None:
            return _literals(block, self._literal)
        return self._found(block, self._block)

    def count(self, block: bytes) -> int:
        """The number of matching lines in a block of complete lines."""
        if self._count is None:
            return sum(1 for _ in self.spans(block))
        return self._count(block)

    def _counter(self, in_blocks: bytes | None, flags: int) -> Counter | None:
        if self._literal:
            return literal_counter(self._literal)
        return None if in_blocks is None else expression_counter(in_blocks, flags)

    def _found(self, block: bytes, regex: re.Pattern[bytes]) -> Iterator[Span]:
        size, start = len(block), 0
        # The end of the block is in a line only if the last line is unfinished.
        last = size - block.endswith(b"\n")
        while start < size and (found := regex.search(block, start)) and found.start() <= last:
            begin, end = _line_at(block, found.start())
            # An empty match in the block may depend on the neighbouring lines: check the line.
            if found.end() > found.start() or self._line.search(block[begin:end]):
                yield begin, end
            start = end + 1

    def _each_line(self, block: bytes) -> Iterator[Span]:
        search = self._line.search
        for begin, end in lines_of(block, 0, len(block)):
            if search(block[begin:end]):
                yield begin, end


def lines_of(block: bytes, start: int, stop: int) -> Iterator[Span]:
    """The lines between two offsets of a block, both at the beginning or end of a line."""
    while start < stop:
        end = block.find(b"\n", start)
        end = len(block) if end < 0 else end
        yield start, end
        start = end + 1


def _literals(block: bytes, literal: bytes) -> Iterator[Span]:
    size, start = len(block), 0
    while start < size and 0 <= (found := block.find(literal, start)) < size:
        span = _line_at(block, found)
        yield span
        start = span[1] + 1


def _line_at(block: bytes, offset: int) -> Span:
    end = block.find(b"\n", offset)
    return block.rfind(b"\n", 0, offset) + 1, len(block) if end < 0 else end


def _bytes_of(pattern: str | bytes) -> bytes:
    # Bytes of a command line that are not UTF-8 are restored.
    return pattern.encode("utf-8", "surrogateescape") if isinstance(pattern, str) else pattern


def literal_counter(literal: bytes) -> Counter:
    """A counter of the lines that contain `literal`, which is not empty."""
    line = compiled(re.escape(literal) + rb"()[^\n]*", 0)

    def count(block: bytes) -> int:
        if not contains(block, literal):
            return 0
        found, end = 0, 0
        while (start := block.find(literal, end)) >= 0:
            found += 1
            end = block.find(b"\n", start)
            if end < 0:
                break
            if found == _SPARSE:
                return found + len(line.findall(block, end))
        return found

    return count


def inverted(counter: Counter) -> Counter:
    """A counter of the lines that `counter` does not count."""
    return lambda block: _line_count(block) - counter(block)


def expression_counter(source: bytes, flags: int) -> Counter | None:
    """A counter of the lines that match an expression; None if lines must be searched singly.

    Args:
        source: an expression from `for_blocks` that compiles.
        flags: flags of the expression.
    """
    if _BEYOND.search(source):
        return None
    source = _GROUP.sub(lambda found: found[1] or b"(?:", source)
    if source.startswith(b"^") and b"|" not in source:
        # The engine would try `^` at every byte, but finds a newline as fast as a literal. So the
        # expression begins with the previous line's newline, and the first line gets one.
        after = compiled(rb"\n(?:%s)()[^\n]*" % source[1:], flags)
        return None if after.groups > 1 else lambda block: len(after.findall(_led(block)))
    line = compiled(rb"(?:%s)()[^\n]*\n" % source, flags)
    return None if line.groups > 1 else lambda block: len(line.findall(_ended(block)))


def _led(block: bytes) -> bytes:
    """The lines with a newline before each line instead of after it."""
    return b"\n" + block.removesuffix(b"\n") if block else b""


def _ended(block: bytes) -> bytes:
    return block if block.endswith(b"\n") or not block else block + b"\n"


def _line_count(block: bytes) -> int:
    return block.count(b"\n") + (not block.endswith(b"\n"))
