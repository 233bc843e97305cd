"""The values that reading returns. They are plain values without a connection.

Times are aware UTC, and sizes are bytes. `damage` says which values of a row cannot be read; it is
None if all can be read. An unreadable value is replaced by None if the field may be None, else by
an empty text, 0, the year 1970 or an id of zeros. An unknown state is replaced by `error`.
"""

from __future__ import annotations

from contextlib import suppress
from datetime import datetime
from signal import Signals
from typing import TYPE_CHECKING, Any, Generic, TypeVar
from uuid import UUID

from tooltrail.records.errors import DamageError, InvalidRecordError
from tooltrail.records.frozen import Frozen
from tooltrail.store.column_groups import ENDING

if TYPE_CHECKING:
    from tooltrail.records.agent_runs import LegFact
    from tooltrail.records.conversations import ToolDefinition
    from tooltrail.records.digests import Digest
    from tooltrail.records.facts import OmissionFact, RedactionFact, SourceFact
    from tooltrail.records.states import InvocationState

T = TypeVar("T")


class Erasure(Frozen):
    """Content that retention removed on purpose. The digest stays, and the record still verifies.

    `name` is a column, the role of a stream, or `body DIGEST`.
    """

    name: str
    reason: str
    rule: str
    removed_at: datetime

    @property
    def sentence(self) -> str:
        """The erasure in one sentence, for people."""
        day = self.removed_at.date().isoformat()
        return f"{self.name} was erased on {day} by the rule {self.rule}: {self.reason}"


class SessionView(Frozen):
    """One session.

    Attributes:
        parent_id: the session that started it.
        environment: canonical JSON of host, user, folder and program; see `environment_json`.
        closed_at: None while the session is open.
        open_count: invocations that have not ended.
        name: the name by which producers join it.
        close_reason: None if the session ended normally, or has not ended.
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


class InvocationView(Frozen):
    """One row of a list: short values only.

    `output_size` is the size that the tool produced, `lost_size` the part that was not kept. Both
    are None until the invocation has ended. `is_late` says that the session was closed before the
    invocation began. `outcome_kind` is one of `OUTCOMES`.
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
    is_late: bool = False
    damage: str | None = None
    outcome_kind: str = ""

    @property
    def outcome(self) -> str:
        """How the call ended, in the words that people use.

        `ok`, `exit 1`, `SIGSEGV`, `timeout`, `error: KIND`, `denied`, `interrupted`, `cancelled`,
        `running` or `unfinished`. `outcome_kind` is the same without the details; see `OUTCOMES`.
        """
        match self.outcome_kind:
            case "error":
                return f"error: {self.error_kind}"
            case "signal":
                number = self.signal or 0
                with suppress(ValueError):
                    return Signals(number).name
                return f"signal {number}"
            case "exit":
                return f"exit {self.exit_status}"
            case kind:
                return kind


