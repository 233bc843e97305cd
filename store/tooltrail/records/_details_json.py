"""Converts the details of an error, which may be any value, to JSON of bounded depth and size.

Pydantic's `to_jsonable_python` is not used: it consumes iterators, and refuses bytes that are not
UTF-8 and values that contain themselves.
"""

import re
from typing import cast

from pydantic import JsonValue

from tooltrail.records._error_text import one_line, type_name
from tooltrail.records.canonical_json import MAX_EMBEDDED_DEPTH, encode_text
from tooltrail.records.shortened_json import marker

MAX_MEMBERS = 1 << 18
"""Most members of all lists and objects together. Nested repeated references grow exponentially."""

_CHARS_PER_MEMBER = 64
"""Characters of text that count as one member, so that 16 MiB of text use up `MAX_MEMBERS`."""

_SHORT_CHARS = 256
"""Longest text that is always kept; all markers are shorter."""

_DESCRIBED_CHARS = 1_000
"""Longest description of an object that is not JSON; the object determines the text."""

_INTEGER_BITS = 2_048
"""Longest integer that Python prints, however its limit of digits is set."""

_CONTAINERS: tuple[type, ...] = (dict, list, tuple, set, frozenset)
_BYTES: tuple[type, ...] = (bytes, bytearray, memoryview)

_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")


def recordable(details: object) -> JsonValue:
    """The details as JSON of at most `MAX_EMBEDDED_DEPTH` levels; never raises an `Exception`.

    `ToolError.details` says what becomes of values that JSON cannot hold.
    """
    return _Copier().copy(details)


class _Copier:
    """Copies one value, and counts the copied members."""

    def __init__(self) -> None:
        self._room = MAX_MEMBERS

    def copy(self, value: object, parents: tuple[int, ...] = ()) -> JsonValue:
        """A copy of a value that is inside of the containers with the ids `parents`."""
        try:
            if isinstance(value, _CONTAINERS):
                return self._container(cast("list[object]", value), parents)
            made = _single_value(value)
        except Exception:  # noqa: BLE001  the class of the value may define anything
            return _marked(value, "it cannot be read")
        if isinstance(made, str) and len(made) > _SHORT_CHARS:
            if self._room <= 0:
                return marker(len(made), "characters")
            self._room -= len(made) // _CHARS_PER_MEMBER
        return made

    def _container(
        self, value: "list[object] | dict[object, object]", parents: tuple[int, ...]
    ) -> JsonValue:
        if id(value) in parents:
            return _marked(value, "contains itself")
        if len(parents) == MAX_EMBEDDED_DEPTH or self._room <= 0:
            return marker(len(value), "members" if isinstance(value, dict) else "items")
        self._room -= len(value)
        inside = (*parents, id(value))
        if isinstance(value, dict):
            if all(isinstance(key, str) for key in value):
                return {
                    str.__str__(cast("str", key)): self.copy(value[key], inside) for key in value
                }
            return [self.copy(pair, inside) for pair in value.items()]
        listed = [self.copy(item, inside) for item in value]
        return sorted(listed, key=encode_text) if isinstance(value, set | frozenset) else listed


def _single_value(value: object) -> JsonValue:
    match value:
        case None | bool():
            return value
        case str():
            return str.__str__(value)  # for a member of an enumeration: its value
        case float():
            return float(value)
        case int() if value.bit_length() <= _INTEGER_BITS:
            return int(value)
        case int():
            text = f"{int(value):#x}"
        case _ if isinstance(value, _BYTES):
            text = bytes(cast("bytes", value)).decode(errors="backslashreplace")
        case _:  # a memory address is meaningless, and differs from run to run
            text = one_line(_ADDRESS.sub("", str(value)), _DESCRIBED_CHARS)
    return _marked(value, text)


def _marked(value: object, text: str) -> str:
    return f"<{type_name(value)}: {text}>"
