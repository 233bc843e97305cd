"""What of a schema is refused at load, and where it stands."""

from typing import Any

import pytest

from tooltrail.agents import OutputSchema, UnsupportedSchemaError
from tooltrail.agents.schemas import SchemaFault, contradictions_of


def faults(document: Any) -> list[tuple[str, str]]:
    with pytest.raises(UnsupportedSchemaError) as refused:
        OutputSchema.of_any(document)
    return [(fault.pointer, fault.message) for fault in refused.value.faults]


def test_all_faults_are_told_each_with_its_place() -> None:
    document: dict[str, Any] = {
        "minLenght": 3,
        "properties": {
            "a/b": {"not": {}},
            "c": {"items": {"patternProperties": {}}},
            "d": {"anyOf": [True, {"if": {}}]},
        },
        "$defs": {"unused": {"contains": {}}},
    }
    assert faults(document) == [
        ("/minLenght", "`minLenght` is not supported"),
        ("/properties/a~1b/not", "`not` is not supported"),
        ("/properties/c/items/patternProperties", "`patternProperties` is not supported"),
        ("/properties/d/anyOf/1/if", "`if` is not supported"),
        ("/$defs/unused/contains", "`contains` is not supported"),
    ]


def test_names_of_fields_and_data_are_no_keywords() -> None:
    document = {
        "type": "object",
        "properties": {"not": {"const": {"if": 1}}, "$ref": {"enum": [{"contains": 2}]}},
        "default": {"then": 1},
        "examples": [{"else": 1}],
        "$defs": {"prefixItems": True},
    }
    assert OutputSchema.of(document).document == document


@pytest.mark.parametrize(
    ("document", "pointer"),
    [
        ({"pattern": "(a"}, "/pattern"),
        ({"pattern": r"\Z"}, "/pattern"),
        ({"format": "idn-email"}, "/format"),
        ({"format": "iri"}, "/format"),
        ({"format": "of-my-own"}, "/format"),
        ({"nullable": True}, "/nullable"),
        ({"type": "string", "nullable": 1}, "/nullable"),
        ({"minLength": -1}, "/minLength"),
        ({"type": "text"}, "/type"),
        ({"required": "a"}, "/required"),
        ({"properties": []}, "/properties"),
        ({"$schema": "http://json-schema.org/draft-07/schema#"}, "/$schema"),
        ({"$ref": "#/$defs/missing"}, "/$ref"),
        ({"$ref": "other.json"}, "/$ref"),
        ({"$ref": "#anchor"}, "/$ref"),
        ({"$ref": "#/required/0", "required": ["a"]}, "/$ref"),
        ({"$defs": {"a": {"$ref": "#/$defs/a"}}, "$ref": "#/$defs/a"}, "/$defs/a"),
        ({"anyOf": [{"$ref": "#"}]}, ""),
    ],
)
def test_what_cannot_be_enforced_is_refused(document: dict[str, Any], pointer: str) -> None:
    assert [place for place, _ in faults(document)][:1] == [pointer]


@pytest.mark.parametrize(
    ("document", "pointer", "message"),
    [
        (
            {"properties": {"a": {}}, "required": ["a", "b"], "additionalProperties": False},
            "/required",
            "the field 'b' is not in `properties`, and no other is allowed",
        ),
        ({"items": {"enum": []}}, "/items/enum", "an empty list allows no value"),
        ({"minLength": 5, "maxLength": 2}, "/minLength", "must be at most `maxLength`"),
        ({"minItems": 5, "maxItems": 2}, "/minItems", "must be at most `maxItems`"),
        ({"minimum": 0.5, "maximum": 0}, "/minimum", "must be at most `maximum`"),
    ],
)
def test_a_schema_that_no_value_satisfies_is_found(
    document: dict[str, Any], pointer: str, message: str
) -> None:
    assert list(contradictions_of(document)) == [SchemaFault(pointer, message)]
    assert OutputSchema.of_any(document).document == document


def test_bounds_may_be_equal_and_an_open_object_may_require_other_fields() -> None:
    bounds: dict[str, Any] = {"minimum": 2, "maximum": 2}
    schema = {**bounds, "properties": {"a": {}}, "required": ["b"]}
    assert list(contradictions_of(schema)) == []


@pytest.mark.parametrize("wrong", ["strin", ["string", "strin"], 5])
def test_an_unknown_type_is_answered_with_the_known_types(wrong: object) -> None:
    types = "['array', 'boolean', 'integer', 'null', 'number', 'object', 'string']"
    assert faults({"type": wrong}) == [("/type", f"not valid: {wrong!r} is not one of {types}")]


@pytest.mark.parametrize(
    ("reference", "message"),
    [
        ("#/$defs/x", "there is no schema at #/$defs/x"),
        ("x.json", "there is no schema at x.json; only `#` and `#/…` are supported"),
    ],
)
def test_a_reference_of_a_supported_form_is_only_missing(reference: str, message: str) -> None:
    assert faults({"$ref": reference}) == [("/$ref", message)]


def test_naming_the_draft_changes_nothing() -> None:
    draft = "https://json-schema.org/draft/2020-12/schema"
    document = {"$schema": draft, "properties": {"a": {"$ref": "#"}}, "additionalProperties": False}
    [violation] = OutputSchema.of_any(document).violations({"a": {"b": 1}})
    assert violation.message == "unknown field `a.b`; known fields: a"


def test_references_that_double_the_work_at_each_step_are_refused() -> None:
    steps = {
        f"s{n}": {"allOf": [{"$ref": f"#/$defs/s{n + 1}"}, {"$ref": f"#/$defs/s{n + 1}"}]}
        for n in range(30)
    }
    document = {"$ref": "#/$defs/s0", "$defs": {**steps, "s30": True}}
    assert faults(document) == [("", "it would check one value more than 5,000 times")]


def test_a_schema_that_is_nested_too_deep_is_refused() -> None:
    document: dict[str, Any] = {}
    for _ in range(3_000):
        document = {"items": document}
    assert faults(document) == [("", "the schema is nested deeper than 60 levels")]


@pytest.mark.parametrize(
    "document", [{"type": "array", "properties": {}}, {"type": "object"}, {"properties": {}}, {}]
)
def test_the_result_of_an_agent_is_an_object_with_fields(document: dict[str, Any]) -> None:
    with pytest.raises(UnsupportedSchemaError, match="the result must"):
        OutputSchema.of(document)
    assert OutputSchema.of_any(document).document == document
