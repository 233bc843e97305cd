"""From complete output to canonical result to receipt: the two steps that decide what is shown.

Neither step looks at anything but its inputs, so the same complete output, policy and sink state
give the same bytes. The envelope, the error payload and the bounds that hold for everybody are
here; the inner result belongs to the family's projector, the wording to its renderer.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar, cast

from pydantic import JsonValue

from tooltrail.records import canonical_json
from tooltrail.records._model import Record
from tooltrail.records._text_cuts import shorten
from tooltrail.records.digests import Digest, digest_of
from tooltrail.records.envelope import (
    SUMMARY_CHARS,
    ArtifactReference,
    CanonicalResult,
    CompleteOutput,
)
from tooltrail.records.errors import InvalidRecordError
from tooltrail.records.omissions import Omission, omission_if_any
from tooltrail.records.policy import ErrorBudget, Policy
from tooltrail.records.previews import preview
from tooltrail.records.streams import StreamRecord
from tooltrail.records.tool_errors import ToolError

ERROR_RENDERER_NAME = "error"
"""Who worded the receipt of a failure: not the family, so its wording has its own version."""

ERROR_RENDERER_VERSION = 1
"""Of the wording of `render_error`."""

ResultT_contra = TypeVar("ResultT_contra", bound=Record, contravariant=True)


class ArtifactPublisher(Protocol):
    """Makes a stream durable outside of the record and says where it is."""

    def publish(self, stream: StreamRecord) -> ArtifactReference:
        """Publish the kept bytes of a stream; MUST be idempotent and MUST NOT return before the
        bytes are durable. The reference MUST depend on the content alone.
        """
        ...


@dataclass
class ArtifactList:
    """The artifacts of one result, in the order in which indices were given out."""

    publisher: ArtifactPublisher
    entries: list[tuple[str, ArtifactReference]] = field(default_factory=list)

    def add(self, stream: StreamRecord) -> int:
        """Publish a stream and return its index in `result.artifacts`."""
        self.entries.append((stream.role, self.publisher.publish(stream)))
        return len(self.entries) - 1

    def path(self, index: int) -> str:
        """The path behind an index."""
        return self.entries[index][1].path

    @property
    def references(self) -> tuple[ArtifactReference, ...] | None:
        """What stands in `result.artifacts`; None when there is nothing to say."""
        return tuple(reference for _, reference in self.entries) or None


@dataclass(frozen=True, slots=True)
class Projected:
    """What a projector made of a complete result: the bounded one, and what it left out.

    The fields of `result` hold JSON types, tuples and records of the same.
    """

    result: Record
    omissions: tuple[Omission, ...] = ()


class Projector(Protocol[ResultT_contra]):
    """Builds the bounded result of one family."""

    def __call__(
        self, result: ResultT_contra, policy: Policy, artifacts: ArtifactList
    ) -> Projected:
        """Bound `result`; a field over budget goes through `artifacts` and is replaced by a
        preview, a truncation flag and an index. Deterministic.
        """
        ...


class Renderer(Protocol):
    """Words a canonical result of one family for the model."""

    @property
    def name(self) -> str:
        """Which renderer this is; stored with each receipt."""
        ...

    @property
    def version(self) -> int:
        """Raised whenever the same input may give other text."""
        ...

    def render(self, canonical: CanonicalResult, policy: Policy) -> str:
        """The text for a success; never anything but a function of its inputs."""
        ...


@dataclass(frozen=True, slots=True)
class Family:
    """A group of tools that share a typed result.

    Attributes:
        name: the family's name, stored with each invocation.
        result_type: the model of its complete result.
        projector: complete result to bounded result.
        renderer: canonical result to receipt.
        tool_names: names of tools that it serves by default.
    """

    name: str
    result_type: type[Record]
    projector: Projector[Any]
    renderer: Renderer
    tool_names: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Projection:
    """A canonical result and what had to happen for it.

    Attributes:
        canonical: the bounded envelope.
        artifacts: role and reference of each published stream, in index order.
        omissions: what was left out on the way.
    """

    canonical: CanonicalResult
    artifacts: tuple[tuple[str, ArtifactReference], ...]
    omissions: tuple[Omission, ...]


@dataclass(frozen=True, slots=True)
class Receipt:
    """Exactly what the model is shown, and who worded it.

    Attributes:
        text: valid Unicode, no lone surrogates.
        renderer_name: of the family's renderer, `error` for every failure.
        renderer_version: of the renderer.
        policy_digest: of the policy whose budgets it used.
        omissions: what rendering left out.
    """

    text: str
    renderer_name: str
    renderer_version: int
    policy_digest: Digest
    omissions: tuple[Omission, ...] = ()

    def to_bytes(self) -> bytes:
        """The text in UTF-8, as it is stored."""
        return self.text.encode()


def project(
    output: CompleteOutput, family: Family, policy: Policy, publisher: ArtifactPublisher
) -> Projection:
    """Build the canonical result of a complete output.

    Raises:
        InvalidRecordError: the result is not of the family's type.
    """
    summary, omissions = bounded_text("summary_text", output.summary_text, SUMMARY_CHARS)
    artifacts = ArtifactList(publisher)
    result: dict[str, JsonValue] | None = None
    error: ToolError | None = None
    if output.result is not None:
        if not isinstance(output.result, family.result_type):
            raise InvalidRecordError(
                f"the {family.name} family takes {family.result_type.__name__}, "
                f"not {type(output.result).__name__}"
            )
        projected = family.projector(output.result, policy, artifacts)
        result = cast("dict[str, JsonValue]", _plain(projected.result.model_dump()))
        omissions += projected.omissions
    if output.error is not None:
        error, cut = _project_error(output.error, policy.error)
        omissions += cut
    canonical = CanonicalResult(
        tool_name=output.tool_name,
        status=output.status,
        summary_text=summary,
        result=result,
        error=error,
    )
    return Projection(canonical, tuple(artifacts.entries), omissions)


def render(canonical: CanonicalResult, family: Family, policy: Policy) -> Receipt:
    """Word the receipt of a canonical result."""
    if canonical.error is not None:
        text = render_error(canonical.error)
        return Receipt(text, ERROR_RENDERER_NAME, ERROR_RENDERER_VERSION, policy.digest)
    renderer = family.renderer
    text = renderer.render(canonical, policy)
    return Receipt(text, renderer.name, renderer.version, policy.digest)


def render_error(error: ToolError) -> str:
    """The receipt of a failure, the same for every family."""
    lines = [f"Error ({error.kind}): {error.message}"]
    if error.recovery_hint:
        lines.append(f"Hint: {error.recovery_hint}")
    lines.append(f"Retryable: {'yes' if error.retryable else 'no'}")
    if error.details is not None:
        lines.append(f"Details: {canonical_json.encode_text(error.details)}")
    return "\n".join(lines) + "\n"


def capture_omissions(stream: StreamRecord) -> tuple[Omission, ...]:
    """What the capture of a stream could not keep."""
    reason = stream.loss_reason or ""
    return omission_if_any(
        "capture",
        stream.role,
        "bytes",
        before=stream.produced_size,
        after=stream.size,
        reason=reason,
    ) + omission_if_any(
        "capture",
        stream.role,
        "lines",
        before=stream.produced_line_count,
        after=stream.line_count,
        reason=reason,
    )


def bounded_text(name: str, text: str, limit: int) -> tuple[str, tuple[Omission, ...]]:
    """A short text cut to `limit` characters, and the omission when it was."""
    cut = shorten(text, limit)
    omissions = omission_if_any(
        "projection",
        name,
        "chars",
        before=len(text),
        after=len(cut) if cut == text else len(cut) - 1,
        reason=f"longer than {limit} characters",
    )
    return cut, omissions


def _project_error(error: ToolError, budget: ErrorBudget) -> tuple[ToolError, tuple[Omission, ...]]:
    message, omissions = bounded_text("error.message", error.message, budget.message_chars)
    details = canonical_json.encode_text(error.details)
    bounded = error.details
    if len(details) > budget.details_chars:
        reason = f"longer than {budget.details_chars} characters"
        shown = preview(StreamRecord.from_bytes("details", details.encode()), budget.details_chars)
        bounded = {
            "omitted": True,
            "reason": reason,
            "char_count": len(details),
            "digest": digest_of(details.encode()),
            "preview": shown.text,
        }
        omissions += omission_if_any(
            "error",
            "error.details",
            "bytes",
            before=len(details.encode()),
            after=len(details.encode()) - shown.omitted_bytes,
            reason=f"details {reason}",
        )
    hint = error.recovery_hint
    if hint is not None:
        hint, cut = bounded_text("error.recovery_hint", hint, budget.message_chars)
        omissions += cut
    return error.model_copy(
        update={"message": message, "details": bounded, "recovery_hint": hint}
    ), omissions


def _plain(value: object) -> object:
    """Dumped fields as JSON has them: tuples become lists.

    Not pydantic's own JSON mode, which turns lone surrogates in keys into replacement characters.
    """
    if isinstance(value, dict):
        members = cast("dict[str, object]", value)
        return {name: _plain(member) for name, member in members.items()}
    if isinstance(value, list | tuple):
        return [_plain(member) for member in cast("Sequence[object]", value)]
    return value
