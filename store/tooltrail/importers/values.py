"""JSON values of a source, in which anything may be missing or of another type than expected."""

from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import Any, Final, TypeAlias, cast

Json: TypeAlias = Mapping[str, Any]

NOTHING: Final[Json] = MappingProxyType({})
"""An object without members."""


def type_name(value: Any) -> str:
    """The name of the type of a value, for a message."""
    return "null" if value is None else type(value).__name__


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
