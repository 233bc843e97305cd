"""Where a text may be cut: never inside what people see as one, never inside an escape sequence."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import each_case

from tooltrail.records._text_cuts import cut_after, cut_before, shorten

FAMILY = "\U0001f469\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"
FLAG_DE = "\U0001f1e9\U0001f1ea"
FLAG_FR = "\U0001f1eb\U0001f1f7"
THUMB = "\U0001f44d\U0001f3fd"
SCOTLAND = "\U0001f3f4\U000e0067\U000e0062\U000e0073\U000e0063\U000e0074\U000e007f"

# Each is one unit, and no two of them beside each other make a longer one.
UNITS = [
    "a",
    "m",
    "[",
    "\n",
    "\r\n",
    "\u6f22",
    "e\u0301",
    "e\u0301\u0323\u0308",
    "\u0e19\u0e33",
    "\u0915\u093e",
    "1\ufe0f\u20e3",
    "x\u200c",
    "\uff76\uff9e",
    "\uac01",
    "\u1112\u1161\u11ab",
    "\u1100\u1100\uac00\u11a8",
    "\ua960\ud7b0\ud7cb",
    FAMILY,
    FLAG_DE,
    FLAG_FR,
    "\U0001f1e6\U0001f1e8",
    "\U0001f1ff\U0001f1fc",
    THUMB,
    "\U0001f44d\U0001f3fb",
    "\U0001f44d\U0001f3ff",
    "\ud7a3\u11a8",
    SCOTLAND,
    "\x1b[0m",
    "\x1b[38;5;196m",
    "\x1b[2K",
    "\x1b(B",
    "\x1b7",
    "\x1b0",
    "\x1b~",
    "\x1b]0;title\x07",
    "\x1b]8;;https://example.org\x1b\\",
    "\x1bPq#0\x1b\\",
]


@given(st.lists(st.sampled_from(UNITS), max_size=12))
def test_a_cut_is_the_nearest_boundary_between_units(units: list[str]) -> None:
    text = "".join(units)
    ends = [0, *itertools.accumulate(map(len, units))]
    for index in range(len(text) + 1):
        assert cut_before(text, index) == max(end for end in ends if end <= index)
        assert cut_after(text, index) == min(end for end in ends if end >= index)


@given(st.text(st.characters(), max_size=60), st.integers(0, 60))
def test_a_cut_is_inside_the_text_on_its_side_of_the_index_and_allowed(
    text: str, index: int
) -> None:
    index = min(index, len(text))
    before, after = cut_before(text, index), cut_after(text, index)
    assert 0 <= before <= index <= after <= len(text)
    assert cut_before(text, before) == before
    assert cut_after(text, after) == after


def test_a_mark_on_the_end_of_a_colour_does_not_open_the_colour() -> None:
    text = "ab\x1b[31m\u0301cd"
    assert cut_before(text, 7) == 2
    assert cut_after(text, 4) == 8


def test_an_endless_cluster_is_cut_rather_than_followed() -> None:
    text = "e" + "\u0301" * 5000
    assert cut_before(text, 4000) == 3936
    assert cut_after(text, 1000) == 1064


def test_an_endless_escape_sequence_is_cut_rather_than_followed() -> None:
    text = "\x1b]0;" + "t" * 5000 + "\x07"
    assert cut_before(text, 200) == 200
    assert cut_after(text, 4000) == 4000


@pytest.mark.parametrize(("length", "kept"), [(405, True), (4096, True), (4097, False)])
def test_a_long_sequence_is_whole_up_to_4096_characters(length: int, *, kept: bool) -> None:
    link = "\x1b]8;;" + "u" * (length - 7) + "\x1b\\"
    text = "ab" + link + "cd"
    for index in (10, 300, length - 10):
        whole = (2, 2 + length) if kept else (index, index)
        assert (cut_before(text, index), cut_after(text, index)) == whole


@pytest.mark.parametrize("text", ["\x1b[31", "\x1b]0;never closed", "\x1b", "ab\x1b["])
def test_a_sequence_that_is_never_closed_holds_nothing_together(text: str) -> None:
    assert cut_before(text, len(text)) == len(text)
    assert cut_after(text, len(text)) == len(text)


def test_the_parity_of_a_row_of_flags_is_counted_from_its_start() -> None:
    row = "x" + FLAG_DE * 300
    for index in range(len(row) + 1):
        assert (cut_before(row, index) - 1) % 2 == 0 or index == 0


@given(st.lists(st.sampled_from(UNITS), max_size=30), st.integers(16, 60))
def test_a_shortened_text_is_whole_or_ends_with_an_ellipsis_after_a_unit(
    units: list[str], limit: int
) -> None:
    text = "".join(units)
    short = shorten(text, limit)
    assert len(short) <= limit
    if len(text) <= limit:
        assert short == text
    else:
        assert short[-1] == "\u2026"
        assert short[:-1] in set(itertools.accumulate(units, initial=""))


@each_case(("limit", "short"), [(-3, ""), (0, ""), (1, "\u2026"), (2, "a\u2026"), (3, "abc")])
def test_a_text_is_shortened_into_the_smallest_limits(limit: int, short: str) -> None:
    assert shorten("abc", limit) == short
    assert shorten("", limit) == ""


def test_half_a_flag_holds_on_to_nothing_but_its_other_half() -> None:
    text = "a\U0001f1e9b"
    assert [cut_before(text, index) for index in range(4)] == [0, 1, 2, 3]
