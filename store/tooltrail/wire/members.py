"""Reads members of a provider's JSON without trusting their types.

Each function returns the value if it has the expected type, and None or an empty value otherwise.
A reader that must not ignore a member of another type compares the result with the original.
"""

import json
from typing import TypeAlias

from pydantic import JsonValue

JsonObject: TypeAlias = dict[str, JsonValue]

LAYOUT = "tooltrail:layout"
"""The extra that notes in which of two equal forms a content came; no report names it."""

# Made once: `json.dumps` with these options makes an encoder per call, which doubles the cost.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def text_in(value: JsonValue) -> str | None:
    """The text; None if it is empty or not a text. Providers send an empty id for no id."""
    return value if isinstance(value, str) and value else None


def object_in(value: JsonValue) -> JsonObject:
    """The object; an empty one if the value is not an object."""
    return value if isinstance(value, dict) else {}


def list_in(value: JsonValue) -> list[JsonValue]:
    """The array; an empty one if the value is not an array."""
    return value if isinstance(value, list) else []


def items_of(value: JsonValue) -> list[JsonValue]:
    """The items of an array; no items for None or an empty text; else the value as only item."""
    return value if isinstance(value, list) else [] if value in (None, "") else [value]


def objects_in(value: JsonValue) -> list[JsonObject]:
    """The items of an array that are objects."""
    return [item for item in list_in(value) if isinstance(item, dict)]


def are_objects(value: JsonValue) -> bool:
    """Whether `objects_in` skips nothing: the value is None or an array of objects."""
    return value is None or (
        isinstance(value, list) and all(isinstance(item, dict) for item in value)
    )


def others(value: JsonObject, known: frozenset[str]) -> JsonObject:
    """The members that are neither known nor null, to be kept as extras."""
    return {
        name: member for name, member in value.items() if name not in known and member is not None
    }


def raw_arguments(value: JsonValue) -> str:
    """The arguments as text: a text unchanged, any other value as JSON, None as empty text.

    A server whose format has an object may send the text that the model wrote, and vice versa.
    """
    if value is None:
        return ""
    return value if isinstance(value, str) else spelled(value)


def spelled(value: JsonValue) -> str:
    """The value as compact JSON; the form in which arguments that came parsed are kept.

    Members keep their order; characters and numbers are not escaped or rounded. NaN and infinities
    are written as Python writes them.
    """
    return _ENCODER.encode(value)
