"""The generic family: every tool without a family of its own, MCP tools included.

Its result is a list of content items in order, text or bytes of a media type, and optionally one
structured JSON value.
"""

from typing import Literal

from pydantic import JsonValue

from tooltrail.records import canonical_json
from tooltrail.records._model import Record
from tooltrail.records.envelope import ArtifactReference, CanonicalResult, CompleteOutput
from tooltrail.records.families._shared import (
    SparseRecord,
    is_cut,
    preview_stream,
    readable,
    shares,
)
from tooltrail.records.omissions import Omission, omission_if_any
from tooltrail.records.policy import FRAME_CHARS, Policy
from tooltrail.records.previews import Encoding
from tooltrail.records.projection import ArtifactList, Family, Projected
from tooltrail.records.streams import Count, StreamRecord

TEXT = "text/plain"
_SUMMARY_ITEMS = "tool returned {count} content {noun}"


class ContentItem(Record):
    """One piece of content: text, or bytes of another media type."""

    media_type: str = TEXT
    stream: StreamRecord


class GenericOutput(Record):
    """The complete result of a tool without a family of its own.

    Attributes:
        content: the items in the tool's order.
        structured: the canonical JSON of a structured value, as a stream.
    """

    content: tuple[ContentItem, ...] = ()
    structured: StreamRecord | None = None


class ContentPreview(SparseRecord):
    """One content item, bounded. Text has a preview, other media types only their size."""

    type: Literal["text", "binary"]
    text_preview: str | None = None
    text_encoding: Encoding | None = None
    truncated: bool
    media_type: str
    size: Count
    artifact: int | None = None


class GenericResult(SparseRecord):
    """The canonical result of the generic family."""

    content: tuple[ContentPreview, ...]
    content_count: Count
    structured: JsonValue = None
    structured_preview: str | None = None
    structured_artifact: int | None = None
    truncated: bool
    artifacts: tuple[ArtifactReference, ...] | None = None


def generic_completed(
    tool_name: str, *content: str | bytes, structured: JsonValue = None, summary: str | None = None
) -> CompleteOutput:
    """The complete output of a tool that returned text, bytes or a JSON value.

    Raises:
        InvalidRecordError: `structured` is not made of JSON types.
    """
    items = tuple(_item(number, part) for number, part in enumerate(content))
    value = None
    if structured is not None:
        value = StreamRecord.from_bytes("structured", canonical_json.encode(structured))
    noun = "item" if len(items) == 1 else "items"
    return CompleteOutput(
        tool_name=tool_name,
        status="success",
        summary_text=summary or _SUMMARY_ITEMS.format(count=len(items), noun=noun),
        result=GenericOutput(content=items, structured=value),
    )


def project_generic(result: GenericOutput, policy: Policy, artifacts: ArtifactList) -> Projected:
    """Bound every item and the structured value within one shared budget."""
    budget = policy.generic
    shown = result.content[: budget.max_items]
    streams = [item.stream for item in shown]
    if result.structured is not None:
        streams.append(result.structured)
    parts = shares(streams, budget.preview_chars)
    pairs = [
        _project_item(item, share, policy, artifacts)
        for item, share in zip(shown, parts, strict=False)
    ]
    # An item beyond the budget is not shown, but its bytes are kept like all others.
    for item in result.content[budget.max_items :]:
        artifacts.add(item.stream)
    omissions = sum((cut for _, cut in pairs), ())
    omissions += omission_if_any(
        "projection",
        "content",
        "items",
        before=len(result.content),
        after=len(shown),
        reason=f"more than {budget.max_items} content items",
    )
    fields, cut = _project_structured(result.structured, parts[-1:], policy, artifacts)
    omissions += cut
    bounded = GenericResult.model_validate(
        {
            "content": tuple(item for item, _ in pairs),
            "content_count": len(result.content),
            "truncated": bool(omissions),
            "artifacts": artifacts.references,
            **fields,
        }
    )
    return Projected(bounded, omissions)


class GenericRenderer:
    """A receipt that is the content itself: texts as they are, other media types by description."""

    name = "generic"
    version = 1

    def render(self, canonical: CanonicalResult, policy: Policy) -> str:
        """The receipt of a generic result."""
        result = GenericResult.model_validate(canonical.result)
        room = policy.generic.receipt_chars - FRAME_CHARS
        sections: list[str] = []
        for item in result.content:
            text = _render_item(item, result.artifacts or (), room)
            room -= len(text)
            sections.append(text)
        hidden = result.content_count - len(result.content)
        if hidden:
            sections.append(f"[{hidden:,} further content items are not shown]")
        if not any(item.type == "text" for item in result.content):
            sections.extend(_render_structured(result, room))
        return "\n".join(s if s.endswith("\n") else s + "\n" for s in sections) or "(no content)\n"


def _item(number: int, part: str | bytes) -> ContentItem:
    role = f"content.{number}"
    if isinstance(part, bytes):
        return ContentItem(
            media_type="application/octet-stream", stream=StreamRecord.from_bytes(role, part)
        )
    # A lone surrogate cannot be UTF-8; surrogatepass keeps it, and the preview spells it out.
    return ContentItem(stream=StreamRecord.from_bytes(role, part.encode("utf-8", "surrogatepass")))


def _project_item(
    item: ContentItem, share: int, policy: Policy, artifacts: ArtifactList
) -> tuple[ContentPreview, tuple[Omission, ...]]:
    is_text = item.media_type.startswith("text/")
    shown, index, omissions = preview_stream(item.stream, share, policy, artifacts)
    preview = ContentPreview(
        type="text" if is_text else "binary",
        text_preview=shown.text if is_text else None,
        text_encoding=shown.encoding if is_text and shown.encoding != "utf-8" else None,
        truncated=is_cut(item.stream, shown),
        media_type=item.media_type,
        size=item.stream.size,
        artifact=index,
    )
    return preview, omissions


def _project_structured(
    stream: StreamRecord | None, share: list[int], policy: Policy, artifacts: ArtifactList
) -> tuple[dict[str, object], tuple[Omission, ...]]:
    if stream is None:
        return {}, ()
    shown, index, omissions = preview_stream(stream, share[0], policy, artifacts)
    if not shown.truncated and stream.content is not None:
        value = canonical_json.decode(stream.content)
        return {"structured": value, "structured_artifact": index}, omissions
    return {"structured_preview": shown.text, "structured_artifact": index}, omissions


def _render_item(item: ContentPreview, artifacts: tuple[ArtifactReference, ...], room: int) -> str:
    if item.type == "text" and item.text_preview is not None:
        return readable(item.text_preview, truncated=item.truncated, room=room)
    where = "" if item.artifact is None else f": {artifacts[item.artifact].path}"
    return f"[{item.media_type}, {item.size:,} bytes{where}]"


def _render_structured(result: GenericResult, room: int) -> list[str]:
    if result.structured_preview is not None:
        return [readable(result.structured_preview, truncated=True, room=room)]
    if result.structured is None:
        return []
    text = canonical_json.encode_text(result.structured)
    return [readable(text, truncated=False, room=room)]


FAMILY = Family(
    name="generic",
    result_type=GenericOutput,
    projector=project_generic,
    renderer=GenericRenderer(),
)
