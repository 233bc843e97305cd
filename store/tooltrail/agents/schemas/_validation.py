r"""JSON Schema's draft 2020-12 as it is enforced here: by `jsonschema`, with three things changed.

Patterns are those of ECMA-262, as the specification has them (section 6.3.3 of its validation), and
not Python's: `$` does not match before a final line feed, `\d` takes ASCII digits alone. Whether
items are unique takes time by their number, and not by its square. What is missing, or is one too
many, is reported field by field, with the path of that very field.

Why not a pydantic model of the schema: the converters that there are leave out what a schema may
say (`oneOf` as exactly one, `uniqueItems`, `const` and `enum` of any JSON, tuples of types, 1 and
1.0 and true as JSON tells them apart), and take a value that the schema refuses.
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

_LOOKS_LEFT: ContextVar[list[int] | None] = ContextVar("looks", default=None)
_LOOKS_AT_LEAST = 10_000
_LOOKS_OF_A_PART = 100
_FOLLOW: Any = cast("Any", Draft202012Validator).VALIDATORS["$ref"]

UNKNOWN = "unknown"
"""The keyword of an error about a field that an object may not have."""


class TooManyLooksError(Exception):
    """A schema that refers to itself sends a value around too often."""


@contextmanager
def bounded(part_count: int) -> Generator[None]:
    """Within the block, checks follow no more references than a value of so many parts may need.

    A schema whose alternatives refer back to it looks at a value by the power of its depth.

    Raises:
        TooManyLooksError: they would.
    """
    token = _LOOKS_LEFT.set([_LOOKS_AT_LEAST + _LOOKS_OF_A_PART * part_count])
    try:
        yield
    finally:
        _LOOKS_LEFT.reset(token)


def validator_of(document: Mapping[str, JsonValue]) -> Validator:
    """The validator of a schema that was looked at.

    Args:
        document: without `nullable`; see `plain_schema`.
    """
    return cast("Validator", _VALIDATOR(document, format_checker=CHECKER))


def json_key(value: Any) -> object:
    """Something hashable that is equal for values that are equal as JSON, and for no others."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return frozenset((name, json_key(one)) for name, one in members.items())
    if isinstance(value, list):
        return tuple(map(json_key, cast("list[object]", value)))
    return (type(value) is bool, value)  # to Python, 1 is True


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
    # In decimal, as both are spelled: 19.99 is a multiple of 0.01, though no double divides so.
    if is_number and (_fraction(instance) / _fraction(factor)).denominator != 1:
        yield ValidationError("it is no multiple")


def _fraction(number: float) -> Fraction:
    return Fraction(number) if isinstance(number, int) else Fraction(repr(number))


def _reference(
    validator: Any, reference: str, instance: Any, schema: Any
) -> Iterator[ValidationError]:
    looks = _LOOKS_LEFT.get()
    if looks is not None:
        looks[0] -= 1
        if looks[0] < 0:
            raise TooManyLooksError
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
