"""Bodies: any bytes there and back, small when they can be, and damage never passes for content."""

import json
from contextlib import suppress

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from tooltrail.records import DamageError, DigestMismatchError, digest_of
from tooltrail.store.bodies import decode_body, encode_body, pack_fact, unpack_fact

BYTES = st.one_of(
    st.binary(max_size=300),
    st.tuples(st.binary(min_size=1, max_size=9), st.integers(1, 900)).map(lambda p: p[0] * p[1]),
)
TEXT = b"the same line again\n" * 40


@given(BYTES)
def test_what_is_encoded_decodes_to_itself_and_never_grows(data: bytes) -> None:
    encoding, stored = encode_body(data)
    assert len(stored) <= len(data)
    assert decode_body(digest_of(data), len(data), encoding, stored) == data


def test_short_bytes_are_kept_raw_and_long_text_is_compressed() -> None:
    assert encode_body(b"short") == ("raw", b"short")
    encoding, stored = encode_body(TEXT)
    assert encoding == "zstd"
    assert len(stored) < len(TEXT) / 5


@pytest.mark.parametrize("data", [b"short", TEXT])
def test_any_flipped_bit_is_damage(data: bytes) -> None:
    encoding, stored = encode_body(data)
    for place in range(len(stored)):
        for bit in range(8):
            altered = bytearray(stored)
            altered[place] ^= 1 << bit
            # Some bits of a frame's header mean nothing.
            with suppress(DamageError):
                assert decode_body(digest_of(data), len(data), encoding, bytes(altered)) == data


@pytest.mark.parametrize("data", [b"short", TEXT])
def test_bytes_that_were_cut_are_damage(data: bytes) -> None:
    encoding, stored = encode_body(data)
    for length in range(len(stored)):
        with pytest.raises(DamageError):
            decode_body(digest_of(data), len(data), encoding, stored[:length])


def test_other_bytes_of_the_same_size_are_damage() -> None:
    with pytest.raises(DigestMismatchError, match="another digest"):
        decode_body(digest_of(b"right"), 5, "raw", b"wrong")


def test_a_header_that_announces_more_than_memory_holds_is_damage() -> None:
    announced = b"\x28\xb5\x2f\xfd\xe0" + (1 << 46).to_bytes(8, "little") + b"\x01\x00\x00"
    with pytest.raises(DigestMismatchError, match="wrong size"):
        decode_body(digest_of(TEXT), len(TEXT), "zstd", announced)


@pytest.mark.parametrize("size", [-1, (1 << 63) - 1, None, "5"])
def test_a_size_that_no_body_has_is_damage(size: object) -> None:
    unsized = zstandard.ZstdCompressor(write_content_size=False).compress(TEXT)
    announced = b"\x28\xb5\x2f\xfd\xe0" + ((1 << 63) - 1).to_bytes(8, "little") + b"\x01\x00\x00"
    for stored in (unsized, announced):
        with pytest.raises(DamageError, match="its row is altered"):
            decode_body(digest_of(TEXT), size, "zstd", stored)


def test_bytes_that_are_not_there_are_damage() -> None:
    with pytest.raises(DamageError, match="erased or lost"):
        decode_body(digest_of(b"x"), 1, "raw", None)


DIGEST = digest_of(b"x")
ID = "01a217ae-b1c0-7000-9c4e-2ea2fbb3247d"


PARTS = [DIGEST, DIGEST.removeprefix("sha256:"), DIGEST[:7], ID, '"', ":", "\0", "é"]


@given(st.lists(st.sampled_from(PARTS)))
def test_a_fact_with_digests_and_ids_in_any_place_is_unpacked_as_it_was(parts: list[str]) -> None:
    fact = json.dumps({"".join(parts): [*parts, "".join(parts)]}, ensure_ascii=False).encode()
    assert unpack_fact(pack_fact(fact)) == fact


def test_a_packed_fact_that_was_cut_or_altered_is_damage_or_another_fact() -> None:
    fact = f'{{"id":"{ID}","output":"{DIGEST}","kind":"call.ended"}}'.encode()
    packed = pack_fact(fact)
    for length in range(len(packed)):
        with suppress(DamageError):
            assert unpack_fact(packed[:length]) != fact
    for place in range(len(packed) * 8):
        altered = bytearray(packed)
        altered[place // 8] ^= 1 << place % 8
        # Any other error fails here. Some bits of a frame's header mean nothing.
        with suppress(DamageError):
            unpack_fact(bytes(altered))
