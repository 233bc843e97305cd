"""Facts: what producers record, one dataclass for each kind, and how JSON spells them.

A fact is small. Texts and outputs are *bodies*: byte strings that a fact names by digest and that
travel beside it. So a body can be erased later while the fact, and every hash over it, stays.

    >>> fact = SessionClosed(session=UUID(int=7), at=datetime(2026, 1, 2, tzinfo=UTC))
    >>> fact_json(fact)
    b'{"at":"2026-01-02T00:00:00.000000Z","kind":"session.closed","session":"00000000-…","v":1}'
    >>> read_fact(fact_json(fact)) == fact
    True

Importing this module loads nothing but the standard library.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import MISSING, dataclass, fields
from datetime import UTC, datetime
from typing import Any, ClassVar, Final, TypeAlias, cast, get_args
from uuid import UUID

from tooltrail.records.canonical_json import decode, encode
from tooltrail.records.digests import Digest, parse_digest
from tooltrail.records.errors import InvalidRecordError
from tooltrail.records.states import InvocationState

VERSION: Final = 1
"""The version of the spelling. A reader refuses any other."""

Members: TypeAlias = dict[str, Any]


class NewerFactError(InvalidRecordError):
    """A fact of a kind, version or member that this program does not know."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOpened:
    """A session began.

    Attributes:
        session: id of the session.
        at: when it began, aware.
        name: the name by which other producers join the session; None for an unnamed one.
        title: a short text for people.
        agent: name of the agent that holds the session.
        parent: the session that started this one; None unless it is a sub-agent's.
        environment: body with canonical JSON of host, user, folder and program.
    """

    kind: ClassVar[str] = "session.opened"
    session: UUID
    at: datetime
    name: str | None = None
    title: str | None = None
    agent: str | None = None
    parent: UUID | None = None
    environment: Digest | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionClosed:
    """A session ended.

    Attributes:
        session: id of the session.
        at: when it ended, aware.
        reason: why, where it did not end by itself.
    """

    kind: ClassVar[str] = "session.closed"
    session: UUID
    at: datetime
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageAdded:
    """A session got a message: an entry of the conversation that is not a tool call.

    Attributes:
        session: id of the session.
        id: of the message.
        at: when it was said, aware.
        role: who said it.
        text: body with the text in UTF-8.
        document: body with canonical JSON of the message, where it is more than its text.
        payload: body with the bytes that a provider sent.
        wire_format: format of the payload.
    """

    kind: ClassVar[str] = "message"
    session: UUID
    id: UUID
    at: datetime
    role: str
    text: Digest
    document: Digest | None = None
    payload: Digest | None = None
    wire_format: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsOffered:
    """From here on a session offers exactly these tools to the model.

    Attributes:
        session: id of the session.
        id: of the offer.
        at: when, aware.
        tools: bodies with canonical JSON of each tool definition, in order.
    """

    kind: ClassVar[str] = "tool.offered"
    session: UUID
    id: UUID
    at: datetime
    tools: tuple[Digest, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStarted:
    """A tool call is about to run.

    Attributes:
        session: id of the session. A session that the store does not know is opened by this fact.
        id: of the invocation.
        at: when it starts, aware.
        tool_name: the name that the model used.
        family: family of the result.
        arguments: body with the arguments as the model sent them.
        policy: body with canonical JSON of the budgets.
        environment: body with canonical JSON of host, user, folder and program.
        call_id: the provider's id of the call: data, may repeat or be empty.
        title: a short spelling of the arguments.
        message: id of the message that asked for the call.
        position: place of the call among those of that message, from 0.
        owner: name of the owner lock that is held while the tool runs; None for a call that had
            ended when it was recorded.
    """

    kind: ClassVar[str] = "call.started"
    session: UUID
    id: UUID
    at: datetime
    tool_name: str
    family: str
    arguments: Digest
    policy: Digest
    environment: Digest | None = None
    call_id: str | None = None
    title: str | None = None
    message: UUID | None = None
    position: int = 0
    owner: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamFact:
    """One stream of a complete output.

    Attributes:
        role: what the stream is for: `stdout`, `stderr`, …
        digest: of the kept bytes.
        size: bytes kept.
        line_count: lines kept.
        produced_size: bytes that the tool produced.
        produced_line_count: lines that the tool produced.
        loss_reason: why some bytes were not kept; None when all were.
        spooled: path of the captured stream, relative to the spool; None for a body.
    """

    role: str
    digest: Digest
    size: int
    line_count: int
    produced_size: int
    produced_line_count: int
    loss_reason: str | None = None
    spooled: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class OmissionFact:
    """One stage kept `after` of `before` units of a field; see `tooltrail.records.Omission`."""

    stage: str
    field: str
    unit: str
    before: int
    after: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ArtifactFact:
    """One artifact of a canonical result, at its place in `result.artifacts`.

    Attributes:
        role: what the artifact is for.
        digest: of its content; the path follows from it.
    """

    role: str
    digest: Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """The canonical result and the receipt that the caller got.

    Attributes:
        canonical: body with canonical JSON of the envelope.
        receipt: body with the text in UTF-8.
        renderer: name of the renderer; `seen` where another program made the text.
        renderer_version: its version; 0 for `seen`.
        omissions: what the stages left out, in their order.
        artifacts: the artifacts of the result, in their order.
    """

    canonical: Digest
    receipt: Digest
    renderer: str
    renderer_version: int
    omissions: tuple[OmissionFact, ...] = ()
    artifacts: tuple[ArtifactFact, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnded:
    """A tool call ended, and this is everything that came of it.

    Attributes:
        session: id of the session.
        id: of the invocation, which a `CallStarted` began.
        at: when it ended, aware.
        state: final state of the invocation.
        output: body with canonical JSON of the complete output.
        streams: the streams of the complete output, in its order.
        shown: what the caller got; None where the ingester projects and renders.
        duration_ms: how long the tool ran, by a monotonic clock; None where nobody measured.
        error_kind: kind of the error; None for a success.
        exit_status: of a command.
        signal: that ended a command.
        timed_out: whether a limit of time ended it; None where the family has none.
    """

    kind: ClassVar[str] = "call.ended"
    session: UUID
    id: UUID
    at: datetime
    state: InvocationState
    output: Digest
    streams: tuple[StreamFact, ...] = ()
    shown: Shown | None = None
    duration_ms: int | None = None
    error_kind: str | None = None
    exit_status: int | None = None
    signal: int | None = None
    timed_out: bool | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentLeg:
    """One leg of an agent run began; see `tooltrail.records.LegStarted`.

    Attributes:
        session: id of the session that is the leg.
        id: of this fact.
        at: when, aware.
        document: body with canonical JSON of the `LegStarted`.
        agent: body with the configuration of the agent.
        agent_version: what the author of the agent calls that configuration.
    """

    kind: ClassVar[str] = "agent.leg"
    session: UUID
    id: UUID
    at: datetime
    document: Digest
    agent: Digest
    agent_version: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOutcome:
    """One leg of an agent run ended; see `tooltrail.records.LegEnded`.

    Attributes:
        session: id of the session that is the leg.
        id: of this fact.
        at: when, aware.
        document: body with canonical JSON of the `LegEnded`.
    """

    kind: ClassVar[str] = "agent.outcome"
    session: UUID
    id: UUID
    at: datetime
    document: Digest


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance:
    """Something was done to what is kept: gc, erase, hold, relocate, repair.

    Attributes:
        id: of the run.
        at: when, aware.
        action: `gc`, `relocate`, …
        actor: who asked for it.
        details: body with canonical JSON of what was done.
    """

    kind: ClassVar[str] = "maintenance"
    id: UUID
    at: datetime
    action: str
    actor: str
    details: Digest


Fact: TypeAlias = (
    SessionOpened
    | SessionClosed
    | MessageAdded
    | ToolsOffered
    | CallStarted
    | CallEnded
    | AgentLeg
    | AgentOutcome
    | Maintenance
)

FACTS: Final[Mapping[str, type[Fact]]] = {one.kind: one for one in get_args(Fact)}
"""The class of each kind."""


def fact_json(fact: Fact) -> bytes:
    """Canonical JSON of a fact. Members that have their default are left out.

    Raises:
        InvalidRecordError: a member is not of its type.
    """
    members = _members_of(fact)
    members["kind"], members["v"] = fact.kind, VERSION
    return _spelled(members, fact.kind)


def _spelled(members: Members, what: str) -> bytes:
    try:
        # Equal to `canonical_json.encode` for these members, and four times as fast. Lone
        # surrogates, which JSON in UTF-8 cannot spell, take the other way.
        return json.dumps(
            members, ensure_ascii=False, sort_keys=True, separators=(",", ":"), allow_nan=False
        ).encode()
    except UnicodeEncodeError:
        return encode(members)
    except (TypeError, ValueError) as error:
        raise InvalidRecordError(f"{what} is not JSON: {error}") from error


def shown_json(shown: Shown) -> bytes:
    """Canonical JSON of what a caller got.

    Raises:
        InvalidRecordError: a member is not of its type.
    """
    return _spelled(_members_of(shown), "what was shown")


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
    if version != VERSION:
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
    return found


def _members_of(value: object) -> Members:
    members: Members = {}
    for name, default, spell in _SHAPES[type(value)].members:
        member = getattr(value, name)
        if member != default:
            members[name] = member if spell is None else spell(member)
    return members


def _read(shape: type, members: Members, what: str) -> object:
    readers = _SHAPES[shape].readers
    values: Members = {}
    for name, value in members.items():
        if name not in readers:
            raise NewerFactError(f"{what} has an unknown member {name!r}")
        try:
            values[name] = readers[name](value)
        except (TypeError, ValueError, AttributeError) as error:
            raise InvalidRecordError(f"{what} has a bad member {name!r}: {error}") from error
    try:
        return shape(**values)
    except TypeError as error:
        raise InvalidRecordError(f"{what} is incomplete: {error}") from error


_NO_DEFAULT = object()
"""Equal to no value, for a member that is always written."""

Spell: TypeAlias = Callable[[Any], Any]


@dataclass(frozen=True, slots=True)
class _Shape:
    """How the members of one class are spelled and read.

    Attributes:
        members: name, default and speller of each; no speller for what JSON has.
        readers: the reverse, by name.
        bodies: names of the members that name bodies.
    """

    members: tuple[tuple[str, object, Spell | None], ...]
    readers: Mapping[str, Spell]
    bodies: tuple[str, ...]


def _spell_time(at: datetime) -> str:
    if at.tzinfo is not UTC:
        if at.utcoffset() is None:
            raise InvalidRecordError(f"a recorded time must have a zone: {at}")
        at = at.astimezone(UTC)
    return at.isoformat(timespec="microseconds")[:-6] + "Z"


def _read_time(text: object) -> datetime:
    at = datetime.fromisoformat(_read_text(text))
    if at.utcoffset() is None:
        raise ValueError("a recorded time must have a zone")
    return at.astimezone(UTC)


def _read_text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"text expected, not {type(value).__name__}")
    return value


def _read_count(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"an integer expected, not {type(value).__name__}")
    return value


def _read_flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise TypeError(f"true or false expected, not {type(value).__name__}")
    return value


def _read_state(value: object) -> str:
    if value not in get_args(InvocationState):
        raise ValueError(f"no such state: {value!r}")
    return cast("str", value)


def _read_digest(value: object) -> Digest:
    return parse_digest(_read_text(value))


def _items(read: Spell) -> Spell:
    return lambda value: tuple(read(one) for one in value)


def _nested(shape: type) -> Spell:
    return lambda value: _read(shape, value, shape.__name__)


def _spell_nested(values: tuple[object, ...]) -> list[Members]:
    return [_members_of(one) for one in values]


_READERS: Final[Mapping[object, tuple[Spell | None, Spell]]] = {
    str: (None, _read_text),
    int: (None, _read_count),
    bool: (None, _read_flag),
    Digest: (None, _read_digest),
    InvocationState: (None, _read_state),
    UUID: (str, lambda value: UUID(_read_text(value))),
    datetime: (_spell_time, _read_time),
    Shown: (_members_of, _nested(Shown)),
    tuple[Digest, ...]: (list, _items(_read_digest)),
    tuple[StreamFact, ...]: (_spell_nested, _items(_nested(StreamFact))),
    tuple[OmissionFact, ...]: (_spell_nested, _items(_nested(OmissionFact))),
    tuple[ArtifactFact, ...]: (_spell_nested, _items(_nested(ArtifactFact))),
}
"""How a member of each type is spelled and read. `T | None` is spelled as `T`."""


def _shape_of(shape: type) -> _Shape:
    members: list[tuple[str, object, Spell | None]] = []
    readers: dict[str, Spell] = {}
    bodies: list[str] = []
    for one in fields(shape):
        kind = _without_none(one.type)
        spell, readers[one.name] = _READERS[kind]
        members.append((one.name, _NO_DEFAULT if one.default is MISSING else one.default, spell))
        if kind is Digest or kind == tuple[Digest, ...]:
            bodies.append(one.name)
    return _Shape(tuple(members), readers, tuple(bodies))


def _without_none(annotation: object) -> object:
    options = [one for one in get_args(annotation) if one is not type(None)]
    is_optional = type(None) in get_args(annotation)
    return options[0] if is_optional else annotation


_SHAPES: Final[Mapping[type, _Shape]] = {
    one: _shape_of(one) for one in (StreamFact, OmissionFact, ArtifactFact, Shown, *FACTS.values())
}
