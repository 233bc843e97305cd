"""Assembles arguments that come in pieces, each with its JSON path (only on Vertex AI).

A text may come in several pieces; all but the last have `willContinue`, and the last is often
empty. Every other value comes in one piece, and each path gets one value. The server writes a path
with members after a dot or in quoted brackets, and items as a number in brackets.
"""

import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import cast

from pydantic import JsonValue

from tooltrail.records import InvalidRecordError
from tooltrail.wire.gemini.parts import camel
from tooltrail.wire.members import JsonObject, are_objects, objects_in

_STEP = re.compile(r"""\.([^.\[\]]+)|\[(\d{1,6})\]|\[(['"])((?:(?!\3)[^\\]|\\.)*)\3\]""")
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")
"""The members that may hold the value of a piece."""

PIECES = frozenset({"willContinue", "partialArgs"})
"""The members of a call that comes in pieces."""

_Step = str | int


@dataclass(slots=True)
class PartialArguments:
    """The arguments, as far as they were received, and the paths of unfinished texts."""

    args: JsonObject = field(default_factory=dict[str, JsonValue])
    open_texts: set[tuple[_Step, ...]] = field(default_factory=set[tuple[_Step, ...]])

    def take(self, pieces: JsonValue) -> None:
        """Add pieces; nothing is guessed, and no earlier value is replaced.

        Raises:
            InvalidRecordError: a piece has no valid path, or no value that fits there.
        """
        if not are_objects(pieces):
            raise InvalidRecordError("not a list of objects")
        for piece in map(camel, objects_in(pieces)):
            steps = _steps(piece.get("jsonPath"))
            self._put(steps, _value(piece))
            if piece.get("willContinue"):
                self.open_texts.add(steps)

    def _put(self, steps: tuple[_Step, ...], value: JsonValue) -> None:
        """Set a value at its path, or append it to an unfinished text there."""
        place: JsonValue = self.args
        for step, following in pairwise(steps):
            place = _inner(place, step, [] if isinstance(following, int) else {})
        nothing: JsonValue = {}
        before = _inner(place, steps[-1], nothing)
        if steps in self.open_texts:
            if not isinstance(value, str) or not isinstance(before, str):
                raise InvalidRecordError("a piece that continues a text is not a text")
            value = before + value
            self.open_texts.remove(steps)
        elif before is not nothing:
            raise InvalidRecordError("a path has a value already")
        # `_inner` checked that the place is an object for a name and an array for a number.
        cast("dict[_Step, JsonValue]", place)[steps[-1]] = value


def _value(piece: JsonObject) -> JsonValue:
    """The one value of a piece."""
    values = [piece[name] for name in _VALUES if name in piece]
    if len(values) != 1:
        raise InvalidRecordError(f"a piece has {len(values)} values, and not one")
    if piece.get("willContinue") and not isinstance(values[0], str):
        raise InvalidRecordError("only a string can be continued")
    return None if "nullValue" in piece else values[0]


def _steps(value: JsonValue) -> tuple[_Step, ...]:
    path = value if isinstance(value, str) else ""
    steps: list[_Step] = []
    end = 1
    while match := _STEP.match(path, end):
        end = match.end()
        name, number, _, quoted = match.groups()
        unquoted = name or re.sub(r"\\(.)", r"\1", quoted or "")
        steps.append(unquoted if number is None else int(number))
    if not path.startswith("$") or end != len(path) or not steps or isinstance(steps[0], int):
        raise InvalidRecordError(f"the path {path[:80]!a} cannot be followed")
    return tuple(steps)


def _inner(place: JsonValue, step: _Step, value: JsonValue) -> JsonValue:
    """The value at a step of a path; set to `value` if there was none."""
    if isinstance(place, dict) and isinstance(step, str):
        return place.setdefault(step, value)
    if not isinstance(place, list) or not isinstance(step, int):
        raise InvalidRecordError("a path leads into a value that is not an object or a list")
    if step > len(place):
        raise InvalidRecordError(f"item {step} of a list arrived before item {len(place)}")
    if step == len(place):
        place.append(value)
    return place[step]
