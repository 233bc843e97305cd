"""Ranges of bytes mean what slices of the same bytes mean."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tooltrail.artifacts._ranges import check_range, clip
from tooltrail.records.errors import InvalidRecordError

SIZES = st.integers(0, 20)


@given(size=SIZES, start=st.integers(0, 25), length=st.none() | st.integers(0, 25))
def test_a_clipped_range_is_the_slice(size: int, start: int, length: int | None) -> None:
    stop = None if length is None else start + length
    check_range(start, stop)
    first, end = clip(start, stop, size)
    assert 0 <= first <= end <= size
    assert range(size)[first:end] == range(size)[start:stop]


@given(size=SIZES, count=st.integers(1, 25))
def test_a_range_from_the_end_is_the_slice(size: int, count: int) -> None:
    check_range(-count, None)
    first, end = clip(-count, None, size)
    assert 0 <= first <= end == size
    assert range(size)[first:end] == range(size)[-count:]


@given(start=st.integers(-5, 5), stop=st.integers(-5, 5))
def test_what_is_no_range_is_refused(start: int, stop: int) -> None:
    if 0 <= start <= stop:
        check_range(start, stop)
        return
    with pytest.raises(InvalidRecordError, match=f"not a range of bytes: from {start} to {stop}"):
        check_range(start, stop)
