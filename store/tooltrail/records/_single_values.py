"""Single values as JSON: plain values of the built-in types, and texts for what is none of them.

A class may define anything, so a value is asked only through the methods of the built-in types, and
never for its class: `isinstance` would do that, and the answer may lie or raise.
"""

import re
from typing import Any, Literal, TypeGuard, cast

from pydantic import JsonValue

from tooltrail.records._error_details import one_line, type_name

DESCRIBED_CHARS = 1_000
"""Longest description of an object that is no JSON; it is what the object says of itself."""

_TYPE_CHARS = 80
"""Longest name of a type in the text that stands for a value."""

_PRINTED_BITS = 16_000
"""Longer integers are written in hexadecimal, whatever this Python is set to print."""

_SHORT_BITS = 2_000
"""Integers that every Python prints; no limit can be set below 640 digits."""

LONG_TEXT = 1_000
"""Characters of a text that is no longer plain: it is counted when it stands in several places."""

_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")

Kind = Literal["object", "array", "set"]
"""How a value that has members is written; a set becomes an array in an order of its own."""


def members_of(value: object) -> tuple[Kind, list[Any]] | None:
    """The members of a value, `(key, member)` of a dict; None when it is a single value.

    They are taken at once, for what an object does when it is asked may change the value.
    """
    kind = type(value)
    if issubclass(kind, dict):
        return "object", list(vars(dict)["items"](value))
    if issubclass(kind, list):
        return "array", list(vars(list)["__iter__"](value))
    if issubclass(kind, tuple):
        return "array", list(vars(tuple)["__iter__"](value))
    if issubclass(kind, set):
        return "set", list(vars(set)["__iter__"](value))
    if issubclass(kind, frozenset):
        return "set", list(vars(frozenset)["__iter__"](value))
    return None


def is_plain(value: object) -> TypeGuard[JsonValue]:
    """Whether a value is short JSON as it is, for a quick look at the many that are."""
    kind = type(value)
    if kind is str:
        return len(cast("str", value)) <= LONG_TEXT
    if kind is int:
        return cast("int", value).bit_length() <= _SHORT_BITS
    return value is None or kind is bool or kind is float


def leaf(value: object) -> JsonValue:
    """A single value as JSON, of exactly a built-in type; never raises."""
    if is_plain(value):
        return value
    kind = type(value)
    if issubclass(kind, str):
        return str.__str__(cast("str", value))
    if issubclass(kind, float):
        return float.__float__(cast("float", value))
    if issubclass(kind, int):
        return _integer(value, int.__index__(cast("int", value)))
    text = _text_of_bytes(value)
    return described(value) if text is None else marked(value, text)


def marked(value: object, text: str) -> str:
    """What stands for a value that JSON cannot hold."""
    return f"<{type_name(value, _TYPE_CHARS)}: {text}>"


def described(value: object) -> str:
    """What an object says of itself, in `DESCRIBED_CHARS`."""
    try:
        # Where an object lies in memory says nothing, and differs from run to run.
        text = _ADDRESS.sub("", str.__str__(str(value)))
    except (Exception, SystemExit):  # noqa: BLE001  a class may define any text
        text = "its text cannot be made"
    return marked(value, one_line(text, DESCRIBED_CHARS))


def _integer(value: object, integer: int) -> JsonValue:
    bits = integer.bit_length()
    if bits > _SHORT_BITS and (bits > _PRINTED_BITS or not _is_printed(integer)):
        return marked(value, f"{integer:#x}")
    return integer


def _is_printed(integer: int) -> bool:
    try:
        return bool(repr(integer))
    except ValueError:
        return False


def _text_of_bytes(value: object) -> str | None:
    kind = type(value)
    if issubclass(kind, bytes):
        return bytes.decode(cast("bytes", value), errors="backslashreplace")
    if issubclass(kind, bytearray):
        return bytearray.decode(cast("bytearray", value), errors="backslashreplace")
    if kind is memoryview:
        try:
            return cast("memoryview", value).tobytes().decode(errors="backslashreplace")
        except ValueError:  # it was released
            return None
    return None
