"""A ranged reader reads as a file does, and asks for little more than it must."""

import io
import os
from typing import cast

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.support.effort import times

from tooltrail.artifacts._ranged_reader import FIRST_BLOCK, LARGEST_BLOCK, RangedReader, open_ranged

DATA = os.urandom(3 * FIRST_BLOCK + 12_345)


class Object:
    """Bytes that remember which ranges of them were asked for."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.asked: list[tuple[int, int]] = []

    def fetch(self, start: int, stop: int) -> bytes:
        assert 0 <= start < stop <= self.size
        self.asked.append((start, stop))
        return DATA[start:stop] if stop <= len(DATA) else bytes(stop - start)


MOVES = st.tuples(st.just("seek"), st.integers(0, len(DATA) + 10))
READS = st.tuples(st.sampled_from(["read", "readinto"]), st.integers(0, FIRST_BLOCK + 5_000))


@settings(max_examples=times(15), deadline=None)
@given(steps=st.lists(MOVES | READS, max_size=12))
def test_it_reads_what_a_file_reads(steps: list[tuple[str, int]]) -> None:
    ours = open_ranged(Object(len(DATA)).fetch, len(DATA))
    with ours, io.BytesIO(DATA) as theirs:
        for step, number in steps:
            if step == "seek":
                assert ours.seek(number) == theirs.seek(number)
            elif step == "read":
                assert ours.read(number) == theirs.read(number)
            else:
                buffer = bytearray(number)
                count: int = cast("io.BufferedReader", ours).readinto(buffer)
                assert buffer[:count] == theirs.read(count)
            assert ours.tell() == theirs.tell()
        assert ours.read() == theirs.read()


def test_blocks_start_small_again_after_a_jump() -> None:
    stored = Object(5 * LARGEST_BLOCK)
    with open_ranged(stored.fetch, stored.size) as reader:
        reader.read(3 * FIRST_BLOCK)
        reader.seek(2 * LARGEST_BLOCK)
        reader.read(10)
    assert stored.asked[-1] == (2 * LARGEST_BLOCK, 2 * LARGEST_BLOCK + FIRST_BLOCK)


def test_a_jump_inside_of_what_was_fetched_asks_for_nothing() -> None:
    stored = Object(5 * LARGEST_BLOCK)
    with open_ranged(stored.fetch, stored.size) as reader:
        for position in (10, FIRST_BLOCK - 300_000, 0, 500_000):
            reader.seek(position)
            assert len(reader.read(1000)) == 1000
    assert stored.asked == [(10, 10 + FIRST_BLOCK), (0, FIRST_BLOCK)]


def test_it_does_not_go_before_the_beginning() -> None:
    reader = RangedReader(Object(10).fetch, 10)
    with pytest.raises(ValueError, match="not a position in a file: -1"):
        reader.seek(-1)
    with pytest.raises(ValueError, match="not a position in a file: -1"):
        reader.seek(-11, os.SEEK_END)
    assert reader.seek(-10, os.SEEK_END) == 0


def test_an_object_that_has_become_shorter_ends_early() -> None:
    with open_ranged(lambda _start, _stop: b"", 10) as reader:
        assert reader.read() == b""
