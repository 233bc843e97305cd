"""Looking for a page of a filter by what ranges of invocations tell, and else one by one.

Ranges are asked in the order of the list, more at once the longer it takes. One that can hold no
invocation that is meant costs a comparison of a few sets; of any other only those invocations are
looked at that all of its sets mean. Stretches of keys between ranges that were made, and after the
last of them, are looked through.
"""

from collections import defaultdict
from collections.abc import Collection, Generator, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import Connection, and_, bindparam, select

from tooltrail.store._reading.members import (
    EVERY,
    RANGE,
    decode_set,
    iter_places,
    members_between,
)
from tooltrail.store._reading.queries import AnyRow
from tooltrail.store._reading.ranges import newest_key
from tooltrail.store._reading.stretches import Stretch, look_through, of_keys
from tooltrail.store._reading.traits import HEAD, UNREADABLE, Asked, Between, Head, asked_of
from tooltrail.store.filters import InvocationFilter
from tooltrail.store.tables import RangeTraitRow

_HEADS_AT_ONCE = 256
"""Heads that are read at once."""

_FIRST_RANGES = 16
"""Ranges that are asked at first, of those whose head leaves something."""

_MORE_RANGES = 4
"""How many times as many are asked each further time."""

_FEW_KEYS, _MOST_KEYS = 128, 1_000
"""Invocations that one statement looks at, which mostly stops when a page is full."""

_FEW = 10
"""Invocations that are looked at sooner than a spread is read."""


class Found(NamedTuple):
    """What a search has found.

    Attributes:
        rows: of the invocations, in the order of the list.
        passed_count: keys that it looked through since no range tells of them.
    """

    rows: Sequence[AnyRow]
    passed_count: int


def search(connection: Connection, where: InvocationFilter, limit: int, stretch: Stretch) -> Found:
    """The first invocations of a stretch that a filter means, in its order, up to a limit."""
    end = min(stretch.end, newest_key(connection) + 1)
    stretch = stretch._replace(end=end)
    return _Search(connection, where, limit).run(stretch)


class _Search:
    """One search; `run` is called once."""

    def __init__(self, connection: Connection, where: InvocationFilter, limit: int) -> None:
        self._connection = connection
        self._where = where
        self._limit = limit
        self._rows: list[AnyRow] = []
        self._keys: list[int] = []
        self._keys_at_once = min(max(limit, _FEW_KEYS), _MOST_KEYS)
        self._passed_count = 0

    def run(self, stretch: Stretch) -> Found:
        asked = asked_of(self._where)
        for part in _iter_parts(self._connection, asked, stretch):
            if isinstance(part, int):
                self._keys.append(part)
                if len(self._keys) >= self._keys_at_once:
                    self._look_at_keys(stretch)
            elif part is None:
                # They may fill the page, and more ranges need not be asked then.
                if len(self._rows) + len(self._keys) >= self._limit:
                    self._look_at_keys(stretch)
            else:
                self._look_at_keys(stretch)
                self._look_through(part)
            if len(self._rows) == self._limit:
                break
        self._look_at_keys(stretch)
        return Found(self._rows, self._passed_count)

    def _look_at_keys(self, stretch: Stretch) -> None:
        missing = self._limit - len(self._rows)
        if self._keys and missing:
            is_ascending = stretch.oldest_first
            rows = of_keys(
                self._connection, self._where, self._keys, missing, oldest_first=is_ascending
            )
            self._rows += rows
            # Mostly all of them fit, and else it takes more of them to find as many.
            self._keys_at_once = _MOST_KEYS
        self._keys = []

    def _look_through(self, stretch: Stretch) -> None:
        if len(self._rows) < self._limit:
            missing = self._limit - len(self._rows)
            self._rows += look_through(self._connection, self._where, missing, stretch)
            self._passed_count += stretch.width


def _iter_parts(
    connection: Connection, asked: Asked, stretch: Stretch
) -> Generator[int | Stretch | None]:
    """What is to be looked at, in the order of a stretch: keys, and stretches without ranges.

    None comes before further ranges are asked.
    """
    low, high = stretch.first, stretch.end
    for answers in _iter_answers(connection, asked, stretch):
        for number, places in answers.items():
            first, end = number * RANGE, (number + 1) * RANGE
            if stretch.oldest_first:
                before = stretch._replace(first=low, end=first) if low < first else None
                low = end
            else:
                before = stretch._replace(first=end, end=high) if end < high else None
                high = first
            if before is not None:
                yield before
            for place in iter_places(places, ascending=stretch.oldest_first):
                if stretch.first <= first + place < stretch.end:
                    yield first + place
        yield None
    if low < high:
        yield stretch._replace(first=low, end=high)


