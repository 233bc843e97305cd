"""What differs between two versions of a schema, and whether stored results may break."""

from typing import Any

import pytest

from tooltrail.agents import OutputSchema, SchemaChange, compare_schemas


def changes(old: dict[str, Any], new: dict[str, Any]) -> list[tuple[str, str, str]]:
    found = compare_schemas(OutputSchema.of_any(old), OutputSchema.of_any(new))
    return [(change.path, change.kind, change.effect) for change in found]


def closed(properties: dict[str, Any], **others: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "additionalProperties": False, **others}


TEXT = {"type": "string"}


def test_an_optional_field_of_a_closed_object_breaks_nothing() -> None:
    assert compare_schemas(
        OutputSchema.of(closed({"a": TEXT})), OutputSchema.of(closed({"a": TEXT, "b": TEXT}))
    ) == (SchemaChange("b", "field_added", "it was not allowed before", "compatible"),)


def test_an_optional_field_of_an_open_object_breaks_only_what_had_it_by_chance() -> None:
    was = {"type": "object", "properties": {"a": TEXT}}
    now = {"type": "object", "properties": {"a": TEXT, "b": TEXT}}
    assert changes(was, now) == [("b", "field_added", "unlikely")]
    typed = {**was, "additionalProperties": {"type": "integer"}}
    assert changes(typed, {**now, "additionalProperties": {"type": "integer"}}) == [
        ("b", "field_added", "breaking")
    ]


def test_a_field_that_must_be_there_breaks() -> None:
    now = closed({"a": TEXT, "b": TEXT}, required=["b"])
    assert changes(closed({"a": TEXT}), now) == [
        ("b", "field_added", "compatible"),
        ("b", "required_added", "breaking"),
    ]
    assert changes(now, closed({"a": TEXT, "b": TEXT})) == [("b", "required_removed", "compatible")]


@pytest.mark.parametrize(
    ("old", "new", "kind", "effect"),
    [
        ({"type": "string"}, {"type": ["string", "null"]}, "type_changed", "compatible"),
        ({"type": "number"}, {"type": "integer"}, "type_changed", "breaking"),
        ({"type": "integer"}, {"type": "number"}, "type_changed", "compatible"),
        ({"enum": [1]}, {"enum": [1, 2]}, "values_changed", "compatible"),
        ({"enum": [1, 2]}, {"const": 1}, "values_changed", "breaking"),
        ({"const": 1}, {}, "values_changed", "compatible"),
        ({"minLength": 3}, {"minLength": 2}, "bound_changed", "compatible"),
        ({"maxItems": 3}, {"maxItems": 2}, "bound_changed", "breaking"),
        ({}, {"minimum": 0}, "bound_changed", "breaking"),
        ({"pattern": "a"}, {}, "rule_changed", "compatible"),
        ({"pattern": "a"}, {"pattern": "b"}, "rule_changed", "breaking"),
        ({"anyOf": [TEXT]}, {"anyOf": [TEXT, {"type": "null"}]}, "rule_changed", "breaking"),
    ],
)
def test_each_kind_of_change(
    old: dict[str, Any], new: dict[str, Any], kind: str, effect: str
) -> None:
    wrapped = [closed({"list": {"type": "array", "items": one}}) for one in (old, new)]
    assert changes(wrapped[0], wrapped[1]) == [("list[]", kind, effect)]


def test_a_field_that_is_gone_breaks_only_where_no_other_is_free() -> None:
    was = closed({"a": TEXT, "b": TEXT})
    assert changes(was, closed({"a": TEXT})) == [("b", "field_removed", "breaking")]
    free = {"type": "object", "properties": {"a": TEXT}}
    assert changes(was, free) == [
        ("b", "field_removed", "compatible"),
        ("", "other_fields", "compatible"),
    ]
    assert changes(free, closed({"a": TEXT})) == [("", "other_fields", "breaking")]


def test_a_schema_that_refers_to_itself_is_compared_to_its_end() -> None:
    node: dict[str, Any] = closed({"l": {"$ref": "#"}, "r": {"$ref": "#"}})
    wider: dict[str, Any] = closed({"l": {"$ref": "#"}, "r": {"$ref": "#"}, "x": TEXT})
    assert changes(node, wider) == [("x", "field_added", "compatible")]
    listed: dict[str, Any] = closed({"children": {"type": "array", "items": {"$ref": "#"}}})
    more: dict[str, Any] = closed({**listed["properties"], "x": TEXT})
    assert changes(listed, more) == [("x", "field_added", "compatible")]


def test_what_only_people_read_is_no_change() -> None:
    was = closed({"a": TEXT})
    assert changes(was, closed({"a": {**TEXT, "description": "An a."}}, title="T")) == []


def test_references_are_followed() -> None:
    was = closed({"a": {"$ref": "#/$defs/x"}}, **{"$defs": {"x": TEXT}})
    assert changes(was, closed({"a": TEXT})) == []
    now = closed({"a": {"$ref": "#/$defs/x"}}, **{"$defs": {"x": {"type": "null"}}})
    assert changes(was, now) == [("a", "type_changed", "breaking")]
    tree = closed({"a": {"$ref": "#"}, "b": TEXT})
    longer = closed({"a": {"$ref": "#"}, "b": {"type": "null"}})
    assert changes(tree, longer) == [("b", "type_changed", "breaking")]


@pytest.mark.parametrize(
    ("keyword", "was", "now", "expected"),
    [
        ("anyOf", TEXT, {"type": "integer"}, [("a", "type_changed", "breaking")]),
        ("allOf", TEXT, {"type": "integer"}, [("a", "type_changed", "breaking")]),
        ("anyOf", closed({}), closed({"b": TEXT}), [("a.b", "field_added", "compatible")]),
        # A value that fitted one alternative may now fit both.
        ("oneOf", TEXT, {"type": ["string", "null"]}, [("a", "rule_changed", "breaking")]),
        ("oneOf", TEXT, {**TEXT, "title": "T"}, []),
    ],
)
def test_references_in_alternatives_are_followed(
    keyword: str, was: Any, now: Any, expected: list[tuple[str, str, str]]
) -> None:
    alternatives = {keyword: [{"$ref": "#/$defs/x"}, {"type": "null"}]}
    old, new = (closed({"a": alternatives}, **{"$defs": {"x": one}}) for one in (was, now))
    assert changes(old, new) == expected
