"""The generic family: every tool without a family of its own, MCP tools included.

Its result is a list of content items in order, text or bytes of a media type, and optionally one
structured JSON value.
"""

from typing import Annotated, Literal

from pydantic import Field, JsonValue

from tooltrail.records import canonical_json
from tooltrail.records._model import Record
from tooltrail.records._text_cuts import shorten
from tooltrail.records.envelope import ArtifactReference, CanonicalResult, CompleteOutput
from tooltrail.records.errors import InvalidRecordError
from tooltrail.records.families._shared import (
    SparseRecord,
    is_cut,
    preview_stream,
    readable,
    shares,
)
from tooltrail.records.omissions import Omission, omission_if_any
from tooltrail.records.policy import ITEM_FRAME_CHARS, Policy
from tooltrail.records.previews import Encoding
from tooltrail.records.projection import (
    ArtifactList,
    Family,
    Projected,
    capture_omissions,
)
from tooltrail.records.streams import Count, StreamRecord

TEXT = "text/plain"
_SUMMARY_ITEMS = "tool returned {count} content {noun}"

_MEDIA_TYPE_CHARS = 24
"""Characters of a media type that are shown however long the path of its artifact is."""


class ContentItem(Record):
    """One piece of content: text, or bytes of another media type."""

    media_type: Annotated[str, Field(min_length=1, max_length=255)] = TEXT
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
    """The canonical result of the generic family.

    `hidden_artifact` lists the items beyond those of `content`, one JSON object `{digest,
    media_type, n, size}` a line, `n` from 0 over all items. One list, however many items there are,
    keeps the result bounded; their bytes belong to the complete output.
    """

    content: tuple[ContentPreview, ...]
    content_count: Count
    hidden_artifact: int | None = None
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
    shown = result.content[: policy.generic.max_items]
    streams = [item.stream for item in shown if _is_text(item)]
    if result.structured is not None:
        streams.append(result.structured)
    parts = iter(shares(streams, policy.generic.preview_chars, policy))
    pairs = [
        _project_text(item, next(parts), policy, artifacts)
        if _is_text(item)
        else _project_binary(item, artifacts)
        for item in shown
    ]
    hidden_index, hidden_omissions = _hide(result.content, len(shown), artifacts)
    omissions = sum((cut for _, cut in pairs), ()) + hidden_omissions
    fields: dict[str, object] = {}
    if result.structured is not None:
        fields, cut = _project_structured(result.structured, next(parts), policy, artifacts)
        omissions += cut
    bounded = GenericResult.model_validate(
        {
            "content": tuple(item for item, _ in pairs),
            "content_count": len(result.content),
            "hidden_artifact": hidden_index,
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
        texts = [(i.text_preview, i.truncated) for i in result.content if i.text_preview]
        if not _is_said_in_text(result):
            texts.extend(_structured_texts(result))
        budget = policy.generic
        bodies = iter(readable(texts, budget.receipt_chars - budget.frame_chars))
        sections: list[str] = []
        for item in result.content:
            if item.text_preview:
                sections.append(next(bodies))
            elif item.type == "binary":
                sections.append(_describe(item, result.artifacts or ()))
        hidden = result.content_count - len(result.content)
        if hidden:
            noun = "item is" if hidden == 1 else "items are"
            sections.append(f"[{hidden:,} further content {noun} not shown]")
        sections.extend(bodies)
        return "\n".join(s if s.endswith("\n") else s + "\n" for s in sections) or "(no content)\n"


def _is_said_in_text(result: GenericResult) -> bool:
    """Whether a text item is the structured value, which MCP asks servers to repeat as text."""
    if result.structured is None:
        return False
    wanted = canonical_json.encode(result.structured)
    return any(
        _is_json_of(item.text_preview, wanted)
        for item in result.content
        if item.text_preview is not None and not item.truncated
    )


def _is_json_of(text: str, wanted: bytes) -> bool:
    try:
        return canonical_json.encode(canonical_json.decode(text)) == wanted
    except InvalidRecordError:
        return False


def _item(number: int, part: str | bytes) -> ContentItem:
    role = f"content.{number}"
    if isinstance(part, bytes):
        return ContentItem(
            media_type="application/octet-stream", stream=StreamRecord.from_bytes(role, part)
        )
    # A lone surrogate cannot be UTF-8; surrogatepass keeps it, and the preview spells it out.
    return ContentItem(stream=StreamRecord.from_bytes(role, part.encode("utf-8", "surrogatepass")))


def _is_text(item: ContentItem) -> bool:
    return item.media_type.startswith("text/")


def _project_text(
    item: ContentItem, share: int, policy: Policy, artifacts: ArtifactList
) -> tuple[ContentPreview, tuple[Omission, ...]]:
    shown, index, omissions = preview_stream(item.stream, share, policy, artifacts)
    preview = ContentPreview(
        type="text",
        text_preview=shown.text,
        text_encoding=None if shown.encoding == "utf-8" else shown.encoding,
        truncated=is_cut(item.stream, shown),
        media_type=item.media_type,
        size=item.stream.size,
        artifact=index,
    )
    return preview, omissions


def _project_binary(
    item: ContentItem, artifacts: ArtifactList
) -> tuple[ContentPreview, tuple[Omission, ...]]:
    """An item of which nothing is shown, so that all of it must be found behind its index."""
    stream = item.stream
    omissions = capture_omissions(stream) + omission_if_any(
        "projection",
        stream.role,
        "bytes",
        before=stream.size,
        after=0,
        reason=f"{item.media_type} is not shown",
    )
    preview = ContentPreview(
        type="binary",
        truncated=bool(omissions),
        media_type=item.media_type,
        size=stream.size,
        artifact=artifacts.add(stream) if stream.size else None,
    )
    return preview, omissions


def _hide(
    content: tuple[ContentItem, ...], shown: int, artifacts: ArtifactList
) -> tuple[int | None, tuple[Omission, ...]]:
    """Items beyond the budget are not shown, but listed in an artifact whose index this returns."""
    hidden = content[shown:]
    if not hidden:
        return None, ()
    sizes = [item.stream.size for item in content]
    reason = f"more than {shown} content items"
    lost = tuple(omission for item in hidden for omission in capture_omissions(item.stream))
    index = artifacts.add(_list_of(hidden, shown))
    return index, (
        lost
        + omission_if_any(
            "projection", "content", "items", before=len(content), after=shown, reason=reason
        )
        + omission_if_any(
            "projection",
            "content",
            "bytes",
            before=sum(sizes),
            after=sum(sizes[:shown]),
            reason=reason,
        )
    )


def _list_of(items: tuple[ContentItem, ...], first: int) -> StreamRecord:
    lines = (
        canonical_json.encode(
            {
                "n": n,
                "media_type": item.media_type,
                "size": item.stream.size,
                "digest": item.stream.digest,
            }
        )
        for n, item in enumerate(items, first)
    )
    return StreamRecord.from_bytes("hidden", b"\n".join(lines) + b"\n")


def _project_structured(
    stream: StreamRecord, share: int, policy: Policy, artifacts: ArtifactList
) -> tuple[dict[str, object], tuple[Omission, ...]]:
    shown, index, omissions = preview_stream(stream, share, policy, artifacts)
    fields: dict[str, object] = {"structured_artifact": index}
    if not is_cut(stream, shown):
        value = canonical_json.decode(
            stream.head + stream.tail if stream.content is None else stream.content
        )
        if not canonical_json.is_deeper_than(value, canonical_json.MAX_EMBEDDED_DEPTH):
            return fields | {"structured": value}, omissions
    return fields | {"structured_preview": shown.text}, omissions


def _describe(item: ContentPreview, artifacts: tuple[ArtifactReference, ...]) -> str:
    where = "" if item.artifact is None else f": {artifacts[item.artifact].path}"
    rest = f", {item.size:,} bytes{where}]"
    room = ITEM_FRAME_CHARS - len(rest) - len("[\n\n")
    return f"[{shorten(item.media_type, max(room, _MEDIA_TYPE_CHARS))}{rest}"


def _structured_texts(result: GenericResult) -> list[tuple[str, bool]]:
    if result.structured_preview is not None:
        return [(result.structured_preview, result.truncated)]
    if result.structured is None:
        return []
    return [(canonical_json.encode_text(result.structured), False)]


FAMILY = Family(
    name="generic",
    result_type=GenericOutput,
    projector=project_generic,
    renderer=GenericRenderer(),
)
