"""A preview shows both ends of a stream within its budget and counts exactly what is missing."""

import re

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st
from tests.records.support import MARKER, edged, number, whole
from tests.support.cases import each_case
from tests.support.effort import times

from tooltrail.records import preview
from tooltrail.records.previews import Preview, needed_chars

FAMILY = "\U0001f469\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466"
FLAG = "\U0001f1e9\U0001f1ea"
UNITS = [
    "a",
    "word ",
    "line\n",
    "\n",
    "crlf\r\n",
    "\u00e9",
    "\u6f22\u5b57",
    "e\u0301",
    "\u1112\u1161\u11ab",
    FAMILY,
    "\x1b[38;5;196mred\x1b[0m",
    "x" * 97,
    "y" * 61 + "\n",
]
BYTES = [unit.encode() for unit in UNITS] + [
    b"\xff",
    b"\xe9 caf\xe9\n",
    b"\x80\x80\x80",
    b"\xed\xa0\x80",
    b"\xf0\x9f",
    b"\0",
    bytes(range(256)),
]

budgets = st.integers(0, 4000) | st.integers(0, 400)
repeats = st.integers(1, 6) | st.integers(1, 300)


def runs(units: list[str]) -> st.SearchStrategy[list[str]]:
    pair = st.tuples(st.sampled_from(units), repeats)
    return st.lists(pair, max_size=12).map(lambda pairs: [u for u, n in pairs for _ in range(n)])


byte_runs = st.lists(st.tuples(st.sampled_from(BYTES), repeats), max_size=12).map(
    lambda pairs: b"".join(piece * n for piece, n in pairs)
)
data_of_any_kind = byte_runs | st.binary(max_size=3000) | st.text().map(str.encode)


def pieces(shown: Preview) -> tuple[str, "re.Match[str]", str]:
    """First piece, marker and last piece of a cut preview, the separators taken away."""
    match = MARKER.search(shown.text)
    assert match is not None
    first, last = shown.text[: match.start()], shown.text[match.end() :]
    assert last.startswith("\n")
    if match["first_unit"] == "characters" and len(first) > number(match["first"]):
        assert first.endswith("\n")
        first = first[:-1]
    return first, match, last[1:]


def hidden_lines(data: bytes, start: int, end: int) -> int:
    """Lines of which every byte is in data[start:end], counted without our own code."""
    count = position = 0
    for line in lines_of(data):
        count += start <= position and position + len(line) <= end
        position += len(line)
    return count


def lines_of(data: bytes) -> list[bytes]:
    return re.findall(rb"[^\n]*\n|[^\n]+", data)


def recount(data: bytes, shown: Preview) -> None:
    """Check a cut preview of UTF-8 text against the data, independently of how it was made."""
    first, match, last = pieces(shown)
    assert data.startswith(first.encode())
    assert data.endswith(last.encode())
    start, end = len(first.encode()), len(data) - len(last.encode())
    assert start < end
    assert shown.omitted_bytes == end - start == number(match["bytes"])
    assert shown.omitted_lines == hidden_lines(data, start, end) == number(match["lines"])
    for piece, amount, unit in (
        (first, match["first"], match["first_unit"]),
        (last, match["last"], match["last_unit"]),
    ):
        counted = len(piece) if unit == "characters" else piece.count("\n")
        if unit == "lines" and piece and not piece.endswith("\n"):
            counted += 1
        assert number(amount) == counted


@given(data_of_any_kind, budgets, st.integers(0, 5000), st.integers(0, 5000))
def test_a_preview_stays_within_its_budget(data: bytes, budget: int, head: int, tail: int) -> None:
    shown = preview(whole(data), budget)
    assert 0 <= shown.omitted_bytes <= len(data)
    assert shown.truncated is (shown.omitted_bytes > 0)
    stream = edged(data, head, tail)
    of_ends = preview(stream, budget, full_output="sha256/ab/cd.zst")
    assert of_ends.truncated or len(stream.head) + len(stream.tail) == len(data)
    for one in (shown, of_ends):
        assert len(one.text) <= budget
        one.text.encode()
        assert 0 <= one.omitted_lines <= stream.line_count


@given(runs(UNITS), budgets)
def test_a_whole_stream_is_shown_completely_or_accounted_for(units: list[str], budget: int) -> None:
    text = "".join(units)
    shown = preview(whole(text.encode()), budget)
    assert shown.encoding == "utf-8"
    if len(text) <= budget:
        assert shown == Preview(text, "utf-8", 0, 0)
    elif MARKER.search(shown.text):
        recount(text.encode(), shown)
    else:
        assert shown.text == f"[output truncated: {len(text.encode()):,} bytes]"[:budget]
        assert (shown.omitted_bytes, shown.omitted_lines) == (
            len(text.encode()),
            len(lines_of(text.encode())),
        )


