"""Details of any shape made into a JSON value that holds them whole.

A failure is never lost for what it says, so what JSON cannot hold becomes the text `<TYPE: TEXT>`
and all around it stays as it is. The value is walked without recursion, so that neither its depth
nor a part that contains itself matters.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field
from operator import itemgetter

from pydantic import JsonValue

from tooltrail.records import canonical_json
from tooltrail.records._error_details import json_text
from tooltrail.records._single_values import (
    LONG_TEXT,
    Kind,
    described,
    is_plain,
    leaf,
    marked,
    members_of,
)

_REPEATS = 250_000
_REPEATS_PER_MEMBER = 16
"""Members that parts which stand in several places may add, at least and for each true member. A
list of twice the same list of twice the same list has more members than there are atoms."""

_REPEATED_CHARS = 100
"""Characters of a repeated text that count as one member."""

_KEYS_IN_KEYS = 3
"""Objects that are keys of objects that are keys; deeper ones are described."""


def recordable(details: object) -> JsonValue:
    """The details as JSON of at most `MAX_EMBEDDED_DEPTH` levels; never raises.

    Tuples and sets become lists, a set in the order of its members' JSON. In the text `<TYPE:
    TEXT>` stand, whole, bytes (UTF-8, other bytes spelled as escapes), integers too long to be
    printed (hexadecimal), keys that are no text, and parts that are nested too deep (their JSON).
    Any other object is described in `DESCRIBED_CHARS`. A part that contains itself is noted, and
    so is one that stands in so many places that their copies would never end.
    """
    return _Copier().copy(details)


@dataclass(slots=True)
class _Level:
    """A part whose members are being copied; `order` is kept where a set is to be sorted."""

    source: object
    name: str
    kind: Kind
    members: Iterator[tuple[str, object]]
    order: list[str] | None = None
    names: list[str] = field(default_factory=list[str])
    values: list[JsonValue] = field(default_factory=list[JsonValue])

    def add(self, name: str, value: JsonValue, order: str | None = None) -> None:
        self.names.append(name)
        self.values.append(value)
        if self.order is not None:
            order = canonical_json.encode_text(value) if order is None else order
            self.order.append(f"{canonical_json.encode_text(name)}:{order}")

    def copied(self, *, is_sorted: bool) -> JsonValue:
        if self.kind == "object":
            pairs = zip(self.names, self.values, strict=True)
            return dict(sorted(pairs, key=itemgetter(0)) if is_sorted else pairs)
        if self.kind == "array":
            return self.values
        ordered = sorted(zip(self.order or (), self.values, strict=True), key=itemgetter(0))
        return [value for _, value in ordered]

    def place(self) -> str | None:
        """Where it stands among the members of a set: a digest, so that no text is made twice."""
        if self.order is None:
            return None
        order = self.order if self.kind == "array" else sorted(self.order)
        return hashlib.sha256("\n".join([self.kind, *order]).encode()).hexdigest()


class _Copier:
    """Copies one value; it knows where it is, what it has seen and how much may be repeated."""

    def __init__(self) -> None:
        self._path: set[int] = set()
        self._seen: set[int] = set()
        self._repeats = _REPEATS
        self._keys = 0

    def copy(self, value: object) -> JsonValue:
        levels = [_Level(None, "", "array", iter([("", value)]))]
        while True:
            level = levels[-1]
            below = self._copy_members(level)
            if below is not None:
                self._path.add(id(below.source))
                levels.append(below)
                continue
            levels.pop()
            if not levels:
                return level.values[0]
            self._path.discard(id(level.source))
            excess = len(levels) - canonical_json.MAX_EMBEDDED_DEPTH
            copied = level.copied(is_sorted=excess > 0)
            if excess == 1:
                copied = marked(level.source, json_text(copied))
            levels[-1].add(level.name, copied, level.place())

    def _copy_members(self, level: _Level) -> _Level | None:
        """Copy members up to the next one that has members itself; None when there is none."""
        for name, member in level.members:
            if is_plain(member):
                level.add(name, member)
                continue
            inner = members_of(member)
            if inner is None:
                level.add(name, self._leaf(member))
                continue
            kind, members = inner
            note = self._note(member, len(members))
            if note is not None:
                level.add(name, note)
                continue
            order: list[str] | None = None if level.order is None and kind != "set" else []
            named = self._named(members) if kind == "object" else (("", one) for one in members)
            return _Level(member, name, kind, named, order)
        return None

    def _note(self, part: object, size: int) -> str | None:
        """What stands for a part that cannot be copied once more."""
        if id(part) in self._path:
            return marked(part, "contains itself")
        if id(part) in self._seen:
            return self._charge(part, size + 1)
        self._seen.add(id(part))
        self._repeats += _REPEATS_PER_MEMBER * size
        return None

    def _charge(self, part: object, cost: int) -> str | None:
        self._repeats -= cost
        return marked(part, "the same as one before") if self._repeats < 0 else None

    def _named(self, pairs: list[tuple[object, object]]) -> Iterator[tuple[str, object]]:
        """The members of an object, each with a name of its own."""
        used: dict[str, int] = {}
        for key, member in pairs:
            base = name = self._name(key)
            while name in used:
                used[base] += 1
                name = f"{base} ({used[base]})"
            used[name] = 1
            yield name, member

    def _name(self, key: object) -> str:
        if type(key) is str:
            return key
        if members_of(key) is None:
            text = self._leaf(key)
            return text if isinstance(text, str) else marked(key, repr(text))
        if self._keys == _KEYS_IN_KEYS:
            return described(key)
        self._keys += 1
        copied = self.copy(key)
        self._keys -= 1
        return marked(key, json_text(copied))

    def _leaf(self, value: object) -> JsonValue:
        made = leaf(value)
        if type(made) is not str or len(made) <= LONG_TEXT:
            return made
        if id(value) in self._seen:
            return self._charge(value, len(made) // _REPEATED_CHARS) or made
        self._seen.add(id(value))
        return made
