r"""Validation by JSON Schema, draft 2020-12: the library `jsonschema` with changed keywords.

- `pattern` is a regular expression of ECMA-262 (section 6.3.3 of the specification of validation),
  not of Python: `$` does not match before a final line feed, and `\d` matches ASCII digits only.
- `uniqueItems` takes linear time.
- A missing or unknown field has an error of its own, with the path of that field.
- `multipleOf` is decimal: 19.99 is a multiple of 0.01.

Pydantic models are no substitute. The known converters ignore parts of a schema (`oneOf` as exactly
one, `uniqueItems`, `const` and `enum` of any JSON, several types, the difference of 1, 1.0 and
true), so they accept values that the schema refuses.
"""

from collections.abc import Generator, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from fractions import Fraction
from typing import Any, cast

from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import (
    extend,  # pyright: ignore[reportUnknownVariableType]  its stub is in part without types
)
from pydantic import JsonValue

from tooltrail.agents.schemas._formats import CHECKER, is_found

_CHECKS_LEFT: ContextVar[list[int] | None] = ContextVar("checks", default=None)
_MIN_CHECKS = 10_000
_CHECKS_PER_PART = 100
_FOLLOW: Any = cast("Any", Draft202012Validator).VALIDATORS["$ref"]

UNKNOWN = "unknown"
"""The keyword of an error about an unknown field."""


class TooManyChecksError(Exception):
    """A check followed too many references."""


@contextmanager
def bounded(part_count: int) -> Generator[None]:
    """Limit the references that checks in the block follow, by the number of parts of the value.

    A recursive schema with alternatives may need time exponential in the depth of the value.

    Raises:
        TooManyChecksError: a check reached the limit.
    """
    token = _CHECKS_LEFT.set([_MIN_CHECKS + _CHECKS_PER_PART * part_count])
    try:
        yield
    finally:
        _CHECKS_LEFT.reset(token)


def validator_of(document: Mapping[str, JsonValue]) -> Validator:
    """The validator of a schema.

    Args:
        document: schema without faults and without `nullable`; see `plain_schema`.
    """
    return cast("Validator", _VALIDATOR(document, format_checker=CHECKER))


def json_key(value: Any) -> object:
    """A hashable key that is equal exactly for values that are equal as JSON."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return frozenset((name, json_key(one)) for name, one in members.items())
    if isinstance(value, list):
        return tuple(map(json_key, cast("list[object]", value)))
    return (type(value) is bool, value)  # in Python, 1 == True


def _required(_: Validator, names: list[str], instance: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(instance, dict):
        for name in names:
            if name not in instance:
                yield ValidationError("it is missing", path=[name])


def _additional(
    validator: Validator, allowed: Any, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    if not isinstance(instance, dict):
        return
    members = cast("dict[str, Any]", instance)
    known = schema.get("properties", {})
    for name in members:
        if name in known:
            continue
        if allowed is False:
            yield ValidationError("it is unknown", validator=UNKNOWN, path=[name])
        else:
            descend = cast("Any", validator).descend
            yield from descend(members[name], allowed, path=name)


def _multiple(_: Validator, factor: Any, instance: Any, __: Any) -> Iterator[ValidationError]:
    is_number = isinstance(instance, int | float) and not isinstance(instance, bool)
    # In decimal: 19.99 is a multiple of 0.01, although the doubles are not.
    if is_number and (_fraction(instance) / _fraction(factor)).denominator != 1:
        yield ValidationError("it is not a multiple")


def _fraction(number: float) -> Fraction:
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


def _reference(
    validator: Any, reference: str, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    left = _CHECKS_LEFT.get()
    if left is not None:
        left[0] -= 1
        if left[0] < 0:
            raise TooManyChecksError
    yield from _FOLLOW(validator, reference, instance, schema)


def _unique(_: Validator, wanted: bool, instance: Any, __: Any) -> Iterator[ValidationError]:
    if not wanted or not isinstance(instance, list):
        return
    places: dict[object, int] = {}
    for place, item in enumerate(cast("list[object]", instance)):
        first = places.setdefault(json_key(item), place)
        if first != place:
            yield ValidationError(f"items {first} and {place} are equal")
            return


def _pattern(_: Validator, pattern: str, instance: Any, __: Any) -> Iterator[ValidationError]:
    if isinstance(instance, str) and not is_found(pattern, instance):
        yield ValidationError("it does not match")


_VALIDATOR: Any = cast("Any", extend)(
    Draft202012Validator,
    {
        "required": _required,
        "additionalProperties": _additional,
        "uniqueItems": _unique,
        "pattern": _pattern,
        "multipleOf": _multiple,
        "$ref": _reference,
    },
)
