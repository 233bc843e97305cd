"""Facts: what producers record, one class for each kind.

A fact is small. Texts and outputs are *bodies*: byte strings that a fact names by digest and that
travel beside it. So a body can be erased later while the fact, and every hash over it, stays.
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


class CallStarted(Frozen):
    """A tool call is about to run.

    Attributes:
        session: id of the session. A session that the store does not know is opened by this fact.
        id: of the invocation.
        at: when it starts, aware.
        tool_name: the name that the model used; see `ToolCall.full_name`.
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


class StreamFact(Frozen):
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

    @classmethod
    def of(cls, stream: "CountedStream | StreamRecord", spooled: str | None = None) -> Self:
        """The fact of a stream.

        Args:
            stream: what is known of the stream.
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
    """One artifact of a canonical result, at its place in `result.artifacts`.

    Attributes:
        role: what the artifact is for.
        digest: of its content; the path follows from it.
    """

    role: str
    digest: Digest


class Shown(Frozen):
    """The canonical result and the receipt that the caller got.

    Attributes:
        canonical: body with canonical JSON of the envelope.
        receipt: body with the text in UTF-8.
        renderer: name of the renderer; `seen` where another program made the text.
        renderer_version: its version; 0 for `seen`.
        omissions: what the stages left out, in their order.
        artifacts: the artifacts of the result, in their order.
        hidden: artifacts that are no streams of the output, such as the rest of a long list.
    """

    canonical: Digest
    receipt: Digest
    renderer: str
    renderer_version: int
    omissions: tuple[OmissionFact, ...] = ()
    artifacts: tuple[ArtifactFact, ...] = ()
    hidden: tuple[StreamFact, ...] = ()


class CallEnded(Frozen):
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

    @property
    def all_streams(self) -> tuple[StreamFact, ...]:
        """The streams of the output, and the artifacts that are none of these."""
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
"""The class of each kind."""
