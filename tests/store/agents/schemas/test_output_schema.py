"""Whether a value fits a schema, and in which words it is told that it does not."""

import json
from typing import Any

import pytest

from tooltrail.agents import OutputSchema

RESEARCH: dict[str, Any] = {
    "type": "object",
    "required": ["summary", "findings"],
    "additionalProperties": False,
    "properties": {
        "summary": {"type": "string", "minLength": 10},
        "findings": {
            "type": "array",
            "minItems": 1,
            "items": {
                "type": "object",
                "required": ["files", "confidence"],
                "properties": {
                    "files": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
                    "confidence": {"enum": ["low", "high"]},
                    "share": {"type": "number", "maximum": 100, "exclusiveMinimum": 0},
                },
            },
        },
    },
}


def told(schema: dict[str, Any], value: Any) -> list[tuple[str, str]]:
    found = OutputSchema.of_any(schema).violations(value)
    return [(violation.path, violation.message) for violation in found]


def test_a_value_that_fits_has_no_violations() -> None:
    finding = {"files": ["a", "b"], "confidence": "low", "share": 100}
    assert told(RESEARCH, {"summary": "ten letters", "findings": [finding]}) == []


def test_every_violation_is_told_with_the_field_that_it_is_about() -> None:
    findings = [{"files": ["a", "a"], "confidence": "medium"}, {"files": "a", "share": 101}]
    assert told(RESEARCH, {"summary": "short", "findings": findings, "extra": 1}) == [
        ("extra", "unknown field `extra`; known fields: summary, findings"),
        ("summary", "`summary` must have at least 10 characters, not 5"),
        (
            "findings[0].files",
            "`findings[0].files` must not have equal items: items 0 and 1 are equal",
        ),
        (
            "findings[0].confidence",
            '`findings[0].confidence` must be one of "low", "high", not "medium"',
        ),
        ("findings[1].confidence", "missing field `findings[1].confidence`"),
        ("findings[1].files", "`findings[1].files` must be array, not string"),
        ("findings[1].share", "`findings[1].share` must be at most 100, not 101"),
    ]


@pytest.mark.parametrize(
    ("schema", "value", "sentence"),
    [
        ({"type": ["string", "null"]}, True, "the result must be string or null, not boolean"),
        ({"type": "integer"}, 1.5, "the result must be integer, not number"),
        ({"const": [1, None]}, [1], "the result must be [1, null], not [1]"),
        ({"minimum": 2}, 1, "the result must be at least 2, not 1"),
        ({"exclusiveMaximum": 2}, 2, "the result must be less than 2, not 2"),
        ({"multipleOf": 5}, 7, "the result must be a multiple of 5, not 7"),
        ({"maxLength": 1}, "ab", "the result must have at most 1 character, not 2"),
        ({"maxItems": 0}, [1], "the result must have at most 0 items, not 1"),
        ({"pattern": "^a$"}, "b", "the result must match the pattern ^a$"),
        ({"format": "date"}, "2026-13-01", "the result must have the format date"),
        ({"properties": {"a": False}}, {"a": 1}, "`a` is not allowed"),
        ({"items": {"type": "null"}}, [None, 0], "`[1]` must be null, not number"),
        (
            {"properties": {"a b": {"type": "null"}}},
            {"a b": {}},
            '`["a b"]` must be null, not object',
        ),
    ],
)
def test_each_keyword_has_words(schema: dict[str, Any], value: Any, sentence: str) -> None:
    assert [message for _, message in told(schema, value)] == [sentence]


NEAREST = (
    "the result fits no alternative of the schema; the closest alternative: "
    '`kind` must be "a", not "b"'
)


def test_of_alternatives_the_nearest_one_is_told() -> None:
    schema = {
        "anyOf": [
            {"type": "string"},
            {"type": "object", "required": ["kind"], "properties": {"kind": {"const": "a"}}},
        ]
    }
    assert told(schema, {"kind": "b"}) == [("", NEAREST)]
    both = {"oneOf": [{"type": "number"}, {"minimum": 1}]}
    assert told(both, 2) == [
        ("", "the result must fit exactly one alternative of the schema, but fits several")
    ]


def test_what_a_model_wrote_is_repeated_only_shortly() -> None:
    [(path, message)] = told({"properties": {"a": {"enum": [1]}}}, {"a": "x" * 5_000})
    assert path == "a"
    assert len(message) < 200
    assert message.endswith("… (5,002 characters)")


@pytest.mark.parametrize(
    ("pattern", "fits", "fits_not"),
    [
        ("^a$", "a", "a\n"),  # Python's `$` matches before a final line feed
        (r"^\d+$", "12", "\u0661\u0662"),  # and its `\d` takes the digits of any script
        (r"^\p{L}+$", "\u00e4\u03b2", "1"),
        (r"^[^\s]$", "\U0001f600", "ab"),  # one character beyond the first plane is one
        ("b", "abc", "\udc00"),
    ],
)
def test_patterns_are_those_of_ecmascript(pattern: str, fits: str, fits_not: str) -> None:
    schema = {"pattern": pattern}
    assert told(schema, fits) == []
    assert len(told(schema, fits_not)) == 1