def _iter_answers(
    connection: Connection, asked: Asked, stretch: Stretch
) -> Generator[dict[int, int]]:
    """The ranges of a stretch that were made, in its order, each with the places that it means."""
    at_once = _FIRST_RANGES
    for heads in _iter_heads(connection, stretch):
        some: dict[int, Head] = {}
        possible: dict[int, int] = {}
        for number, head in heads.items():
            some[number] = head
            if asked.may_be_in(head):
                possible[number] = EVERY
            if len(possible) == at_once:
                yield _answers(connection, asked, some, possible)
                some, possible = {}, {}
                at_once *= _MORE_RANGES
        yield _answers(connection, asked, some, possible)


def _iter_heads(connection: Connection, stretch: Stretch) -> Generator[dict[int, Head]]:
    """The heads of the ranges of a stretch that were made, in its order, some at once."""
    low, high = stretch.first // RANGE, (stretch.end - 1) // RANGE
    while True:
        heads = _heads(connection, low, high, oldest_first=stretch.oldest_first)
        yield heads
        if len(heads) < _HEADS_AT_ONCE:
            return
        last = next(reversed(heads))
        low, high = (last + 1, high) if stretch.oldest_first else (low, last - 1)


def _heads(connection: Connection, low: int, high: int, *, oldest_first: bool) -> dict[int, Head]:
    query = _OLDEST_HEADS if oldest_first else _NEWEST_HEADS
    answer = connection.execute(query, {"low": low, "high": high})
    return {found: _head_in(data) for found, data in answer.all()}


def _answers(
    connection: Connection, asked: Asked, heads: dict[int, Head], possible: dict[int, int]
) -> dict[int, int]:
    """The places that each of some ranges means, of which some are possible."""
    _restrict_by_sets(connection, asked.groups, possible)
    for one in asked.between:
        _restrict_by_spread(connection, one, heads, possible)
    return {number: possible.get(number, 0) | head.unsettled for number, head in heads.items()}


def _restrict_by_spread(
    connection: Connection, one: Between, heads: dict[int, Head], possible: dict[int, int]
) -> None:
    unsure = [
        number
        for number, places in possible.items()
        if places.bit_count() > _FEW and not one.fits_all(heads[number].bounds_of(one.spread))
    ]
    if unsure:
        answer = connection.execute(_SPREADS, {"spread": one.spread, "numbers": unsure})
        for number, data in answer.all():
            possible[number] &= _between_in(data, one)


def _restrict_by_sets(
    connection: Connection, groups: Sequence[Sequence[int]], possible: dict[int, int]
) -> None:
    told = _told(connection, {name for group in groups for name in group}, list(possible))
    for number in list(possible):
        possible[number] = _common_places(groups, told.get(number, {}))


def _common_places(groups: Sequence[Sequence[int]], sets: Mapping[int, bytes]) -> int:
    """The places that have a trait of each group."""
    places = EVERY
    for group in groups:
        among = 0
        for name in group:
            if name in sets:
                among |= _set_in(sets[name])
        places &= among
        if not places:
            break
    return places


def _told(
    connection: Connection, names: Collection[int], numbers: Collection[int]
) -> dict[int, dict[int, bytes]]:
    """What some ranges tell under some names, by their numbers; nothing of one without any."""
    told: defaultdict[int, dict[int, bytes]] = defaultdict(dict)
    if names and numbers:
        values = {"names": sorted(names), "low": min(numbers), "high": max(numbers)}
        wanted = set(numbers)
        for number, name, data in connection.execute(_TRAITS, values).all():
            if number in wanted:
                told[number][name] = data
    return told


# What cannot be read means all: its invocations are looked at one by one, and no list is too short.


def _head_in(data: bytes) -> Head:
    try:
        return Head.decode(data)
    except UNREADABLE:
        return Head(0, 0, 0, 0, EVERY)


def _set_in(data: bytes) -> int:
    try:
        return decode_set(data)
    except UNREADABLE:
        return EVERY


def _between_in(data: bytes, between: Between) -> int:
    try:
        return members_between(data, between.at_least, between.below)
    except UNREADABLE:
        return EVERY


_ROW = RangeTraitRow
_ASKED = and_(_ROW.range_number >= bindparam("low"), _ROW.range_number <= bindparam("high"))
_HEADS = (
    select(_ROW.range_number, _ROW.members).where(_ROW.trait == HEAD, _ASKED).limit(_HEADS_AT_ONCE)
)
_OLDEST_HEADS = _HEADS.order_by(_ROW.range_number.asc())
_NEWEST_HEADS = _HEADS.order_by(_ROW.range_number.desc())
_SPREADS = select(_ROW.range_number, _ROW.members).where(
    _ROW.trait == bindparam("spread"),
    _ROW.range_number.in_(bindparam("numbers", expanding=True)),
)
_TRAITS = select(_ROW.range_number, _ROW.trait, _ROW.members).where(
    _ROW.trait.in_(bindparam("names", expanding=True)), _ASKED
)
