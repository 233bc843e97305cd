"""Writes facts as canonical JSON, and reads them back.

    >>> fact = SessionClosed(session=UUID(int=7), at=datetime(2026, 1, 2, tzinfo=UTC))
    >>> fact_json(fact)
    b'{"at":"2026-01-02T00:00:00.000000Z","kind":"session.closed","session":"00000000-…","v":1}'
    >>> read_fact(fact_json(fact)) == fact
    True

The annotation of a member determines its spelling. A member of a wrong type is refused, so that
everything that is written can be read back.
"""

from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from operator import attrgetter
from typing import Any, Final, TypeAlias, cast, get_args, get_origin
from uuid import UUID

from tooltrail.records.canonical_json import decode, spell_text
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
from tooltrail.records.times import in_utc

VERSION: Final = 1
"""The version of the spelling. A reader refuses all other versions."""

Members: TypeAlias = dict[str, Any]

Write: TypeAlias = Callable[[Any], str]
"""Writes a value as JSON; raises TypeError or ValueError for a wrong value."""

Read: TypeAlias = Callable[[Any], Any]
"""Makes a value from JSON types; raises TypeError or ValueError for a wrong value."""

Member: TypeAlias = tuple[object, Write, Read]
"""The default of a member, its writer and its reader."""

_Writer: TypeAlias = tuple[str, object, Write]


class NewerFactError(InvalidRecordError):
    """A fact of a kind, version or member that this program does not know."""


def fact_json(fact: Fact) -> bytes:
    """The canonical JSON of a fact. Members that have their default are left out.

    Raises:
        InvalidRecordError: a member has a wrong type.
    """
    return _json_of(fact)


def shown_json(shown: Shown) -> bytes:
    """Like `fact_json`, for the result and receipt that a caller got."""
    return _json_of(shown)


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
        if write is _write_digest
    ]
    if isinstance(fact, ToolsOffered):
        named += fact.tools
    elif isinstance(fact, CallEnded):
        named += [one.digest for one in fact.all_streams if one.spooled is None]
        if fact.shown is not None:
            named += [fact.shown.canonical, fact.shown.receipt]
    return [one for one in named if one is not None]


def _json_of(value: Fact | Shown) -> bytes:
    try:
        return _write(value).encode()
    except (TypeError, ValueError, OverflowError) as error:
        name = next(filter(partial(_is_faulty, value), type(value).member_types), "value")
        raise InvalidRecordError(f"{name} cannot be recorded: {error}") from error


def _is_faulty(value: Fact | Shown, name: str) -> bool:
    """Whether a member has a value that cannot be written."""
    member = getattr(value, name)
    try:
        if member is not None:
            _SHAPES[type(value)][name][1](member)
    except (TypeError, ValueError, OverflowError):
        return True
    return False


def _write(value: object) -> str:
    values_of, writers = _WRITERS[type(value)]
    spelled = [
        begin + write(member)
        for (begin, default, write), member in zip(writers, values_of(value), strict=True)
        if default is _REQUIRED or (member is not default and member != default)
    ]
    return f"{{{','.join(spelled)}}}"


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


def _checker(kind: type, what: str) -> Read:
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
_time: Final = _checker(datetime, "a time")
_STATES: Final = get_args(InvocationState)


def _write_time(at: object) -> str:
    return f'"{in_utc(_time(at)).isoformat(timespec="microseconds")[:-6]}Z"'


def _write_digest(digest: Any) -> str:
    return f'"{parse_digest(digest)}"'


def _read_time(text: str) -> datetime:
    return in_utc(datetime.fromisoformat(_text(text)))


def _state(value: object) -> object:
    if value not in _STATES:
        raise ValueError(f"no such state: {value!r}")
    return value


_SCALARS: Final[Mapping[object, tuple[Write, Read]]] = {
    str: (lambda text: spell_text(_text(text)), _text),
    int: (lambda number: int.__repr__(_count(number)), _count),
    bool: (lambda flag: "true" if _flag(flag) else "false", _flag),
    Digest: (_write_digest, parse_digest),
    InvocationState: (lambda state: f'"{_state(state)}"', _state),
    UUID: (lambda value: f'"{_uuid(value)}"', lambda text: UUID(_text(text))),
    datetime: (_write_time, _read_time),
}
"""The writer and the reader of each type that is not made of others."""


def _spelling_of(annotation: Any) -> tuple[Write, Read]:
    """The writer and the reader of a type of member; `T | None` is spelled like `T`."""
    if annotation in _SCALARS:
        return _SCALARS[annotation]
    if isinstance(annotation, type):
        return _write, partial(_read, annotation)
    write, read = _spelling_of(get_args(annotation)[0])
    if get_origin(annotation) is not tuple:
        return write, read
    return (
        lambda values: f"[{','.join([write(one) for one in values])}]",
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


def _writers_of(shape: type[Frozen]) -> tuple[Callable[[object], tuple[Any, ...]], list[_Writer]]:
    """The getter of the members of a class, sorted by name, and their writers."""
    members = {name: (default, write) for name, (default, write, _) in _SHAPES[shape].items()}
    sources = {name: name for name in members}
    if shape in FACTS.values():
        members["kind"] = (_REQUIRED, spell_text)
        members["v"] = (_REQUIRED, lambda _kind: str(VERSION))
        sources |= {"kind": "kind", "v": "kind"}
    names = sorted(members)
    return attrgetter(*map(sources.__getitem__, names)), [
        (f'"{name}":', *members[name]) for name in names
    ]


_WRITERS: Final = {shape: _writers_of(shape) for shape in _SHAPES}
"""The result of `_writers_of` for each class."""
