"""Facts: what producers record, one class for each kind, and how JSON spells them.

A fact is small. Texts and outputs are *bodies*: byte strings that a fact names by digest and that
travel beside it. So a body can be erased later while the fact, and every hash over it, stays.

    >>> fact = SessionClosed(session=UUID(int=7), at=datetime(2026, 1, 2, tzinfo=UTC))
    >>> fact_json(fact)
    b'{"at":"2026-01-02T00:00:00.000000Z","kind":"session.closed","session":"00000000-…","v":1}'
    >>> read_fact(fact_json(fact)) == fact
    True
"""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, ClassVar, Final, NamedTuple, TypeAlias, cast, get_args
from uuid import UUID

from tooltrail.records._fact_values import (
    Spell,
    check_count,
    check_digest,
    check_flag,
    check_state,
    check_text,
    read_items,
    read_time,
    read_uuid,
    spell_items,
    spell_time,
    spell_uuid,
)
from tooltrail.records.call_facts import (
    ArtifactFact,
    CallEnded,
    CallStarted,
    OmissionFact,
    Shown,
    StreamFact,
)
from tooltrail.records.canonical_json import decode, encode_simple
from tooltrail.records.digests import Digest
from tooltrail.records.errors import InvalidRecordError
from tooltrail.records.frozen import Frozen
from tooltrail.records.states import InvocationState

__all__ = [
    "FACTS",
    "VERSION",
    "AgentLeg",
    "AgentOutcome",
    "AnswerStarted",
    "ArtifactFact",
    "CallEnded",
    "CallStarted",
    "Fact",
    "Maintenance",
    "MessageAdded",
    "NewerFactError",
    "OmissionFact",
    "SessionClosed",
    "SessionOpened",
    "Shown",
    "StreamFact",
    "ToolsOffered",
    "body_digests",
    "fact_json",
    "read_fact",
]

VERSION: Final = 1
"""The version of the spelling. A reader refuses any other."""

Members: TypeAlias = dict[str, Any]


class NewerFactError(InvalidRecordError):
    """A fact of a kind, version or member that this program does not know."""


class SessionOpened(Frozen):
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


class SessionClosed(Frozen):
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


class MessageAdded(Frozen):
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


class AnswerStarted(Frozen):
    """A provider began to stream an answer. Its bytes gather in the spool until it has ended.

    The fact `message` with the same id says that the answer has ended, and what it was.

    Attributes:
        session: id of the session.
        id: of the message that the answer becomes, the last one of several choices.
        at: when it began, aware.
        wire_format: format of the answer.
        provider: whose server gives it, where the format does not say so.
        owner: name of the owner lock of the program that receives it.
        servers: of the tools on offer, in order; names of their tools are split.
    """

    kind: ClassVar[str] = "answer.started"
    session: UUID
    id: UUID
    at: datetime
    wire_format: str
    provider: str | None = None
    owner: str | None = None
    servers: tuple[str, ...] = ()


class ToolsOffered(Frozen):
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


class AgentLeg(Frozen):
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


class AgentOutcome(Frozen):
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


class Maintenance(Frozen):
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
    | AnswerStarted
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
    str: (check_text, check_text),
    int: (check_count, check_count),
    bool: (check_flag, check_flag),
    Digest: (check_digest, check_digest),
    InvocationState: (check_state, check_state),
    UUID: (spell_uuid, read_uuid),
    datetime: (spell_time, read_time),
    Shown: (_members_of, _nested(Shown)),
    tuple[str, ...]: (spell_items(check_text), read_items(check_text)),
    tuple[Digest, ...]: (spell_items(check_digest), read_items(check_digest)),
    tuple[StreamFact, ...]: (spell_items(_members_of), read_items(_nested(StreamFact))),
    tuple[OmissionFact, ...]: (spell_items(_members_of), read_items(_nested(OmissionFact))),
    tuple[ArtifactFact, ...]: (spell_items(_members_of), read_items(_nested(ArtifactFact))),
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
