"""Ids are UUIDv7 and rise strictly, whatever the clock does."""

import itertools
import threading
from collections.abc import Callable
from uuid import RFC_4122, UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import each_case

from tooltrail.records import IdFactory, InvalidRecordError, parse_id, short_id
from tooltrail.records.ids import MAX_KEY_CHARS, SHORT_ID_DIGITS, keyed_id, uuid7

NOW = 1_790_000_000_000


def factory(*readings: int, entropy: Callable[[int], bytes] = bytes) -> IdFactory:
    """A factory whose clock gives these milliseconds, the last one for ever."""
    clock = itertools.chain(readings, itertools.repeat(readings[-1]))
    return IdFactory(unix_ms=lambda: next(clock), entropy=entropy)


def milliseconds(record_id: UUID) -> int:
    return record_id.int >> 80


def counter_of(record_id: UUID) -> int:
    return record_id.int >> 64 & 0xFFF


@given(st.integers(0, (1 << 48) - 1), st.integers(0, (1 << 12) - 1), st.integers(0, (1 << 62) - 1))
def test_an_id_has_the_version_the_variant_and_its_three_parts(
    unix_ms: int, counter: int, tail: int
) -> None:
    made = uuid7(unix_ms, counter, tail)
    assert made.version == 7
    assert made.variant == RFC_4122
    assert milliseconds(made) == unix_ms
    assert counter_of(made) == counter
    assert made.int & ((1 << 62) - 1) == tail


def test_the_example_of_rfc_9562_is_put_together() -> None:
    # Appendix A.6: 2022-02-22T19:22:22.000Z
    made = uuid7(0x017F22E279B0, 0xCC3, 0x18C4DC0C0C07398F)
    assert str(made) == "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"


def test_entropy_fills_62_bits_and_never_the_variant() -> None:
    asked: list[int] = []

    def ones(count: int) -> bytes:
        asked.append(count)
        return b"\xff" * count

    made = factory(NOW, entropy=ones)()
    assert asked == [8]
    assert made.int & ((1 << 62) - 1) == (1 << 62) - 1
    assert (made.version, made.variant) == (7, RFC_4122)


@given(st.lists(st.integers(NOW, NOW + 50), min_size=2, max_size=200))
def test_ids_rise_strictly_while_the_clock_jumps_in_both_directions(readings: list[int]) -> None:
    make = factory(*readings)
    made = [make() for _ in readings]
    assert made == sorted(set(made))
    assert [i.hex for i in made] == sorted(i.hex for i in made)


def test_ids_follow_a_clock_that_goes_forward() -> None:
    make = factory(NOW, NOW + 1, NOW + 5)
    made = [make() for _ in range(3)]
    assert [milliseconds(i) for i in made] == [NOW, NOW + 1, NOW + 5]
    assert [counter_of(i) for i in made] == [0, 0, 0]


def test_the_counter_rises_by_one_within_a_millisecond() -> None:
    make = factory(NOW)
    assert [counter_of(make()) for _ in range(4098)] == [*range(4096), 0, 1]


def test_a_factory_that_ran_ahead_waits_for_the_clock_to_pass_it() -> None:
    readings = [NOW] * 4097 + [NOW + 1, NOW + 2]
    make = factory(*readings)
    made = [make() for _ in readings]
    assert made == sorted(set(made))
    assert [milliseconds(i) for i in made[-3:]] == [NOW + 1, NOW + 1, NOW + 2]


def test_threads_share_a_factory_without_a_double_and_each_sees_its_own_rise() -> None:
    make = factory(NOW)
    made: list[list[UUID]] = [[] for _ in range(8)]
    start = threading.Barrier(8)

    def work(mine: list[UUID]) -> None:
        start.wait()
        mine.extend(make() for _ in range(2000))

    threads = [threading.Thread(target=work, args=(mine,)) for mine in made]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all(mine == sorted(mine) for mine in made)
    assert len({record_id for mine in made for record_id in mine}) == 16_000


@given(st.uuids())
def test_an_id_is_read_in_its_full_spelling(record_id: UUID) -> None:
    assert parse_id(str(record_id)) == record_id
    assert parse_id(record_id.hex) == record_id
    assert parse_id(str(record_id).upper()) == record_id


@each_case(
    "text",
    [
        *("", "no id", "017f22e2", "017f22e279b07cc398c4dc0c0c07398"),
        *("017f22e279b07cc398c4dc0c0c07398f0", "017f22e279b07cc398c4dc0c0c07398g"),
        "{017f22e2-79b0-7cc3-98c4-dc0c0c07398f}",
        *("urn:uuid:017f22e2-79b0-7cc3-98c4-dc0c0c07398f", "017f22e2-79b07cc3-98c4-dc0c0c07398f"),
        *("0-17f22e279b07cc398c4dc0c0c07398f", "0x7f22e279b07cc398c4dc0c0c07398f"),
        *("+17f22e279b07cc398c4dc0c0c07398f", "0_7f22e279b07cc398c4dc0c0c07398f"),
        *("017f22e279b07cc398c4dc0c0c07398f\n", "\u06617f22e279b07cc398c4dc0c0c07398"),
    ],
)
def test_anything_else_is_no_id(text: str) -> None:
    with pytest.raises(InvalidRecordError, match="not an id"):
        parse_id(text)


@pytest.mark.parametrize(("kind", "what"), [("name", "the name of a session"), ("call", "a key")])
def test_a_key_of_another_length_is_refused_by_what_it_is(kind: str, what: str) -> None:
    with pytest.raises(InvalidRecordError, match=f"^{what} must have 1 to 1,000 characters, not "):
        keyed_id(kind, "x" * (MAX_KEY_CHARS + 1))


def test_a_short_id_is_the_random_end() -> None:
    made = UUID("017f22e2-79b0-7cc3-98c4-dc0c0c07398f")
    assert short_id(made) == "0c07398f"
    assert len(short_id(made)) == SHORT_ID_DIGITS
