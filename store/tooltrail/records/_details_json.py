"""Converts the details of an error, which may be any value, to JSON of bounded depth and size.

Pydantic's `to_jsonable_python` is not used: it consumes iterators, and refuses bytes that are not
UTF-8 and values that contain themselves.
"""

import re
from collections.abc import Container
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

_TYPE_CHARS = 80
"""Longest name of a type in the text that replaces a value."""

_CONTAINERS: tuple[type, ...] = (dict, list, tuple, set, frozenset)
_BYTES: tuple[type, ...] = (bytes, bytearray, memoryview)

_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")


def recordable(details: object) -> JsonValue:
    """The details as JSON of at most `MAX_EMBEDDED_DEPTH` levels; never raises an `Exception`.

    Tuples and sets become lists, a set in the order of its members' JSON. A value that JSON cannot
    hold becomes the text `<TYPE: TEXT>`: bytes (as UTF-8, other bytes escaped), integers too long
    to be printed (hexadecimal), keys that are not text, and any other object, described in at most
    `_DESCRIBED_CHARS`. A container that contains itself is only named there. A count replaces
    values that are nested too deep, and lists, objects and long texts after `MAX_MEMBERS` members.
    """
    return _Copier().copy(details, MAX_EMBEDDED_DEPTH)


class _Copier:
    """Copies one value, and counts the copied members."""

    def __init__(self) -> None:
        self._room = MAX_MEMBERS
        self._parents: set[int] = set()

    def copy(self, value: object, levels: int) -> JsonValue:
        """A copy with at most `levels` levels."""
        try:
            if isinstance(value, _CONTAINERS):
                return self._container(cast("list[object]", value), levels)
            made = _single_value(value)
        except Exception:  # noqa: BLE001  the class of the value may define anything
            self._parents.discard(id(value))
            return _marked(value, "it cannot be read")
        if isinstance(made, str) and len(made) > _SHORT_CHARS:
            if self._room <= 0:
                return marker(len(made), "characters")
            self._room -= len(made) // _CHARS_PER_MEMBER
        return made

    def _container(self, value: "list[object] | dict[object, object]", levels: int) -> JsonValue:
        if id(value) in self._parents:
            return _marked(value, "contains itself")
        if levels == 0 or self._room <= 0:
            return marker(len(value), "members" if isinstance(value, dict) else "items")
        self._room -= len(value)
        self._parents.add(id(value))
        named: dict[str, JsonValue] = {}
        for key, member in value.items() if isinstance(value, dict) else enumerate(value):
            name = _name(key, named) if isinstance(value, dict) else str(key)
            named[name] = self.copy(member, levels - 1)
        self._parents.discard(id(value))
        if isinstance(value, dict):
            return named
        listed = [*named.values()]
        return sorted(listed, key=encode_text) if isinstance(value, set | frozenset) else listed


def _name(key: object, taken: Container[str]) -> str:
    made = _single_value(key)
    name = base = made if isinstance(made, str) else _marked(key, repr(made))
    times = 1
    while name in taken:
        times += 1
        name = f"{base} ({times})"
    return name


def _single_value(value: object) -> JsonValue:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)  # for a member of an enumeration: its value
    if isinstance(value, int):
        return _number(value)
    if isinstance(value, float):
        return float(value)
    if isinstance(value, _BYTES):
        return _marked(value, bytes(cast("bytes", value)).decode(errors="backslashreplace"))
    # A memory address is meaningless, and differs from run to run.
    return _marked(value, one_line(_ADDRESS.sub("", str(value)), _DESCRIBED_CHARS))


def _number(value: int) -> int | str:
    try:
        repr(int(value))
    except ValueError:  # more digits than Python prints
        return _marked(value, f"{int(value):#x}")
    return int(value)


def _marked(value: object, text: str) -> str:
    return f"<{type_name(value, _TYPE_CHARS)}: {text}>"
