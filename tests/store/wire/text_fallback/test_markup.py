"""Escaping gives every text back, and leaves nothing that begins or ends a block."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tooltrail.wire.text_fallback.json_text import (
    members_of,
    read_arguments,
    spelled_arguments,
    spelled_text,
    text_of,
)
from tooltrail.wire.text_fallback.markup import (
    FENCES,
    Escaping,
    LineEscaping,
    blocks,
    escape_attribute,
    tags,
    unescape_attribute,
)

FORGERIES = [
    "<", "</", "\\", "<\\", ">", "/", "tool_result", "TOOL_result", "tool_call", " ", "\n", '"',
    "&", "&amp;", "&#0;", "&lt", ";", "\0", "\r", "\x85", "\u2028", "\ud800", "\u017f", "\u212a",
    "too\u017f", "[", "[/", "TOOL_CALLS]", "TOOL_RESULTS]", "<|", "|>", "call", "end", "```", "~~~",
    "{", "{}", '{"name": "f", "parameters": {}}', "\\u003c", "x",
]  # fmt: skip
forged = st.lists(st.sampled_from(FORGERIES), max_size=12).map("".join)
any_texts = st.text(st.characters()) | forged


@given(any_texts)
def test_a_body_comes_back_and_holds_no_tag(text: str) -> None:
    escaped = tags("tool_result", "tool_call").escape(text)
    assert re.search("</?(tool_result|tool_call)", escaped, re.IGNORECASE) is None
    assert tags("tool_result", "tool_call").unescape(escaped) == text


@pytest.mark.parametrize(
    "marks",
    [
        tags("function_calls", "city"),
        Escaping("[", r"/?TOOL_(?:CALLS|RESULTS)\]"),
        Escaping("<", r"\|(?:start|end|call)\|>"),
    ],
)
@given(any_texts)
def test_any_marks_are_kept_out_and_given_back(marks: Escaping, text: str) -> None:
    escaped = marks.escape(text)
    assert marks.unescape(escaped) == text
    assert marks.marks(escaped) is marks.marks(text)
    assert escaped == text or marks.marks(text)


@pytest.mark.parametrize(
    ("text", "escaped"),
    [
        ("</tool_result>", "<\\/tool_result>"),
        ('<Tool_Result id="b">', '<\\Tool_Result id="b">'),
        ("<\\/tool_result>", "<\\\\/tool_result>"),
        ("<\\\\tool_result", "<\\\\\\tool_result"),
        ("if a < b: </div> \\", "if a < b: </div> \\"),
    ],
)
def test_a_backslash_goes_behind_the_bracket_and_code_stays_readable(
    text: str, escaped: str
) -> None:
    assert tags("tool_result").escape(text) == escaped
    assert tags("tool_result").unescape(escaped) == text


@given(any_texts)
def test_an_attribute_comes_back_and_ends_nothing(text: str) -> None:
    escaped = escape_attribute(text)
    assert unescape_attribute(escaped) == text
    assert not set('"<>\0') & set(escaped)
    assert len(f"a{escaped}a".splitlines()) == 1
    escaped.encode()


@pytest.mark.parametrize(
    ("spelled", "value"),
    [
        ("R&D", "R&D"),
        ("&copy", "&copy"),
        ("&lt", "&lt"),
        ("&notit;", "&notit;"),
        ("&apos;&quot;", "'\""),
        ("&#128;", "\x80"),
        ("&#1114112;", "&#1114112;"),
        ("&amp;lt;", "&lt;"),
    ],
)
def test_what_is_no_reference_of_xml_stays_as_the_model_wrote_it(spelled: str, value: str) -> None:
    assert unescape_attribute(spelled) == value


@pytest.mark.parametrize("marks", [FENCES, LineEscaping(r"\{")])
@given(any_texts, st.booleans())
def test_marks_of_lines_come_back_however_they_were_escaped(
    marks: LineEscaping, text: str, everywhere: bool
) -> None:
    assert marks.unescape(marks.escape(text, everywhere=everywhere)) == text


def test_marks_of_lines_are_escaped_only_where_they_must_be() -> None:
    text = "```\ncode\n```\n\\``` a ```"
    assert FENCES.escape(text, everywhere=False) == "```\ncode\n```\n\\\\``` a ```"
    assert FENCES.escape(text, everywhere=True) == "\\```\ncode\n\\```\n\\\\``` a ```"


@given(any_texts)
def test_a_text_of_json_is_on_one_line_and_has_no_mark(text: str) -> None:
    marks = tags("tool_call")
    spelled = spelled_text(text, marks)
    assert text_of(spelled) == text
    assert not marks.marks(spelled)
    assert len(spelled.splitlines()) == 1
    spelled.encode()


@given(any_texts | st.sampled_from(["{}", '{"a": 1.50}', ' {"a":1}', '{"a":"<tool_call>"}', "7"]))
def test_arguments_come_back_as_the_text_they_were(arguments: str) -> None:
    marks = tags("tool_call")
    spelled = spelled_arguments(arguments, marks)
    assert read_arguments(spelled) == arguments
    assert not marks.marks(spelled)
    members, end = members_of(f'{{"a": {spelled}}}', 0)
    assert members == {"a": spelled}
    assert end == len(spelled) + 7


def test_arguments_that_are_an_object_stay_one() -> None:
    spelled = '{ "b":1.50,\n "a":[2]}'
    assert spelled_arguments(spelled, tags("tool_call")) == spelled


@pytest.mark.parametrize(
    ("text", "members"),
    [
        ("{}", {}),
        ("{ \n}", {}),
        ('{"a":1}', {"a": "1"}),
        ('{ "a" : [1, {"b": "}"}] , "\\u0062":"x" }', {"a": '[1, {"b": "}"}]', "b": '"x"'}),
    ],
)
def test_members_keep_their_spelling(text: str, members: dict[str, str]) -> None:
    assert members_of(f"..{text}..", 2) == (members, len(text) + 2)


@pytest.mark.parametrize(
    "text",
    ["", "[", "7", "{", '{"a"', '{"a":', '{"a":1', '{"a":1,', '{"a" 1}', "{a:1}", '{"a":1 "b":2}',
     '{"a":1,"a":2}', '{"a', '{"a":' + "[" * 100_000],
)  # fmt: skip
def test_what_is_no_object_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        members_of(text, 0)


def test_a_block_without_an_end_gives_none_and_hides_none() -> None:
    begin, mark, end = re.compile("<b>"), re.compile("</?b"), re.compile("</b>")
    text = "<b>lost <b>found</b> <b>cut off"
    assert [(one.start(), body, last) for one, body, last in blocks(text, begin, mark, end)] == [
        (8, "found", 20)
    ]
