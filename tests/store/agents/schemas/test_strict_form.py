"""A schema as OpenAI's strict mode wants it."""

from typing import Any

import pytest

from tooltrail.agents import OutputSchema

FINDING: dict[str, Any] = {
    "type": "object",
    "required": ["files"],
    "properties": {
        "files": {"type": "array", "items": {"type": "string", "minLength": 1}, "minItems": 1},
        "level": {"type": "string", "enum": ["low", "high"], "description": "How sure."},
        "kind": {"const": "x"},
        "note": {"type": ["string", "null"], "format": "date"},
        "more": {"$ref": "#/$defs/more"},
        "either": {"anyOf": [{"type": "integer"}, {"type": "boolean"}]},
    },
    "$defs": {"more": {"type": "object", "properties": {"n": {"type": "number", "minimum": 0}}}},
}


def test_objects_are_closed_and_what_is_optional_may_be_null() -> None:
    strict = OutputSchema.of(FINDING).strict_form
    assert strict is not None
    assert strict.document == {
        "type": "object",
        "additionalProperties": False,
        "required": ["files", "level", "kind", "note", "more", "either"],
        "properties": {
            "files": {"type": "array", "minItems": 1, "items": {"type": "string"}},
            "level": {
                "type": ["string", "null"],
                "enum": ["low", "high", None],
                "description": "How sure.",
            },
            "kind": {"enum": ["x", None]},
            "note": {"type": ["string", "null"], "format": "date"},
            "more": {"anyOf": [{"$ref": "#/$defs/more"}, {"type": "null"}]},
            "either": {"anyOf": [{"type": "integer"}, {"type": "boolean"}, {"type": "null"}]},
        },
        "$defs": {
            "more": {
                "type": "object",
                "additionalProperties": False,
                "required": ["n"],
                "properties": {"n": {"type": ["number", "null"], "minimum": 0}},
            }
        },
    }


def test_what_is_null_for_nothing_is_taken_out_wherever_it_stands() -> None:
    strict = OutputSchema.of(FINDING).strict_form
    assert strict is not None
    given: dict[str, Any] = {
        "files": ["a"],
        "level": None,
        "kind": None,
        "note": None,
        "more": {"n": None},
        "either": None,
    }
    # A null that the schema itself allows may be meant.
    assert strict.restore(given) == {"files": ["a"], "note": None, "more": {}}


def test_what_the_model_got_wrong_stays_for_the_judge() -> None:
    schema = OutputSchema.of(FINDING)
    strict = schema.strict_form
    assert strict is not None
    wrongs: list[Any] = [
        {"files": None},
        {"files": [None], "unheard": None},
        ["files"],
        "text",
        None,
    ]
    for wrong in wrongs:
        assert strict.restore(wrong) == wrong
        assert schema.violations(wrong)


@pytest.mark.parametrize(
    "field",
    [
        {"type": "object"},
        {"type": "object", "properties": {"a": {"type": "null"}}, "additionalProperties": True},
        {"type": "array"},
        {"allOf": [{"type": "string"}]},
        {"type": "object", "properties": {}, "additionalProperties": {"type": "string"}},
        True,
        {},
        {"type": "object", "properties": {}, "required": ["unheard"]},
        {"enum": list(range(1_001))},
        {"anyOf": [{"type": "string"}], "type": "string"},
        {"$ref": "#", "type": "object"},
    ],
)
def test_what_cannot_be_said_strictly_is_not(field: Any) -> None:
    document = {"type": "object", "properties": {"field": field}}
    assert OutputSchema.of(document).strict_form is None


def test_a_schema_that_is_deeper_than_the_provider_takes_is_not_said_strictly() -> None:
    field: dict[str, Any] = {"type": "string"}
    for _ in range(11):
        field = {"type": "object", "properties": {"inner": field}}
    assert OutputSchema.of(field).strict_form is None


def test_a_schema_that_refers_to_itself_is_restored_at_every_level() -> None:
    tree: dict[str, Any] = {
        "type": "object",
        "required": ["name"],
        "properties": {
            "name": {"type": "string"},
            "children": {"type": "array", "items": {"$ref": "#"}},
        },
    }
    strict = OutputSchema.of(tree).strict_form
    assert strict is not None
    leaf: Any = {"name": "leaf", "children": None}
    assert strict.restore({"name": "root", "children": [leaf]}) == {
        "name": "root",
        "children": [{"name": "leaf"}],
    }
