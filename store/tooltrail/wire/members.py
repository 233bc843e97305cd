"""Reading the members of JSON that a provider sent, whatever it is.

Each function gives the value if it is of the kind, and None, or something empty, if it is not.
Readers that must not pass over a member of another kind compare with what was there.
"""

import json
from typing import TypeAlias

from pydantic import JsonValue

JsonObject: TypeAlias = dict[str, JsonValue]

# Made once: `json.dumps` with these options makes one for each value, which costs as much again.
_ENCODER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"))


def text_in(value: JsonValue) -> str | None:
    """The text, unless it is something else or empty: to providers an empty id is none."""
    return value if isinstance(value, str) and value else None


def object_in(value: JsonValue) -> JsonObject:
    """The members, none where it is no object."""
    return value if isinstance(value, dict) else {}


def list_in(value: JsonValue) -> list[JsonValue]:
    """The items, none where it is no array."""
    return value if isinstance(value, list) else []


def items_of(value: JsonValue) -> list[JsonValue]:
    """The items of an array; anything else is the only one, and what says nothing is none."""
    return value if isinstance(value, list) else [] if value in (None, "") else [value]


def objects_in(value: JsonValue) -> list[JsonObject]:
    """The items that are objects."""
    return [item for item in list_in(value) if isinstance(item, dict)]


def are_objects(value: JsonValue) -> bool:
    """Whether nothing is passed over by `objects_in`."""
    return value is None or (
        isinstance(value, list) and all(isinstance(item, dict) for item in value)
    )


def others(value: JsonObject, known: frozenset[str]) -> JsonObject:
    """The members that are not known, without those that are null: kept as extras."""
    return {
        name: member for name, member in value.items() if name not in known and member is not None
    }


def raw_arguments(value: JsonValue) -> str:
    """The text of arguments: as it came, or JSON of what came parsed; empty where there are none.

    Servers that are to send an object may send the text that the model wrote, and the reverse.
    """
    if value is None:
        return ""
    return value if isinstance(value, str) else spelled(value)


def spelled(value: JsonValue) -> str:
    """The value as JSON, as arguments are kept that came parsed.

    Without white space, in the order of its members, with characters and numbers as they are; NaN
    and infinities are spelled as Python spells them.
    """
    return _ENCODER.encode(value)
