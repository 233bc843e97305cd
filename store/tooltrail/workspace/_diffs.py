"""Unified diffs of file contents, made in bounded time."""

from collections.abc import Iterable, Sequence
from difflib import Match, SequenceMatcher

from tooltrail.records import Hunk

_MATCHED_LINES = 2_000
"""Longest changed region, in lines, that is searched for equal lines, in quadratic time."""

_Opcode = tuple[str, int, int, int, int]
"""A tag, then the range of old lines and of new lines, as `difflib` gives them."""


class _Matcher(SequenceMatcher[bytes]):
    """Matches equal lines at both ends first, then between them if the rest is short."""

    # Both sequences; the type stubs of the library omit them.
    a: list[bytes]
    b: list[bytes]

    def get_matching_blocks(self) -> list[Match]:
        before, after = self.a, self.b
        head, tail = _shared_ends(before, after)
        ends = len(before) - tail, len(after) - tail
        old, new = before[head : ends[0]], after[head : ends[1]]
        blocks = [Match(0, 0, head)]
        if max(len(old), len(new)) <= _MATCHED_LINES:
            inner = SequenceMatcher(None, old, new, autojunk=False).get_matching_blocks()
            blocks += [Match(head + a, head + b, size) for a, b, size in inner]
        return [*blocks, Match(*ends, tail), Match(len(before), len(after), 0)]


def unified_diff(path: str, old: bytes | None, new: bytes) -> tuple[bytes, tuple[Hunk, ...]]:
    """The unified diff of a file, and its hunks; both are empty if nothing changed.

    Args:
        path: of the file.
        old: its content before; None if the file is new.
        new: its content now.
    """
    before, after = _lines(old or b""), _lines(new)
    groups = [*_Matcher(None, before, after, autojunk=False).get_grouped_opcodes()]
    if not groups:
        return b"", ()
    hunks = tuple(map(_hunk, groups))
    source = "/dev/null" if old is None else f"a/{path}"
    heading = f"--- {source}\n+++ b/{path}\n".encode("utf-8", "backslashreplace")
    texts = (_text(g, h, before, after) for g, h in zip(groups, hunks, strict=True))
    return heading + b"".join(texts), hunks


def _lines(content: bytes) -> list[bytes]:
    # `splitlines` would also split at a lone carriage return.
    lines = content.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def _shared_ends(before: Sequence[bytes], after: Sequence[bytes]) -> tuple[int, int]:
    """The numbers of equal lines at the beginning and, in the rest, at the end."""
    shorter = min(len(before), len(after))
    head = next((n for n in range(shorter) if before[n] != after[n]), shorter)
    rest = shorter - head
    return head, next((n for n in range(rest) if before[-1 - n] != after[-1 - n]), rest)


def _hunk(group: Sequence[_Opcode]) -> Hunk:
    old, new = (group[0][1], group[-1][2]), (group[0][3], group[-1][4])
    return Hunk(
        # An empty range has the number of the line before it.
        old_start=old[0] + (old[1] > old[0]),
        old_lines=old[1] - old[0],
        new_start=new[0] + (new[1] > new[0]),
        new_lines=new[1] - new[0],
    )


def _text(
    group: Iterable[_Opcode], hunk: Hunk, before: Sequence[bytes], after: Sequence[bytes]
) -> bytes:
    old, new = (hunk.old_start, hunk.old_lines), (hunk.new_start, hunk.new_lines)
    lines = [b"@@ -%s +%s @@\n" % (_range(*old), _range(*new))]
    for tag, a, b, c, d in group:
        if tag == "equal":
            lines += [_line(b" ", line) for line in before[a:b]]
        else:
            lines += [_line(b"-", line) for line in before[a:b]]
            lines += [_line(b"+", line) for line in after[c:d]]
    return b"".join(lines)


def _range(start: int, lines: int) -> bytes:
    return b"%d" % start if lines == 1 else b"%d,%d" % (start, lines)


def _line(mark: bytes, line: bytes) -> bytes:
    return (
        mark + line if line.endswith(b"\n") else mark + line + b"\n\\ No newline at end of file\n"
    )
