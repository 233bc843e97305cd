"""What a compaction never drops: the facts by which an agent can go on, and ask for the rest.

They are known by their names, so that results of families that this package does not know have them
too: ids and handles, outcomes, flags of truncation, and references to artifacts with the indices
that point at them. They are bounded as well. What is longer than an id or a path may be is left
out, never cut: half an id names nothing.
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from pydantic import JsonValue

from tooltrail.records.canonical_json import encode, encode_text
from tooltrail.records.errors import InvalidRecordError

ESSENTIAL_CHARS = 320_000
"""Characters of JSON of all essentials together, the outermost before the inner ones. What a
built-in family itself says has less, whatever its policy. A JSON value of the tool's own in it
(`structured`, `value`, the details of an error) may have more, as a result of a foreign family."""

ESSENTIAL_DEPTH = 32
"""Levels of objects and lists in which they are looked for; the result itself is the first. No tool
nests its ids deeper, and a walk through this many needs little of a caller's stack."""

NAME_CHARS = 256
"""Longest name of a member that is kept; a longer one is data, and no name."""

_ID_CHARS = 256
"""Longest identifier, as in the results of all built-in families."""

_PATH_CHARS = 1024
"""Longest path of an artifact; those of this package have about 75 characters."""

_MAX_INTEGER_BITS = 1024
"""As wide as a double. A longer integer is data of any size."""

_MAX_COUNT_BITS = 63
"""As wide as any program counts."""

_CONTAINER_CHARS = 80
"""What an object or a list takes beside its members, with the counts of a cut list."""

_MEMBER_CHARS = 16
"""What stands around a name, a value or a path."""

_OUTCOMES = frozenset({"disposition", "exit_status", "index", "retrieval_status", "status"})
"""How it went; and `index`, which says of which entry of a list that is."""

Path = tuple[str | int, ...]
"""Names and positions that lead from a value to one of its parts."""


class Entries(NamedTuple):
    """A list, of which some entries may be gone.

    Attributes:
        total: how many there were.
        items: those that are left.
    """

    total: int
    items: list[JsonValue]


class Place(NamedTuple):
    """A part of a value, and what surrounds it.

    Attributes:
        path: where it is.
        value: what is there.
        in_handle: whether it is a handle, or an object inside of one.
    """

    path: Path
    value: JsonValue
    in_handle: bool = False

    def members(self, max_items: int | None = None) -> Iterator["Place"]:
        """Its members in an order that depends on nothing but their names and positions.

        Args:
            max_items: how many entries of a list; None for all.
        """
        entries = entries_of(self.value)
        if entries is not None:
            for position, item in enumerate(entries.items[:max_items]):
                yield Place((*self.path, position), item)
        elif isinstance(self.value, dict):
            # Previews come last: they are the first to go.
            for name in sorted(self.value, key=lambda name: (name.endswith("preview"), name)):
                if len(name) <= NAME_CHARS:
                    yield self._member(name, self.value[name])

    def _member(self, name: str, member: JsonValue) -> "Place":
        is_handle = name == "handle" or name.endswith("_handle")
        in_handle = isinstance(member, dict) and (self.in_handle or is_handle)
        return Place((*self.path, name), member, in_handle)


@dataclass(frozen=True, slots=True)
class Essentials:
    """What stays of a value whatever the budget.

    Attributes:
        facts: each fact by its path; a list of references is one fact.
        containers: the paths of all objects and lists around them.
        all_references: whether no reference is lost that an index may point at.
    """

    facts: dict[Path, JsonValue]
    containers: set[Path]
    all_references: bool


def entries_of(value: JsonValue) -> Entries | None:
    """The entries of a list, whole or cut; None when it is no list.

    A cut list is `{total, returned, truncated, items}`. An object of a tool that has exactly these
    members, and numbers that agree, says the same and is read in the same way.
    """
    if isinstance(value, list):
        return Entries(len(value), value)
    if not isinstance(value, dict) or len(value) != 4 or value.get("truncated") is not True:
        return None
    total, items = value.get("total"), value.get("items")
    if not isinstance(items, list) or value.get("returned") != len(items):
        return None
    if not isinstance(total, int) or total.bit_length() > _MAX_COUNT_BITS:
        return None
    return Entries(total, items) if total > len(items) else None


def cut_list(total: int, items: list[JsonValue]) -> JsonValue:
    """A list of which some entries are gone."""
    return {"total": total, "returned": len(items), "truncated": True, "items": items}


def is_container(value: JsonValue) -> bool:
    """Whether it is an object or a list."""
    return isinstance(value, dict | list)


def is_short(value: JsonValue) -> bool:
    """Whether a scalar has a bounded length; a text is bounded by its trimming."""
    return not isinstance(value, int) or value.bit_length() <= _MAX_INTEGER_BITS


