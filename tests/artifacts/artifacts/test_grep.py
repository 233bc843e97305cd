"""Grep finds what looking at each line by itself finds."""

import io
import re
import uuid
import warnings
from typing import NamedTuple

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.support.cases import each_case
from tests.support.effort import times
from tests.support.processes import run_python
from tests.support.sinks import CountingSink, counting_sink, framed, put_raw

from tooltrail.artifacts import ArtifactArchive, ArtifactReader, Match
from tooltrail.artifacts import _ahead as ahead_module
from tooltrail.artifacts import _frames as frames_module
from tooltrail.artifacts import _line_blocks as blocks_module
from tooltrail.records.errors import DamageError, InvalidRecordError

ATOMS = [
    *("a", "B", "ab", ".", "^", "$", "[ab]", "[^a]", "[^]a]", "[^-a]", "[a-b1]", "é"),
    *(r"\s", r"\S", r"\w", r"\W", r"\d", r"\D", r"\b", r"\B", r"[^\s]", r"[\s,]", r"[\W_]"),
    *(r"\A", r"\Z", r"\n", r"\x0a", r"\r", r"[\t-\r]", r"[\b-~]", r"\\", r"\[", "\n", "\\\n"),
    *("(?=a)", "(?!b)", r"(?!\s)", "(?<=a)", "(?<!a)", "(?>a*)", "(?:ab)", "(ab)", "(a|B)", "|"),
    *("(?i)", "(?P<x>a)", "(?i:b)", "(?s:.)", "(?-m:^)"),
]
REGEXES = st.lists(
    st.tuples(st.sampled_from(ATOMS), st.sampled_from(["", "", "*", "+", "?", "*?", "*+", "{2}"])),
    max_size=4,
).map(lambda parts: "".join(atom + times for atom, times in parts))
LITERALS = st.text("aB1 \r\t\x00[]^é", max_size=4)
PIECES = st.sampled_from(
    [
        *("", "\n", "\n\n", "a", "ab", "aab\n", "B\n", " ", "\r\n", "1"),
        *("\x00", "[a]", "é\n", "\\", "-_"),
    ]
)
TEXTS = st.lists(PIECES, max_size=30).map(lambda pieces: "".join(pieces).encode())
CONTENTS = st.one_of(TEXTS, st.binary(max_size=60))


def reader_of(plain: bytes, size: int) -> tuple[ArtifactReader, CountingSink]:
    sink, made = counting_sink(), framed(plain, size)
    put_raw(sink, made.path, made.stored)
    return ArtifactArchive(sink).reader(made.path), sink


def compiled(pattern: str, *, literal: bool, ignore_case: bool) -> "re.Pattern[bytes] | None":
    source = pattern.encode()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)
            return re.compile(
                re.escape(source) if literal else source, re.IGNORECASE if ignore_case else 0
            )
    except re.error:
        return None


def asks_for_newline(pattern: str, *, literal: bool) -> bool:
    """Whether one of the atoms above does."""
    escapes = () if literal else (r"\n", r"\x0a")
    return any(newline in pattern for newline in ("\n", *escapes))


class Wanted(NamedTuple):
    """Everything that can be asked besides the pattern."""

    literal: bool = False
    ignore_case: bool = False
    invert: bool = False
    before: int = 0
    after: int = 0
    max_count: int | None = None


WANTED = st.builds(
    Wanted,
    literal=st.booleans(),
    ignore_case=st.booleans(),
    invert=st.booleans(),
    before=st.integers(0, 3),
    after=st.integers(0, 3),
    max_count=st.one_of(st.none(), st.integers(0, 4)),
)


def naive(plain: bytes, regex: "re.Pattern[bytes]", wanted: Wanted) -> list[Match]:
    """The same by looking at each line, as the documentation says it."""
    lines = io.BytesIO(plain).readlines()
    hits = [
        number
        for number, line in enumerate(lines)
        if (regex.search(line.removesuffix(b"\n")) is None) == wanted.invert
    ][: wanted.max_count]
    shown = {near for hit in hits for near in range(hit - wanted.before, hit + wanted.after + 1)}
    return [
        Match(number + 1, len(b"".join(lines[:number])), line, number not in hits)
        for number, line in enumerate(lines)
        if number in shown
    ]


@settings(max_examples=times(150), deadline=None)
@example(r"a(?!\s)", Wanted(), b"a\nb", 64)
@example("[[a]", Wanted(), b"[\n", 64)
@example("^$", Wanted(), b"a\n\n", 1)
@example("", Wanted(literal=True, before=1, after=1), b"a\n\nb", 2)
@example(r"\s+$", Wanted(max_count=1), b" \n\n a", 3)
@given(st.one_of(REGEXES, LITERALS), WANTED, CONTENTS, st.sampled_from([1, 2, 5, 64]))
def test_grep_finds_what_each_line_has_by_itself(
    pattern: str, wanted: Wanted, plain: bytes, size: int
) -> None:
    reader, _ = reader_of(plain, size)
    regex = compiled(pattern, literal=wanted.literal, ignore_case=wanted.ignore_case)
    if regex is None or asks_for_newline(pattern, literal=wanted.literal):
        with pytest.raises(InvalidRecordError):
            reader.grep(pattern, literal=wanted.literal)
        return
    expected = naive(plain, regex, wanted)
    assert list(reader.grep(pattern, **wanted._asdict())) == expected
    count = reader.count_matches(
        pattern,
        literal=wanted.literal,
        ignore_case=wanted.ignore_case,
        invert=wanted.invert,
        max_count=wanted.max_count,
    )
    assert count == sum(not match.is_context for match in expected)


