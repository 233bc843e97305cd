"""JSON values of a source, in which anything may be missing or of another type than expected."""

import json
from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from contextlib import suppress
from math import isfinite
from types import MappingProxyType
from typing import Any, Final, TypeAlias, cast

Json: TypeAlias = Mapping[str, Any]

NOTHING: Final[Json] = MappingProxyType({})
"""An object without members."""

_MOST_STATUS: Final = 255
_MOST_MS: Final = 10**15
"""A longer time, of 30,000 years, is no time at all."""

_encoder: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def object_of(value: Any, *names: str) -> dict[str, Any]:
    """The JSON object at a path of members; one without members if there is none."""
    for name in names:
        value = cast("Json", value).get(name) if isinstance(value, dict) else None
    return cast("dict[str, Any]", value) if isinstance(value, dict) else {}


def list_of(value: Any, *names: str) -> list[Any]:
    """The items of the JSON array at a path of members; none if there is no array."""
    *path, last = names or ("",)
    value = object_of(value, *path).get(last) if names else value
    return [*cast("Iterable[Any]", value)] if isinstance(value, list) else []


def objects_of(value: Any, *names: str) -> list[dict[str, Any]]:
    """The items of the JSON array at a path, as objects: any other item has no members."""
    return [*map(object_of, list_of(value, *names))]


def first_of(value: Any, *names: str) -> Json:
    """The first item of the JSON array at a path, as an object."""
    return next(iter(objects_of(value, *names)), NOTHING)


def names_in(spelled: str) -> frozenset[str]:
    """The names in a text, which are separated by spaces."""
    return frozenset(spelled.split())


def spelled(value: Any) -> str:
    """The arguments of a call as text: a text as it is, any other value as JSON."""
    return value if isinstance(value, str) else _encoder.encode(value)


def parsed(value: Any) -> Any:
    """The value that a text spells in JSON; any other value as it is."""
    with suppress(ValueError, RecursionError, TypeError):
        return json.loads(value, parse_constant=str, parse_float=_finite)
    return value


def _finite(spelled_float: str) -> float | str:
    number = float(spelled_float)
    return number if isfinite(number) else spelled_float


def named_texts(value: Json, *same: str, **named: str) -> dict[str, Any]:
    """The members of a value that are texts, with their own names or with ours for them."""
    named = {**{one: one for one in same}, **named}
    found = {ours: value.get(theirs) for ours, theirs in named.items()}
    return {ours: one for ours, one in found.items() if one and isinstance(one, str)}


def without(value: Json, known: AbstractSet[str]) -> dict[str, Any]:
    """The members of a value that have no place in our records, except null ones."""
    return {name: one for name, one in value.items() if name not in known and one is not None}


def exit_status_of(value: Any) -> int | None:
    """An exit status, 0 to 255; None for any other value."""
    return value if type(value) is int and 0 <= value <= _MOST_STATUS else None


def milliseconds_of(number: Any, unit_ms: float = 1) -> int | None:
    """A time in whole milliseconds, given in units of so many; None for any other value."""
    is_number = isinstance(number, int | float) and not isinstance(number, bool)
    return round(number * unit_ms) if is_number and 0 <= number * unit_ms < _MOST_MS else None
