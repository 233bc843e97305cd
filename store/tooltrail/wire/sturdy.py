"""Bounds of a provider's JSON: a part that no record can hold becomes text.

A value may be nested deeper than a record can be (`MAX_EMBEDDED_DEPTH`), and an integer may have
more digits than Python prints. `WireFormat` describes what readers do with such a part.
"""

import json

from pydantic import JsonValue

from tooltrail.records.canonical_json import MAX_EMBEDDED_DEPTH
from tooltrail.wire.members import list_in

MOST_LEVELS = MAX_EMBEDDED_DEPTH - 50
"""The maximum depth of one event; a record adds some levels around it."""

_LONGEST_BITS = 14_000
"""Longest integer in bits. Python prints integers of up to 4,300 digits, about 14,284 bits."""

TOO_DEEP = f"what is nested deeper than {MOST_LEVELS} levels is kept as text"
FAULTS = (ValueError, RecursionError)
"""The errors of reading such a value; pydantic's errors and our own are `ValueError`s, too."""


def is_bounded(value: JsonValue) -> bool:
    """Whether a record can hold all of a value."""
    if not isinstance(value, dict | list):
        return not _is_long(value)
    level: list[JsonValue] = [value]
    for _ in range(MOST_LEVELS):
        # Keep only containers and long integers: a walk over all values costs as much as reading.
        level = [
            member
            for part in level
            for member in (part.values() if isinstance(part, dict) else list_in(part))
            if isinstance(member, dict | list) or _is_long(member)
        ]
        if not level:
            return True
        if any(not isinstance(member, dict | list) for member in level):
            return False
    return False


def bounded(value: JsonValue, levels: int = MOST_LEVELS) -> JsonValue:
    """Replace parts that no record can hold by text: deep values as JSON, long integers in hex."""
    if isinstance(value, dict | list) and levels == 0:
        return _text_of(value)
    if isinstance(value, dict):
        return {name: bounded(member, levels - 1) for name, member in value.items()}
    if isinstance(value, list):
        return [bounded(item, levels - 1) for item in value]
    return hex(value) if type(value) is int and _is_long(value) else value


def _text_of(value: JsonValue) -> str:
    try:
        return json.dumps(value, ensure_ascii=False)
    except (RecursionError, ValueError):
        return "[nested too deep to be written]"


def _is_long(value: JsonValue) -> bool:
    return type(value) is int and value.bit_length() > _LONGEST_BITS
