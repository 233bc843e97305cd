"""Arguments that come in pieces, each with the JSON path of its place (Vertex AI alone).

A text may come in several pieces, of which all but the last say `willContinue`; every other value
comes whole. The paths are those that the server writes: members by a dot or in quoted brackets,
items by a number in brackets.
"""

import re
from dataclasses import dataclass, field

from pydantic import JsonValue

from tooltrail.records import InvalidRecordError
from tooltrail.wire.gemini.parts import camel
from tooltrail.wire.members import JsonObject, objects_in

_STEP = re.compile(
    r"""\.([^.\[\]]+)|\[(\d{1,6})\]|\['((?:[^'\\]|\\.)*)'\]|\["((?:[^"\\]|\\.)*)"\]"""
)
_VALUES = ("stringValue", "numberValue", "boolValue", "nullValue")

_Step = str | int


@dataclass(slots=True)
class PartialArguments:
    """Arguments as far as they have come.

    Attributes:
        args: what is known of them.
    """

    args: JsonObject = field(default_factory=dict[str, JsonValue])
    _open: str | None = None

    def take(self, pieces: JsonValue) -> None:
        """Take what is new.

        Raises:
            InvalidRecordError: a piece has no path that can be followed.
        """
        for piece in map(camel, objects_in(pieces)):
            path = str(piece.get("jsonPath"))
            steps = _steps(path)
            value: JsonValue = next((piece[name] for name in _VALUES if name in piece), None)
            if "nullValue" in piece:
                value = None
            if isinstance(value, str) and path == self._open:
                before = _at(self.args, steps)
                value = f"{before}{value}" if isinstance(before, str) else value
            _put(self.args, steps, value)
            self._open = path if piece.get("willContinue") is True else None


def _steps(path: str) -> list[_Step]:
    steps: list[_Step] = []
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


def _put(root: JsonObject, steps: list[_Step], value: JsonValue) -> None:
    place: JsonValue = root
    for step, following in zip(steps, [*steps[1:], None], strict=True):
        inner: JsonValue = value if following is None else _container(following)
        if isinstance(place, dict) and isinstance(step, str):
            if following is None or not isinstance(place.get(step), dict | list):
                place[step] = inner
            place = place[step]
        elif isinstance(place, list) and isinstance(step, int):
            place = _item(place, step, inner, is_last=following is None)
        else:
            raise InvalidRecordError("a path goes through a value that has no members")


def _item(place: list[JsonValue], step: int, inner: JsonValue, *, is_last: bool) -> JsonValue:
    if step > len(place):
        raise InvalidRecordError(f"an item {step} comes before those in front of it")
    if step == len(place):
        place.append(inner)
    elif is_last or not isinstance(place[step], dict | list):
        place[step] = inner
    return place[step]


def _container(step: _Step) -> JsonValue:
    return [] if isinstance(step, int) else {}
