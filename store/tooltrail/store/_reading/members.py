"""Which keys of a range of invocations are meant: sets of places, and numbers sorted into bins.

A range is `RANGE` consecutive keys, and the place of a key is its distance from the first of them.
A set of places is an integer with a bit for each, so that two sets have their common members by
one `&`, which takes less than a microsecond. A spread tells of a column of numbers which places
may hold one between two bounds: it sorts them into bins of few places each, with the bounds of
each bin, and spells the number of a place's bin in binary, one set of places for each digit.
"""

import struct
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from heapq import nlargest
from itertools import groupby, pairwise
from operator import itemgetter

RANGE = 4096
"""Keys of a range: few enough to look at each invocation of one, many enough for few ranges."""

EVERY = (1 << RANGE) - 1
"""The set of all places."""

_SET_BYTES = RANGE // 8
_LISTED = 64
"""Places up to which a set is kept as a list of them; a longer one takes longer to read."""

_BIN = 64
"""Places of a bin, unless more have the same number."""

_GAPS = 64
"""Gaps between numbers, the widest, over which no bin goes."""

_COUNT = struct.Struct(">H")
"""Of the bins of a spread; the lower bounds of all follow, the upper ones, and the digits."""


def set_of(places: Iterable[int]) -> int:
    """The set of these places."""
    data = bytearray(_SET_BYTES)
    for place in places:
        data[place >> 3] |= 1 << (place & 7)
    return int.from_bytes(data, "little")


def encode_set(members: int) -> bytes:
    """A set as it is kept."""
    if members.bit_count() > _LISTED:
        return members.to_bytes(_SET_BYTES, "little")
    places = list(iter_places(members, ascending=True))
    return struct.pack(f">{len(places)}H", *places)


def decode_set(data: bytes) -> int:
    """The set that was kept.

    Raises:
        ValueError, IndexError: no set was.
    """
    if not data:
        return 0
    if len(data) == _SET_BYTES:
        return int.from_bytes(data, "little")
    if len(data) % 2:
        raise ValueError("a list of places has two bytes for each")
    return set_of(struct.unpack(f">{len(data) // 2}H", data))


def iter_places(members: int, *, ascending: bool) -> Iterator[int]:
    """The places of a set in their order, or from the last to the first."""
    while members:
        place = ((members & -members) if ascending else members).bit_length() - 1
        yield place
        members ^= 1 << place


def encode_spread(numbers: Iterable[tuple[int, int]]) -> bytes:
    """A spread of numbers, each with its place, as it is kept."""
    ordered = sorted(numbers)
    bins = list(_bins(ordered, _wide_gap([number for number, _ in ordered])))
    digits = [0] * len(bins).bit_length()
    for number, (_, _, places) in enumerate(bins, 1):
        members = set_of(places)
        for digit in range(len(digits)):
            if number >> digit & 1:
                digits[digit] |= members
    bounds = [low for low, _, _ in bins] + [high for _, high, _ in bins]
    head = _COUNT.pack(len(bins)) + struct.pack(f">{len(bounds)}q", *bounds)
    return head + b"".join(digit.to_bytes(_SET_BYTES, "little") for digit in reversed(digits))


def members_between(spread: bytes, at_least: int | None, below: int | None) -> int:
    """The places that may hold such a number: all that do, and few others.

    Args:
        spread: as it was kept.
        at_least: the number or more; None for any.
        below: less than the number; None for any.

    Raises:
        ValueError, struct.error: no spread was kept.
    """
    (count,) = _COUNT.unpack_from(spread)
    side = struct.Struct(f">{count}q")
    start = _COUNT.size + 2 * side.size
    if len(spread) != start + count.bit_length() * _SET_BYTES:
        raise ValueError("a spread has a set for each digit of the number of its bins")
    first, last = 0, count
    if at_least is not None:
        first = bisect_left(side.unpack_from(spread, _COUNT.size + side.size), at_least)
    if below is not None:
        last = bisect_left(side.unpack_from(spread, _COUNT.size), below)
    if first >= last:
        return 0
    digits = [
        int.from_bytes(spread[offset : offset + _SET_BYTES], "little")
        for offset in range(start, len(spread), _SET_BYTES)
    ]
    members = _from_bin(digits, first + 1)
    return members if last == count else members & ~_from_bin(digits, last + 1)


def _from_bin(digits: Sequence[int], number: int) -> int:
    """The places in a bin of this number or a later one."""
    if number >> len(digits):
        return 0
    above, same = 0, EVERY
    for shift, members in zip(range(len(digits) - 1, -1, -1), digits, strict=True):
        if number >> shift & 1:
            same &= members
        else:
            above |= same & members
            same &= ~members
    return above | same


def _wide_gap(ordered: Sequence[int]) -> int:
    """A distance between neighbours that few exceed: a bin over such a gap would tell little."""
    gaps = nlargest(_GAPS + 1, (after - before for before, after in pairwise(ordered)))
    return gaps[_GAPS] if len(gaps) > _GAPS else 0


def _bins(ordered: Sequence[tuple[int, int]], gap: int) -> Iterator[tuple[int, int, list[int]]]:
    """The smallest and the largest number of each bin, and its places; equal ones stay together."""
    low = high = 0
    places: list[int] = []
    for number, group in groupby(ordered, key=itemgetter(0)):
        same = [place for _, place in group]
        if places and (len(places) + len(same) > _BIN or number - high > gap):
            yield low, high, places
            places = []
        if not places:
            low = number
        high = number
        places += same
    if places:
        yield low, high, places