class StreamView(Frozen):
    """One stream of a complete output; `Reader.open_stream` returns its bytes.

    Attributes:
        role: `stdout`, `stderr`, `order`, `content.0`, …
        digest: digest of the kept bytes; `size` and `line_count` count the kept bytes, too.
        loss_reason: why some of the output was not kept.
        artifact_path: path of the bytes in the sink; None for a body in the database.
        pending_reason: why the bytes could not be stored at once; None if they were.
        receipt_offset: byte offset at which the bytes begin in the receipt of the invocation; None
            if they are stored separately.
        erasure: how retention removed the bytes; None if it did not.
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


class ReceiptView(Frozen):
    """The text that the model was shown, with its renderer and the digest of its budgets."""

    text: str
    digest: Digest
    renderer_name: str
    renderer_version: int
    policy_digest: Digest

    @property
    def renderer(self) -> str:
        """Name and version of the renderer."""
        return f"{self.renderer_name} {self.renderer_version}"


class InvocationDetail(Frozen):
    """One invocation with all of its surfaces, which are None while the invocation is open.

    Attributes:
        arguments: the arguments, byte for byte as the model sent them.
        complete_json: the complete output without its bytes. None, and no streams, if outputs were
            not read, as for a transcript.
        artifacts: role and path of each artifact of the canonical result, by index.
        receipt: the first receipt.
        omissions: what each stage left out.
        message_id: id of the message that asked for the call; None if no message did.
        position: position of the call among the calls of the message.
        ended_at_seq: entries of its session with this `seq` or a greater one began after it ended.
            Only set if it was read with its session; None if it has not ended, or the ledger does
            not say.
        damage: what is damaged; only set if the invocation was read with its session.
        erased: the texts that retention removed, named `arguments`, `output`, `canonical`,
            `receipt` and `extras`. Such a text is None; erased arguments are empty bytes.
        source: where an importer found the call, or only its end; None if no importer did.
        redacted: the secrets that were replaced before the call was stored.
        extras: canonical JSON of the members of the source that no record has. None if there are
            none, or if outputs were not read.
        environment: canonical JSON of where the call ran: host, user, folder, program, commit; that
            of its session if the call has none. None if outputs were not read. `{}` if it is lost
            or damaged, which the damage of `summary` says.
    """

    summary: InvocationView
    arguments: bytes
    policy_digest: Digest
    complete_json: str | None = None
    streams: tuple[StreamView, ...] = ()
    canonical_json: str | None = None
    artifacts: tuple[tuple[str, str], ...] = ()
    receipt: ReceiptView | None = None
    omissions: tuple[OmissionFact, ...] = ()
    message_id: UUID | None = None
    position: int | None = None
    ended_at_seq: int | None = None
    damage: str | None = None
    erased: tuple[Erasure, ...] = ()
    source: SourceFact | None = None
    redacted: tuple[RedactionFact, ...] = ()
    extras: str | None = None
    environment: str | None = None

    @property
    def not_recorded(self) -> tuple[str, ...]:
        """The surfaces that the source of an imported call does not have, by name.

        Read the invocation with its outputs to know whether the complete output is one of them.
        """
        if self.source is None or self.summary.state == "started":
            return ()
        texts = {
            "output": self.complete_json,
            "canonical": self.canonical_json,
            "receipt": self.receipt,
        }
        gone = {one.name for one in self.erased}
        return tuple(name for name, text in texts.items() if text is None and name not in gone)

    def absence_of(self, surface: str) -> str:
        """Why a surface is None, in one sentence: `output`, `canonical` or `receipt`."""
        if self.summary.state == "started":
            return "the invocation has not ended"
        for one in self.erased:
            if one.name == surface:
                return one.sentence
        if self.source is None:
            return f"{surface} is missing"
        return f"{surface} is not recorded: its source does not contain it"

    def stream(self, role: str) -> StreamView | None:
        """The stream with this role, if there is one."""
        return next((stream for stream in self.streams if stream.role == role), None)

    def as_started(self) -> InvocationDetail:
        """The invocation before its end: only what was known when it started."""
        unknown: dict[str, Any] = {
            one: None for one in ENDING if one in InvocationView.member_types
        }
        return InvocationDetail(
            self.summary.replaced(**unknown | {"state": "started", "outcome_kind": "running"}),
            self.arguments,
            self.policy_digest,
            message_id=self.message_id,
            position=self.position,
            erased=tuple(one for one in self.erased if one.name == "arguments"),
            source=self.source,
            redacted=tuple(one for one in self.redacted if one.field == "arguments"),
        )


class MessageView(Frozen):
    """One message of a conversation.

    Attributes:
        seq: position in the session.
        role: author of the message.
        document: the complete message as canonical JSON, see `tooltrail.records.Message`; None for
            an offer of tools, a leg, or an erased message.
        payload: the bytes that a provider sent; None if there are none, or if payloads were not
            requested.
        wire_format: wire format of the payload.
        tools: the tools on offer from this message on; None if it does not change the offer.
        leg: the start or the end of a leg of an agent run; None for any other message. No model
            was shown this message.
        erased: the parts that retention removed, named `text`, `document`, `payload` and `extras`.
        extras: canonical JSON of the members of an imported message that Tooltrail does not know;
            None if there are none, or if payloads were not requested.
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
    extras: bytes | None = None


class ToolView(Frozen):
    """One version of a tool that was offered to a model.

    Attributes:
        digest: digest of its definition.
        family: family of its results; None if the store does not know it.
        offered_at: time of the first offer in this store.
        definition_json: canonical JSON of the definition; None if it is damaged or erased.
        erasure: how retention removed the definition; None if it did not.
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
        """The definition. It has only the name if `definition_json` is None.

        Raises:
            DamageError: the JSON is not a definition.
        """
        from tooltrail.records.conversations import ToolDefinition  # noqa: PLC0415  pydantic

        if self.definition_json is None:
            return ToolDefinition(name=self.name)
        try:
            return ToolDefinition.from_json(self.definition_json)
        except InvalidRecordError as error:
            raise DamageError(f"tool {self.name} is damaged: {error}", path=self.digest) from error


class ToolCalls(Frozen):
    """The calls of one version of a tool: how many, and when the first and the last one began."""

    call_count: int = 0
    first_call_at: datetime | None = None
    last_call_at: datetime | None = None


class ArtifactView(Frozen):
    """One artifact that the store knows.

    `digest`, `size` and `line_count` describe the uncompressed bytes. `path` is relative to the
    artifact root; it is empty if the digest cannot be read.
    """

    path: str
    digest: Digest
    size: int
    stored_size: int
    line_count: int
    created_at: datetime
    damage: str | None = None


class Page(Frozen, Generic[T]):
    """One page of a list, in the requested order.

    On PostgreSQL a record that began before the newest record of a page, but was committed later,
    can appear before the cursor: a reader that follows a store must look back a little.

    Pass `next_cursor` as `cursor` to read the next page; it is None at the end.
    """

    items: tuple[T, ...]
    next_cursor: str | None


class StoreCounts(Frozen):
    """Totals of a store.

    Attributes:
        invocations: number of invocations by `outcome_kind`.
        produced_bytes: bytes that tools produced.
        lost_bytes: produced bytes that were not kept.
        lossy_count: invocations with lost bytes.
        body_count: bodies in the database. The three totals of bodies are None unless requested.
        body_bytes: uncompressed bytes of bodies.
        body_stored_bytes: stored bytes of bodies.
        artifact_bytes: uncompressed bytes of artifacts.
        artifact_stored_bytes: stored bytes of artifacts in the sink.
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
