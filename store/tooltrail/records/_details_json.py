"""Details of an error, given as any value, made into JSON of bounded depth.

Nothing is left out but copies of parts that stand in several places. Pydantic's
`to_jsonable_python` is not used: it writes fields that a class keeps out of its text, consumes
iterators, and refuses bytes that are not UTF-8 and values that contain themselves.
"""

import re
from collections.abc import Container, Iterator
from typing import cast

from pydantic import JsonValue

from tooltrail.records._error_text import one_line, type_name
from tooltrail.records.canonical_json import MAX_EMBEDDED_DEPTH, encode_text

DESCRIBED_CHARS = 1_000
"""Longest description of an object that is no JSON; the object chooses the text."""

MAX_REPEATED_CHARS = 1 << 24
"""Characters of parts that stand in the details already. Each is copied, and a list of twice the
same list of twice the same list doubles without end."""

_MEMBER_COST = 64
"""Characters that one member of a repeated part counts for."""

_MOST_DEEP_PARTS = 1 << 20
"""Pieces of the text of a part that is nested too deep."""

_END = object()

_TYPE_CHARS = 80
"""Longest name of a type in the text that stands for a value."""

_BYTES: tuple[type, ...] = (bytes, bytearray, memoryview)

_ADDRESS = re.compile(r" at 0x[0-9A-Fa-f]+")


def recordable(details: object) -> JsonValue:
    """The details as JSON of at most `MAX_EMBEDDED_DEPTH` levels; never raises an `Exception`.

    Tuples and sets become lists, a set in the order of its members' JSON. A value that JSON cannot
    hold becomes the text `<TYPE: TEXT>`: bytes (UTF-8, other bytes spelled as escapes), integers
    too long to be printed (hexadecimal), keys that are no text, parts that are nested too deep
    (their JSON), and any other object, described in `DESCRIBED_CHARS`. In the same way a part is
    named that contains itself, and repeated parts beyond `MAX_REPEATED_CHARS` are counted.
    """
    copier = _Copier(MAX_REPEATED_CHARS)
    copied = copier.copy(details, MAX_EMBEDDED_DEPTH)
    if not copier.is_cut:
        return copied
    # What is cut is cut to half, so that nothing more is cut when the record is read.
    return _Copier(MAX_REPEATED_CHARS // 2).copy(details, MAX_EMBEDDED_DEPTH)


class _Copier:
    """Copies one value, and counts the repeated parts in the copy so far."""

    def __init__(self, room: int) -> None:
        self.is_cut = False
        self._room = room
        self._parents: set[int] = set()
        self._seen: set[int] = set()
        self._repeating = 0

    def copy(self, value: object, levels: int) -> JsonValue:
        """A copy of at most so many levels. One frame per level, for the sake of deep values."""
        if not isinstance(value, dict | list | tuple | set | frozenset):
            return self._single_value(value)
        source = cast("list[object] | dict[object, object]", value)
        if id(source) in self._parents:
            return _marked(source, "contains itself")
        if levels == 0:
            return _marked(source, _deep_text(source))
        is_repeated = id(source) in self._seen
        self._seen.add(id(source))
        self._parents.add(id(source))
        self._repeating += is_repeated
        try:
            return self._copy_members(source, levels)
        except Exception:  # noqa: BLE001  the class of the value may define anything
            return _marked(source, "it cannot be read")
        finally:
            self._repeating -= is_repeated
            self._parents.discard(id(source))

    def _copy_members(
        self, source: "list[object] | dict[object, object]", levels: int
    ) -> JsonValue:
        named: dict[str, JsonValue] = {}
        is_object = isinstance(source, dict)
        pairs = source.items() if isinstance(source, dict) else enumerate(source)
        members = list(pairs)
        for n, (key, member) in enumerate(members):
            if self._repeating:
                if self._room <= 0:
                    self.is_cut = True
                    named["(left out)"] = _marked(source, f"{len(members) - n:,} more members")
                    break
                self._room -= _MEMBER_COST
            name = _name(key, named) if is_object else str(key)
            named[name] = self.copy(member, levels - 1)
        if is_object:
            return named
        listed = [*named.values()]
        return sorted(listed, key=encode_text) if isinstance(source, set | frozenset) else listed

    def _single_value(self, value: object) -> JsonValue:
        made = _json_of(value)
        if isinstance(made, str) and len(made) > _MEMBER_COST:
            is_repeated = self._repeating or id(value) in self._seen
            self._seen.add(id(value))
            if is_repeated and len(made) > self._room:
                self.is_cut = True
                return _marked(value, f"left out, {len(made):,} characters")
            self._room -= len(made) if is_repeated else 0
        return made


def _deep_text(value: object) -> str:
    """The JSON of a part that is nested too deep, as text; without recursion.

    A part that contains itself, and what is beyond `_MOST_DEEP_PARTS`, is written as `...`.
    """
    parts: list[str] = []
    parents: set[int] = set()
    levels: list[tuple[Iterator[tuple[str, object]], str, int]] = [(iter([("", value)]), "", 0)]
    while levels:
        members, end, parent = levels[-1]
        prefix, part = next(members, (end, _END))
        parts.append(prefix)
        if part is _END:
            levels.pop()
            parents.discard(parent)
        elif not isinstance(part, dict | list | tuple):
            parts.append(encode_text(_json_of(part)))
        elif id(cast("object", part)) in parents or len(parts) > _MOST_DEEP_PARTS:
            parts.append("...")
        else:
            source = cast("list[object] | dict[object, object]", part)
            parents.add(id(source))
            parts.append("{" if isinstance(source, dict) else "[")
            levels.append((_prefixed(source), "}" if isinstance(source, dict) else "]", id(source)))
    return "".join(parts)


def _prefixed(source: "list[object] | dict[object, object]") -> Iterator[tuple[str, object]]:
    """The members of a part, each with what JSON writes before it."""
    if isinstance(source, dict):
        for n, (key, member) in enumerate(source.items()):
            name = _json_of(key)
            yield f"{',' if n else ''}{encode_text(name)}:", member
    else:
        for n, member in enumerate(source):
            yield "," if n else "", member


def _name(key: object, taken: Container[str]) -> str:
    made = _json_of(key)
    name = base = made if isinstance(made, str) else _marked(key, repr(made))
    times = 1
    while name in taken:
        times += 1
        name = f"{base} ({times})"
    return name


def _json_of(value: object) -> JsonValue:
    try:
        return _spelled(value)
    except Exception:  # noqa: BLE001  the class of the value may define anything
        return _marked(value, "its text cannot be made")


def _spelled(value: object) -> JsonValue:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return str.__str__(value)  # of a member of an enumeration: its value
    if isinstance(value, int):
        number = int(value)
        try:
            repr(number)
        except ValueError:  # more digits than Python prints
            return _marked(value, f"{number:#x}")
        return number
    if isinstance(value, float):
        return float(value)
    if isinstance(value, _BYTES):
        text = bytes(cast("bytes", value)).decode(errors="backslashreplace")
    else:
        # An address says nothing, and differs from run to run.
        text = one_line(_ADDRESS.sub("", str(value)), DESCRIBED_CHARS)
    return _marked(value, text)


def _marked(value: object, text: str) -> str:
    return f"<{type_name(value, _TYPE_CHARS)}: {text}>"
