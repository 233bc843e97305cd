"""Arguments that come in pieces, each with the JSON path of its place (Vertex AI alone).

A text may come in several pieces, of which all but the last say `willContinue`, and the last one is
often empty; every other value comes whole, and none comes twice. The paths are those that the
server writes: members by a dot or in quoted brackets, items by a number in brackets.
"""

import re
from dataclasses import dataclass, field

from pydantic import JsonValue

from tooltrail.records import InvalidRecordError
from tooltrail.wire.gemini.parts import camel
from tooltrail.wire.members import JsonObject, are_objects, objects_in

_STEP = re.compile(
    r"""\.([^.\[\]]+)|\[(\d{1,6})\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]"""
)
_KINDS: dict[str, type | tuple[type, ...]] = {
    "stringValue": str,
    "numberValue": (int, float),
    "boolValue": bool,
    "nullValue": object,
}
"""The members that a piece may have its value in, and what it is there."""

_Step = str | int


def goes_on(members: JsonObject) -> bool:
    """Whether more is to come; whatever is not a clear no is taken for a yes."""
    return members.get("willContinue") not in (None, False)


def is_in_pieces(members: JsonObject) -> bool:
    """Whether arguments of a call come in pieces, of which there may be more."""
    return goes_on(members) or members.get("partialArgs") not in (None, [])


@dataclass(slots=True)
class PartialArguments:
    """Arguments as far as they have come."""

    args: JsonObject = field(default_factory=dict[str, JsonValue])
    _open: set[tuple[_Step, ...]] = field(default_factory=set[tuple[_Step, ...]])

    @property
    def has_open_text(self) -> bool:
        """Whether a text was to go on."""
        return bool(self._open)

    def take(self, pieces: JsonValue) -> None:
        """Take what is new; nothing is guessed, and nothing that came before is replaced.

        Raises:
            InvalidRecordError: a piece has no path that can be followed, or no value for it.
        """
        if not are_objects(pieces):
            raise InvalidRecordError("they are no list of objects")
        for piece in map(camel, objects_in(pieces)):
            steps = _steps(piece.get("jsonPath"))
            place, value = tuple(steps), _value(piece)
            if place in self._open:
                before = _at(self.args, steps)
                if not isinstance(value, str) or not isinstance(before, str):
                    raise InvalidRecordError("what goes on behind a text is none")
                value = before + value
            _put(self.args, steps, value, replaces=place in self._open)
            self._open.discard(place)
            if goes_on(piece):
                self._open.add(place)


def _value(piece: JsonObject) -> JsonValue:
    """The one value of a piece."""
    parts = [name for name in _KINDS if name in piece]
    if len(parts) != 1:
        raise InvalidRecordError(f"a piece has {len(parts)} values, and not one")
    (name,) = parts
    value = piece[name]
    is_bool = isinstance(value, bool)
    if not isinstance(value, _KINDS[name]) or (is_bool and name == "numberValue"):
        raise InvalidRecordError(f"a value is no {name}")
    if goes_on(piece) and name != "stringValue":
        raise InvalidRecordError(f"a {name} is to go on")
    return None if name == "nullValue" else value


def _steps(value: JsonValue) -> list[_Step]:
    steps: list[_Step] = []
    path = value if isinstance(value, str) else ""
    end = 1
    for match in _STEP.finditer(path, 1):
        if match.start() != end:
            break
        end = match.end()
        name, number, *quoted = match.groups()
        if number is not None:
            steps.append(int(number))
        else:
            text = name if name is not None else next(one for one in quoted if one is not None)
            steps.append(text if name is not None else re.sub(r"\\(.)", r"\1", text))
    if not path.startswith("$") or end != len(path) or not steps or isinstance(steps[0], int):
        raise InvalidRecordError(f"the path {path[:80]!a} cannot be followed")
    return steps


def _at(value: JsonValue, steps: list[_Step]) -> JsonValue:
    for step in steps:
        if isinstance(value, dict) and isinstance(step, str):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def _put(root: JsonObject, steps: list[_Step], value: JsonValue, *, replaces: bool) -> None:
    place: JsonValue = root
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        container: JsonValue = [] if isinstance(following, int) else {}
        inner = value if following is None else container
        if isinstance(place, dict) and isinstance(step, str):
            is_new = step not in place
            if is_new or (replaces and following is None):
                place[step] = inner
            place = place[step]
        elif isinstance(place, list) and isinstance(step, int):
            is_new = step == len(place)
            place = _item(place, step, inner, replaces=replaces and following is None)
        else:
            raise InvalidRecordError("a path goes through a value that has no members")
        if following is None and not (is_new or replaces):
            raise InvalidRecordError("a path has a value already")


def _item(place: list[JsonValue], step: int, inner: JsonValue, *, replaces: bool) -> JsonValue:
    if step > len(place):
        raise InvalidRecordError(f"an item {step} comes before those in front of it")
    if step == len(place):
        place.append(inner)
    elif replaces:
        place[step] = inner
    return place[step]
