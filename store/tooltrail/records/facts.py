"""Facts: what producers record, one class for each kind.

A fact is small. Texts and outputs are *bodies*: byte strings that are stored beside the fact, which
names them by digest. So a body can be erased later, while the fact and every hash over it remain.

In every class, a `Digest` names a body: canonical JSON, or a text in UTF-8. `at` is the time of the
event, with a time zone. A member is None if it does not apply or is not known.
"""

from collections.abc import Mapping
from datetime import datetime
from operator import attrgetter
from typing import TYPE_CHECKING, Any, ClassVar, Final, Self, TypeAlias, get_args
from uuid import UUID

from tooltrail.records.digests import Digest
from tooltrail.records.frozen import Frozen
from tooltrail.records.states import InvocationState

if TYPE_CHECKING:
    from tooltrail.records.counted_streams import CountedStream
    from tooltrail.records.streams import StreamRecord


class SourceFact(Frozen):
    """Where an importer found something: the offset in a file, and the digest of the line there."""

    format: str
    file: str
    offset: int
    digest: Digest


class RedactionFact(Frozen):
    """Secrets that were replaced in one part of a record before the record was stored.

    Attributes:
        field: the part: `arguments`, `receipt`, `extras`, …, or the role of a stream.
        offset: where the first replacement begins in that part.
    """

    field: str
    rule: str
    count: int
    offset: int


class _InSession(Frozen):
    """What happened to the message, call or other thing `id` of a session."""

    session: UUID
    id: UUID
    at: datetime


