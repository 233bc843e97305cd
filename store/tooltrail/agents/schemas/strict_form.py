"""The strict form of a schema, for providers that enforce schemas, and the way back.

OpenAI's strict mode (guide "Structured model outputs", section "Supported schemas") supports a part
of JSON Schema. Every object is closed and requires all its fields; an optional field may be null
instead. Unsupported restrictions are left out, so the strict form may allow more. Results are
always checked against the schema itself.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from jsonschema.protocols import Validator
from pydantic import JsonValue

from tooltrail.agents.schemas._keywords import ANNOTATIONS, iter_schemas, target_of
from tooltrail.agents.schemas._validation import TooManyChecksError, bounded

_KEPT = frozenset(
    {
        *("type", "enum", "description", "pattern", "multipleOf", "minItems", "maxItems"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    }
)
"""Keywords that are the same in both forms."""

_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)

_LEFT_OUT = ANNOTATIONS - {"description"} | {"minLength", "maxLength", "uniqueItems"}
"""Keywords that the strict form leaves out."""

_UNSUPPORTED = frozenset({"allOf", "not"})
"""Keywords that the strict form does not support. A schema with them has no strict form."""

_MAX_DEPTH = 10
_MAX_FIELDS = 5_000
_MAX_ENUM = 1_000
"""Limits of the guide: levels of nesting, number of fields, number of values in enumerations."""


class _NoStrictFormError(Exception):
    """The schema has no strict form."""


@dataclass(frozen=True, slots=True)
class StrictForm:
    """A schema in its strict form."""

    document: dict[str, JsonValue]
    _schema: dict[str, JsonValue] = field(repr=False)
    _validator: Validator = field(repr=False)

    def restore(self, value: JsonValue) -> JsonValue:
        """Remove fields that are null only because the strict form requires them.

        A null that the schema itself allows stays.
        """
        try:
            with bounded(0):
                return self._restored(value, self._schema)
        except (RecursionError, TooManyChecksError):
            return value

    def _restored(self, value: JsonValue, schema: JsonValue) -> JsonValue:
        if not isinstance(schema, dict):
            return value
        reference = schema.get("$ref")
        if isinstance(reference, str):
            return self._restored(value, _resolved(self._schema, reference))
        for alternatives in (schema.get("anyOf"), schema.get("oneOf")):
            if isinstance(alternatives, list):
                return self._as_alternative(value, alternatives)
        if isinstance(value, dict):
            return self._with_members(value, schema)
        items = schema.get("items")
        if isinstance(value, list) and items is not None:
            return [self._restored(one, items) for one in value]
        return value

    def _with_members(
        self, value: dict[str, JsonValue], schema: Mapping[str, JsonValue]
    ) -> dict[str, JsonValue]:
        properties = cast("Mapping[str, JsonValue]", schema.get("properties") or {})
        required = cast("list[str]", schema.get("required") or [])
        return {
            name: self._restored(one, properties.get(name))
            for name, one in value.items()
            if one is not None
            or name in required
            or name not in properties
            or self._fits(None, properties[name])
        }

    def _as_alternative(self, value: JsonValue, alternatives: list[JsonValue]) -> JsonValue:
        for alternative in alternatives:
            restored = self._restored(value, alternative)
            if self._fits(restored, alternative):
                return restored
        return value

    def _fits(self, value: JsonValue, schema: JsonValue) -> bool:
        validator = cast("Any", self._validator).evolve(schema=schema)
        return bool(validator.is_valid(value))


def strict_form_of(schema: dict[str, JsonValue], validator: Validator) -> StrictForm | None:
    """The strict form of a schema.

    Args:
        schema: schema without faults and without `nullable`.
        validator: validator of this schema.

    Returns:
        The strict form. None if the schema has fields of any name, items of any type, or `allOf`,
        or if it is over the limits of the provider.
    """
    try:
        document = cast("dict[str, JsonValue]", _strict(schema, 0))
    except _NoStrictFormError:
        return None
    parts = [one for _, one in iter_schemas(document) if isinstance(one, dict)]
    fields, values = (
        sum(len(cast("list[JsonValue]", one.get(keyword, ()))) for one in parts)
        for keyword in ("properties", "enum")
    )
    if fields > _MAX_FIELDS or values > _MAX_ENUM:
        return None
    return StrictForm(document, schema, validator)


def _resolved(root: dict[str, JsonValue], reference: str) -> JsonValue:
    target = target_of(reference)
    return next((one for at, one in iter_schemas(root) if at == target), True)


def _strict(schema: JsonValue, depth: int) -> JsonValue:
    """The strict form of one subschema.

    Raises:
        _NoStrictFormError: the subschema has none.
    """
    if not isinstance(schema, dict) or depth > _MAX_DEPTH or schema.keys() & _UNSUPPORTED:
        raise _NoStrictFormError
    named, definitions = schema.get("$defs"), dict[str, JsonValue]()
    if isinstance(named, dict):
        definitions["$defs"] = {name: _strict(one, depth) for name, one in named.items()}
    if "$ref" in schema:
        if schema.keys() - _LEFT_OUT - {"$ref", "$defs", "description"}:
            raise _NoStrictFormError
        return {"$ref": schema["$ref"], **definitions}
    spelled = {name: one for name, one in schema.items() if name in _KEPT}
    if schema.get("format") in _FORMATS:
        spelled["format"] = schema["format"]
    if "const" in schema:
        spelled["enum"] = [schema["const"]]
    if "array" in _types(schema):
        spelled["items"] = _strict(schema.get("items"), depth + 1)
    spelled |= _alternatives(schema, depth) | _object(schema, depth) | definitions
    if not spelled.keys() & {"type", "enum", "anyOf"}:
        raise _NoStrictFormError
    return spelled


def _alternatives(schema: Mapping[str, JsonValue], depth: int) -> dict[str, JsonValue]:
    several = [schema[name] for name in ("anyOf", "oneOf") if name in schema]
    if not several:
        return {}
    if len(several) > 1 or depth == 0 or schema.keys() & {"properties", "items", "type"}:
        raise _NoStrictFormError
    alternatives = cast("list[JsonValue]", several[0])
    return {"anyOf": [_strict(one, depth + 1) for one in alternatives]}


def _object(schema: Mapping[str, JsonValue], depth: int) -> dict[str, JsonValue]:
    if "object" not in _types(schema):
        return {}
    properties = schema.get("properties")
    is_closed = schema.get("additionalProperties", False) is False
    required = cast("list[str]", schema.get("required", []))
    if not isinstance(properties, dict) or not is_closed or set(required) - properties.keys():
        raise _NoStrictFormError
    strict = {name: _strict(one, depth + 1) for name, one in properties.items()}
    return {
        "properties": {
            name: one if name in required else _or_null(one) for name, one in strict.items()
        },
        "required": [*properties],
        "additionalProperties": False,
    }


def _types(schema: Mapping[str, JsonValue]) -> list[JsonValue]:
    types = schema.get("type")
    return types if isinstance(types, list) else [types]


def _or_null(spelled: JsonValue) -> JsonValue:
    """The schema of the same values and null."""
    if not isinstance(spelled, dict):
        raise _NoStrictFormError
    if "$ref" in spelled or "anyOf" in spelled:
        alternatives = spelled.get("anyOf", [spelled])
        return {"anyOf": [*cast("list[JsonValue]", alternatives), {"type": "null"}]}
    optional = dict(spelled)
    if "type" in spelled and "null" not in _types(spelled):
        optional["type"] = [*_types(spelled), "null"]
    values = spelled.get("enum")
    if isinstance(values, list) and None not in values:
        optional["enum"] = [*values, None]
    return optional
