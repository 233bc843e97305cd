"""Canonical JSON: RFC 8785 where it reaches, reversible marks where it does not."""

import enum
import inspect
import json
import math
import struct
import sys
from collections.abc import Callable
from decimal import Decimal
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import each_case

from tooltrail.records import InvalidRecordError, canonical_json
from tooltrail.records.canonical_json import MAX_DEPTH, decode, encode, is_deeper_than

# RFC 8785, appendix B: the bits of a double, and how it is written.
NUMBERS = [
    ("0000000000000000", "0"),
    ("8000000000000000", "0"),
    ("0000000000000001", "5e-324"),
    ("8000000000000001", "-5e-324"),
    ("7fefffffffffffff", "1.7976931348623157e+308"),
    ("ffefffffffffffff", "-1.7976931348623157e+308"),
    ("4340000000000000", "9007199254740992"),
    ("c340000000000000", "-9007199254740992"),
    ("4430000000000000", "295147905179352830000"),
    ("44b52d02c7e14af5", "9.999999999999997e+22"),
    ("44b52d02c7e14af6", "1e+23"),
    ("44b52d02c7e14af7", "1.0000000000000001e+23"),
    ("444b1ae4d6e2ef4e", "999999999999999700000"),
    ("444b1ae4d6e2ef4f", "999999999999999900000"),
    ("444b1ae4d6e2ef50", "1e+21"),
    ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
    ("3eb0c6f7a0b5ed8d", "0.000001"),
    ("41b3de4355555553", "333333333.3333332"),
    ("41b3de4355555554", "333333333.33333325"),
    ("41b3de4355555555", "333333333.3333333"),
    ("41b3de4355555556", "333333333.3333334"),
    ("41b3de4355555557", "333333333.33333343"),
    ("becbf647612f3696", "-0.0000033333333333333333"),
    ("43143ff3c1cb0959", "1424953923781206.2"),
]


LEVELS: list[tuple[object, int, bool]] = [
    (1, 0, False),
    ([], 0, True),
    ([], 1, False),
    ({"a": [1]}, 1, True),
    ({"a": [1]}, 2, False),
    ([[], [{}]], 2, True),
    (((),), 2, False),
]


def mark_like(dollars: int, word: str, rest: str) -> str:
    return "$" * dollars + "tooltrail." + word + rest


anything_textual = st.text(st.characters())
looks_like_mark = st.builds(
    mark_like,
    st.integers(0, 4),
    st.sampled_from(["float", "text", "key:", "other", ""]),
    st.sampled_from(["", "\\", "\\ud800", "\ud800", "\\\\", "$tooltrail.key:"]),
)
keys = anything_textual | looks_like_mark
scalars: st.SearchStrategy[object] = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(10**60), 10**60),
    st.floats(),
    anything_textual,
    looks_like_mark,
    st.sampled_from(["NaN", "Infinity", "-Infinity", "\\ud800", "\\\\"]),
)


