"""The one estimate of tokens: UTF-8 bytes / 4, rounded up."""

from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import each_case

from tooltrail.records import estimate_tokens


@each_case(
    ("text", "tokens"),
    [
        ("", 0),
        ("a", 1),
        ("abcd", 1),
        ("abcde", 2),
        ("é", 1),
        ("ééé", 2),
        ("😀", 1),
        ("😀x", 2),
        ("\ud800", 2),
        ("x" * 4000, 1000),
    ],
)
def test_four_bytes_of_utf_8_are_a_token(text: str, tokens: int) -> None:
    assert estimate_tokens(text) == tokens


@given(st.text(), st.text())
def test_two_texts_apart_take_at_most_one_token_more_than_together(one: str, other: str) -> None:
    together = estimate_tokens(one + other)
    assert together <= estimate_tokens(one) + estimate_tokens(other) <= together + 1
