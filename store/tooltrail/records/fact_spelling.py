"""Writes facts as canonical JSON, and reads them back.

    >>> fact = SessionClosed(session=UUID(int=7), at=datetime(2026, 1, 2, tzinfo=UTC))
    >>> fact_json(fact)
    b'{"at":"2026-01-02T00:00:00.000000Z","kind":"session.closed","session":"00000000-…","v":1}'
    >>> read_fact(fact_json(fact)) == fact
    True

A member of a wrong type is refused, so that everything that is written can be read back.
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
    RedactionFact,
    Shown,
    SourceFact,
    StreamFact,
)
from tooltrail.records.frozen import Frozen
from tooltrail.records.states import InvocationState

VERSION: Final = 1
"""The version of the spelling. A reader refuses all other versions."""

Members: TypeAlias = dict[str, Any]

Spell: TypeAlias = Callable[[Any], Any]
"""Converts a value to JSON types, or back; raises TypeError or ValueError for a wrong value."""


class NewerFactError(InvalidRecordError):
    """A fact of a kind, version or member that this program does not know."""


def fact_json(fact: Fact) -> bytes:
    """The canonical JSON of a fact. Members that have their default are left out.

    Raises:
        InvalidRecordError: a member has a wrong type.
    """
    try:
        members = _members_of(fact)
    except (TypeError, ValueError, OverflowError) as error:
        raise InvalidRecordError(f"{fact.kind} cannot be recorded: {error}") from error
    members["kind"], members["v"] = fact.kind, VERSION
    return encode_simple(members)


def shown_json(shown: Shown) -> bytes:
    """The canonical JSON of the result and receipt that a caller got.

    Raises:
        InvalidRecordError: a member has a wrong type.
    """
    return encode_simple(_members_of(shown))


def read_shown(data: bytes) -> Shown:
    """Read what `shown_json` wrote.

    Raises:
        InvalidRecordError: `data` is not the JSON of a `Shown`.
    """
    members = decode(data)
    if not isinstance(members, dict):
        raise InvalidRecordError("what was shown must be a JSON object")
    return cast("Shown", _read(Shown, cast("Members", members), "Shown"))


def read_fact(data: bytes) -> Fact:
    """Read a fact from its JSON.

    Raises:
        NewerFactError: the kind, the version or a member is unknown to this program.
        InvalidRecordError: `data` is not the JSON of a fact.
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
    """The bodies that a fact names, in the order of its members, without streams in the spool."""
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
    """A function that returns its argument if it has the type; a boolean is not a number."""

    def check(value: object) -> object:
        if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
            raise TypeError(f"{what} expected, not {type(value).__name__}")
        return value

    return check


_check_text: Final = _checker(str, "text")
_check_count: Final = _checker(int, "an integer")
_check_flag: Final = _checker(bool, "true or false")


def _spell_time(at: object) -> str:
    """Write a time in UTC, to the microsecond."""
    if not isinstance(at, datetime):
        raise TypeError(f"a time expected, not {type(at).__name__}")
    if at.tzinfo is not UTC:
        if at.utcoffset() is None:
            raise ValueError(f"a recorded time must have a zone: {at}")
        at = at.astimezone(UTC)
    return at.isoformat(timespec="microseconds")[:-6] + "Z"


def _read_time(text: object) -> datetime:
    """Read a time, and convert it to UTC."""
    at = datetime.fromisoformat(_check_text(text))
    if at.utcoffset() is None:
        raise ValueError("a recorded time must have a zone")
    return at.astimezone(UTC)


def _spell_uuid(value: object) -> str:
    """Write a UUID."""
    if not isinstance(value, UUID):
        raise TypeError(f"a UUID expected, not {type(value).__name__}")
    return str(value)


def _read_uuid(value: object) -> UUID:
    """Read a UUID."""
    return UUID(_check_text(value))


def _check_state(value: object) -> str:
    """Check a state of an invocation."""
    if value not in _STATES:
        raise ValueError(f"no such state: {value!r}")
    return cast("str", value)


def _check_digest(value: object) -> Digest:
    """Check a digest."""
    return parse_digest(_check_text(value))


def _read_items(read: Spell) -> Spell:
    """A reader of lists, made from a reader of one item."""

    def read_all(value: object) -> tuple[Any, ...]:
        if not isinstance(value, list):
            raise TypeError(f"a list expected, not {type(value).__name__}")
        return tuple(read(one) for one in cast("list[object]", value))

    return read_all


def _spell_items(spell: Spell) -> Spell:
    """A speller of tuples, made from a speller of one item."""
    return lambda values: [spell(one) for one in values]


_NO_DEFAULT = object()
"""The default of a member that is always written; no value equals it."""


class _Shape(NamedTuple):
    """How the members of one class are spelled and read.

    Attributes:
        members: name, default and speller of each member.
        readers: reader of each member, by name.
        bodies: names of the members that hold digests of bodies.
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
    SourceFact: (_members_of, _nested(SourceFact)),
    tuple[str, ...]: (_spell_items(_check_text), _read_items(_check_text)),
    tuple[Digest, ...]: (_spell_items(_check_digest), _read_items(_check_digest)),
    tuple[StreamFact, ...]: (_spell_items(_members_of), _read_items(_nested(StreamFact))),
    tuple[OmissionFact, ...]: (_spell_items(_members_of), _read_items(_nested(OmissionFact))),
    tuple[ArtifactFact, ...]: (_spell_items(_members_of), _read_items(_nested(ArtifactFact))),
    tuple[RedactionFact, ...]: (_spell_items(_members_of), _read_items(_nested(RedactionFact))),
}
"""The speller and the reader of each type of member. `T | None` is spelled like `T`."""


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
    one: _shape_of(one)
    for one in (
        *(SourceFact, RedactionFact, StreamFact, OmissionFact, ArtifactFact, Shown),
        *FACTS.values(),
    )
}
