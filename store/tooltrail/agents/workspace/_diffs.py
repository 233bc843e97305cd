"""What a change of a file is, as a unified diff, in time that its size alone bounds."""

from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

from tooltrail.records import Hunk

_CONTEXT = 3
"""Lines around a change that are repeated, as other programs do it."""

_MATCHED_LINES = 2_000
"""Lines that are looked through for what stays; to look takes the square of their number."""

_Opcode = tuple[str, int, int, int, int]
"""A tag, and which lines it takes and which it gives, as `difflib` has it."""


def unified_diff(path: str, old: bytes | None, new: bytes) -> tuple[bytes, tuple[Hunk, ...]]:
    """The diff of a file and where it changes it; empty where nothing does.

    Args:
        path: of the file.
        old: its content before; None where it was not there.
        new: its content now.
    """
    before, after = _lines(old or b""), _lines(new)
    head, tail = _shared_ends(before, after)
    first = max(head - _CONTEXT, 0)
    taken = before[first : len(before) - max(tail - _CONTEXT, 0)]
    given = after[first : len(after) - max(tail - _CONTEXT, 0)]
    if taken == given:
        return b"", ()
    groups = _groups(taken, given, head - first, min(tail, _CONTEXT))
    hunks = tuple(_hunk(group, first) for group in groups)
    source = "/dev/null" if old is None else f"a/{path}"
    heading = f"--- {source}\n+++ b/{path}\n".encode("utf-8", "backslashreplace")
    texts = (_text(g, h, taken, given) for g, h in zip(groups, hunks, strict=True))
    return heading + b"".join(texts), hunks


def _lines(content: bytes) -> list[bytes]:
    # Not `splitlines`, to which a lone carriage return is an end of line, too.
    lines = content.split(b"\n")
    last = lines.pop()
    return [line + b"\n" for line in lines] + ([last] if last else [])


def _shared_ends(before: Sequence[bytes], after: Sequence[bytes]) -> tuple[int, int]:
    """How many lines are the same at the beginning, and of the rest at the end."""
    shorter = min(len(before), len(after))
    head = next((n for n in range(shorter) if before[n] != after[n]), shorter)
    rest = shorter - head
    return head, next((n for n in range(rest) if before[-1 - n] != after[-1 - n]), rest)


def _groups(
    taken: Sequence[bytes], given: Sequence[bytes], head: int, tail: int
) -> list[list[_Opcode]]:
    """The opcodes of each hunk. A change of many lines is one, in which all of them go."""
    if len(taken) <= _MATCHED_LINES and len(given) <= _MATCHED_LINES:
        matcher = SequenceMatcher(None, taken, given, autojunk=False)
        return [list[_Opcode](group) for group in matcher.get_grouped_opcodes(_CONTEXT)]
    ends = len(taken) - tail, len(given) - tail
    return [
        [
            ("equal", 0, head, 0, head),
            ("replace", head, ends[0], head, ends[1]),
            ("equal", ends[0], len(taken), ends[1], len(given)),
        ]
    ]


def _hunk(group: Sequence[_Opcode], first: int) -> Hunk:
    old, new = (group[0][1], group[-1][2]), (group[0][3], group[-1][4])
    return Hunk(
        old_start=_start(*old, first),
        old_lines=old[1] - old[0],
        new_start=_start(*new, first),
        new_lines=new[1] - new[0],
    )


def _start(begin: int, end: int, first: int) -> int:
    """The number of a first line; of no lines, that of the line before them."""
    return first + begin + (end > begin)


def _text(
    group: Iterable[_Opcode], hunk: Hunk, taken: Sequence[bytes], given: Sequence[bytes]
) -> bytes:
    old, new = (hunk.old_start, hunk.old_lines), (hunk.new_start, hunk.new_lines)
    lines = [b"@@ -%s +%s @@\n" % (_range(*old), _range(*new))]
    for tag, a, b, c, d in group:
        if tag == "equal":
            lines += [_line(b" ", line) for line in taken[a:b]]
        else:
            lines += [_line(b"-", line) for line in taken[a:b]]
            lines += [_line(b"+", line) for line in given[c:d]]
    return b"".join(lines)


def _range(start: int, lines: int) -> bytes:
    return b"%d" % start if lines == 1 else b"%d,%d" % (start, lines)


def _line(mark: bytes, line: bytes) -> bytes:
    return (
        mark + line if line.endswith(b"\n") else mark + line + b"\n\\ No newline at end of file\n"
    )