def test_nullable_adds_null_to_the_types_and_to_nothing_else() -> None:
    schema = {"properties": {"a": {"type": "string", "nullable": True, "enum": ["x"]}}}
    assert told(schema, {"a": "x"}) == []
    # OpenAPI 3.0.3 in its clarified words: an enumeration without null does not allow it.
    assert len(told(schema, {"a": None})) == 1
    loose = {"properties": {"a": {"type": ["string"], "nullable": True}}}
    assert told(loose, {"a": None}) == []
    assert len(told({"properties": {"a": {"type": "string", "nullable": False}}}, {"a": None})) == 1
    compiled = OutputSchema.of_any(loose)
    assert compiled.plain == {"properties": {"a": {"type": ["string", "null"]}}}
    assert compiled.document == loose


@pytest.mark.parametrize(
    "value", [{"a": float("nan")}, {"a": [float("inf")]}, {"a": {"b": -float("inf")}}]
)
def test_a_number_that_json_has_not_fits_nothing(value: Any) -> None:
    [violation] = OutputSchema.of_any({}).violations(value)
    assert violation.message.endswith("must be a finite number")


def test_a_value_that_is_nested_too_deep_is_refused_and_not_raised() -> None:
    tree = {"properties": {"a": {"$ref": "#"}}}
    value: Any = {}
    for _ in range(2_000):
        value = {"a": value}
    [violation] = OutputSchema.of_any(tree).violations(value)
    assert violation.message == "the result is nested deeper than 100 levels"
    for _ in range(1_901):
        value = value["a"]
    assert OutputSchema.of_any(tree).violations(value) == ()


def test_odd_values_are_judged_like_any_others() -> None:
    schema = OutputSchema.of_any({"type": "integer", "multipleOf": 3})
    assert schema.violations(3 * 10**400) == ()
    assert len(schema.violations(10**400)) == 1
    assert len(schema.violations("\ud800")) == 1
    assert OutputSchema.of_any({"type": "integer"}).violations(1.0) == ()


@pytest.mark.parametrize(
    ("factor", "fits", "fits_not"),
    [
        (0.01, [19.99, 4.35, 0.07, 1, -0.5, 10**400], [0.001, 1.005]),
        (3, [6, 6.0, 0], [1, 6.5]),
        (1e-8, [12391239123], []),
        (0.123456789, [], [1e308]),
    ],
)
def test_a_multiple_is_one_in_decimal(
    factor: float, fits: list[float], fits_not: list[float]
) -> None:
    schema = OutputSchema.of_any({"multipleOf": factor})
    assert [value for value in fits if schema.violations(value)] == []
    assert [value for value in fits_not if not schema.violations(value)] == []
    assert schema.violations(True) == ()


EXPRESSION: dict[str, Any] = {
    "$ref": "#/$defs/e",
    "$defs": {
        "e": {"oneOf": [{"type": "integer"}, *({"$ref": f"#/$defs/{op}"} for op in "abc")]},
        **{
            op: {
                "type": "object",
                "required": ["op", "left"],
                "properties": {"op": {"const": op}, "left": {"$ref": "#/$defs/e"}},
            }
            for op in "abc"
        },
    },
}


def test_a_schema_whose_work_grows_with_the_depth_of_a_value_is_bounded() -> None:
    def nested(depth: int) -> Any:
        value: Any = 1
        for _ in range(depth):
            value = {"op": "b", "left": value}
        return value

    schema = OutputSchema.of_any(EXPRESSION)
    assert schema.violations(nested(4)) == ()
    [violation] = schema.violations(nested(60))
    assert violation.message == "the result takes too long to check"


def test_of_very_many_errors_some_are_listed_and_it_is_said_that_there_are_more() -> None:
    many: list[Any] = [0] * 5_000
    found = OutputSchema.of_any({"items": {"type": "null"}}).violations(many)
    assert len(found) == 1_001
    assert found[-1].message == "more than 1,000 errors; the others are not listed"


def test_many_items_take_time_by_their_number() -> None:
    """By the number of comparisons, which each item counts."""
    comparisons = 0

    class Counted(dict[str, int]):
        def __eq__(self, other: object) -> bool:
            nonlocal comparisons
            comparisons += 1
            return super().__eq__(other)

        __hash__ = None

    items: list[Any] = [Counted(a=number) for number in range(2_000)]
    assert OutputSchema.of_any({"uniqueItems": True}).violations(items) == ()
    assert comparisons < 2 * len(items)


def test_the_digest_is_of_the_schema_and_not_of_its_spelling() -> None:
    spelled = json.loads(json.dumps(RESEARCH, indent=2))
    assert OutputSchema.of(spelled).digest == OutputSchema.of(RESEARCH).digest
    changed = {**RESEARCH, "required": ["summary"]}
    assert OutputSchema.of(changed).digest != OutputSchema.of(RESEARCH).digest
