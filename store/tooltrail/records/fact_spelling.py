"""How JSON spells a fact, and how a fact is read.

    >>> fact = SessionClosed(session=UUID(int=7), at=datetime(2026, 1, 2, tzinfo=UTC))
    >>> fact_json(fact)
    b'{"at":"2026-01-02T00:00:00.000000Z","kind":"session.closed","session":"00000000-…","v":1}'
    >>> read_fact(fact_json(fact)) == fact
    True

A value of another type is refused, so that nothing is written that cannot be read.
"""

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple, TypeAlias, cast, get_args
from uuid import UUID

from tooltrail.records.canonical_json import decode, encode_simple
from tooltrail.records.digests import Digest, parse_digest
from tooltrail.records.errors import InvalidRecordError
from tooltrail.records.facts import (
    FACTS,
    ArtifactFact,
    CallEnded,
    Fact,
    OmissionFact,
    Shown,
    StreamFact,
)
from tooltrail.records.frozen import Frozen
from tooltrail.records.states import InvocationState

VERSION: Final = 1
"""The version of the spelling. A reader refuses any other."""

Members: TypeAlias = dict[str, Any]

Spell: TypeAlias = Callable[[Any], Any]
"""Spells a value as JSON has it, or reads it; raises TypeError or ValueError for another."""


class NewerFactError(InvalidRecordError):
    """A fact of a kind, version or member that this program does not know."""


def fact_json(fact: Fact) -> bytes:
    """Canonical JSON of a fact. Members that have their default are left out.

    Raises:
        InvalidRecordError: a member is not of its type.
    """
    try:
        members = _members_of(fact)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidRecordError(f"{fact.kind} cannot be recorded: {error}") from error
    members["kind"], members["v"] = fact.kind, VERSION
    return encode_simple(members)


def shown_json(shown: Shown) -> bytes:
    """Canonical JSON of what a caller got.

    Raises:
        InvalidRecordError: a member is not of its type.
    """
    return encode_simple(_members_of(shown))


def read_shown(data: bytes) -> Shown:
    """The reverse of `shown_json`.

    Raises:
        InvalidRecordError: not such a JSON.
    """
    members = decode(data)
    if not isinstance(members, dict):
        raise InvalidRecordError("what was shown must be a JSON object")
    return cast("Shown", _read(Shown, cast("Members", members), "Shown"))


def read_fact(data: bytes) -> Fact:
    """The fact behind its JSON.

    Raises:
        NewerFactError: the kind, the version or a member is unknown to this program.
        InvalidRecordError: not the JSON of a fact.
    """
    members = decode(data)
    if not isinstance(members, dict):
        raise InvalidRecordError("a fact must be a JSON object")
    version, kind = members.pop("v", None), members.pop("kind", None)
    if version != VERSION or version is True:
        raise NewerFactError(f"fact of version {version!r}; this program reads {VERSION}")
    if not isinstance(kind, str) or kind not in FACTS:
        raise NewerFactError(f"fact of unknown kind {kind!r}")
    return cast("Fact", _read(FACTS[kind], cast("Members", members), kind))


def body_digests(fact: Fact) -> list[Digest]:
    """The bodies that a fact names, in the order of its members; streams in the spool excluded."""
    found: list[Digest] = []
    for name in _SHAPES[type(fact)].bodies:
        value: Digest | tuple[Digest, ...] | None = getattr(fact, name)
        if isinstance(value, tuple):
            found.extend(value)
        elif value is not None:
            found.append(value)
    if isinstance(fact, CallEnded):
        found.extend(one.digest for one in fact.streams if one.spooled is None)
        if fact.shown is not None:
            found += [fact.shown.canonical, fact.shown.receipt]
            found.extend(one.digest for one in fact.shown.hidden if one.spooled is None)
    return found


def _members_of(value: object) -> Members:
    members: Members = {}
    for name, default, spell in _SHAPES[type(value)].members:
        member = getattr(value, name)
        if member != default:
            members[name] = spell(member)
    return members


def _read(shape: type, members: Members, what: str) -> object:
    readers = _SHAPES[shape].readers
    values: Members = {}
    for name, value in members.items():
        if name not in readers:
            raise NewerFactError(f"{what} has an unknown member {name!r}")
        try:
            values[name] = readers[name](value)
        except NewerFactError:
            raise
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidRecordError(f"{what} has a bad member {name!r}: {error}") from error
    try:
        return shape(**values)
    except TypeError as error:
        raise InvalidRecordError(f"{what} is incomplete: {error}") from error


_STATES: Final = frozenset(get_args(InvocationState))


