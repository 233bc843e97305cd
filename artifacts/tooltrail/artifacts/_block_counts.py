r"""Counts the lines of a block that match, with one call for all of them.

`findall` gives as many matches as lines match when each match goes on to the end of its line. An
empty group makes it build no text of what was found.
"""

import re
from collections.abc import Callable

from tooltrail.artifacts._expressions import compiled
from tooltrail.artifacts._memory_search import contains

Counter = Callable[[bytes], int]
"""How many lines of a block match; a block ends where a line does. Safe for threads."""

_SPARSE = 32
"""Matches in a block up to which it is quicker to look for one after the other."""

_BEYOND = re.compile(rb"\(\?[aim]+\)|\\[B89]")
"""Flags, which are allowed at the beginning alone; what fits no empty line; and references."""

_GROUP = re.compile(rb"(\\.|\[\^?\]?(?:\\.|[^\]\\])*\])|\((?!\?)", re.DOTALL)
"""An escape or a set, which stay; or the beginning of a group whose text is asked for."""


def literal_counter(literal: bytes) -> Counter:
    """Counts the lines with a text, which is not empty."""
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


def others(counter: Counter) -> Counter:
    """Counts the lines that a counter does not count."""
    return lambda block: _line_count(block) - counter(block)


def expression_counter(source: bytes, flags: int) -> Counter | None:
    """Counts the lines that match an expression; None when each must be looked at.

    Args:
        source: the expression, which is good for blocks of lines and can be compiled.
        flags: of the expression.
    """
    if _BEYOND.search(source):
        return None
    source = _GROUP.sub(lambda found: found[1] or b"(?:", source)
    if source.startswith(b"^") and b"|" not in source:
        # It would be tried at every byte. Behind the newline that ends the line before it is found
        # as fast as a text is, and the first line gets such a newline too.
        after = compiled(rb"\n(?:%s)()[^\n]*" % source[1:], flags)
        return None if after.groups > 1 else lambda block: len(after.findall(_led(block)))
    line = compiled(rb"(?:%s)()[^\n]*\n" % source, flags)
    return None if line.groups > 1 else lambda block: len(line.findall(_ended(block)))


def _led(block: bytes) -> bytes:
    """The lines with a newline before each instead of behind."""
    return b"\n" + block.removesuffix(b"\n") if block else b""


def _ended(block: bytes) -> bytes:
    return block if block.endswith(b"\n") or not block else block + b"\n"


def _line_count(block: bytes) -> int:
    return block.count(b"\n") + (not block.endswith(b"\n"))
