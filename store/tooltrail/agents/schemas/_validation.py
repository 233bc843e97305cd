r"""JSON Schema's draft 2020-12 as it is enforced here: by `jsonschema`, with three things changed.

Patterns are those of ECMA-262, as the specification has them (section 6.3.3 of its validation), and
not Python's: `$` does not match before a final line feed, `\d` takes ASCII digits alone. Whether
items are unique takes time by their number, and not by its square. What is missing, or is one too
many, is told field by field, with the path of that very field.

Why not a pydantic model of the schema: the converters that there are leave out what a schema may
say (`oneOf` as exactly one, `uniqueItems`, `const` and `enum` of any JSON, tuples of types, 1 and
1.0 and true as JSON tells them apart), and take a value that the schema refuses.
"""

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, cast

import regress
from jsonschema import Draft202012Validator
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import (
    extend,  # pyright: ignore[reportUnknownVariableType]  its stub is in part without types
)
from pydantic import JsonValue

from tooltrail.agents.schemas._formats import CHECKER

UNKNOWN = "unknown"
"""The keyword of an error about a field that an object may not have."""


def validator_of(document: Mapping[str, JsonValue]) -> Validator:
    """The validator of a schema that was looked at.

    Args:
        document: without `nullable`; see `plain_schema`.
    """
    return cast("Validator", _VALIDATOR(document, format_checker=CHECKER))


def json_key(value: Any) -> object:
    """Something hashable that is equal for values that are equal as JSON, and for no others."""
    match value:
        case bool() | None:
            return (type(value), value)
        case str():
            return value
        case list():
            return ("list", *map(json_key, cast("list[object]", value)))
        case dict():
            members = cast("dict[str, Any]", value)
            return frozenset((name, json_key(one)) for name, one in members.items())
        case _:
            return ("number", value)


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
    if isinstance(instance, str) and not _matches(pattern, instance):
        yield ValidationError("it does not match")


def _matches(pattern: str, text: str) -> bool:
    try:
        return _compiled(pattern).find(text) is not None
    except UnicodeError:
        # A lone surrogate, which is no character that any pattern could mean.
        return False


@lru_cache(maxsize=256)
def _compiled(pattern: str) -> regress.Regex:
    return regress.Regex(pattern, "u")


_VALIDATOR: Any = cast("Any", extend)(
    Draft202012Validator,
    {
        "required": _required,
        "additionalProperties": _additional,
        "uniqueItems": _unique,
        "pattern": _pattern,
    },
)
