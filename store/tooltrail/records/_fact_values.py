"""The values of a fact's members: how JSON spells each type, and how it is read.

Each function refuses a value of another type, so that nothing is written that cannot be read.
"""

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias, cast, get_args
from uuid import UUID

from tooltrail.records.digests import Digest, parse_digest
from tooltrail.records.states import InvocationState

Spell: TypeAlias = Callable[[Any], Any]
"""Spells a value as JSON has it, or reads it; raises TypeError or ValueError for another."""

_STATES: Final = frozenset(get_args(InvocationState))


def _checker(kind: type, what: str) -> Spell:
    """What gives a value of a type back; a truth value is no number."""

    def check(value: object) -> object:
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise TypeError(f"{what} expected, not {type(value).__name__}")
        return value

    return check


check_text: Final = _checker(str, "text")
check_count: Final = _checker(int, "an integer")
check_flag: Final = _checker(bool, "true or false")


def spell_time(at: object) -> str:
    """A time, in UTC and to the microsecond."""
    if not isinstance(at, datetime):
        raise TypeError(f"a time expected, not {type(at).__name__}")
    if at.tzinfo is not UTC:
        if at.utcoffset() is None:
            raise ValueError(f"a recorded time must have a zone: {at}")
        at = at.astimezone(UTC)
    return at.isoformat(timespec="microseconds")[:-6] + "Z"


def read_time(text: object) -> datetime:
    """The time behind its spelling, in UTC."""
    at = datetime.fromisoformat(check_text(text))
    if at.utcoffset() is None:
        raise ValueError("a recorded time must have a zone")
    return at.astimezone(UTC)


def spell_uuid(value: object) -> str:
    """A UUID."""
    if not isinstance(value, UUID):
        raise TypeError(f"a UUID expected, not {type(value).__name__}")
    return str(value)


def read_uuid(value: object) -> UUID:
    """The UUID behind its spelling."""
    return UUID(check_text(value))


def check_state(value: object) -> str:
    """A state of an invocation."""
    if value not in _STATES:
        raise ValueError(f"no such state: {value!r}")
    return cast("str", value)


def check_digest(value: object) -> Digest:
    """A digest."""
    return parse_digest(check_text(value))


def read_items(read: Spell) -> Spell:
    """A reader of lists, from one of items."""

    def read_all(value: object) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise TypeError(f"a list expected, not {type(value).__name__}")
        return tuple(read(one) for one in cast("list[object]", value))

    return read_all


def spell_items(spell: Spell) -> Spell:
    """A speller of tuples, from one of items."""
    return lambda values: [spell(one) for one in values]
