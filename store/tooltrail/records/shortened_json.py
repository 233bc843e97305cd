"""Shortens a JSON value by its structure: names and both ends are kept, omissions are counted.

    {"log": "Sta[... 9,120 characters omitted ...]ne", "rows": [0, "[... 8 items omitted ...]", 9]}

The names of an object come first; then the members share the remaining room. A marker with a count
replaces each omitted part, so the result is JSON. Of a large value, only as much is read as fits.
"""

from collections.abc import Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from pydantic import JsonValue

from tooltrail.records._text_cuts import cut_after, cut_before
from tooltrail.records.budgets import fair_shares
from tooltrail.records.canonical_json import encode, encode_text

LEAST_CHARS = 42
"""Room that suffices to show or count any part: `"[... 999,999,999 characters omitted ...]"`."""

_LEVELS = 8
"""Deepest level that is shortened. A deeper part is shown complete or counted."""

_ENTRIES = 8
"""Entries of a list that are shown even if they are long."""

_OTHERS = "\u2026"
"""Name of the member that counts omitted members; it sorts after all ASCII names."""


class ShortenedJson(NamedTuple):
    """A shortened value.

    Attributes:
        value: the remaining value, with its markers.
        shown_bytes: bytes of its canonical JSON without the markers.
    """

    value: JsonValue
    shown_bytes: int


def shorten_json(value: JsonValue, room: int) -> ShortenedJson:
    """The value in `room` characters of canonical JSON, or in one marker if that is longer."""
    shortener = _Shortener()
    shortened = shortener.part(value, room, _LEVELS)
    return ShortenedJson(shortened, len(encode(shortened)) - shortener.marker_bytes)


class _Shortener:
    """Shortens one value, and counts the bytes of its markers."""

    def __init__(self) -> None:
        self.marker_bytes = 0

    def part(self, value: JsonValue, room: int, levels: int) -> JsonValue:
        """A part of the value in its room."""
        if _size(value, room) <= room:
            return value
        shown: JsonValue = None
        if isinstance(value, str):
            shown = self._text(value, room)
        elif isinstance(value, list) and levels:
            shown = self._list(value, room, levels - 1)
        elif isinstance(value, dict) and levels:
            shown = self._object(value, room, levels - 1)
        return shown or self._mark(_marker_of(value))

    def _mark(self, text: str, around: int = 2) -> str:
        """A marker, with so many bytes of JSON around it."""
        self.marker_bytes += len(text) + around
        return text

    def _text(self, text: str, room: int) -> str:
        limit = room - LEAST_CHARS
        head, tail = ends(text, limit)
        while limit > 0 and (excess := len(encode_text(head + tail)) + LEAST_CHARS - 2 - room) > 0:
            limit -= max(1, excess // 6)  # a character takes at most six in JSON
            head, tail = ends(text, limit)
        count = len(text) - len(head) - len(tail)
        return head + self._mark(marker(count, "characters"), 0) + tail

    def _list(self, items: list[JsonValue], room: int, levels: int) -> list[JsonValue]:
        """The first and the last entries; empty if none fits."""
        room -= 3 + LEAST_CHARS
        longest = max(LEAST_CHARS, room // _ENTRIES)
        first = _fitting((_cost(item, longest) for item in items), room // 2)
        rest = islice(reversed(items), len(items) - first)
        last = _fitting((_cost(item, longest) for item in rest), room // 2)
        chosen = items[:first] + items[len(items) - last :]
        parts = self._shared(chosen, room - len(chosen), levels)
        if parts and len(parts) < len(items):
            parts.insert(first, self._mark(marker(len(items) - len(parts), "items")))
        return parts

    def _object(
        self, members: dict[str, JsonValue], room: int, levels: int
    ) -> dict[str, JsonValue]:
        """The first names that fit, each with a share for its value; empty if none fits."""
        others, ordered = _OTHERS, sorted(members)  # the order of the dict must not matter
        least = [(name, members[name]) for name in ordered]
        count = _fitting(map(_least_member, least), room - 2)
        if count < len(members):
            while others in members:
                others += _OTHERS
            room -= 1 + _name_chars(others) + LEAST_CHARS
            count = _fitting(map(_least_member, least), room - 2)
        names = ordered[:count]
        room -= 2 + sum(1 + _name_chars(name) for name in names)
        parts = self._shared([members[name] for name in names], room, levels)
        shown = dict(zip(names, parts, strict=True))
        if shown and len(shown) < len(members):
            around = len(encode({others: ""})) - 2
            shown[others] = self._mark(marker(len(members) - len(shown), "members"), around)
        return shown

    def _shared(self, parts: Sequence[JsonValue], room: int, levels: int) -> list[JsonValue]:
        """The parts in a shared room; room that one part does not need goes to the others."""
        equal, reading = room // max(1, len(parts)), 4 * room
        needs: list[int] = []
        for part in parts:
            needs.append(_size(part, max(LEAST_CHARS, equal, min(room, reading))))
            reading -= needs[-1]
        shares = fair_shares(needs, room)
        return [self.part(one, share, levels) for one, share in zip(parts, shares, strict=True)]


def marker(count: int, noun: str) -> str:
    """The marker that replaces an omitted part."""
    return f"[... {count:,} {noun if count != 1 else noun[:-1]} omitted ...]"


def _marker_of(value: JsonValue) -> str:
    """The marker that replaces a complete value."""
    if isinstance(value, list):
        return marker(len(value), "items")
    if isinstance(value, dict):
        return marker(len(value), "members")
    return marker(len(value if isinstance(value, str) else encode_text(value)), "characters")


def ends(text: str, limit: int) -> tuple[str, str]:
    """The two ends of a text, together in `limit` characters."""
    head = text[: cut_before(text, max(0, limit) // 2)]
    return head, text[cut_after(text, len(text) - max(0, limit - len(head))) :]


def _fitting(costs: Iterable[int], room: int) -> int:
    """The number of parts that fit, in order."""
    count = 0
    for cost in costs:
        room -= cost
        if room < 0:
            break
        count += 1
    return count


def _cost(item: JsonValue, longest: int) -> int:
    """Characters of an entry, at most `longest`, and a comma."""
    return 1 + min(_size(item, longest), longest)


def _least_member(member: tuple[str, JsonValue]) -> int:
    """The fewest characters of a member: name, count and comma."""
    return 1 + _name_chars(member[0]) + _least(member[1])


def _least(value: JsonValue) -> int:
    """The fewest characters of a value: complete, or room for a count."""
    return min(_size(value, LEAST_CHARS), LEAST_CHARS)


def _size(value: JsonValue, limit: int) -> int:
    """Characters of the canonical JSON of a value, or `limit + 1` if it has more."""
    if isinstance(value, str) and len(value) > limit:
        return limit + 1
    if not isinstance(value, dict | list):
        return min(len(encode_text(value)), limit + 1)
    size = 2 + max(0, len(value) - 1)
    named = value.items() if isinstance(value, dict) else (("", one) for one in value)
    for name, member in named:
        if size > limit:
            break
        size += _name_chars(name, limit) if isinstance(value, dict) else 0
        size += _size(member, limit - size)
    return min(size, limit + 1)


def _name_chars(name: str, limit: int = 1 << 30) -> int:
    """Characters of a name and its colon, or more than `limit`."""
    return len(name) + 1 if len(name) > limit else len(encode_text({name: 0})) - 3