class SessionOpened(Frozen):
    """A session began.

    Attributes:
        name: the name by which other producers join the session.
        parent: id of the session that started this one, if this is a sub-agent's session.
        environment: host, user, folder and program; as in `CallStarted`.
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
    """A session ended: normally, or for a reason."""

    kind: ClassVar[str] = "session.closed"
    session: UUID
    at: datetime
    reason: str | None = None


class MessageAdded(_InSession):
    """A message was added to a session: an entry of the conversation that is not a tool call.

    Attributes:
        document: the message; None if the message is only its text.
        payload: body with the bytes that a provider sent, in the `wire_format`.
        source: where an importer found the message; else None.
        extras: canonical JSON of the members of the source that no record has.
    """

    kind: ClassVar[str] = "message"
    role: str
    text: Digest
    document: Digest | None = None
    payload: Digest | None = None
    wire_format: str | None = None
    source: SourceFact | None = None
    extras: Digest | None = None
    redacted: tuple[RedactionFact, ...] = ()


class AnswerStarted(_InSession):
    """A provider began to stream an answer. Its bytes are collected in the spool until it ends.

    A fact `message` with the same id records the end of the answer and its content.

    Attributes:
        id: id of the message that the answer becomes; with several choices, of the last one.
        provider: the provider, if the format does not name it.
        owner: name of the owner lock of the program that receives the answer.
        servers: servers of the offered tools, in order; used to split the names of their tools.
    """

    kind: ClassVar[str] = "answer.started"
    wire_format: str
    provider: str | None = None
    owner: str | None = None
    servers: tuple[str, ...] = ()


class ToolsOffered(_InSession):
    """From now on the session offers exactly these tools to the model, in this order."""

    kind: ClassVar[str] = "tool.offered"
    tools: tuple[Digest, ...]


class AgentLeg(_InSession):
    """One leg of an agent run began.

    Attributes:
        document: the `tooltrail.records.LegStarted`.
        agent_version: the author's name for that configuration.
    """

    kind: ClassVar[str] = "agent.leg"
    document: Digest
    agent: Digest
    agent_version: str | None = None


class AgentOutcome(_InSession):
    """One leg of an agent run ended; `document` is a `tooltrail.records.LegEnded`."""

    kind: ClassVar[str] = "agent.outcome"
    document: Digest


class Maintenance(Frozen):
    """A maintenance action changed stored data: `gc` or `relocate`.

    Attributes:
        action: name of the action.
        actor: the person or program that asked for the run.
    """

    kind: ClassVar[str] = "maintenance"
    id: UUID
    at: datetime
    action: str
    actor: str
    details: Digest


class CallStarted(_InSession):
    """A tool call is about to run.

    Attributes:
        session: id of the session. If the store does not know the session, this fact opens it.
        tool_name: the name that the model used; see `ToolCall.full_name`.
        arguments: body with the arguments as the model sent them.
        call_id: the provider's id of the call; only data, since it may repeat or be empty.
        title: a short form of the arguments.
        message: id of the message that asked for the call.
        position: position of the call among the calls of that message, from 0.
        owner: name of the owner lock that is held while the tool runs; None for a call that had
            already ended when it was recorded.
        source: where an importer found the call; else None.
        redacted: the secrets that were replaced.
    """

    kind: ClassVar[str] = "call.started"
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
    source: SourceFact | None = None
    redacted: tuple[RedactionFact, ...] = ()


class StreamFact(Frozen):
    """One stream of a complete output; see `tooltrail.records.StreamRecord`.

    `spooled` is the path of the captured stream, relative to the spool; None for a body.
    """

    role: str
    digest: Digest
    size: int
    line_count: int
    produced_size: int
    produced_line_count: int
    loss_reason: str | None = None
    spooled: str | None = None

    @classmethod
    def of(cls, stream: "CountedStream | StreamRecord", spooled: str | None = None) -> Self:
        """The fact of a stream, which is in the spool at the path `spooled` or is a body."""
        members: list[Any] = [*_counts_of(stream), spooled]
        return cls(*members)


_counts_of = attrgetter(*(name for name in StreamFact.member_types if name != "spooled"))


class OmissionFact(Frozen):
    """One stage kept `after` of `before` units of a field; see `tooltrail.records.Omission`."""

    stage: str
    field: str
    unit: str
    before: int
    after: int
    reason: str


class ArtifactFact(Frozen):
    """One artifact of a canonical result, at its position in `result.artifacts`.

    The digest of its content determines the artifact's path.
    """

    role: str
    digest: Digest


class Shown(Frozen):
    """The canonical result and the receipt that the caller got.

    Attributes:
        renderer: name of the renderer; `seen` if another program made the text.
        renderer_version: version of the renderer; 0 for `seen`.
        omissions: omissions of the stages, in order.
        hidden: artifacts that are not streams of the output, such as the rest of a long list.
    """

    canonical: Digest
    receipt: Digest
    renderer: str
    renderer_version: int
    omissions: tuple[OmissionFact, ...] = ()
    artifacts: tuple[ArtifactFact, ...] = ()
    hidden: tuple[StreamFact, ...] = ()


class CallEnded(_InSession):
    """A tool call ended, with this complete output.

    Attributes:
        output: canonical JSON of the complete output; the empty body if the source of an import
            does not have the output.
        shown: the result and receipt that the caller got; None if the ingester makes them.
        duration_ms: run time of the tool, by a monotonic clock.
        signal: number of the signal that ended a command.
        timed_out: whether a time limit ended the call; None if the family has no time limits.
        source: where an importer found the end of the call; else None. Nothing is rendered for such
            a call.
        receipt: the text that the model saw; only with a `source`. None if the source does not have
            the text.
        extras: canonical JSON of the members of the source that no record has.
    """

    kind: ClassVar[str] = "call.ended"
    state: InvocationState
    output: Digest
    streams: tuple[StreamFact, ...] = ()
    shown: Shown | None = None
    duration_ms: int | None = None
    error_kind: str | None = None
    exit_status: int | None = None
    signal: int | None = None
    timed_out: bool | None = None
    source: SourceFact | None = None
    receipt: Digest | None = None
    extras: Digest | None = None
    redacted: tuple[RedactionFact, ...] = ()

    @property
    def all_streams(self) -> tuple[StreamFact, ...]:
        """The streams of the output, and the artifacts that are not among them."""
        return self.streams if self.shown is None else (*self.streams, *self.shown.hidden)


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
"""The class of each kind of fact."""
