"""What filters ask of a range of invocations, and what a range tells: its traits.

A trait is a value of one of the columns that filters ask about, such as a tool or a state, or a
size of so many binary digits or more. A number made of both is its name. A range keeps for each of
its traits the set of places that have it, for times and sizes a spread, and a head. Whatever is not
certain for ever is unsettled: a call that has not ended, a key that no row has yet, a row that
holds what no recorder writes. The head has these in a set, and every question means them too. So
what a range tells is never too little, whatever becomes of its invocations; each of those that it
means is looked at itself.
"""

import hashlib
import struct
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, Self

from sqlalchemy import Connection, select

from tooltrail.records.tool_calls import storable
from tooltrail.store._reading.members import (
    EVERY,
    RANGE,
    decode_set,
    encode_set,
    encode_spread,
    set_of,
)
from tooltrail.store.filters import STATES_OF_STATUS, InvocationFilter
from tooltrail.store.tables import InvocationRow, SessionRow

HEAD, TIMES, SIZES = 0, 1, 2
"""Names of what is kept of a range besides the sets of its traits."""

UNREADABLE = (ValueError, TypeError, LookupError, struct.error)
"""What reading raises of what a range never told."""

_FIRST_NAME = 16
_NAME_BYTES = 7

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)
_HEAD = struct.Struct(">4q")
_NO_BOUNDS = (0, -1)
"""Of no number at all."""

_NO_SIZE = -1
"""Stands for the size of what has none, and is less than all that are asked for."""


class Head(NamedTuple):
    """What is known of a range as a whole.

    Attributes:
        earliest: the first `started_at` of its settled invocations, in microseconds.
        latest: the last of these.
        smallest: the smallest `output_size` of its settled invocations, -1 for one without.
        largest: the largest of these.
        unsettled: the places that every question means.
    """

    earliest: int
    latest: int
    smallest: int
    largest: int
    unsettled: int

    def bounds_of(self, spread: int) -> tuple[int, int]:
        """The smallest and the largest of the numbers in a spread."""
        return self[:2] if spread == TIMES else self[2:4]

    def encode(self) -> bytes:
        """As it is kept."""
        return _HEAD.pack(*self[:4]) + encode_set(self.unsettled)

    @classmethod
    def decode(cls, data: bytes) -> Self:
        """The head that was kept.

        Raises:
            ValueError, TypeError, IndexError, struct.error: none was.
        """
        earliest, latest, smallest, largest = _HEAD.unpack_from(data)
        return cls(earliest, latest, smallest, largest, decode_set(data[_HEAD.size :]))


class Between(NamedTuple):
    """Numbers that are asked for.

    Attributes:
        spread: in which they are looked for.
        at_least: the number or more; None for any.
        below: less than the number; None for any.
    """

    spread: int
    at_least: int | None
    below: int | None

    def fits_none(self, bounds: tuple[int, int]) -> bool:
        """Whether none between these bounds is asked for."""
        low, high = bounds
        return (
            low > high
            or (self.at_least is not None and high < self.at_least)
            or (self.below is not None and low >= self.below)
        )

    def fits_all(self, bounds: tuple[int, int]) -> bool:
        """Whether all between these bounds are asked for."""
        low, high = bounds
        return (self.at_least is None or low >= self.at_least) and (
            self.below is None or high < self.below
        )


class Asked(NamedTuple):
    """A filter in the words of ranges.

    Attributes:
        groups: of each group of traits at least one.
        between: numbers that are asked for, of both spreads at the most.
    """

    groups: tuple[tuple[int, ...], ...]
    between: tuple[Between, ...]

    def may_be_in(self, head: Head) -> bool:
        """Whether the bounds of a range leave anything of it."""
        return not any(one.fits_none(head.bounds_of(one.spread)) for one in self.between)


