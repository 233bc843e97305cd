"""A JSON value with the place of everything in it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from tooltrail.agents.config_problems import Path, Place


@dataclass(frozen=True, slots=True)
class Node:
    """A value with its place.

    Attributes:
        size: characters and values in it, its aliases written out.
        depth: levels of nesting in it, the same; 0 for a scalar.
    """

    value: JsonValue
    place: Place
    size: int = 1
    depth: int = 0
    members: Mapping[str | int, "Node"] = field(default_factory=dict[str | int, "Node"])
    keys: Mapping[str | int, Place] = field(default_factory=dict[str | int, Place])

    def locate(self, path: Path) -> tuple[Place, Path]:
        """Where a part is named: its key, or its beginning in a list; and its path.

        Of a part that is not there it is the place of the nearest one around it. A position in a
        list may be a text, as in a JSON pointer; in the path that is given back it is a number.
        """
        node, place, done = self, self.place, list[str | int]()
        for part in path:
            is_position = isinstance(node.value, list) and str(part).isdecimal()
            key = int(part) if is_position else part
            if key not in node.members:
                break
            place = node.keys.get(key, node.members[key].place)
            node = node.members[key]
            done.append(key)
        return place, (*done, *path[len(done) :])


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is wrong with a document."""

    place: Place
    path: Path
    message: str


class NoDocumentError(Exception):
    """A text whose structure cannot be read any further."""

    def __init__(self, place: Place, message: str) -> None:
        super().__init__(message)
        self.fault = Fault(place, (), message)
