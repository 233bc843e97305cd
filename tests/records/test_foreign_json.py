"""JSON that others wrote is read strictly, and what cannot be carried on is said."""

import json

import pytest
from hypothesis import given
from tests.support.cases import each_case
from tests.support.conversations import json_values

from tooltrail.records import InvalidRecordError, read_json
from tooltrail.records.canonical_json import MAX_EMBEDDED_DEPTH


@given(json_values)
def test_any_json_is_read_as_its_value(value: object) -> None:
    text = json.dumps(value)
    assert read_json(text) == value
    assert read_json(text.encode()) == value


@each_case(
    ("text", "told"),
    [
        ("", "Expecting value"),
        ("{} {}", "Extra data"),
        ('{"a":', "Expecting value"),
        ("\ufeff{}", "Expecting value"),
        ("NaN", "a number is not a finite double"),
        ("[-Infinity]", "a number is not a finite double"),
        ("1e400", "a number is not a finite double"),
        ("-1e400", "a number is not a finite double"),
        ('{"a":1,"b":2,"a":1}', "a key stands twice"),
        ('[{"\\u0061":1,"a":2}]', "a key stands twice"),
        (b'"\xff"', "can't decode"),
        ("1" * 5000, "4300 digits"),
        ("[" * 100_000, "too deep"),
    ],
)
def test_what_would_change_its_meaning_is_an_error(text: str | bytes, told: str) -> None:
    with pytest.raises(InvalidRecordError, match=told):
        read_json(text)


def test_an_error_shows_little_of_a_long_key_or_number() -> None:
    for text in ('{"' + "k" * 5000 + '":1,"' + "k" * 5000 + '":2}', "1" * 4000 + "e999"):
        with pytest.raises(InvalidRecordError) as refused:
            read_json(text)
        assert len(str(refused.value)) < 120


@pytest.mark.parametrize(("opening", "closing"), [("[", "]"), ('{"a":', "}")])
def test_depth_is_bounded_by_what_a_record_can_hold(opening: str, closing: str) -> None:
    def nested(levels: int) -> str:
        return opening * (levels - 1) + "[]" + closing * (levels - 1)

    read_json(nested(MAX_EMBEDDED_DEPTH))
    with pytest.raises(InvalidRecordError, match=f"deeper than {MAX_EMBEDDED_DEPTH} levels"):
        read_json(nested(MAX_EMBEDDED_DEPTH + 1))


def test_many_objects_beside_each_other_are_not_deep() -> None:
    assert read_json("[" + ",".join(["[]"] * 1000) + "]") == [[]] * 1000


def test_the_one_key_of_many_that_stands_twice_is_found_in_one_pass() -> None:
    # Comparing each key with all before it would not end.
    members = ",".join(f'"k{number}":1' for number in range(200_000))
    with pytest.raises(InvalidRecordError, match="a key stands twice"):
        read_json("{" + members + ',"k199999":2}')