@given(runs(UNITS), st.integers(150, 1500), st.integers(0, 9000), st.integers(0, 9000))
def test_two_ends_of_any_length_are_accounted_for(
    units: list[str], budget: int, head: int, tail: int
) -> None:
    data = "".join(units).encode()
    stream = edged(data, head, tail)
    assume(len(stream.head) + len(stream.tail) < len(data))
    shown = preview(stream, budget)
    # The middle is not known, so it cannot be shown, whatever the budget.
    assert shown.omitted_bytes > 0
    assert len(shown.text) <= budget
    if MARKER.search(shown.text):
        recount(data, shown)


@given(runs(UNITS), st.integers(150, 1200), st.integers(0, 40))
def test_the_ends_that_a_capture_promises_show_what_the_whole_would_show(
    units: list[str], budget: int, more: int
) -> None:
    data = "".join(units).encode()
    stream = edged(data, 4 * budget + more, 4 * budget + more)
    assume(len(data) > 8 * budget + 2 * more)
    assert preview(stream, budget) == preview(whole(data), budget)


@given(
    st.lists(st.sampled_from(["a", "\u00e9", "\u6f22", "\U0001f600"]), min_size=400, max_size=900),
    st.integers(1, 400),
    st.integers(1, 400),
    st.integers(100, 700),
)
def test_a_character_that_straddles_an_edge_is_never_shown_as_escapes(
    units: list[str], head: int, tail: int, budget: int
) -> None:
    shown = preview(edged("".join(units).encode(), head, tail), budget)
    assert "\\x" not in shown.text
    assert "\ufffd" not in shown.text
    assert shown.encoding == "utf-8"


@given(
    st.lists(
        st.sampled_from([*(u for u in UNITS if "\n" not in u and u != "a"), FLAG, FLAG * 40]),
        min_size=300,
        max_size=700,
    ),
    st.integers(150, 900),
)
def test_no_cluster_and_no_colour_is_ever_cut(units: list[str], budget: int) -> None:
    text = "".join(units)
    assume(len(text) > budget)
    first, _, last = pieces(preview(whole(text.encode()), budget))
    small = [part for unit in units for part in re.findall(r"\x1b\[[0-9;]*m|[a-z ]|[^\x1b]+", unit)]
    small = [p for part in small for p in ([FLAG] * part.count(FLAG) or [part])]
    small = [
        p for part in small for p in (["\u6f22", "\u5b57"] if part == "\u6f22\u5b57" else [part])
    ]
    assert "".join(small) == text
    ends = {0}
    position = 0
    for part in small:
        position += len(part)
        ends.add(position)
    assert len(first) in ends
    assert len(text) - len(last) in ends


@pytest.mark.parametrize("unit", [FAMILY, FLAG, "\U0001f44d\U0001f3fd", "\U0001f600\u0301"])
def test_clusters_of_the_widest_characters_are_not_cut_where_the_bytes_end(unit: str) -> None:
    for shift in range(5):
        text = "x" * shift + unit * 900
        first, _, last = pieces(preview(whole(text.encode()), 600))
        assert (len(first) - shift) % len(unit) == 0
        assert len(last) % len(unit) == 0


def test_a_colour_behind_the_widest_characters_is_not_cut_where_the_bytes_end() -> None:
    for shift in range(12):
        text = "\U0001f600" * (200 + shift) + "\x1b[38;5;196m" + "\U0001f600" * 2000
        first, _, _ = pieces(preview(whole(text.encode()), 560))
        assert "\x1b" not in first or first.endswith(("196m", "\U0001f600"))


def test_known_ends_that_meet_are_the_whole() -> None:
    data = "caf\u00e9 \u6f22\u5b57\n".encode()
    for head in range(len(data) + 1):
        assert preview(edged(data, head, len(data)), 100).text == data.decode()


def test_lines_are_kept_whole_at_both_ends_and_counted() -> None:
    data = b"".join(b"line %04d\n" % n for n in range(1000))
    shown = preview(whole(data), 500, full_output="sha256/ab/cd.zst")
    assert shown.text == (
        "".join(f"line {n:04}\n" for n in range(17))
        + "[output truncated: showing first 17 and last 18 lines; "
        "965 lines, 9,650 bytes omitted; full output: sha256/ab/cd.zst]\n"
        + "".join(f"line {n:04}\n" for n in range(982, 1000))
    )
    assert (shown.omitted_bytes, shown.omitted_lines) == (9650, 965)


