"""A digest has one spelling."""

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError
from tests.support.cases import each_case

from tooltrail.records import InvalidRecordError, digest_from_hex, digest_of, hex_of, parse_digest
from tooltrail.records._model import DigestField
from tooltrail.records.digests import EMPTY

ABC = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
FIELD: TypeAdapter[str] = TypeAdapter(DigestField)


def test_the_digest_of_abc_is_the_one_of_fips_180() -> None:
    assert digest_of(b"abc") == f"sha256:{ABC}"


def test_the_empty_digest_is_the_digest_of_nothing() -> None:
    assert digest_of(b"") == EMPTY
    assert hex_of(EMPTY) == hashlib.sha256().hexdigest()


@given(st.binary())
def test_a_digest_comes_back_from_its_spelling_and_from_its_digits(data: bytes) -> None:
    digest = digest_of(data)
    assert parse_digest(digest) == digest
    assert digest_from_hex(hex_of(digest)) == digest
    assert FIELD.validate_python(digest) == digest


@each_case(
    "text",
    [
        "",
        ABC,
        f"sha256:{ABC[:-1]}",
        f"sha256:{ABC}0",
        f"sha256:{ABC.upper()}",
        f"SHA256:{ABC}",
        f"sha512:{ABC}",
        f" sha256:{ABC}",
        f"sha256:{ABC}\n",
        f"sha256:{ABC[:-1]}g",
        f"sha256:{ABC[:-1]}\u0661",
    ],
)
def test_any_other_spelling_is_refused(text: str) -> None:
    with pytest.raises(InvalidRecordError, match="not a digest of the form"):
        parse_digest(text)
    with pytest.raises(ValidationError):
        FIELD.validate_python(text)


def test_a_refused_digest_is_quoted_in_part() -> None:
    with pytest.raises(InvalidRecordError) as caught:
        parse_digest("x" * 10_000)
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize("digits", ["", "abc", f"sha256:{ABC}", ABC.upper()])
def test_hexadecimal_digits_are_checked(digits: str) -> None:
    with pytest.raises(InvalidRecordError):
        digest_from_hex(digits)
