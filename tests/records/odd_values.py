"""Values of every kind that a tool may raise, return or give as details."""

import collections
import enum
import math
from typing import Any

from hypothesis import strategies as st

from tooltrail.records import ErrorKind, ToolError


def wrapped(value: Any, levels: int) -> Any:
    for _ in range(levels):
        value = [value]
    return value


class Loud:
    def __init__(self, text: str) -> None:
        self.text = text

    def __str__(self) -> str:
        return self.text


class Silent:
    def __str__(self) -> str:
        raise RuntimeError


class Half(float):
    pass


class StrKind(enum.StrEnum):
    A = "a"


def queue(values: list[Any]) -> collections.deque[Any]:
    return collections.deque(values)


leaves: st.SearchStrategy[Any] = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.complex_numbers()
    | st.text(st.characters())
    | st.binary()
    | st.datetimes()
    | st.decimals()
    | st.uuids()
    | st.builds(pow, st.just(10), st.integers(4000, 5200))
    | st.builds(object)
    | st.builds(Silent)
    | st.builds(Loud, st.text())
    | st.sampled_from(
        [math, ToolError, ErrorKind, len, ..., range(10**9), iter([]), ValueError("a")]
    )
)
keys: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.integers() | st.text(st.characters()) | st.binary() | st.dates(),
    lambda inner: st.tuples(inner, inner) | st.frozensets(inner, max_size=3),
    max_leaves=4,
)
anything: st.SearchStrategy[Any] = st.recursive(
    leaves,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.tuples(inner, inner)
        | st.sets(keys, max_size=4)
        | st.dictionaries(keys, inner, max_size=4)
        | st.lists(inner, max_size=3).map(queue)
        | st.builds(wrapped, inner, st.integers(0, 400))
    ),
    max_leaves=12,
)
