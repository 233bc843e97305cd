"""Escaping gives every text back, and leaves nothing that begins or ends a block."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import each_case

from tooltrail.wire.text_fallback.markup import (
    FENCES,
    THOUGHTS,
    Escaping,
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


@pytest.mark.parametrize("marks", [tags("function_calls", "city"), THOUGHTS])
@given(any_texts)
def test_any_marks_are_kept_out_and_given_back(marks: Escaping, text: str) -> None:
    escaped = marks.escape(text)
    assert marks.unescape(escaped) == text
    assert marks.has_marks(escaped) is marks.has_marks(text)
    assert escaped == text or marks.has_marks(text)


@each_case(
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


@each_case(
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


@given(any_texts, st.booleans())
def test_fences_come_back_however_they_were_escaped(text: str, everywhere: bool) -> None:
    assert FENCES.unescape(FENCES.escape(text, everywhere=everywhere)) == text


def test_marks_of_lines_are_escaped_only_where_they_must_be() -> None:
    text = "```\ncode\n```\n\\``` a ```"
    assert FENCES.escape(text, everywhere=False) == "```\ncode\n```\n\\\\``` a ```"
    assert FENCES.escape(text, everywhere=True) == "\\```\ncode\n\\```\n\\\\``` a ```"
