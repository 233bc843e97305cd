"""A JSON value with the place of everything in it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import JsonValue

from tooltrail.agents._config_problems import Path, Place


class NoDocumentError(Exception):
    """A text whose structure cannot be read any further.

    Attributes:
        place: where reading ended.
    """

    def __init__(self, place: Place, message: str) -> None:
        super().__init__(message)
        self.place = place


@dataclass(frozen=True, slots=True)
class Node:
    """A value with its place.

    Attributes:
        value: of JSON types.
        place: where it begins.
        size: characters and values in it, its aliases written out.
        depth: levels of nesting in it, the same; 0 for a scalar.
        members: the nodes in it, by key or position.
        keys: the places of its keys.
    """

    value: JsonValue
    place: Place
    size: int = 1
    depth: int = 0
    members: Mapping[str | int, "Node"] = field(default_factory=dict[str | int, "Node"])
    keys: Mapping[str | int, Place] = field(default_factory=dict[str | int, Place])

    def place_of(self, path: Path) -> Place:
        """Where a part is named: its key, or its beginning in a list.

        Of a part that is not there it is the place of the nearest one around it.
        """
        node, place = self, self.place
        for part in path:
            # A pointer spells a position as text.
            key = int(part) if isinstance(part, str) and _is_position(node, part) else part
            if key not in node.members:
                break
            place = node.keys.get(key, node.members[key].place)
            node = node.members[key]
        return place


@dataclass(frozen=True, slots=True)
class Fault:
    """Something in a document that is not taken as it is, and does not keep the rest from being
    read.
    """

    place: Place
    path: Path
    message: str


def _is_position(node: Node, part: str) -> bool:
    return isinstance(node.value, list) and part.isdecimal()
