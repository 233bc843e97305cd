"""From complete output to canonical result to receipt: the two steps that decide what is shown.

Each step depends only on its inputs, so the same complete output, policy and sink state give the
same bytes. This module makes the envelope and applies the bounds that all families share. The
family's projector makes the inner result, and the family's renderer makes the text.
"""

from typing import cast

from pydantic import JsonValue

from tooltrail.records import canonical_json
from tooltrail.records._error_receipts import (
    ERROR_RENDERER_NAME,
    ERROR_RENDERER_VERSION,
    bound_error,
    render_error,
)
from tooltrail.records._text_cuts import spelled_out
from tooltrail.records.compacted_receipts import (
    COMPACTED_RENDERER_NAME,
    COMPACTED_RENDERER_VERSION,
    render_compacted,
)
from tooltrail.records.cutting import ArtifactPublisher, Cutter, Published
from tooltrail.records.digests import Digest
from tooltrail.records.envelope import (
    SUMMARY_CHARS,
    CanonicalResult,
    CompactedResult,
    CompleteOutput,
)
from tooltrail.records.errors import InvalidRecordError
from tooltrail.records.family import Family
from tooltrail.records.frozen import Frozen
from tooltrail.records.omissions import Omission
from tooltrail.records.policy import Policy
from tooltrail.records.previews import preview
from tooltrail.records.streams import StreamRecord


class Projection(Frozen):
    """A canonical result, with the published streams and the omissions behind it.

    Attributes:
        canonical: the bounded envelope.
        artifacts: each published stream, in publishing order; for families without nested results
            this is also the order of the artifact indices.
        omissions: everything that the projection left out.
    """

    canonical: CanonicalResult
    artifacts: tuple[Published, ...]
    omissions: tuple[Omission, ...]


class Receipt(Frozen):
    """The exact text that the model is shown, and the renderer that made it.

    Attributes:
        text: the receipt: valid Unicode without lone surrogates.
        renderer_name: name of the family's renderer; `error` for every failure.
        renderer_version: version of the renderer.
        policy_digest: digest of the policy whose budgets were used.
        omissions: everything that the rendering left out.
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
        InvalidRecordError: the result is not of the family's type, or the policy's numbers for
            this tool do not fit the family.
    """
    cutter = Cutter(policy.edge_bytes, publisher)
    summary = cutter.text("summary_text", output.summary_text, SUMMARY_CHARS)
    canonical = CanonicalResult(
        tool_name=output.tool_name,
        status=output.status,
        summary_text=summary,
        result=_project_result(output, family, policy, cutter),
        error=None
        if output.error is None
        else bound_error(
            output.error,
            output.partial_output,
            policy.error_budget_of(output.tool_name),
            policy.budget_of(family, output.tool_name),
            cutter,
        ),
    )
    return Projection(canonical, tuple(cutter.published), cutter.omissions)


def render(canonical: CanonicalResult, family: Family, policy: Policy) -> Receipt:
    """Render the receipt of a canonical result, also of one that `compact` shortened.

    Raises:
        InvalidRecordError: the policy's numbers for this tool do not fit the family.
    """
    if isinstance(canonical, CompactedResult):
        text = render_compacted(canonical)
        return Receipt(text, COMPACTED_RENDERER_NAME, COMPACTED_RENDERER_VERSION, policy.digest)
    if canonical.error is not None:
        bounds = policy.error_budget_of(canonical.tool_name)
        text, omissions = render_error(canonical.error, bounds)
        name, version = ERROR_RENDERER_NAME, ERROR_RENDERER_VERSION
        return Receipt(text, name, version, policy.digest, omissions)
    budget = policy.budget_of(family, canonical.tool_name)
    text = spelled_out(family.render(canonical, budget))
    omissions = ()
    if len(text) > budget.receipt_chars:
        text, omissions = _cut_receipt(text, budget.receipt_chars)
    return Receipt(text, family.name, family.version, policy.digest, omissions)


def _project_result(
    output: CompleteOutput, family: Family, policy: Policy, cutter: Cutter
) -> dict[str, JsonValue] | None:
    if output.result is None:
        return None
    if not isinstance(output.result, family.result_types):
        wanted = " or ".join(kind.__name__ for kind in family.result_types)
        raise InvalidRecordError(
            f"the {family.name} family takes {wanted}, not {type(output.result).__name__}"
        )
    budget = policy.budget_of(family, output.tool_name)
    result = family.projector(output.result, budget, cutter.beside())
    return cast("dict[str, JsonValue]", canonical_json.with_lists(result))


def _cut_receipt(text: str, limit: int) -> tuple[str, tuple[Omission, ...]]:
    """Cut the text of a renderer that exceeds its budget. Renderers of this package never do."""
    stream = StreamRecord.from_bytes("receipt", text.encode())
    shown = preview(stream, limit)
    omission = Omission(
        stage="rendering",
        field="receipt",
        unit="bytes",
        before=stream.size,
        after=stream.size - shown.omitted_bytes,
        reason="receipt budget",
    )
    return shown.text, (omission,)
