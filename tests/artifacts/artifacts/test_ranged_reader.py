"""A ranged reader reads as a file does, and asks for little more than it must."""

import io
import os
from typing import cast

from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.effort import times

from tooltrail.artifacts._ranged_reader import FIRST_BLOCK, LARGEST_BLOCK, open_ranged

DATA = os.urandom(3 * FIRST_BLOCK + 12_345)
READS = st.tuples(st.sampled_from(["read", "readinto"]), st.integers(0, FIRST_BLOCK + 5_000))


def fetch(start: int, stop: int) -> bytes:
    assert 0 <= start < stop <= len(DATA)
    return DATA[start:stop]


@settings(max_examples=times(15), deadline=None)
@given(steps=st.lists(READS, max_size=12))
def test_it_reads_what_a_file_reads(steps: list[tuple[str, int]]) -> None:
    ours = open_ranged(fetch, len(DATA))
    with ours, io.BytesIO(DATA) as theirs:
        for step, number in steps:
            if step == "read":
                assert ours.read(number) == theirs.read(number)
            else:
                buffer = bytearray(number)
                count: int = cast("io.BufferedReader", ours).readinto(buffer)
                assert buffer[:count] == theirs.read(count)
        assert ours.read() == theirs.read()


def test_requests_become_larger_and_overlap_nowhere() -> None:
    asked: list[tuple[int, int]] = []

    def remembered(start: int, stop: int) -> bytes:
        asked.append((start, stop))
        return bytes(stop - start)

    size = 5 * LARGEST_BLOCK
    with open_ranged(remembered, size) as reader:
        assert len(reader.read(10)) == 10
        assert asked == [(0, FIRST_BLOCK)]
        assert len(reader.read()) == size - 10
    assert [start for start, _ in asked] == [0, *(stop for _, stop in asked[:-1])]
    sizes = [stop - start for start, stop in asked]
    assert sizes[1:4] == [2 * FIRST_BLOCK, 4 * FIRST_BLOCK, LARGEST_BLOCK]
    assert max(sizes) == LARGEST_BLOCK


def test_an_object_that_has_become_shorter_ends_early() -> None:
    with open_ranged(lambda start, stop: DATA[start : min(stop, 700_000)], len(DATA)) as reader:
        assert reader.read() == DATA[:700_000]
