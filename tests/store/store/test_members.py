"""Sets of places and spreads of numbers, beside plain Python."""

import random
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tooltrail.store._reading.members import (
    RANGE,
    decode_set,
    encode_set,
    encode_spread,
    iter_places,
    members_between,
    set_of,
)

PLACES = st.integers(0, RANGE - 1)
NUMBERS = st.integers(-(2**63), 2**63 - 1) | st.integers(0, 20)


@given(st.sets(PLACES, max_size=100) | st.sets(PLACES, min_size=RANGE // 4))
def test_a_set_is_read_as_it_was_kept(places: set[int]) -> None:
    members = set_of(places)
    assert decode_set(encode_set(members)) == members
    assert list(iter_places(members, ascending=True)) == sorted(places)
    assert list(iter_places(members, ascending=False)) == sorted(places, reverse=True)


@pytest.mark.parametrize("count", [0, 1, 64, 65, RANGE])
def test_a_set_of_any_size_takes_little_room(count: int) -> None:
    data = encode_set(set_of(range(count)))
    assert len(data) == (2 * count if count <= 64 else RANGE // 8)
    assert decode_set(data).bit_count() == count


@pytest.mark.parametrize("data", [b"1", b"\xff\xff", bytes(513)])
def test_what_is_no_set_is_refused(data: bytes) -> None:
    with pytest.raises((ValueError, IndexError)):
        decode_set(data)


@given(
    st.lists(NUMBERS, max_size=300),
    st.none() | NUMBERS,
    st.none() | NUMBERS,
)
def test_every_place_that_holds_a_number_between_the_bounds_is_among_those_that_may(
    numbers: list[int], at_least: int | None, below: int | None
) -> None:
    spread = encode_spread((number, place) for place, number in enumerate(numbers))

    found = set(iter_places(members_between(spread, at_least, below), ascending=True))

    fitting = {
        place
        for place, number in enumerate(numbers)
        if (at_least is None or number >= at_least) and (below is None or number < below)
    }
    assert fitting <= found <= set(range(len(numbers)))


def test_few_places_may_hold_a_number_and_do_not() -> None:
    chance = random.Random(5)
    numbers = [int(chance.lognormvariate(6, 2)) for _ in range(RANGE)]
    spread = encode_spread((number, place) for place, number in enumerate(numbers))
    for at_least in chance.sample(numbers, 50):
        wanted = sum(number >= at_least for number in numbers)
        assert 0 <= members_between(spread, at_least, None).bit_count() - wanted < 64
        assert 0 <= members_between(spread, None, at_least).bit_count() - (RANGE - wanted) < 64


def test_a_number_that_very_many_have_is_told_from_the_next() -> None:
    numbers = [30_000] * 3_000 + [*range(29_000, 29_500), *range(30_001, 30_031)]
    spread = encode_spread((number, place) for place, number in enumerate(numbers))
    assert members_between(spread, 30_001, None).bit_count() == 30
    assert members_between(spread, 30_000, 30_001).bit_count() == 3_000


def test_nothing_is_between_numbers_that_are_far_apart() -> None:
    numbers = [*range(2_000), *range(10**9, 10**9 + 2_000)]
    spread = encode_spread((number, place) for place, number in enumerate(numbers))
    assert members_between(spread, 2_000, 10**9) == 0
    assert members_between(spread, 1_999, 10**9 + 1).bit_count() < 130


@pytest.mark.parametrize("cut", [1, 100, 512])
def test_a_spread_that_was_cut_is_refused(cut: int) -> None:
    spread = encode_spread((place, place) for place in range(RANGE))
    with pytest.raises((ValueError, struct.error)):
        members_between(spread[: -cut * 8], 5, None)