def asked_of(where: InvocationFilter) -> Asked:
    """What a filter asks of ranges; the ids of invocations are none of it."""
    groups: list[tuple[str, Sequence[object]]] = [
        ("session", where.sessions),
        ("tool", [storable(name) for name in where.tools]),
        ("family", [storable(name) for name in where.families]),
        ("state", where.states),
        ("status", where.statuses),
        ("error", [storable(name) for name in where.error_kinds]),
        ("agent", [storable(name) for name in where.agents]),
        ("exit", [int(status) for status in where.exit_statuses]),
    ]
    if where.min_size is not None and where.min_size > 0:
        groups.append(("size", [where.min_size.bit_length()]))
    between: list[Between] = []
    if where.since is not None or where.until is not None:
        between.append(Between(TIMES, _microseconds(where.since), _microseconds(where.until)))
    if where.min_size is not None:
        between.append(Between(SIZES, where.min_size, None))
    named = (tuple(name_of(column, value) for value in values) for column, values in groups)
    return Asked(tuple(group for group in named if group), tuple(between))


def name_of(column: str, value: object) -> int:
    """The name of a trait.

    Two of one name would only mean more invocations to look at.
    """
    spelled = f"{column}={value}".encode("utf-8", "surrogatepass")
    digest = hashlib.sha256(spelled).digest()
    return _FIRST_NAME + int.from_bytes(digest[:_NAME_BYTES], "big")


def read_traits(connection: Connection, number: int, unsettled: int = 0) -> dict[int, bytes]:
    """What a range has to tell by its invocations as they are now, as it is kept; by name.

    Args:
        connection: of one snapshot.
        number: of the range.
        unsettled: places that are to be taken for unsettled.
    """
    first = number * RANGE
    query = _FACTS.where(_ROW.key >= first, _ROW.key < first + RANGE)
    told: defaultdict[tuple[str, Any], list[int]] = defaultdict(list)
    times: list[tuple[int, int]] = []
    sizes: list[tuple[int, int]] = []
    settled: list[int] = []
    for key, started_at, size, *values in connection.execute(query):
        place = key - first
        if unsettled >> place & 1 or not _is_settled(started_at, size, values):
            continue
        settled.append(place)
        times.append(((started_at - _EPOCH) // _MICROSECOND, place))
        sizes.append((_NO_SIZE if size is None else size, place))
        for named in zip(_COLUMNS, values, strict=True):
            told[named].append(place)
        told["digits", 0 if size is None else size.bit_length()].append(place)
    head = Head(*_bounds_of(times), *_bounds_of(sizes), EVERY ^ set_of(settled))
    kept = {HEAD: head.encode(), TIMES: encode_spread(times), SIZES: encode_spread(sizes)}
    sets = _named({named: set_of(places) for named, places in told.items()})
    return kept | {name: encode_set(members) for name, members in sets.items()}


def _named(values: Mapping[tuple[str, Any], int]) -> dict[int, int]:
    """The sets of traits by name, from those of the values of columns."""
    sets: defaultdict[int, int] = defaultdict(int)
    for (column, value), places in values.items():
        if column == "digits":
            for digits in range(1, value + 1):
                sets[name_of("size", digits)] |= places
        elif value is not None:
            sets[name_of(column, value)] |= places
            if column == "state" and value in _STATUS_OF:
                sets[name_of("status", _STATUS_OF[value])] |= places
    return sets


def _is_settled(started_at: object, size: object, values: list[Any]) -> bool:
    return (
        values[0] != "started"
        and isinstance(started_at, datetime)
        and (size is None or isinstance(size, int))
    )


def _bounds_of(numbers: Iterable[tuple[int, int]]) -> tuple[int, int]:
    found = [number for number, _ in numbers]
    return (min(found), max(found)) if found else _NO_BOUNDS


def _microseconds(moment: datetime | None) -> int | None:
    return None if moment is None else (moment - _EPOCH) // _MICROSECOND


_STATUS_OF = {state: one for one, states in STATES_OF_STATUS.items() for state in states}

_ROW = InvocationRow
_COLUMNS = ("state", "tool", "family", "error", "exit", "session", "agent")
_FACTS = (
    select(
        _ROW.key,
        _ROW.started_at,
        _ROW.output_size,
        _ROW.state,
        _ROW.tool_name,
        _ROW.family,
        _ROW.error_kind,
        _ROW.exit_status,
        SessionRow.id,
        SessionRow.agent,
    )
    # Outer, so that an invocation without its session is not taken for a key without a row.
    .outerjoin(SessionRow, SessionRow.key == _ROW.session_key)
)