def containers(inner: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return st.lists(inner, max_size=5) | st.dictionaries(keys, inner, max_size=5)


def with_items(
    value: dict[str, object],
) -> st.SearchStrategy[tuple[dict[str, object], list[tuple[str, object]]]]:
    return st.tuples(st.just(value), st.permutations(list(value.items())))


json_values: st.SearchStrategy[object] = st.recursive(scalars, containers, max_leaves=25)
shuffled = st.dictionaries(keys, json_values, max_size=6).flatmap(with_items)


def nested(levels: int, kind: str = "list") -> object:
    value: object = []
    for _ in range(levels - 1):
        value = [value] if kind == "list" else {"k": value}
    return value


def as_written(value: object) -> object:
    """What RFC 8785's number spelling makes of a value that is read again."""
    if isinstance(value, float) and math.isfinite(value) and abs(value) < 1e21:
        spelled = Decimal(repr(value))
        return int(spelled) if spelled == spelled.to_integral_value() else value
    if isinstance(value, dict):
        return {key: as_written(member) for key, member in cast("dict[str, object]", value).items()}
    if isinstance(value, list):
        return [as_written(member) for member in cast("list[object]", value)]
    return value


def same(left: object, right: object) -> bool:
    """Equal in value and type; NaN is NaN."""
    if type(left) is not type(right):
        return False
    if isinstance(left, float) and isinstance(right, float):
        return left == right or (math.isnan(left) and math.isnan(right))
    if isinstance(left, list):
        one, two = cast("list[object]", left), cast("list[object]", right)
        return len(one) == len(two) and all(map(same, one, two))
    if isinstance(left, dict):
        first, second = cast("dict[str, object]", left), cast("dict[str, object]", right)
        return first.keys() == second.keys() and all(same(first[k], second[k]) for k in first)
    return left == right


@each_case(("bits", "text"), NUMBERS)
def test_numbers_are_spelled_as_in_appendix_b_of_rfc_8785(bits: str, text: str) -> None:
    (value,) = struct.unpack(">d", bytes.fromhex(bits))
    assert encode(value) == text.encode()


def test_the_example_of_rfc_8785_section_3_2_2_gives_its_bytes() -> None:
    value = {
        "numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000f\u000aA'\u0042\u0022\u005c\\\"/",
        "literals": [None, True, False],
    }
    assert encode(value).decode() == (
        '{"literals":[null,true,false],'
        '"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )


def test_keys_are_sorted_by_utf16_code_units_as_in_rfc_8785_section_3_2_3() -> None:
    value = {
        "\u20ac": "Euro Sign",
        "\r": "Carriage Return",
        "\ufb33": "Hebrew Letter Dalet With Dagesh",
        "1": "One",
        "\U0001f600": "Emoji: Grinning Face",
        "\u0080": "Control",
        "\u00f6": "Latin Small Letter O With Diaeresis",
    }
    assert [*cast("dict[str, object]", json.loads(encode(value))).values()] == [
        *("Carriage Return", "One", "Control", "Latin Small Letter O With Diaeresis", "Euro Sign"),
        *("Emoji: Grinning Face", "Hebrew Letter Dalet With Dagesh"),
    ]


def test_only_what_must_be_escaped_is_escaped() -> None:
    controls = "".join(map(chr, range(0x20)))
    short = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r"}
    spelled = "".join(short.get(code, f"\\u{code:04x}") for code in range(0x20))
    assert encode(controls).decode() == f'"{spelled}"'
    plain = "/\x7f\u0080\u2028\u2029\ufeff\ufffe\U0010ffff"
    assert encode(plain).decode() == f'"{plain}"'
    assert encode('"\\') == b'"\\"\\\\"'


@each_case(
    ("value", "text"),
    [
        (None, "null"),
        (True, "true"),
        (False, "false"),
        (0, "0"),
        (-1, "-1"),
        ("", '""'),
        ([], "[]"),
        ({}, "{}"),
        ((1, [2, ()]), "[1,[2,[]]]"),
        ({"b": 1, "a": {"d": [], "c": None}}, '{"a":{"c":null,"d":[]},"b":1}'),
        (2**53 + 1, "9007199254740993"),
        (-(10**60), "-1" + "0" * 60),
        (10**400, "1" + "0" * 400),
    ],
)
def test_values_are_written_without_white_space_and_with_all_their_digits(
    value: object, text: str
) -> None:
    assert encode(value).decode() == text
    assert canonical_json.encode_text(value) == text


@each_case(
    ("value", "text"),
    [
        (math.nan, '{"$tooltrail.float":"NaN"}'),
        (-math.nan, '{"$tooltrail.float":"NaN"}'),
        (math.inf, '{"$tooltrail.float":"Infinity"}'),
        (-math.inf, '{"$tooltrail.float":"-Infinity"}'),
        ("\ud800", '{"$tooltrail.text":"\\\\ud800"}'),
        ("a\\b\udfff", '{"$tooltrail.text":"a\\\\\\\\b\\\\udfff"}'),
        ({"\ud800": 1}, '{"$tooltrail.key:\\\\ud800":1}'),
        ({"$tooltrail.float": "NaN"}, '{"$$tooltrail.float":"NaN"}'),
        ({"$$tooltrail.x": 1}, '{"$$$tooltrail.x":1}'),
        ({"$tooltrail.\ud800": 1}, '{"$tooltrail.key:$$tooltrail.\\\\ud800":1}'),
        ({"$other": 1, "tooltrail.": 2}, '{"$other":1,"tooltrail.":2}'),
    ],
)
def test_what_rfc_8785_cannot_carry_is_marked_and_comes_back(value: object, text: str) -> None:
    assert encode(value).decode() == text
    assert same(decode(text), value)


def test_a_pair_of_lone_surrogates_stays_two_characters() -> None:
    assert decode(encode("\ud83d\ude00")) == "\ud83d\ude00"
    assert encode("\ud83d\ude00") != encode("\U0001f600")


@given(json_values)
def test_what_is_encoded_is_decoded_to_the_same_value_and_encoded_to_the_same_bytes(
    value: object,
) -> None:
    data = encode(value)
    text = data.decode("utf-8", "strict")
    assert same(decode(data), as_written(value))
    assert encode(decode(data)) == encode(decode(text)) == data
    # Every parser reads it.
    json.loads(text, parse_constant=pytest.fail)
    assert "\n" not in text


@given(shuffled)
def test_the_order_of_insertion_does_not_matter(
    pair: tuple[dict[str, object], list[tuple[str, object]]],
) -> None:
    value, items = pair
    assert encode(dict(items)) == encode(value)


@each_case(
    ("value", "message"),
    [
        (b"bytes", "bytes is not a JSON type"),
        ({1, 2}, "set is not a JSON type"),
        ([object()], "object is not a JSON type"),
        (1j, "complex is not a JSON type"),
        (Decimal(1), "Decimal is not a JSON type"),
        ({1: "one"}, "an object key must be a string, not int"),
        ({None: 1}, "an object key must be a string, not NoneType"),
        ({"a": {b"b": 1}}, "an object key must be a string, not bytes"),
    ],
)
def test_another_type_is_refused_by_its_name(value: object, message: str) -> None:
    with pytest.raises(InvalidRecordError, match=message):
        encode(value)


def test_an_integer_too_long_for_python_is_refused_both_ways() -> None:
    with pytest.raises(InvalidRecordError, match="too long to be written"):
        encode({"n": 10**5000})
    with pytest.raises(InvalidRecordError, match="not canonical JSON"):
        decode("1" * 5001)


@pytest.mark.parametrize("kind", ["list", "dict"])
def test_the_deepest_allowed_nesting_comes_back(kind: str) -> None:
    value = nested(MAX_DEPTH, kind)
    assert decode(encode(value)) == value


@pytest.mark.parametrize("levels", [MAX_DEPTH + 1, 900, 10_000])
def test_deeper_nesting_is_refused_both_ways(levels: int) -> None:
    with pytest.raises(InvalidRecordError, match="nested deeper than 256 levels"):
        encode(nested(levels))
    with pytest.raises(InvalidRecordError):
        decode("[" * levels + "]" * levels)
    with pytest.raises(InvalidRecordError):
        decode('{"k":' * levels + "1" + "}" * levels)


def test_one_level_too_many_is_refused_by_its_depth_also_beside_shallow_members() -> None:
    text = "[1," + "[" * MAX_DEPTH + "]" * MAX_DEPTH + "]"
    with pytest.raises(InvalidRecordError, match="nested deeper than 256 levels"):
        decode(text)


def test_many_brackets_side_by_side_are_not_deep() -> None:
    value: list[object] = [[{}], "[[[{{{"] * 300
    assert decode(encode(value)) == value


def test_a_stack_that_is_nearly_used_up_is_an_error_of_the_record_and_no_crash() -> None:
    value = nested(MAX_DEPTH)
    text = encode({"$tooltrail.x": nested(MAX_DEPTH - 1)})

    def sink(action: Callable[[], object], frames: int) -> object:
        return action() if frames == 0 else sink(action, frames - 1)

    frames = sys.getrecursionlimit() - len(inspect.stack(0)) - 150
    with pytest.raises(InvalidRecordError, match="too deep for this stack"):
        sink(lambda: encode(value), frames)
    with pytest.raises(InvalidRecordError):
        sink(lambda: decode(text), frames)


@each_case(("value", "levels", "deeper"), LEVELS)
def test_levels_are_counted_in_objects_and_arrays(value: object, levels: int, deeper: bool) -> None:
    assert is_deeper_than(value, levels) is deeper


@each_case(
    "text",
    [
        *("", "{", "[1,]", "nul", '{"a":1}x', "'a'", '{"a":1,"a":2}', '{"x":{"a":1,"b":2,"a":1}}'),
        *("NaN", "[Infinity]", "-Infinity", "1e400", "[-1e999]", '"\n"'),
    ],
)
def test_text_that_is_no_canonical_json_is_refused(text: str) -> None:
    with pytest.raises(InvalidRecordError, match="not canonical JSON"):
        decode(text)
    with pytest.raises(InvalidRecordError, match="not canonical JSON"):
        decode(text.encode())


@pytest.mark.parametrize("data", [b"\xff", b'"\xed\xa0\x80"', '{"a":1}'.encode("utf-16")])
def test_bytes_that_are_not_utf8_are_refused(data: bytes) -> None:
    with pytest.raises(InvalidRecordError, match="not canonical JSON"):
        decode(data)


@each_case(
    "value",
    [
        {"$tooltrail.float": "1.5"},
        {"$tooltrail.float": 1},
        {"$tooltrail.float": "NaN", "b": 1},
        {"$tooltrail.text": ["\\ud800"]},
        {"$tooltrail.text": "a", "b": 1},
    ],
)
def test_half_a_mark_is_read_as_what_stands_there(value: dict[str, object]) -> None:
    assert decode(json.dumps(value)) == value


def test_subclasses_of_json_types_are_written_as_their_base() -> None:
    class Spelled(float):
        def __repr__(self) -> str:
            return "a number of its own"

    class Colour(enum.StrEnum):
        RED = "red"

    class Level(enum.IntEnum):
        HIGH = 3

    assert encode([Spelled("nan"), Spelled("-inf"), Spelled("1.5")]) == (
        b'[{"$tooltrail.float":"NaN"},{"$tooltrail.float":"-Infinity"},1.5]'
    )
    assert encode({Colour.RED: Level.HIGH}) == b'{"red":3}'


def test_a_value_with_lists_has_no_tuple_and_is_otherwise_the_same() -> None:
    value = {"pair": (1, [2.5, (None,)]), "text": "\ud800", "inner": {"k\udfff": (True,)}}
    assert canonical_json.with_lists(value) == {
        "pair": [1, [2.5, [None]]],
        "text": "\ud800",
        "inner": {"k\udfff": [True]},
    }
    assert canonical_json.with_lists(1) == 1