def is_shorter(part: JsonValue, whole: JsonValue) -> bool:
    """Whether the JSON of a part has fewer bytes; one that canonical JSON refuses has the most."""
    try:
        return len(encode(part)) < len(encode(whole))
    except InvalidRecordError:
        return True


def is_flag(place: Place) -> bool:
    """Whether it is the flag `truncated` of its object, which stays as long as the object does."""
    return _last_name(place) == "truncated" and isinstance(place.value, bool)


def is_essential(place: Place, *, in_handle: bool) -> bool:
    """Whether it is of a kind that is kept whole or not at all.

    Args:
        place: a member.
        in_handle: whether the object that it is a member of belongs to a handle.
    """
    name, value = _last_name(place), place.value
    if _is_references(place):
        return True
    if name in ("", "truncated") or is_container(value):
        return False
    if name.endswith("_truncated"):
        return isinstance(value, bool)
    if name in _OUTCOMES or name.endswith(("_id", "_handle")):
        return True
    return in_handle or _is_index(place)


def find_essentials(value: JsonValue) -> Essentials:
    """The essentials of a value, within `ESSENTIAL_CHARS` and `ESSENTIAL_DEPTH`."""
    search = _Search()
    search.run(Place((), value))
    return Essentials(search.facts, search.containers, search.all_references)


class _Search:
    """Takes facts as long as there is room, the outermost first."""

    def __init__(self) -> None:
        self.facts: dict[Path, JsonValue] = {}
        self.containers: set[Path] = set()
        self.all_references = True
        self._room = ESSENTIAL_CHARS

    def run(self, root: Place) -> None:
        # Each with the number of references that an index inside of it may point at.
        waiting: deque[tuple[Place, int | None]] = deque([(root, None)])
        while waiting:
            place, reach = waiting.popleft()
            members = list(place.members())
            for member in filter(_is_references, members):
                reach = self._take_references(member)
            for member in members:
                if is_essential(member, in_handle=place.in_handle):
                    self._take_fact(member, reach)
                elif is_container(member.value) and len(member.path) < ESSENTIAL_DEPTH:
                    waiting.append((member, reach))

    def _take_references(self, place: Place) -> int:
        """Take the longest beginning of a list of references, and say how many these are."""
        total, items = entries_of(place.value) or Entries(0, [])
        kept: list[JsonValue] = []
        size = self._size_around(place.path) + _CONTAINER_CHARS
        for item in items:
            path = _reference_path(item)
            if path is None or len(path) > _PATH_CHARS:
                break
            if size + _size_of(path) > self._room:
                break
            size += _size_of(path)
            kept.append(item)
        if kept and len(kept) < len(items) and not is_shorter(cut_list(total, kept), place.value):
            kept = items
        self.all_references &= len(kept) == len(items)
        if kept:
            whole = len(kept) == len(items)
            self._take(place.path, place.value if whole else cut_list(total, kept), size)
        return len(kept)

    def _take_fact(self, place: Place, reach: int | None) -> None:
        value = place.value
        if is_container(value) or not is_short(value):
            return
        if isinstance(value, str) and len(value) > _ID_CHARS:
            return
        if _is_index(place) and isinstance(value, int) and reach is not None and value >= reach:
            return
        size = self._size_around(place.path) + _size_of(value)
        if size <= self._room:
            self._take(place.path, value, size)

    def _take(self, path: Path, value: JsonValue, size: int) -> None:
        self._room -= size
        self.facts[path] = value
        self.containers.update(path[:length] for length in range(len(path)))

    def _size_around(self, path: Path) -> int:
        """Characters of its name, and of the containers that are kept for its sake."""
        around = (path[:length] for length in range(len(path)))
        names = [part[-1] for part in around if part and part not in self.containers]
        sizes = (_CONTAINER_CHARS + _size_of(name) for name in names)
        return _size_of(path[-1]) + sum(sizes)


def _size_of(value: JsonValue) -> int:
    return _MEMBER_CHARS + len(encode_text(value))


def _last_name(place: Place) -> str:
    """The name of a member of an object, nothing for an entry of a list."""
    name = place.path[-1]
    return name if isinstance(name, str) else ""


def _is_references(place: Place) -> bool:
    """Whether it is a list of artifacts that an index may point into."""
    if _last_name(place) != "artifacts":
        return False
    entries = entries_of(place.value)
    return entries is not None and any(
        _reference_path(item) is not None for item in entries.items[:1]
    )


def _reference_path(item: JsonValue) -> str | None:
    path = item.get("path") if isinstance(item, dict) and len(item) == 1 else None
    return path if isinstance(path, str) else None


def _is_index(place: Place) -> bool:
    name, value = _last_name(place), place.value
    is_number = isinstance(value, int) and not isinstance(value, bool) and value >= 0
    return is_number and (name == "artifact" or name.endswith("_artifact"))