def _checker(kind: type, what: str) -> Spell:
    """What gives a value of a type back; a truth value is no number."""

    def check(value: object) -> object:
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise TypeError(f"{what} expected, not {type(value).__name__}")
        return value

    return check


_check_text: Final = _checker(str, "text")
_check_count: Final = _checker(int, "an integer")
_check_flag: Final = _checker(bool, "true or false")


def _spell_time(at: object) -> str:
    """A time, in UTC and to the microsecond."""
    if not isinstance(at, datetime):
        raise TypeError(f"a time expected, not {type(at).__name__}")
    if at.tzinfo is not UTC:
        if at.utcoffset() is None:
            raise ValueError(f"a recorded time must have a zone: {at}")
        at = at.astimezone(UTC)
    return at.isoformat(timespec="microseconds")[:-6] + "Z"


def _read_time(text: object) -> datetime:
    """The time behind its spelling, in UTC."""
    at = datetime.fromisoformat(_check_text(text))
    if at.utcoffset() is None:
        raise ValueError("a recorded time must have a zone")
    return at.astimezone(UTC)


def _spell_uuid(value: object) -> str:
    """A UUID."""
    if not isinstance(value, UUID):
        raise TypeError(f"a UUID expected, not {type(value).__name__}")
    return str(value)


def _read_uuid(value: object) -> UUID:
    """The UUID behind its spelling."""
    return UUID(_check_text(value))


def _check_state(value: object) -> str:
    """A state of an invocation."""
    if value not in _STATES:
        raise ValueError(f"no such state: {value!r}")
    return cast("str", value)


def _check_digest(value: object) -> Digest:
    """A digest."""
    return parse_digest(_check_text(value))


def _read_items(read: Spell) -> Spell:
    """A reader of lists, from one of items."""

    def read_all(value: object) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise TypeError(f"a list expected, not {type(value).__name__}")
        return tuple(read(one) for one in cast("list[object]", value))

    return read_all


def _spell_items(spell: Spell) -> Spell:
    """A speller of tuples, from one of items."""
    return lambda values: [spell(one) for one in values]


_NO_DEFAULT = object()
"""Equal to no value, for a member that is always written."""


class _Shape(NamedTuple):
    """How the members of one class are spelled and read.

    Attributes:
        members: name, default and speller of each.
        readers: the reverse, by name.
        bodies: names of the members that name bodies.
    """

    members: tuple[tuple[str, object, Spell], ...]
    readers: Mapping[str, Spell]
    bodies: tuple[str, ...]


def _nested(shape: type) -> Spell:
    def read_nested(value: object) -> object:
        if not isinstance(value, dict):
            raise TypeError(f"an object expected, not {type(value).__name__}")
        return _read(shape, cast("Members", value), shape.__name__)

    return read_nested


_SPELLINGS: Final[Mapping[object, tuple[Spell, Spell]]] = {
    str: (_check_text, _check_text),
    int: (_check_count, _check_count),
    bool: (_check_flag, _check_flag),
    Digest: (_check_digest, _check_digest),
    InvocationState: (_check_state, _check_state),
    UUID: (_spell_uuid, _read_uuid),
    datetime: (_spell_time, _read_time),
    Shown: (_members_of, _nested(Shown)),
    tuple[str, ...]: (_spell_items(_check_text), _read_items(_check_text)),
    tuple[Digest, ...]: (_spell_items(_check_digest), _read_items(_check_digest)),
    tuple[StreamFact, ...]: (_spell_items(_members_of), _read_items(_nested(StreamFact))),
    tuple[OmissionFact, ...]: (_spell_items(_members_of), _read_items(_nested(OmissionFact))),
    tuple[ArtifactFact, ...]: (_spell_items(_members_of), _read_items(_nested(ArtifactFact))),
}
"""How a member of each type is spelled and read. `T | None` is spelled as `T`."""


def _shape_of(shape: type[Frozen]) -> _Shape:
    members: list[tuple[str, object, Spell]] = []
    readers: dict[str, Spell] = {}
    bodies: list[str] = []
    for name in shape.member_names:
        kind = _without_none(shape.__annotations__[name])
        spell, readers[name] = _SPELLINGS[kind]
        members.append((name, getattr(shape, name, _NO_DEFAULT), spell))
        if kind is Digest or kind == tuple[Digest, ...]:
            bodies.append(name)
    return _Shape(tuple(members), readers, tuple(bodies))


def _without_none(annotation: object) -> object:
    options = [one for one in get_args(annotation) if one is not type(None)]
    is_optional = type(None) in get_args(annotation)
    return options[0] if is_optional else annotation


_SHAPES: Final[Mapping[type, _Shape]] = {
    one: _shape_of(one) for one in (StreamFact, OmissionFact, ArtifactFact, Shown, *FACTS.values())
}
