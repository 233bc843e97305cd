"""The entries of an outbox, and how a line of its journal spells them.

Importing this module imports no database and no pydantic; see `tooltrail.store.outbox`.
"""

import base64
import binascii
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from datetime import datetime
from typing import TYPE_CHECKING, Any, TypeAlias, cast
from uuid import UUID

from tooltrail.journal.clock import new_id, now
from tooltrail.records.canonical_json import decode, encode, encode_text
from tooltrail.records.digests import digest_of
from tooltrail.records.errors import InvalidRecordError

if TYPE_CHECKING:
    from tooltrail.records import Message

_VERSIONS = (1, 2, 3, 4)
"""Those that this program reads; see `_version_of`."""

_Members: TypeAlias = dict[str, Any]


class NewerEntryError(InvalidRecordError):
    """An entry that a newer program has written, and can deliver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionOpened:
    """A session that began.

    Attributes:
        id: of the session.
        at: when, aware.
        environment: where; see `current_environment`.
        title: what people call it.
        agent: who holds it.
        parent: the session that started it.
        idempotency_key: by which it begins once.
    """

    id: UUID = field(default_factory=new_id)
    at: datetime = field(default_factory=now)
    environment: Mapping[str, str | int] = field(default_factory=dict[str, str | int])
    title: str | None = None
    agent: str | None = None
    parent: UUID | None = None
    idempotency_key: str | None = None

    @property
    def session(self) -> UUID:
        """The session that it is about, as of the other entries."""
        return self.id


@dataclass(frozen=True, slots=True, kw_only=True)
class MessageAdded:
    """An entry of a conversation that is not a tool call; see `Session.add_message`.

    Attributes:
        session: that it is of.
        role: who says it.
        text: what is said.
        id: of the message.
        at: when it was said.
        document: canonical JSON of the whole of it; None when the text is all.
        payload: what a provider sent of it, byte for byte.
        wire_format: in which format it did.
        tools: canonical JSON of each tool that is on offer from here on, of an entry that says so.
        leg: canonical JSON of a fact about a leg of an agent run, of an entry that tells one.
        agent_version: canonical JSON of the version of the agent, where the leg begins.
    """

    session: UUID
    role: str
    text: str
    id: UUID = field(default_factory=new_id)
    at: datetime = field(default_factory=now)
    document: str | None = field(default=None, repr=False)
    payload: bytes | None = field(default=None, repr=False)
    wire_format: str | None = None
    tools: tuple[str, ...] | None = field(default=None, repr=False)
    leg: str | None = field(default=None, repr=False)
    agent_version: str | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls, session: UUID, message: "Message", *, message_id: UUID, payload: bytes | None
    ) -> "MessageAdded":
        """The entry of a whole message, said now.

        Args:
            session: that it is of.
            message: with all that is in it.
            message_id: of it.
            payload: what the provider sent of it, if anything.
        """
        return cls(
            session=session,
            role=message.role,
            text=message.text,
            id=message_id,
            document=message.to_json().decode(),
            payload=payload,
            wire_format=None if message.origin is None else message.origin.wire_format,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnded:
    """A session that was closed."""

    session: UUID
    id: UUID = field(default_factory=new_id)
    at: datetime = field(default_factory=now)


@dataclass(frozen=True, slots=True, kw_only=True)
class CallStarted:
    """A call that is about to run; see `Session.start`. A `CallEnded` with its id ends it.

    Its output is captured in the folder of the spool that has its id for a name, which is claimed
    there before this is put here: so who finds its program gone later can end it.

    Attributes:
        id: of the invocation.
        session: of its session.
        tool_name: the name that the model used.
        family: of its result.
        policy: canonical JSON of the budgets.
        arguments_raw: the arguments as the model sent them.
        call_id: the provider's id.
        title: a short spelling of the arguments.
        alone: where it takes place, of a call whose session is for it alone and begins with it;
            None for any other.
        at: when it began.
        message: that asked for it; None where none did.
        position: of the call among those of the message.
    """

    session: UUID
    tool_name: str
    family: str
    policy: str
    id: UUID = field(default_factory=new_id)
    at: datetime = field(default_factory=now)
    arguments_raw: str = "{}"
    call_id: str | None = None
    title: str | None = None
    alone: Mapping[str, str | int] | None = None
    message: UUID | None = None
    position: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class SpooledContent:
    """Bytes that wait in the folder of their call in the spool, and are too many for a line.

    Attributes:
        digest: of all that were kept.
        size: how many these are.
        line_count: lines of the same.
        reason: why they wait there for a repair; None when the delivery makes them an artifact.
    """

    digest: str
    size: int
    line_count: int
    reason: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedStream:
    """All bytes of one stream.

    Attributes:
        role: `stdout`, `stderr`, …
        content: what was kept; nothing when that is in the spool.
        produced_size: bytes that the tool produced; as many as were kept by default.
        produced_line_count: lines of the same.
        loss_reason: why some were not kept.
        path: of the artifact that it is in; None when it is in the database.
        spooled: what is known of bytes that are in the spool; None when they are here.
    """

    role: str
    content: bytes = field(repr=False)
    produced_size: int | None = None
    produced_line_count: int | None = None
    loss_reason: str | None = None
    path: str | None = None
    spooled: SpooledContent | None = None

    def facts(self) -> _Members:
        """What the complete output tells of it, in the place where it belongs in the result."""
        kept = self.spooled or _known_of(self.content)
        size, count = self.produced_size, self.produced_line_count
        return {
            "role": self.role,
            "digest": kept.digest,
            "size": kept.size,
            "line_count": kept.line_count,
            "produced_size": kept.size if size is None else size,
            "produced_line_count": kept.line_count if count is None else count,
            "loss_reason": self.loss_reason,
        }


def _known_of(content: bytes) -> SpooledContent:
    lines = content.count(b"\n") + bool(content and not content.endswith(b"\n"))
    return SpooledContent(digest=digest_of(content), size=len(content), line_count=lines)


@dataclass(frozen=True, slots=True, kw_only=True)
class ShownResult:
    """What the caller of a recorder was handed back, which is what is stored.

    Attributes:
        state: in which the invocation ends.
        facts: exit status, signal and whether it timed out, by name.
        began_at: when it began, as far as is known.
        ended_at: when it ended, the same.
        is_witnessed: whether both are known.
        canonical: the canonical result, as canonical JSON.
        receipt: its text.
        renderer: name and version.
        omissions: what was left out, each by the names of `Omission`.
        artifacts: role and path of each, in their order.
        published: streams that are artifacts and not in the output; a hidden list for instance.
    """

    state: str
    facts: Mapping[str, Any]
    began_at: datetime
    ended_at: datetime
    is_witnessed: bool
    canonical: str = field(repr=False)
    receipt: str = field(repr=False)
    renderer: tuple[str, int]
    omissions: tuple[Mapping[str, Any], ...] = ()
    artifacts: tuple[tuple[str, str], ...] = ()
    published: tuple[EndedStream, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CallEnded:
    """A call that has ended, and all that came of it; see `Session.record`.

    It ends the call that was started with its id, and is a record of its own where there is none.

    Attributes:
        id: of the invocation.
        session: of its session.
        tool_name: the name that the model used.
        arguments_raw: the arguments as the model sent them.
        call_id: the provider's id.
        title: a short spelling of the arguments.
        complete_output: canonical JSON of the five fields; each stream in its result is what
            `EndedStream.facts` gives, and what has a default may be left out.
        streams: with their bytes.
        family: of the result; by default the one that serves the tool.
        policy: canonical JSON of the budgets; by default those of the store that it comes to.
        started_at: when it began, if that is known.
        finished_at: when it ended, if that is known.
        idempotency_key: by which it is recorded once.
        shown: what the caller was handed back; None when the store that it comes to is to make it.
        at: when it was put here.
        message: that asked for it; None where none did.
        position: of the call among those of the message.
    """

    session: UUID
    tool_name: str
    complete_output: str = field(repr=False)
    id: UUID = field(default_factory=new_id)
    at: datetime = field(default_factory=now)
    arguments_raw: str = "{}"
    call_id: str | None = None
    title: str | None = None
    streams: tuple[EndedStream, ...] = ()
    family: str | None = None
    policy: str | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    idempotency_key: str | None = None
    shown: ShownResult | None = None
    message: UUID | None = None
    position: int = 0

    def all_streams(self) -> tuple[EndedStream, ...]:
        """Those of its output, and those that are artifacts besides."""
        return self.streams if self.shown is None else (*self.streams, *self.shown.published)


Entry: TypeAlias = SessionOpened | MessageAdded | CallStarted | CallEnded | SessionEnded
_KINDS: dict[str, type[Entry]] = {
    "session.opened": SessionOpened,
    "message": MessageAdded,
    "call.started": CallStarted,
    "call": CallEnded,
    "session.closed": SessionEnded,
}
KIND_NAMES: Mapping[type[Entry], str] = {kind: name for name, kind in _KINDS.items()}
"""What an entry of each kind is called in a line."""


def complete_output_json(
    tool_name: str, summary_text: str, *, result: object = None, error: object = None
) -> str:
    """A complete output as canonical JSON, a failure when there is an error."""
    return encode_text(
        {
            "tool_name": tool_name,
            "status": "success" if error is None else "error",
            "summary_text": summary_text,
            "result": result,
            "error": error,
        }
    )


def entry_json(entry: Entry) -> bytes:
    """An entry as a line of a journal has it.

    Raises:
        InvalidRecordError: a value is no JSON.
    """
    return encode({"v": _version_of(entry), "kind": KIND_NAMES[type(entry)], **_members(entry)})


def read_entry(data: bytes) -> Entry:
    """The entry behind its JSON.

    Raises:
        NewerEntryError: a newer program can read it.
        InvalidRecordError: it is none that this program knows.
    """
    members = decode(data)
    if not isinstance(members, dict):
        raise InvalidRecordError("an entry is no JSON object")
    version, kind = members.pop("v", None), members.pop("kind", None)
    reads = f"this program reads up to {_VERSIONS[-1]}"
    if isinstance(version, int) and version > _VERSIONS[-1]:
        raise NewerEntryError(f"is of version {version}, {reads}")
    if version not in _VERSIONS:
        raise InvalidRecordError(f"an entry of version {version}, {reads}")
    if not isinstance(kind, str):
        raise InvalidRecordError(f"an entry of the kind {kind!r}, which is no text")
    if kind not in _KINDS:
        raise NewerEntryError(f"is of the kind {kind!r}, which this program does not know")
    try:
        return _KINDS[kind](**_values(members))
    except (TypeError, ValueError, binascii.Error, AttributeError) as error:
        raise InvalidRecordError(f"an entry is not as it should be: {error}") from error


def _version_of(entry: Entry) -> int:
    """The first whose programs can read it: others put a line away that says it is of theirs."""
    if isinstance(entry, MessageAdded) and entry.leg is not None:
        return 4
    is_more = isinstance(entry, MessageAdded) and (entry.document or entry.tools is not None)
    if is_more or (isinstance(entry, CallStarted | CallEnded) and entry.message is not None):
        return 3
    if isinstance(entry, CallStarted):
        return 2
    is_spooled = isinstance(entry, CallEnded) and any(one.spooled for one in entry.all_streams())
    return 2 if is_spooled else 1


def _members(value: Entry | EndedStream | SpooledContent | ShownResult) -> _Members:
    members = {one.name: _spelled(getattr(value, one.name)) for one in fields(value)}
    if members.get("message") is None:
        members.pop("position", None)
    # Programs of before know none of these.
    return {name: one for name, one in members.items() if one is not None or name not in _LATER}


def _spelled(value: object) -> object:
    match value:
        case UUID():
            return str(value)
        case datetime():
            return value.isoformat()
        case bytes():
            return base64.b64encode(value).decode()
        case EndedStream() | SpooledContent() | ShownResult():
            return _members(value)
        case tuple():
            return [_spelled(one) for one in cast("tuple[object, ...]", value)]
        case _:
            return value


def _values(members: _Members) -> _Members:
    """Members as the classes above have them."""
    return {
        name: value if value is None or name not in _READERS else _READERS[name](value)
        for name, value in members.items()
    }


def _stream(members: _Members) -> EndedStream:
    return EndedStream(**_values(members))


def _pairs(some: list[list[str]]) -> tuple[tuple[str, ...], ...]:
    return tuple(tuple(pair) for pair in some)


def _streams(some: list[_Members]) -> tuple[EndedStream, ...]:
    return tuple(map(_stream, some))


_LATER = frozenset(
    {"document", "payload", "wire_format", "tools", "message", "leg", "agent_version"}
)
"""Fields that a line has where there is something in them."""

_READERS: dict[str, Callable[[Any], object]] = {
    **dict.fromkeys(("id", "session", "parent", "message"), UUID),
    "payload": lambda text: base64.b64decode(text, validate=True),
    **dict.fromkeys(
        ("at", "started_at", "finished_at", "began_at", "ended_at"), datetime.fromisoformat
    ),
    "content": lambda text: base64.b64decode(text, validate=True),
    "streams": _streams,
    "published": _streams,
    "spooled": lambda members: SpooledContent(**members),
    "shown": lambda members: ShownResult(**_values(members)),
    "renderer": tuple,
    "tools": tuple,
    "omissions": tuple,
    "artifacts": _pairs,
}
"""What makes of JSON what a field holds, by its name."""
