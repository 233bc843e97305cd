"""Messages about errors of a value, for models.

The path of a missing field is the path of the field itself, so that errors can be counted by field.
Messages quote only the beginning of a long value.
"""

import json
import re
from collections.abc import Iterable, Mapping
from typing import Any, cast

from jsonschema.exceptions import ValidationError

from tooltrail.agents.schemas._validation import UNKNOWN
from tooltrail.records import SchemaViolation

_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*")
_VALUE_CHARS = 60
"""Characters of a value that a message quotes."""

_LISTED = 20
"""Allowed values or names that a message lists."""

_ALTERNATIVES = ("anyOf", "oneOf")

_TYPES: Mapping[type[Any], str] = {bool: "boolean", str: "string", list: "array", dict: "object"}

_BOUNDS = {
    "const": "",
    "minimum": "at least ",
    "maximum": "at most ",
    "exclusiveMinimum": "more than ",
    "exclusiveMaximum": "less than ",
    "multipleOf": "a multiple of ",
}
"""Text before the value of the keyword."""

_SIZES = {
    "minLength": "at least {} character",
    "maxLength": "at most {} character",
    "minItems": "at least {} item",
    "maxItems": "at most {} item",
}

_OTHERS = {
    "required": "missing field {place}",
    UNKNOWN: "unknown field {place}{known}",
    "uniqueItems": "{place} must not have equal items: {message}",
    "not": "{place} is not allowed",
    "pattern": "{place} must match the pattern {wanted}",
    "format": "{place} must have the format {wanted}",
}


def spelled_path(parts: Iterable[str | int]) -> str:
    """A path such as `findings[2].confidence`; empty for the value itself."""
    text = ""
    for part in parts:
        if isinstance(part, int):
            text += f"[{part}]"
        elif _NAME.fullmatch(part):
            text += f".{part}" if text else part
        else:
            text += f"[{json.dumps(part)}]"
    return text


def violation_of(error: ValidationError) -> SchemaViolation:
    """The path and message of an error."""
    path = spelled_path(error.absolute_path)
    place = f"`{path}`" if path else "the result"
    return SchemaViolation(path=path, message=_sentence(error, place))


def _sentence(error: ValidationError, place: str) -> str:
    keyword, given = str(error.validator), error.instance
    wanted: Any = error.validator_value
    if keyword in _ALTERNATIVES:
        return _alternatives(error, place)
    if keyword == "type":
        return f"{place} must be {_either(wanted)}, not {_type_of(given)}"
    if keyword == "enum":
        allowed = _listed([_shown(one) for one in wanted])
        return f"{place} must be one of {allowed}, not {_shown(given)}"
    if keyword in _SIZES:
        noun = _SIZES[keyword].format(f"{wanted:,}") + ("" if wanted == 1 else "s")
        return f"{place} must have {noun}, not {len(cast('Any', given)):,}"
    if keyword in _BOUNDS:
        return f"{place} must be {_BOUNDS[keyword]}{_shown(wanted)}, not {_shown(given)}"
    return _OTHERS[keyword].format(
        place=place, wanted=wanted, message=error.message, known=_known(error)
    )


def _alternatives(error: ValidationError, place: str) -> str:
    context = error.context or []
    if not context:
        return f"{place} must fit exactly one alternative of the schema, but fits several"
    nearest = max(context, key=_nearness)
    sentence = violation_of(nearest).message
    return f"{place} fits no alternative of the schema; the closest alternative: {sentence}"


def _nearness(error: ValidationError) -> tuple[int, bool]:
    """How close an alternative is: deeper errors are closer, and errors of type are less close."""
    return len(error.path), error.validator != "type"


def _either(types: str | list[str]) -> str:
    names = [types] if isinstance(types, str) else types
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _known(error: ValidationError) -> str:
    names = [*cast("Any", error.schema).get("properties", {})]
    return f"; known fields: {_listed(names)}" if names else ""


def _type_of(value: object) -> str:
    return "null" if value is None else _TYPES.get(type(value), "number")


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
    return ", ".join(names[:_LISTED]) + more


def _shown(value: Any) -> str:
    """A value as JSON on one line; a long value is cut, with its length."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    if len(text) <= _VALUE_CHARS:
        return text
    return f"{text[:_VALUE_CHARS]}… ({len(text):,} characters)"
