"""An export: part of a provider's request, how to write it, and the report of what changed."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Literal

from tooltrail.records import InvalidRecordError
from tooltrail.wire.members import JsonObject

ChangeKind = Literal[
    "alternative_dropped",
    "arguments_wrapped",
    "batch_as_text",
    "block_described",
    "block_dropped",
    "choice_not_enforced",
    "error_as_prefix",
    "id_dropped",
    "id_renamed",
    "id_synthesised",
    "incomplete_unsaid",
    "message_added",
    "message_empty",
    "messages_merged",
    "name_renamed",
    "number_rounded",
    "order_changed",
    "output_empty",
    "provider_data_dropped",
    "result_compacted",
    "result_missing",
    "result_moved",
    "result_orphaned",
    "result_repeated",
    "role_changed",
    "schema_reduced",
    "status_flattened",
    "structured_as_text",
    "structured_dropped",
    "text_replaced",
    "tool_repeated",
]
"""The ways in which an export may change a part of a conversation; see docs/wire.md."""


@dataclass(frozen=True, slots=True)
class Change:
    """One difference between the export and the record.

    Attributes:
        kind: the kind of change.
        where: the part of the conversation that changed, such as `messages[3].calls[0]`.
        detail: the old and the new value, or the reason, in a few words.
    """

    kind: ChangeKind
    where: str
    detail: str


class ExportReport:
    """Everything that an export changed or lost, in the order in which it was noted."""

    def __init__(self) -> None:
        self._changes: dict[Change, None] = {}

    @property
    def changes(self) -> tuple[Change, ...]:
        """All changes, without duplicates."""
        return tuple(self._changes)

    def add(self, kind: ChangeKind, where: str, detail: str) -> None:
        """Note one change."""
        self._changes[Change(kind, where, detail)] = None

    def of_kind(self, kind: ChangeKind) -> list[Change]:
        """The changes of one kind."""
        return [change for change in self._changes if change.kind == kind]

    def __iter__(self) -> Iterator[Change]:
        return iter(self.changes)

    def __bool__(self) -> bool:
        return bool(self._changes)


@dataclass(frozen=True, slots=True)
class Export:
    """Part of a request in a provider's format, made of JSON types only.

    Attributes:
        request: members for the caller to merge into the request's body: `{"messages": […]}`.
        report: the changes and losses.
        names: maps each tool name that the format cannot carry to the name on the wire.
    """

    request: JsonObject
    report: ExportReport
    names: dict[str, str] = field(default_factory=dict[str, str])


class ExportRefusedError(InvalidRecordError):
    """A strict export was refused: it would have changed or lost something."""

    def __init__(self, report: ExportReport) -> None:
        first = report.changes[0]
        count = len(report.changes)
        more = f", and {count - 1:,} more" if count > 1 else ""
        super().__init__(
            f"the export would not be exact: {first.where}: {first.kind}: {first.detail}{more}"
        )
        self.report = report


@dataclass(frozen=True, slots=True)
class ExportPolicy:
    """How an export writes what a format cannot carry.

    Attributes:
        strict: raise `ExportRefusedError` instead of changing anything.
        ids: how to write a batch in which a call lacks an id that the format needs:
            `fallback` writes the complete batch as text, `synthesise` gives each such call an id.
        unanswered: how to write a call without a result: `mark` adds an `interrupted` result,
            `unknown` adds a result of status `unknown`, `drop` leaves the call out.
        text_family: the text format of batches that are written as text.
        replay_provider_data: whether extras and provider blocks are written to the format that
            they came from.
        identifiers: `fit` makes ids and names legal for the format; `keep` leaves them unchanged,
            for results of calls whose message the provider already has.
        provider: the provider that receives the export. If set, provider data of another provider
            with the same format is left out.
    """

    strict: bool = False
    ids: Literal["fallback", "synthesise"] = "fallback"
    unanswered: Literal["mark", "unknown", "drop"] = "mark"
    text_family: str = "tool_result"
    replay_provider_data: bool = True
    identifiers: Literal["fit", "keep"] = "fit"
    provider: str | None = None


DEFAULT_EXPORT_POLICY = ExportPolicy()


@dataclass(frozen=True, slots=True)
class ToolChoice:
    """Whether the model may, must or must not call a tool.

    Attributes:
        mode: `auto`, `none`, `required` (a call of any tool), or `tool` (a call of a named tool).
        names: the tools that the model may choose from: mostly one in mode `tool`; empty in mode
            `auto` to allow any. A tool of a server is `server___tool`. A plain name of this form
            is written `___server___tool` if that server offers tools.
        parallel: whether the model may call several tools at once; None: the provider decides.
    """

    mode: Literal["auto", "none", "required", "tool"]
    names: tuple[str, ...] = ()
    parallel: bool | None = None
