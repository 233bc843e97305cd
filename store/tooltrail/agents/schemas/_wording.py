"""What is wrong with a value, in words that a model can act on.

The path of what is missing is that of the missing field itself, so that errors can be counted by
field. What the model wrote is repeated only shortly.
"""

import json
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, cast

from jsonschema.exceptions import ValidationError

from tooltrail.agents.schemas._validation import UNKNOWN
from tooltrail.records import SchemaViolation

_NAME = re.compile(r"[A-Za-z_$][A-Za-z0-9_$-]*")
_VALUE_CHARS = 60
"""Of a value that is repeated."""

_LISTED = 20
"""Of the values or names that are allowed."""

_ALTERNATIVES = ("anyOf", "oneOf")


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
    """What one error says."""
    path = spelled_path(error.absolute_path)
    place = f"`{path}`" if path else "the result"
    return SchemaViolation(path=path, message=_sentence(error, place))


def _sentence(error: ValidationError, place: str) -> str:
    keyword = str(error.validator)
    if keyword in _ALTERNATIVES:
        return _alternatives(error, place)
    return _WORDINGS[keyword](place, error)


def _alternatives(error: ValidationError, place: str) -> str:
    context = error.context or []
    if not context:
        return f"{place} must fit exactly one alternative of the schema, and fits more than one"
    nearest = max(context, key=_nearness)
    path = spelled_path(nearest.absolute_path)
    sentence = _sentence(nearest, f"`{path}`" if path else "the result")
    return f"{place} fits no alternative of the schema; the nearest one says: {sentence}"


def _nearness(error: ValidationError) -> tuple[int, bool]:
    """The deeper an error, the nearer was its alternative; a wrong type is far off."""
    return len(error.path), error.validator != "type"


def _type(place: str, error: ValidationError) -> str:
    wanted = cast("Any", error.validator_value)
    names = cast("list[str]", wanted if isinstance(wanted, list) else [wanted])
    return f"{place} must be {_either(names)}, not {_type_of(error.instance)}"


def _either(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _type_of(value: object) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case str():
            return "string"
        case list():
            return "array"
        case dict():
            return "object"
        case _:
            return "number"


def _enum(place: str, error: ValidationError) -> str:
    allowed = cast("list[Any]", error.validator_value)
    listed = ", ".join(map(_shown, allowed[:_LISTED]))
    more = f" and {len(allowed) - _LISTED:,} more" if len(allowed) > _LISTED else ""
    return f"{place} must be one of {listed}{more}, not {_shown(error.instance)}"


def _shown(value: Any) -> str:
    """A value as JSON on one line, its end left out where it is long, which is said."""
    text = json.dumps(value, ensure_ascii=False, default=str)
    if len(text) <= _VALUE_CHARS:
        return text
    return f"{text[:_VALUE_CHARS]}… ({len(text):,} characters)"


def _known(schema: Mapping[str, Any]) -> str:
    names = [*schema.get("properties", {})]
    if not names:
        return ""
    more = f" and {len(names) - _LISTED:,} more" if len(names) > _LISTED else ""
    return f"; there are {', '.join(names[:_LISTED])}{more}"


def _bound(wanted: str) -> Callable[[str, ValidationError], str]:
    def word(place: str, error: ValidationError) -> str:
        bound = _shown(error.validator_value)
        return f"{place} must be {wanted} {bound}, not {_shown(error.instance)}"

    return word


def _size(wanted: str, noun: str) -> Callable[[str, ValidationError], str]:
    def word(place: str, error: ValidationError) -> str:
        bound, size = cast("int", error.validator_value), len(cast("Any", error.instance))
        plural = "" if bound == 1 else "s"
        return f"{place} must have {wanted} {bound:,} {noun}{plural}, and has {size:,}"

    return word


def _says(wanted: str) -> Callable[[str, ValidationError], str]:
    def word(place: str, error: ValidationError) -> str:
        return f"{place} {wanted} {error.validator_value}"

    return word


_WORDINGS: Mapping[str, Callable[[str, ValidationError], str]] = {
    "type": _type,
    "enum": _enum,
    "const": lambda place, error: (
        f"{place} must be {_shown(error.validator_value)}, not {_shown(error.instance)}"
    ),
    "required": lambda place, _: f"missing field {place}",
    UNKNOWN: lambda place, error: f"unknown field {place}{_known(cast('Any', error.schema))}",
    "uniqueItems": lambda place, error: f"{place} must not hold the same twice: {error.message}",
    "not": lambda place, _: f"{place} must not be there",
    "pattern": _says("must match the pattern"),
    "format": _says("must be of the format"),
    "minimum": _bound("at least"),
    "maximum": _bound("at most"),
    "exclusiveMinimum": _bound("more than"),
    "exclusiveMaximum": _bound("less than"),
    "multipleOf": _bound("a multiple of"),
    "minLength": _size("at least", "character"),
    "maxLength": _size("at most", "character"),
    "minItems": _size("at least", "item"),
    "maxItems": _size("at most", "item"),
}
