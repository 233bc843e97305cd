"""A schema as providers want it that hold the model to it themselves, and the way back.

OpenAI's strict mode (its guide "Structured model outputs", section "Supported schemas") knows part
of JSON Schema: every object is closed and has all of its fields, what is optional may be null
instead, and of the keywords that bound a value it takes some. What it does not take is left out of
the strict form, which then allows more: the schema itself is what a result is held against.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, cast

from jsonschema.protocols import Validator
from pydantic import JsonValue

from tooltrail.agents.schemas._keywords import ANNOTATIONS, iter_schemas, target_of
from tooltrail.agents.schemas._validation import TooManyLooksError, bounded

_KEPT = frozenset(
    {
        *("type", "enum", "description", "pattern", "multipleOf", "minItems", "maxItems"),
        *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"),
    }
)
"""Keywords that are said in both in the same way."""

_FORMATS = frozenset(
    {"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"}
)

_LEFT_OUT = ANNOTATIONS - {"description"} | {"minLength", "maxLength", "uniqueItems"}
"""Keywords without which the strict form allows more, or says less to people."""

_UNSAID = frozenset({"allOf", "not"})
"""Keywords that the strict form has not, and cannot do without."""

_MAX_DEPTH = 10
_MAX_FIELDS = 5_000
_MAX_ENUM = 1_000
"""Limits that the guide names: levels of nesting, fields in all, values of enumerations in all."""


class _UnsaidError(Exception):
    """The schema cannot be said strictly."""


@dataclass(frozen=True, slots=True)
class StrictForm:
    """A schema in its strict form."""

    document: dict[str, JsonValue]
    _schema: dict[str, JsonValue] = field(repr=False)
    _validator: Validator = field(repr=False)

    def restore(self, value: JsonValue) -> JsonValue:
        """What the model meant: a field that is null because it must be there is taken out.

        A null that the schema itself allows stays.
        """
        try:
            with bounded(0):
                return self._restored(value, self._schema)
        except (RecursionError, TooManyLooksError):
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
        schema: that was looked at, without `nullable`.
        validator: of this schema.

    Returns:
        The form; None where what the schema allows cannot be given in it: an object that may have
        fields of any name, items of any kind, `allOf`, or more than the provider's limits take.
    """
    try:
        document = cast("dict[str, JsonValue]", _said(schema, 0))
    except _UnsaidError:
        return None
    said = [one for _, one in iter_schemas(document) if isinstance(one, dict)]
    fields, values = (
        sum(len(cast("list[JsonValue]", one.get(keyword, ()))) for one in said)
        for keyword in ("properties", "enum")
    )
    if fields > _MAX_FIELDS or values > _MAX_ENUM:
        return None
    return StrictForm(document, schema, validator)


def _resolved(root: dict[str, JsonValue], reference: str) -> JsonValue:
    target = target_of(reference)
    return next((one for at, one in iter_schemas(root) if at == target), True)


def _said(schema: JsonValue, depth: int) -> JsonValue:
    """One schema in its strict form.

    Raises:
        _UnsaidError: it has none.
    """
    if not isinstance(schema, dict) or depth > _MAX_DEPTH or schema.keys() & _UNSAID:
        raise _UnsaidError
    named, definitions = schema.get("$defs"), dict[str, JsonValue]()
    if isinstance(named, dict):
        definitions["$defs"] = {name: _said(one, depth) for name, one in named.items()}
    if "$ref" in schema:
        if schema.keys() - _LEFT_OUT - {"$ref", "$defs", "description"}:
            raise _UnsaidError
        return {"$ref": schema["$ref"], **definitions}
    spelled = {name: one for name, one in schema.items() if name in _KEPT}
    if schema.get("format") in _FORMATS:
        spelled["format"] = schema["format"]
    if "const" in schema:
        spelled["enum"] = [schema["const"]]
    if "array" in _types(schema):
        spelled["items"] = _said(schema.get("items"), depth + 1)
    spelled |= _alternatives(schema, depth) | _object(schema, depth) | definitions
    if not spelled.keys() & {"type", "enum", "anyOf"}:
        raise _UnsaidError
    return spelled


def _alternatives(schema: Mapping[str, JsonValue], depth: int) -> dict[str, JsonValue]:
    several = [schema[name] for name in ("anyOf", "oneOf") if name in schema]
    if not several:
        return {}
    if len(several) > 1 or depth == 0 or schema.keys() & {"properties", "items", "type"}:
        raise _UnsaidError
    alternatives = cast("list[JsonValue]", several[0])
    return {"anyOf": [_said(one, depth + 1) for one in alternatives]}


def _object(schema: Mapping[str, JsonValue], depth: int) -> dict[str, JsonValue]:
    if "object" not in _types(schema):
        return {}
    properties = schema.get("properties")
    is_closed = schema.get("additionalProperties", False) is False
    required = cast("list[str]", schema.get("required", []))
    if not isinstance(properties, dict) or not is_closed or set(required) - properties.keys():
        raise _UnsaidError
    said = {name: _said(one, depth + 1) for name, one in properties.items()}
    return {
        "properties": {
            name: one if name in required else _or_null(one) for name, one in said.items()
        },
        "required": [*properties],
        "additionalProperties": False,
    }


def _types(schema: Mapping[str, JsonValue]) -> list[JsonValue]:
    types = schema.get("type")
    return types if isinstance(types, list) else [types]


def _or_null(spelled: JsonValue) -> JsonValue:
    """The same, or null."""
    if not isinstance(spelled, dict):
        raise _UnsaidError
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
