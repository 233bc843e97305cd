"""Contents of any size compared by lines: right hunks, bounded memory, and nothing in silence."""

import difflib
import re
import tracemalloc
from collections.abc import Sequence
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tooltrail.cli import _line_diff
from tooltrail.cli._line_diff import Content, Hunk, LineDiff, in_memory, matching_blocks
from tooltrail.records.errors import DamageError

MIB = 1 << 20
MAX_PEAK = 48 * MIB
"""Less than both contents of a comparison together."""

texts = st.lists(
    st.sampled_from([b"a\n", b"b\n", b"\n", b"c\r\n", b"\xff\n", b"long line\n"]), max_size=40
).map(b"".join)
unfinished = st.tuples(texts, st.sampled_from([b"", b"end", b"\r"])).map(b"".join)


def lines_of(data: bytes) -> list[bytes]:
    return re.findall(rb"[^\n]*\n|[^\n]+", data)


def applied(before: bytes, hunks: Sequence[Hunk]) -> bytes:
    """The second content, from the first and the hunks, which must fit exactly."""
    lines, made = lines_of(before), list[bytes]()
    at = 0
    for hunk in hunks:
        made += lines[at : hunk.before - 1]
        at = hunk.before - 1
        assert len(made) == hunk.after - 1
        for line in hunk.lines:
            if line[:1] in (b" ", b"-"):
                assert lines[at] == line[1:]
                at += 1
            if line[:1] in (b" ", b"+"):
                made.append(line[1:])
    return b"".join(made + lines[at:])


@given(unfinished, unfinished, st.sampled_from([2, 7, 1000]), st.sampled_from([1, 3, 2 * MIB]))
def test_the_hunks_applied_to_one_content_give_the_other(
    before: bytes, after: bytes, window: int, block: int
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(_line_diff, "_WINDOW", window)
        patched.setattr(_line_diff, "_MAX_WINDOW", window * 2)
        patched.setattr(_line_diff, "_BLOCK", block)
        patched.setattr(_line_diff, "_MAX_HUNK", window * 3)
        hunks = list(LineDiff(in_memory(before), in_memory(after)).hunks())
    assert applied(before, hunks) == after
    assert (hunks == []) == (before == after)


@given(texts, texts, texts)
def test_around_a_change_are_three_lines_as_in_a_unified_diff(
    start: bytes, change: bytes, end: bytes
) -> None:
    before, after = start + b"old\n" + end, start + b"new\n" + change + end
    hunks = list(LineDiff(in_memory(before), in_memory(after)).hunks())
    expected = difflib.diff_bytes(
        difflib.unified_diff, lines_of(before), lines_of(after), lineterm=b"\n"
    )
    first = next(line for line in expected if line.startswith(b"@@"))
    counted = rb"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@\n"
    found = re.fullmatch(counted, first)
    assert found is not None
    assert (hunks[0].before, hunks[0].after) == (int(found[1]), int(found[2]))


class Log(NamedTuple):
    """A long log that is never in memory: lines of 1 KiB, with some lines changed."""

    line_count: int
    changed: dict[int, bytes]

    @property
    def content(self) -> Content:
        return Content(self.line_count * 1024, self.part)

    def line(self, number: int) -> bytes:
        text = self.changed.get(number, b"line %d of a build that compiles a file" % number)
        return text.ljust(1023) + b"\n"

    def part(self, start: int, stop: int) -> bytes:
        first = start // 1024
        data = b"".join(map(self.line, range(first, (stop + 1023) // 1024)))
        return data[start - first * 1024 : stop - first * 1024]


def test_32_mb_with_changes_at_both_ends_take_little_memory() -> None:
    count = 32 * MIB // 1024
    before = Log(count, {})
    after = Log(count, {10: b"early", count // 2: b"middle", count - 10: b"late"})
    tracemalloc.start()
    try:
        difference = LineDiff(before.content, after.content)
        hunks = list(difference.hunks())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= MAX_PEAK, f"peak of {peak / MIB:.0f} MiB"
    assert [hunk.before for hunk in hunks] == [8, count // 2 - 2, count - 12]
    assert difference.notes == []


def test_32_mb_without_a_common_line_take_little_memory_and_the_diff_says_so() -> None:
    count = 32 * MIB // 1024
    before, after = Log(count, {}), Log(count, {n: b"other %d" % n for n in range(count)})
    lines = 0
    tracemalloc.start()
    try:
        difference = LineDiff(before.content, after.content)
        for hunk in difference.hunks():
            lines += len(hunk.lines)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak <= MAX_PEAK, f"peak of {peak / MIB:.0f} MiB"
    assert lines == 2 * count
    (note,) = difference.notes
    assert note.startswith("from line 1 on, the contents have too little in common for an exact")


def test_an_insertion_longer_than_a_window_is_one_insertion() -> None:
    lines = [b"line %d\n" % n for n in range(50_000)]
    more = [b"inserted %d\n" % n for n in range(20_000)]
    first, last = [b"first\n"], [b"last\n"]
    before = b"".join(lines)
    after = b"".join(first + lines[:25_000] + more + lines[25_000:] + last)
    difference = LineDiff(in_memory(before), in_memory(after))
    hunks = list(difference.hunks())
    changed = [line for hunk in hunks for line in hunk.lines if line[:1] != b" "]
    assert changed == [b"+" + line for line in first + more + last]
    assert difference.notes == []


@pytest.mark.parametrize(
    ("before", "after", "reason", "at"),
    [
        (b"\x89PNG\0" + b"x" * 9, b"\x89PNG\0" + b"x" * 8 + b"y", "binary content", 13),
        (b"a\n" * 9_000 + b"\0", b"a\n" * 9_000 + b"b", "binary content", 18_000),
        (b"x" * 3 * MIB, b"y" * 3 * MIB, "a line is longer than 1,048,576 bytes", 0),
        (b"x" * 3 * MIB, b"x" * 3 * MIB + b"y", "a line is longer than 1,048,576 bytes", 3 * MIB),
    ],
)
def test_what_has_no_lines_is_compared_by_its_size_and_first_byte(
    before: bytes, after: bytes, reason: str, at: int
) -> None:
    difference = LineDiff(in_memory(before), in_memory(after))
    assert list(difference.hunks()) == []
    assert difference.first_difference == at
    (note,) = difference.notes
    sizes = f"{len(before):,} and {len(after):,} bytes"
    assert note == (
        f"{reason}: not compared by lines from here on; {sizes},"
        f" the first difference is at byte {at:,}"
    )


def test_damage_ends_the_comparison_and_is_said() -> None:
    def part(_start: int, _stop: int) -> bytes:
        raise DamageError("the artifact is cut", path="sha256/x")

    difference = LineDiff(Content(9, part), in_memory(b"123456789"))
    assert list(difference.hunks()) == []
    assert difference.notes == ["cannot be compared: the artifact is cut"]


def test_very_many_equal_elements_are_aligned_in_bounded_time() -> None:
    before = [b"poll"] * 20_000 + [b"a"] + [b"poll"] * 20_000
    after = [b"poll"] * 20_000 + [b"b"] + [b"poll"] * 20_001
    blocks = matching_blocks(before, after, is_end=True)
    assert blocks == [(0, 0, 20_000), (20_001, 20_002, 20_000)]