@settings(max_examples=times(50), deadline=None)
@given(
    literal=st.text("ab", min_size=1, max_size=9),
    plain=st.lists(st.sampled_from(["a", "b", "ab", "ba", "\n"]), max_size=80),
    size=st.integers(1, 12),
)
def test_a_literal_is_found_across_the_ends_of_frames(
    literal: str, plain: list[str], size: int
) -> None:
    text = "".join(plain).encode()
    reader, _ = reader_of(text, size)
    wanted = [n + 1 for n, line in enumerate(text.split(b"\n")) if literal.encode() in line]
    found = list(reader.grep(literal, literal=True))
    assert [match.line_number for match in found] == wanted
    assert reader.count_matches(literal, literal=True) == len(wanted)
    for match in found:
        assert text[match.offset :].startswith(match.line)


@pytest.mark.parametrize("pattern", ["$", "^", "x*$", "^a$|^$"])
def test_an_unfinished_last_line_has_an_end(pattern: str) -> None:
    for plain, count in ((b"a", 1), (b"a\n", 1), (b"a\na", 2), (b"a\n\n", 2)):
        reader, _ = reader_of(plain, 5)
        assert reader.count_matches(pattern) == count, plain


@pytest.mark.parametrize("ignore_case", [False, True])
def test_many_matches_in_a_block_are_counted_as_few_are(ignore_case: bool) -> None:
    lines = [b"word word" if n % 3 else b"nothing" for n in range(5_000)]
    reader, _ = reader_of(b"\n".join(lines), 9_000)
    wanted = sum(b"word" in line for line in lines)
    assert reader.count_matches("word", literal=True, ignore_case=ignore_case) == wanted
    assert reader.count_matches("word", literal=True, max_count=100) == 100
    assert reader.count_matches("word", literal=True, invert=True) == 5_000 - wanted


@each_case(
    "pattern",
    [
        *("a\nb", r"a\nb", r"a\x0ab", r"\x0A", r"\012", r"(a|\n)", r"a(\n|$)", "\\\n", r"a\n?"),
        *(r"a[\n]?", "[\n]", r"[\012\n-\n]", r"[^\x00-\x09\x0b-\xff]", r"(?#a)\n"),
        *(r"(?#a\)\n)\n", "(?x)a # b\n \\n", r"(?x)[#]\n"),
    ],
)
def test_a_pattern_with_a_newline_is_refused_and_told_why(pattern: str) -> None:
    reader, _ = reader_of(b"a\nb\n", 5)
    for search in (
        lambda: reader.grep(pattern),
        lambda: reader.count_matches(f"{pattern}\n", literal=True),
    ):
        with pytest.raises(InvalidRecordError, match="a newline: each line is searched without"):
            search()


@each_case(
    "pattern",
    [
        *(r"a[^\n]", r"a[\n-z]", r"a\\n", r"a\x0b?b", "(?x) a\n b", r"a\0012|ab", r"ab\s?"),
        *(r"(?#\n)ab", r"(?#a\)\n)ab", "(?#\n)ab", r"(?x)ab # \n", "(?x)ab # \\\n \\n", r"ab[\n ]"),
    ],
)
def test_a_pattern_that_matches_without_a_newline_is_none(pattern: str) -> None:
    reader, _ = reader_of(b"ab a\\n\n", 5)
    assert reader.count_matches(pattern) == 1


def test_text_is_its_utf_8_and_bytes_are_bytes() -> None:
    reader, _ = reader_of("Größe\nGrosse\n".encode() + b"\xff\xfe\n", 5)
    assert [match.line_number for match in reader.grep("Größe", literal=True)] == [1]
    assert [match.line_number for match in reader.grep("GRÖSSE", ignore_case=True)] == []
    assert [match.line_number for match in reader.grep("Gr..?ß")] == [1]
    assert [match.line_number for match in reader.grep(b"\xff", literal=True)] == [3]
    # As the command line hands over an argument that is no UTF-8.
    assert [match.line_number for match in reader.grep("\udcff", literal=True)] == [3]


@pytest.mark.parametrize("pattern", ["(", "[a", "*", "a{2", "(?P<1>a)", "a" + "{9999999999}"])
def test_what_is_no_expression_is_refused(pattern: str) -> None:
    reader, _ = reader_of(b"text a{2\n", 5)
    if pattern == "a{2":
        assert reader.count_matches(pattern) == 1
        return
    with pytest.raises(InvalidRecordError, match="not a regular expression"):
        reader.grep(pattern)
    assert reader.count_matches(pattern, literal=True) == 0


