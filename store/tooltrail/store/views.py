"""What reading gives back: plain values that hold no connection.

Times are aware UTC, and sizes are bytes. `damage` says what of a row cannot be read, and is None
when all can. In the place of such a value stands None where the field may be None, else an empty
text, 0, the year 1970 or an id of zeros.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from uuid import UUID

from tooltrail.records.errors import DamageError, InvalidRecordError
from tooltrail.store.column_groups import ENDING

if TYPE_CHECKING:
    from tooltrail.records.agent_runs import LegFact
    from tooltrail.records.conversations import ToolDefinition
    from tooltrail.records.digests import Digest
    from tooltrail.records.states import InvocationState

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Erasure:
    """Something that retention removed on purpose. The digest stays, and the record verifies.

    `name` is a column, the role of a stream, or `body DIGEST`.
    """

    name: str
    reason: str
    rule: str
    removed_at: datetime

    @property
    def sentence(self) -> str:
        """For people."""
        day = self.removed_at.date().isoformat()
        return f"{self.name} was erased on {day} by the rule {self.rule}: {self.reason}"


@dataclass(frozen=True, slots=True)
class SessionView:
    """One session.

    Attributes:
        parent_id: the session that started it.
        agent: who held it.
        environment: canonical JSON of host, user, folder and program.
        closed_at: None while it takes records.
        open_count: invocations that have not ended.
        name: by which producers join it.
        close_reason: None where it ended by itself, or not yet.
    """

    id: UUID
    parent_id: UUID | None
    title: str | None
    agent: str | None
    environment: str
    opened_at: datetime
    closed_at: datetime | None
    invocation_count: int
    open_count: int
    name: str | None = None
    close_reason: str | None = None
    damage: str | None = None


@dataclass(frozen=True, slots=True)
class InvocationView:
    """One row of a list: small facts only.

    `output_size` is what the tool produced, `lost_size` what of that was not kept; both are None
    until it has ended.
    """

    id: UUID
    session_id: UUID
    seq: int
    call_id: str | None
    tool_name: str
    family: str
    state: InvocationState
    arguments_preview: str
    started_at: datetime
    finished_at: datetime | None
    duration_ms: int | None
    error_kind: str | None
    exit_status: int | None
    signal: int | None
    timed_out: bool | None
    output_size: int | None
    truncated: bool | None
    lost_size: int | None = None
    damage: str | None = None


@dataclass(frozen=True, slots=True)
class StreamView:
    """One stream of a complete output; `Reader.open_stream` gives its bytes.

    Attributes:
        role: `stdout`, `stderr`, `order`, `content.0`, …
        digest: of the kept bytes, as `size` and `line_count` are theirs.
        loss_reason: why not all that the tool produced was kept.
        artifact_path: where the bytes are in the sink; None for a body in the database.
        pending_reason: why they could not be stored at once; None when they were.
        receipt_offset: where the bytes begin in the receipt of the invocation, in bytes; None when
            they are stored by themselves.
        erasure: who removed the bytes and why; None while they are there.
    """

    role: str
    digest: Digest
    size: int
    line_count: int
    produced_size: int
    produced_line_count: int
    loss_reason: str | None
    artifact_path: str | None = None
    pending_reason: str | None = None
    receipt_offset: int | None = None
    invocation_id: UUID | None = None
    erasure: Erasure | None = None


@dataclass(frozen=True, slots=True)
class ReceiptView:
    """What the model was shown, and who worded it with which budgets."""

    text: str
    digest: Digest
    renderer_name: str
    renderer_version: int
    policy_digest: Digest


@dataclass(frozen=True, slots=True)
class OmissionView:
    """One stage kept `after` of `before` units of a field; see `tooltrail.records.Omission`."""

    stage: str
    field: str
    unit: str
    before: int
    after: int
    reason: str


@dataclass(frozen=True, slots=True)
class InvocationDetail:
    """One invocation with all of its surfaces; those of an open one are None.

    Attributes:
        arguments: as the model sent them.
        policy_digest: of the budgets.
        complete_json: the complete output without its bytes. A transcript does not read it, and has
            None here and no streams.
        artifacts: role and path of each artifact of the canonical result, by index.
        receipt: the first receipt.
        omissions: what each stage left out.
        message_id: of the message that asked for it; None where none did.
        position: of the call among those of the message.
        ended_at_seq: how many entries of its session had begun when it ended: the one with this
            `seq` and all behind it began later. Of one that was read with its session; None where
            it has not ended, or the ledger does not say.
        damage: of one that was read with its session.
        erased: the texts that retention removed, by the names `arguments`, `output`, `canonical`
            and `receipt`; in their place stands None, and empty bytes for the arguments.
    """

    summary: InvocationView
    arguments: bytes
    policy_digest: Digest
    complete_json: str | None = None
    streams: tuple[StreamView, ...] = ()
    canonical_json: str | None = None
    artifacts: tuple[tuple[str, str], ...] = ()
    receipt: ReceiptView | None = None
    omissions: tuple[OmissionView, ...] = ()
    message_id: UUID | None = None
    position: int | None = None
    ended_at_seq: int | None = field(default=None, compare=False)
    damage: str | None = None
    erased: tuple[Erasure, ...] = ()

    def stream(self, role: str) -> StreamView | None:
        """The stream of this role."""
        return next((stream for stream in self.streams if stream.role == role), None)

    def as_started(self) -> InvocationDetail:
        """The invocation as it was before it ended: what was known when it started."""
        unknown: dict[str, Any] = {one: None for one in ENDING if one in InvocationView.__slots__}
        return InvocationDetail(
            replace(self.summary, **unknown | {"state": "started"}),
            self.arguments,
            self.policy_digest,
            message_id=self.message_id,
            position=self.position,
            erased=tuple(one for one in self.erased if one.name == "arguments"),
        )


@dataclass(frozen=True, slots=True)
class MessageView:
    """One message of a conversation.

    Attributes:
        seq: its place in the session.
        role: who says it.
        document: the whole of it as canonical JSON, see `tooltrail.records.Message`; None where the
            text is all.
        payload: what a provider sent of it, byte for byte; None where that is nothing, or was not
            asked for.
        wire_format: of the payload.
        tools: those that it says are on offer from there on; None where it says nothing of them.
        leg: the start or the end of a leg of an agent run; None for any other message. No model
            was shown it.
        erased: what retention removed of it, by the names `text`, `document` and `payload`.
    """

    id: UUID
    seq: int
    role: str
    text: str
    created_at: datetime
    document: bytes | None = None
    payload: bytes | None = None
    wire_format: str | None = None
    tools: tuple[ToolView, ...] | None = None
    leg: LegFact | None = None
    damage: str | None = None
    erased: tuple[Erasure, ...] = ()


@dataclass(frozen=True, slots=True)
class ToolView:
    """One version of a tool that was offered to a model.

    Attributes:
        digest: of its definition.
        family: of its results; None where the store does not know it.
        offered_at: when it was offered first in this store.
        definition_json: canonical JSON of the definition; None where that is damaged or erased.
        erasure: who removed the definition and why.
    """

    digest: Digest
    name: str
    family: str | None
    offered_at: datetime
    definition_json: bytes | None
    damage: str | None = None
    erasure: Erasure | None = None

    @property
    def definition(self) -> ToolDefinition:
        """The definition; one of the name alone where `definition_json` is None.

        Raises:
            DamageError: the JSON is not that of a definition.
        """
        from tooltrail.records.conversations import ToolDefinition  # noqa: PLC0415  pydantic

        if self.definition_json is None:
            return ToolDefinition(name=self.name)
        try:
            return ToolDefinition.from_json(self.definition_json)
        except InvalidRecordError as error:
            raise DamageError(f"tool {self.name} is damaged: {error}", path=self.digest) from error


@dataclass(frozen=True, slots=True)
class ArtifactView:
    """One artifact that the store knows.

    `digest`, `size` and `line_count` are those of the plain bytes; `path` is relative to the
    artifact root.
    """

    path: str
    digest: Digest
    size: int
    stored_size: int
    line_count: int
    created_at: datetime
    damage: str | None = None


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """A part of a list, in the order asked for.

    On PostgreSQL a record that was begun earlier but committed later than the newest of a page
    can appear before its cursor: a reader that follows a store must look back a little.

    `next_cursor` gives what follows when it is handed in again, and is None at the end.
    """

    items: tuple[T, ...]
    next_cursor: str | None


@dataclass(frozen=True, slots=True)
class StoreCounts:
    """Totals of a store.

    Attributes:
        invocations: all invocations by state.
        produced_bytes: bytes that tools produced.
        lost_bytes: those of them that were not kept.
        lossy_count: invocations of which some were not kept.
        body_count: bodies in the database; these three are None unless they were asked for.
        body_bytes: their plain bytes.
        body_stored_bytes: their bytes in the database.
        artifact_bytes: plain bytes of artifacts.
        artifact_stored_bytes: their bytes in the sink.
    """

    sessions: int
    invocations: dict[str, int]
    produced_bytes: int
    lost_bytes: int
    lossy_count: int
    body_count: int | None
    body_bytes: int | None
    body_stored_bytes: int | None
    artifact_count: int
    artifact_bytes: int
    artifact_stored_bytes: int
