"""Facts: what producers record, one class for each kind.

A fact is small. Texts and outputs are *bodies*: byte strings that are stored beside the fact, which
names them by digest. So a body can be erased later, while the fact and every hash over it remain.
"""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, ClassVar, Final, Self, TypeAlias, get_args
from uuid import UUID

from tooltrail.records.digests import Digest
from tooltrail.records.frozen import Frozen
from tooltrail.records.states import InvocationState

if TYPE_CHECKING:
    from tooltrail.records.counted_streams import CountedStream
    from tooltrail.records.streams import StreamRecord


class SourceFact(Frozen):
    """Where an importer found something.

    Attributes:
        format: name of the format, such as `claude-code`.
        file: path of the file.
        offset: offset of the line in the file, in bytes.
        digest: digest of the line.
    """

    format: str
    file: str
    offset: int
    digest: Digest


class RedactionFact(Frozen):
    """Secrets that were replaced in one part of a record before it was stored.

    Attributes:
        field: the part: `arguments`, `receipt`, `text`, `document`, or the role of a stream.
        rule: name of the rule that found them.
        count: number of secrets.
        offset: where the first replacement begins in the stored bytes.
    """

    field: str
    rule: str
    count: int
    offset: int


class SessionOpened(Frozen):
    """A session began.

    Attributes:
        session: id of the session.
        at: when the session began (time zone aware).
        name: the name by which other producers join the session; None for an unnamed session.
        title: a short title for people.
        agent: name of the agent that runs the session.
        parent: id of the session that started this one; None unless this is a sub-agent's session.
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
        at: when the session ended (aware).
        reason: why the session ended; None if it ended normally.
    """

    kind: ClassVar[str] = "session.closed"
    session: UUID
    at: datetime
    reason: str | None = None


class MessageAdded(Frozen):
    """A message was added to a session: an entry of the conversation that is not a tool call.

    Attributes:
        session: id of the session.
        id: id of the message.
        at: time of the message (aware).
        role: the author of the message.
        text: body with the text in UTF-8.
        document: body with canonical JSON of the message; None if the message is only its text.
        payload: body with the bytes that a provider sent.
        wire_format: format of the payload.
        source: where an importer found the message; else None.
        extras: body with canonical JSON of the members of the source that no record has.
        redacted: the secrets that were replaced.
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
    source: SourceFact | None = None
    extras: Digest | None = None
    redacted: tuple[RedactionFact, ...] = ()


class AnswerStarted(Frozen):
    """A provider began to stream an answer. Its bytes are collected in the spool until it ends.

    A fact `message` with the same id records the end of the answer and its content.

    Attributes:
        session: id of the session.
        id: id of the message that the answer becomes; with several choices, of the last one.
        at: when the answer began (aware).
        wire_format: format of the answer.
        provider: the provider, if the format does not name it.
        owner: name of the owner lock of the program that receives the answer.
        servers: servers of the offered tools, in order; used to split the names of their tools.
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
    """From now on the session offers exactly these tools to the model.

    Attributes:
        session: id of the session.
        id: id of the offer.
        at: time of the offer (aware).
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
        id: id of this fact.
        at: when the leg began (aware).
        document: body with canonical JSON of the `LegStarted`.
        agent: body with the configuration of the agent.
        agent_version: the author's name for that configuration.
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
        id: id of this fact.
        at: when the leg ended (aware).
        document: body with canonical JSON of the `LegEnded`.
    """

    kind: ClassVar[str] = "agent.outcome"
    session: UUID
    id: UUID
    at: datetime
    document: Digest


class Maintenance(Frozen):
    """A maintenance action changed stored data: gc, erase, hold, relocate, repair.

    Attributes:
        id: id of the maintenance run.
        at: time of the run (aware).
        action: `gc`, `relocate`, …
        actor: the person or program that asked for the run.
        details: body with canonical JSON of what was done.
    """

    kind: ClassVar[str] = "maintenance"
    id: UUID
    at: datetime
    action: str
    actor: str
    details: Digest


class CallStarted(Frozen):
    """A tool call is about to run.

    Attributes:
        session: id of the session. If the store does not know the session, this fact opens it.
        id: id of the invocation.
        at: when the call starts (aware).
        tool_name: the name that the model used; see `ToolCall.full_name`.
        family: family of the result.
        arguments: body with the arguments as the model sent them.
        policy: body with canonical JSON of the budgets.
        environment: body with canonical JSON of host, user, folder and program.
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
    source: SourceFact | None = None
    redacted: tuple[RedactionFact, ...] = ()


class StreamFact(Frozen):
    """One stream of a complete output.

    Attributes:
        role: what the stream is for: `stdout`, `stderr`, …
        digest: digest of the kept bytes.
        size: bytes kept.
        line_count: lines kept.
        produced_size: bytes that the tool produced.
        produced_line_count: lines that the tool produced.
        loss_reason: why some bytes were not kept; None if all were kept.
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

    @classmethod
    def of(cls, stream: "CountedStream | StreamRecord", spooled: str | None = None) -> Self:
        """The fact of a stream.

        Args:
            stream: the counts and the digest of the stream.
            spooled: see the class.
        """
        return cls(
            role=stream.role,
            digest=stream.digest,
            size=stream.size,
            line_count=stream.line_count,
            produced_size=stream.produced_size,
            produced_line_count=stream.produced_line_count,
            loss_reason=stream.loss_reason,
            spooled=spooled,
        )


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

    Attributes:
        role: what the artifact is for.
        digest: digest of the content, which determines the artifact's path.
    """

    role: str
    digest: Digest


class Shown(Frozen):
    """The canonical result and the receipt that the caller got.

    Attributes:
        canonical: body with canonical JSON of the envelope.
        receipt: body with the text in UTF-8.
        renderer: name of the renderer; `seen` if another program made the text.
        renderer_version: version of the renderer; 0 for `seen`.
        omissions: omissions of the stages, in order.
        artifacts: artifacts of the result, in order.
        hidden: artifacts that are not streams of the output, such as the rest of a long list.
    """

    canonical: Digest
    receipt: Digest
    renderer: str
    renderer_version: int
    omissions: tuple[OmissionFact, ...] = ()
    artifacts: tuple[ArtifactFact, ...] = ()
    hidden: tuple[StreamFact, ...] = ()


class CallEnded(Frozen):
    """A tool call ended, with this complete output.

    Attributes:
        session: id of the session.
        id: id of the invocation, which a `CallStarted` began.
        at: when the call ended (aware).
        state: final state of the invocation.
        output: body with canonical JSON of the complete output; the empty body if the source of an
            import does not have the output.
        streams: the streams of the complete output, in its order.
        shown: the result and receipt that the caller got; None if the ingester makes them.
        duration_ms: run time of the tool, by a monotonic clock; None if it was not measured.
        error_kind: kind of the error; None for a success.
        exit_status: exit status of a command.
        signal: number of the signal that ended a command.
        timed_out: whether a time limit ended the call; None if the family has no time limits.
        source: where an importer found the end of the call; else None. Nothing is rendered for such
            a call.
        receipt: body with the text that the model saw, in UTF-8; only with a `source`. None if the
            source does not have the text.
        extras: body with canonical JSON of the members of the source that no record has.
        redacted: the secrets that were replaced.
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