COUNT_FOR_EVER = """
import resource, signal, sys
from pathlib import Path
from tests.support.sinks import counting_sink, framed, put_raw
from tooltrail.artifacts import ArtifactArchive

sink, made = counting_sink(), framed(b"x\\n" * 20_100 + b"a" * 200 + b"\\n" * 9_000, 10_000)
put_raw(sink, made.path, made.stored)
reader = ArtifactArchive(sink).reader(made.path)
assert reader.count_matches("(a|a)*$") == 29_100
# In seconds of processor time, so that the search has begun on a busy machine too.
resource.setrlimit(resource.RLIMIT_CPU, (30, 30))
signal.signal(signal.SIGPROF, signal.default_int_handler)
signal.setitimer(signal.ITIMER_PROF, 0.5)
try:
    reader.count_matches("(a|a)*b")
except KeyboardInterrupt:
    print("interrupted")
"""


def test_a_count_ends_when_it_is_interrupted_however_long_the_expression_takes() -> None:
    assert run_python(COUNT_FOR_EVER) == ("interrupted\n", "")


def test_numbers_below_none_are_refused() -> None:
    reader, _ = reader_of(b"text\n", 5)
    for before, after in ((-1, 0), (0, -1)):
        with pytest.raises(InvalidRecordError, match="not a number of lines: -1"):
            reader.grep("a", before=before, after=after)
    with pytest.raises(InvalidRecordError, match="not a number of matches: -1"):
        reader.grep("a", max_count=-1)


def test_numbers_may_be_larger_than_any_artifact() -> None:
    reader, _ = reader_of(b"a\nb\nc\n", 1)
    found = reader.grep("b", before=10**30, after=10**30, max_count=10**30)
    assert b"".join(match.line for match in found) == b"a\nb\nc\n"


def test_who_stops_early_fetches_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(frames_module, "REQUEST_BYTES", 1)
    lines = [f"line {n} {uuid.uuid4()}\n" for n in range(1_000)]
    reader, sink = reader_of("".join(lines).encode(), 40)
    found = reader.grep("line", literal=True, max_count=2)
    assert [match.line_number for match in found] == [1, 2]
    # What was asked for ahead, and no more.
    assert len(sink.requests) <= 4 + 2 * ahead_module.IN_FLIGHT
    sink.requests.clear()
    assert list(reader.grep("line", max_count=0)) == []
    assert reader.count_matches("line", max_count=0) == 0
    assert len(sink.requests) <= 2 + ahead_module.IN_FLIGHT


def test_a_line_that_cannot_be_held_is_refused_and_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(blocks_module, "LINE_BYTES", 1_000)
    reader, _ = reader_of(b"first\nsecond\n" + b"x" * 5_000 + b"\nlast\n", 64)
    found = reader.grep("x")
    with pytest.raises(InvalidRecordError, match=r"line 3 of artifact \S+ has more than 1,000"):
        list(found)
    assert [match.line_number for match in reader.grep("second", max_count=1)] == [2]
    with pytest.raises(InvalidRecordError, match=r"line 3 of artifact \S+ has more than 1,000"):
        reader.count_matches("x")
    assert reader.count_matches("second", max_count=1) == 1


def test_a_line_that_goes_over_many_frames_is_found_whole() -> None:
    giant = b"x" * 3_000 + b"needle" + b"y" * 3_000
    reader, _ = reader_of(b"first\n" + giant + b"\nlast", 100)
    for literal in (True, False):
        assert list(reader.grep("needle", literal=literal)) == [Match(2, 6, giant + b"\n")]
        assert reader.count_matches("needle", literal=literal) == 1
        assert reader.count_matches("needle", literal=literal, invert=True) == 2
    assert reader.count_matches("last", literal=True) == 1


@pytest.mark.parametrize("frame", [0, 3, 4, 11])
def test_everything_before_a_damaged_frame_is_found_and_the_frame_is_named(frame: int) -> None:
    plain = b"".join(b"line %d\n" % n for n in range(900))
    sink, made = counting_sink(), framed(plain, 512)
    damaged = bytearray(made.stored)
    damaged[made.index.stored_span(frame)[0] + 20] ^= 1
    put_raw(sink, made.path, bytes(damaged))
    seen: list[Match] = []
    reader = ArtifactArchive(sink).reader(made.path)
    start = made.index.plain_span(frame)[0]
    with pytest.raises(
        DamageError, match=f"in the frame at byte {start:,} of the output: "
    ) as caught:
        seen.extend(reader.grep("line"))
    assert caught.value.path == made.path
    # The line that goes on in the damaged frame is not whole.
    assert b"".join(match.line for match in seen) == plain[: plain.rfind(b"\n", 0, start) + 1]
    with pytest.raises(DamageError, match=f"in the frame at byte {start:,} of the output: "):
        reader.count_matches("line")
    assert reader.count_matches("line", max_count=len(seen)) == len(seen)


def test_an_empty_artifact_has_no_lines() -> None:
    reader, _ = reader_of(b"", 5)
    assert list(reader.grep("")) == []
    assert reader.count_matches("", invert=True) == 0