def test_one_giant_line_falls_back_to_characters() -> None:
    data = b"0123456789" * 10_000
    shown = preview(whole(data), 1000)
    first, match, last = pieces(shown)
    assert match["first_unit"] == match["last_unit"] == "characters"
    assert f"first {match['first']} and last {match['last']} characters; " in shown.text
    assert len(shown.text) > 900
    assert abs(len(first) - len(last)) <= 20
    assert shown.omitted_lines == 0
    recount(data, shown)


def test_a_giant_last_line_falls_back_to_characters_at_the_end_only() -> None:
    data = b"".join(b"line %04d\n" % n for n in range(200)) + b"x" * 50_000
    shown = preview(whole(data), 600)
    _, match, _ = pieces(shown)
    assert (match["first_unit"], match["last_unit"]) == ("lines", "characters")
    assert f"first {match['first']} lines and last {match['last']} characters; " in shown.text
    recount(data, shown)


@each_case(
    "data",
    [
        b"text and then a NUL \0",
        b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + b"\0" * 100,
        bytes(range(128, 256)) * 20,
        "text".encode("utf-16"),
        b"\xff" * 41 + b"a" * 300,
    ],
    ids=["nul", "png", "high-bytes", "utf-16", "one-byte-in-eight"],
)
def test_what_is_no_text_is_described_in_one_line(data: bytes) -> None:
    stream = whole(data)
    shown = preview(stream, 300, full_output="sha256/ab/cd.zst")
    assert shown.text == (
        f"[binary output: {len(data):,} bytes, {stream.digest}; full output: sha256/ab/cd.zst]"
    )
    assert shown.encoding == "binary"
    assert (shown.omitted_bytes, shown.omitted_lines) == (len(data), stream.line_count)
    assert preview(stream, 300).text == f"[binary output: {len(data):,} bytes, {stream.digest}]"
    assert preview(stream, 9).text == "[binary o"


def test_a_nul_at_the_end_of_a_long_stream_is_noticed() -> None:
    assert preview(edged(b"text\n" * 50_000 + b"\0", 1000, 1000), 200).encoding == "binary"


def test_a_few_undecodable_bytes_are_spelled_out() -> None:
    text = "na\u00efve caf\u00e9, gar\u00e7on and other plain words of the Latin alphabet\n"
    data = text.encode("latin-1")
    shown = preview(whole(data), 1000)
    assert shown.encoding == "utf-8-escaped"
    assert shown.text == data.decode("utf-8", "backslashreplace")
    assert "caf\\xe9, gar\\xe7on" in shown.text


def test_a_cut_counts_the_bytes_behind_escapes_and_cuts_no_escape() -> None:
    data = ("\u00e9" + "plain words " * 2).encode("latin-1") * 400
    shown = preview(whole(data), 500)
    match = MARKER.search(shown.text)
    assert match is not None
    first, last = shown.text[: match.start()].rstrip("\n"), shown.text[match.end() + 1 :]
    start, end = (
        len(first) - 3 * first.count("\\xe9"),
        len(data) - len(last) + 3 * last.count("\\xe9"),
    )
    assert data[:start].decode("utf-8", "backslashreplace") == first
    assert data[end:].decode("utf-8", "backslashreplace") == last
    assert shown.omitted_bytes == end - start
    assert shown.encoding == "utf-8-escaped"


def test_undecodable_bytes_at_either_end_alone_are_named_too() -> None:
    plain, strange = b"plain line\n" * 500, b"caf\xe9\n"
    for data in (plain + strange, strange + plain):
        assert preview(edged(data, 2000, 2000), 400).encoding == "utf-8-escaped"
    assert preview(edged(plain + strange, 2000, 0), 400).encoding == "utf-8"


def test_a_negative_budget_shows_nothing() -> None:
    assert preview(whole(b"text"), -1).text == ""
    assert preview(whole(b"\0"), -1).text == ""


@settings(max_examples=times(10))
@example(b"a" * 300 + b"\xff" * 30)
@given(byte_runs)
def test_the_needed_characters_are_the_smallest_budget_that_shows_everything(data: bytes) -> None:
    stream = whole(data)
    needed = needed_chars(stream)
    shown = preview(stream, needed)
    if shown.encoding == "binary":
        text = preview(stream, 10_000, full_output="sha256/ab/" + "c" * 64 + ".zst").text
        assert len(text) <= needed
    else:
        assert not shown.truncated
        assert len(shown.text) == needed
        assert needed == 0 or preview(stream, needed - 1).truncated


