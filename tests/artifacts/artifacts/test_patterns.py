"""The C library finds what Python finds."""

import ctypes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tooltrail.artifacts._patterns import best_search, contains

BYTES = st.one_of(st.binary(max_size=40), st.text("ab\0", max_size=40).map(str.encode))


@given(BYTES, BYTES, BYTES)
def test_it_finds_what_python_finds(before: bytes, needle: bytes, after: bytes) -> None:
    assert contains(before + needle + after, needle)
    assert contains(before, needle) == (needle in before)


class NoLibrary:
    """A C library without the search."""

    def __init__(self, _: None) -> None:
        pass


def test_where_the_c_library_has_none_python_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctypes, "CDLL", NoLibrary)
    search = best_search()
    assert search(b"a\0b", b"\0b")
    assert not search(b"ab", b"ba")
