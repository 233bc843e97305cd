"""Writes facts as canonical JSON, and reads them back.

    >>> fact = SessionClosed(session=UUID(int=7), at=datetime(2026, 1, 2, tzinfo=UTC))
    >>> fact_json(fact)
    b'{"at":"2026-01-02T00:00:00.000000Z","kind":"session.closed","session":"00000000-…","v":1}'
    >>> read_fact(fact_json(fact)) == fact
    True

The annotation of a member determines its spelling. A member of a wrong type is refused, so that
everything that is written can be read back.
"""

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from operator import attrgetter
from typing import Any, Final, TypeAlias, cast, get_args, get_origin
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
    ToolsOffered,
)
from tooltrail.records.frozen import Frozen
from tooltrail.records.states import InvocationState

VERSION: Final = 1
"""The version of the spelling. A reader refuses all other versions."""

Members: TypeAlias = dict[str, Any]

Spell: TypeAlias = Callable[[Any], Any]
"""Converts a value to JSON types, or back; raises TypeError or ValueError for a wrong value."""

Member: TypeAlias = tuple[object, Spell, Spell]
"""The default of a member, its writer and its reader."""

_Writer: TypeAlias = tuple[str, object, Spell]


class NewerFactError(InvalidRecordError):
    """A fact of a kind, version or member that this program does not know."""


def fact_json(fact: Fact) -> bytes:
    """The canonical JSON of a fact. Members that have their default are left out.

    Raises:
        InvalidRecordError: a member has a wrong type.
    """
    return _json_of(fact, {"kind": fact.kind, "v": VERSION})


def shown_json(shown: Shown) -> bytes:
    """Like `fact_json`, for the result and receipt that a caller got."""
    return _json_of(shown, {})


def read_shown(data: bytes) -> Shown:
    """Read what `shown_json` wrote.

    Raises:
        InvalidRecordError: `data` is not the JSON of a `Shown`.
    """
    return cast("Shown", _read(Shown, decode(data)))


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
    return cast("Fact", _read(FACTS[kind], members))


def body_digests(fact: Fact) -> list[Digest]:
    """The bodies that a fact names, without streams in the spool."""
    named: list[Digest | None] = [
        getattr(fact, name)
        for name, (_, write, _) in _SHAPES[type(fact)].items()
        if write is parse_digest
    ]
    if isinstance(fact, ToolsOffered):
        named += fact.tools
    elif isinstance(fact, CallEnded):
        named += [one.digest for one in fact.all_streams if one.spooled is None]
        if fact.shown is not None:
            named += [fact.shown.canonical, fact.shown.receipt]
    return [one for one in named if one is not None]


def _json_of(value: Fact | Shown, more: Members) -> bytes:
    try:
        members = _write(value)
    except (TypeError, ValueError, OverflowError) as error:
        name = next(filter(partial(_is_faulty, value), type(value).member_types), "value")
        raise InvalidRecordError(f"{name} cannot be recorded: {error}") from error
    members.update(more)
    return encode_simple(members)


def _is_faulty(value: Fact | Shown, name: str) -> bool:
    """Whether a member has a value that cannot be written."""
    member = getattr(value, name)
    try:
        if member is not None:
            _SHAPES[type(value)][name][1](member)
    except (TypeError, ValueError, OverflowError):
        return True
    return False


def _write(value: object) -> Members:
    values_of, shape = _WRITERS[type(value)]
    return {
        name: write(member)
        for (name, default, write), member in zip(shape, values_of(value), strict=True)
        if default is _REQUIRED or (member is not default and member != default)
    }


def _read(shape: type[Frozen], members: object) -> Frozen:
    if not isinstance(members, dict):
        raise InvalidRecordError(f"{shape.__name__} must be a JSON object")
    known, values = _SHAPES[shape], Members()
    for name, value in cast("Members", members).items():
        if name not in known:
            raise NewerFactError(f"{shape.__name__} has an unknown member {name!r}")
        try:
            values[name] = known[name][2](value)
        except NewerFactError:
            raise
        except (TypeError, ValueError, OverflowError) as error:
            raise InvalidRecordError(f"bad member {name!r} of {shape.__name__}: {error}") from error
    try:
        return shape(**values)
    except TypeError as error:
        raise InvalidRecordError(f"{shape.__name__} is incomplete: {error}") from error


def _checker(kind: type, what: str) -> Spell:
    """A function that returns its argument if it has the type; a boolean is not a number."""

    def check(value: object) -> object:
        if type(value) is kind or (isinstance(value, kind) and not isinstance(value, bool)):
            return value
        raise TypeError(f"{what} expected, not {type(value).__name__}")

    return check


_text: Final = _checker(str, "text")
_count: Final = _checker(int, "an integer")
_flag: Final = _checker(bool, "true or false")
_list: Final = _checker(list, "a list")
_uuid: Final = _checker(UUID, "a UUID")
_STATES: Final = get_args(InvocationState)


def _in_utc(at: object) -> datetime:
    if not isinstance(at, datetime):
        raise TypeError(f"a time expected, not {type(at).__name__}")
    if at.utcoffset() is None:
        raise ValueError(f"a recorded time must have a zone: {at}")
    return at.astimezone(UTC)


def _write_time(at: object) -> str:
    return _in_utc(at).isoformat(timespec="microseconds")[:-6] + "Z"


def _read_time(text: str) -> datetime:
    return _in_utc(datetime.fromisoformat(_text(text)))


def _state(value: object) -> object:
    if value not in _STATES:
        raise ValueError(f"no such state: {value!r}")
    return value


_SCALARS: Final[Mapping[object, tuple[Spell, Spell]]] = {
    str: (_text, _text),
    int: (_count, _count),
    bool: (_flag, _flag),
    Digest: (parse_digest, parse_digest),
    InvocationState: (_state, _state),
    UUID: (lambda value: str(_uuid(value)), lambda text: UUID(_text(text))),
    datetime: (_write_time, _read_time),
}
"""The writer and the reader of each type that is not made of others."""


def _spelling_of(annotation: Any) -> tuple[Spell, Spell]:
    """The writer and the reader of a type of member; `T | None` is spelled like `T`."""
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    if isinstance(annotation, type):
        return _write, partial(_read, annotation)
    write, read = _spelling_of(get_args(annotation)[0])
    if get_origin(annotation) is not tuple:
        return write, read
    return (
        lambda values: [write(one) for one in values],
        lambda values: tuple([read(one) for one in _list(values)]),
    )


_REQUIRED = object()
"""In place of the default of a member that is always written."""


def _members_of(shape: type[Frozen]) -> dict[str, Member]:
    return {
        name: (getattr(shape, name, _REQUIRED), *_spelling_of(kind))
        for name, kind in shape.member_types.items()
    }


_SHAPES: Final[Mapping[type, Mapping[str, Member]]] = {
    one: _members_of(one)
    for one in (
        *(SourceFact, RedactionFact, StreamFact, OmissionFact, ArtifactFact, Shown),
        *FACTS.values(),
    )
}
"""The members of each class."""

_WRITERS: Final[Mapping[type, tuple[Callable[[object], tuple[Any, ...]], Sequence[_Writer]]]] = {
    one: (
        attrgetter(*members),
        [(name, default, write) for name, (default, write, _) in members.items()],
    )
    for one, members in _SHAPES.items()
}
"""What gets the members of each class, and their names, defaults and writers."""