def test_a_stream_of_which_only_ends_are_known_needs_as_much_as_it_is_long() -> None:
    assert needed_chars(edged(b"x" * 5000, 100, 100)) == 5000


@each_case("unit", ["a", "\u0080", "\u07ff", "\u0800", "\uffff", "\U00010000", "\U0010ffff"])
def test_every_complete_character_of_an_edge_is_shown_and_no_part_of_one(unit: str) -> None:
    data = (unit * 100).encode()
    for edge in range(1, 9):
        first, _, last = pieces(preview(edged(data, edge, edge), 500))
        complete = unit * (edge // len(unit.encode()))
        assert (first, last) == (complete, complete)


@pytest.mark.parametrize(("strange", "encoding"), [(14, "utf-8-escaped"), (15, "binary")])
def test_a_tenth_of_undecodable_bytes_and_one_torn_character_are_still_text(
    strange: int, encoding: str
) -> None:
    assert preview(whole(b"a" * (100 - strange) + b"\xff" * strange), 1000).encoding == encoding


@pytest.mark.parametrize(
    ("width", "unit", "count"),
    [(100, "lines", 2), (101, "lines", 1), (200, "lines", 1), (201, "characters", 200)],
)
def test_a_line_that_fills_its_half_exactly_is_kept_whole(
    width: int, unit: str, count: int
) -> None:
    data = (b"x" * (width - 1) + b"\n") * 40
    size = f"{len(data):,}"
    longest = len(
        f"[output truncated: showing first {size} characters and last {size} lines; "
        f"40 lines, {size} bytes omitted]"
    )
    _, match, _ = pieces(preview(whole(data), longest + 2 + 400))
    assert (match["first_unit"], number(match["first"])) == (unit, count)


def test_lines_that_fill_just_half_of_their_half_are_kept_whole() -> None:
    for width, unit in ((100, "lines"), (99, "characters")):
        data = b"x" * (width - 1) + b"\n" + b"y" * 9000
        longest = len(
            f"[output truncated: showing first {len(data):,} characters and last {len(data):,} "
            f"lines; 2 lines, {len(data):,} bytes omitted]"
        )
        _, match, _ = pieces(preview(whole(data), longest + 2 + 400))
        assert match["first_unit"] == unit


LINK = "\x1b]8;;https://example.org/" + "q" * 400 + "\x1b\\"
TITLE = "\x1b]0;" + "a title\n" * 40 + "\x07"


def test_a_long_link_is_not_cut() -> None:
    text = (LINK + "here\x1b]8;;\x1b\\ ") * 40
    for budget in range(1000, 2200, 7):
        first, _, last = pieces(preview(whole(text.encode()), budget))
        for piece in (first, last):
            rest = piece.replace(LINK, "").replace("\x1b]8;;\x1b\\", "")
            assert set(rest) <= set("here "), budget


def test_lines_are_not_cut_inside_an_escape_sequence() -> None:
    for before in range(0, 400, 9):
        text = "word\n" * before + TITLE + "\n" + "word\n" * (300 - before)
        shown = preview(whole(text.encode()), 1000)
        first, match, last = pieces(shown)
        for piece in (first, last):
            assert "\x1b" not in piece.replace(TITLE, "")
            assert "title" not in piece.replace(TITLE, "")
        assert match["first_unit"] == "lines"
        recount(text.encode(), shown)


def test_lines_before_and_behind_sequences_of_many_lines_are_what_is_shown() -> None:
    text = "start\n" * 60 + (TITLE + "\n") * 10 + "end\n" * 120
    count = f"{len(text):,}"
    longest = len(
        f"[output truncated: showing first {count} characters and last {count} lines; "
        f"{60 + 10 * 41 + 120} lines, {count} bytes omitted]"
    )
    # 360 + 326 are more than the half of 1,240, and 480 + 2 * 326 are more than the rest of it.
    first, match, last = pieces(preview(whole(text.encode()), longest + 2 + 1240))
    assert first == "start\n" * 60
    assert last == TITLE + "\n" + "end\n" * 120
    assert (match["first"], match["last"], match["last_unit"]) == ("60", "161", "lines")


@settings(max_examples=times(10), deadline=2000)
@given(
    st.sampled_from(
        ["\x1b]\n\x07", "\x1b]\n", "\x1b]0;" + "\n" * 5000 + "\x07", "\x1b]\x1b\\\n", "\x1b"]
    ),
    st.integers(1000, 250_000),
)
def test_sequences_that_are_made_to_slow_a_cut_down_do_not(unit: str, budget: int) -> None:
    text = unit * (600_000 // len(unit))
    assert len(preview(whole(text.encode()), budget).text) <= budget
