"""Arguments that come in pieces, each with the JSON path of its place (Vertex AI alone).

A text may come in several pieces, of which all but the last say `willContinue`, and the last one is
often empty; every other value comes whole, and none comes twice. The paths are those that the
server writes: members by a dot or in quoted brackets, items by a number in brackets.
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
"""The members that a piece may have its value in."""

PIECES = frozenset({"willContinue", "partialArgs"})
"""Members of a call that comes in pieces."""

_Step = str | int


def goes_on(members: JsonObject) -> bool:
    """Whether more is to come; whatever is not a clear no is taken for a yes."""
    return members.get("willContinue") not in (None, False)


def is_in_pieces(members: JsonObject) -> bool:
    """Whether arguments of a call come in pieces, of which there may be more."""
    return goes_on(members) or members.get("partialArgs") not in (None, [])


@dataclass(slots=True)
class PartialArguments:
    """Arguments as far as they have come, and the places of texts that are to go on."""

    args: JsonObject = field(default_factory=dict[str, JsonValue])
    open_texts: set[tuple[_Step, ...]] = field(default_factory=set[tuple[_Step, ...]])

    def take(self, pieces: JsonValue) -> None:
        """Take what is new; nothing is guessed, and nothing that came before is replaced.

        Raises:
            InvalidRecordError: a piece has no path that can be followed, or no value for it.
        """
        if not are_objects(pieces):
            raise InvalidRecordError("not a list of objects")
        for piece in map(camel, objects_in(pieces)):
            steps = _steps(piece.get("jsonPath"))
            self._put(steps, _value(piece))
            if goes_on(piece):
                self.open_texts.add(steps)

    def _put(self, steps: tuple[_Step, ...], value: JsonValue) -> None:
        """Put a value at its place, or behind the text there that was to go on."""
        place: JsonValue = self.args
        for step, following in pairwise(steps):
            place = _inner(place, step, [] if isinstance(following, int) else {})
        nothing: JsonValue = {}
        before = _inner(place, steps[-1], nothing)
        if steps in self.open_texts:
            if not isinstance(value, str) or not isinstance(before, str):
                raise InvalidRecordError("what goes on behind a text is none")
            value = before + value
            self.open_texts.remove(steps)
        elif before is not nothing:
            raise InvalidRecordError("a path has a value already")
        # The place is an object for a name and an array for a number: `_inner` has looked.
        cast("dict[_Step, JsonValue]", place)[steps[-1]] = value


def _value(piece: JsonObject) -> JsonValue:
    """The one value of a piece."""
    values = [piece[name] for name in _VALUES if name in piece]
    if len(values) != 1:
        raise InvalidRecordError(f"a piece has {len(values)} values, and not one")
    if goes_on(piece) and not isinstance(values[0], str):
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
    """What stands at a step of a path: the value, if nothing stood there before."""
    if isinstance(place, dict) and isinstance(step, str):
        return place.setdefault(step, value)
    if not isinstance(place, list) or not isinstance(step, int):
        raise InvalidRecordError("a path goes through a value that has no members")
    if step > len(place):
        raise InvalidRecordError(f"an item {step} comes before those in front of it")
    if step == len(place):
        place.append(value)
    return place[step]
