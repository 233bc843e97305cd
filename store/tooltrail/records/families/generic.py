"""The generic family: every tool without a family of its own, MCP tools included.

Its result is a list of content items in order, text or bytes of a media type, and optionally one
structured JSON value.
"""

import re
from functools import partial
from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, JsonValue

from tooltrail.records import canonical_json
from tooltrail.records._model import Record, Sentence
from tooltrail.records._text_cuts import shorten
from tooltrail.records.budgets import Budget, ReceiptChars
from tooltrail.records.cutting import Cutter, Shown
from tooltrail.records.envelope import ArtifactReference, CanonicalResult, FamilyOutput
from tooltrail.records.errors import InvalidRecordError
from tooltrail.records.families._shared import (
    BoundedResult,
    SparseRecord,
    bounded,
    hidden_lines,
    joined,
    one_line,
    structured_fields,
)
from tooltrail.records.family import Family, Renderer
from tooltrail.records.previews import Encoding
from tooltrail.records.readable_json import readable
from tooltrail.records.streams import Count, StreamRecord

TEXT = "text/plain"

_MEDIA_TYPE_CHARS = 24
"""Characters of a media type that are shown however long the path of its artifact is."""


_SUFFIXES = ("+json", "+xml", "+yaml")
"""Structured syntaxes (RFC 6838, section 4.2.8) that are text whatever is said in them."""

_TEXTUAL = re.compile(
    "application/(x-)?(ecmascript|graphql|javascript|json|json-seq|json5|jsonl|ndjson|sh|sql|toml"
    "|typescript|www-form-urlencoded|xml|xml-dtd|yaml)"
)
"""Types outside of `text/` that have no suffix and are text all the same."""


def is_text_type(media_type: str) -> bool:
    """Whether a media type is one of text; its case and its parameters do not matter."""
    essence = media_type.partition(";")[0].strip().lower()
    return (
        essence.startswith("text/")
        or essence.endswith(_SUFFIXES)
        or _TEXTUAL.fullmatch(essence) is not None
    )


class ContentItem(Record):
    """One piece of content: text, JSON and the like among it, or bytes of another media type."""

    media_type: Annotated[Sentence, Field(min_length=1, max_length=255)] = TEXT
    stream: StreamRecord


class GenericBudget(Budget):
    """Bounds of the generic family: `max_items` content items, all texts in one preview budget."""

    item_chars: ClassVar[int] = 160

    receipt_chars: ReceiptChars = 28_000


class GenericOutput(FamilyOutput):
    """The complete result of a tool without a family of its own.

    Attributes:
        content: the items in the tool's order.
        structured: the canonical JSON of a structured value, as a stream.
    """

    content: tuple[ContentItem, ...] = ()
    structured: StreamRecord | None = None

    @classmethod
    def of(cls, *content: str | bytes, structured: JsonValue = None) -> Self:
        """The result of a tool that returned text, bytes or a JSON value.

        Raises:
            InvalidRecordError: `structured` is not made of JSON types.
        """
        items = tuple(_item(number, part) for number, part in enumerate(content))
        value = None
        if structured is not None:
            value = StreamRecord.from_bytes("structured", canonical_json.encode(structured))
        return cls(content=items, structured=value)

    def summary(self) -> str:
        """How much the tool returned."""
        count = len(self.content)
        return f"tool returned {count} content {'item' if count == 1 else 'items'}"


class ContentPreview(SparseRecord):
    """One content item, bounded. Text has a preview, other media types only their size."""

    type: Literal["text", "binary"]
    text_preview: str | None = None
    text_encoding: Encoding | None = None
    truncated: bool
    media_type: str
    size: Count
    artifact: int | None = None


class GenericResult(BoundedResult):
    """The canonical result of the generic family.

    `hidden_artifact` lists the items beyond those of `content`. One list, however many items there
    are, keeps the result bounded; their bytes belong to the complete output. A structured value
    that does not fit stands in `structured_preview`, made smaller by its structure.
    """

    content: tuple[ContentPreview, ...]
    content_count: Count
    structured: JsonValue = None
    structured_preview: JsonValue = None
    structured_truncated: bool | None = None
    structured_artifact: int | None = None


def project_generic(result: GenericOutput, budget: GenericBudget, cutter: Cutter) -> GenericResult:
    """Bound every item and the structured value within one shared budget."""
    texts_of_items = ((_text_of(item),) for item in result.content)
    count = cutter.sharing.fitting(texts_of_items, budget, beside=result.structured)
    shown = cutter.items("content", result.content, count, budget.max_items)
    texts = [_text_of(item) for item in shown]
    rooms = cutter.sharing.shares([*texts, result.structured], budget.preview_chars)
    previews = map(cutter.stream, texts, rooms)
    content = tuple(map(partial(_project_item, cutter), shown, previews))
    fields: dict[str, object] = {}
    if result.structured is not None:
        fields = structured_fields(result.structured, rooms[-1], cutter)
    count = len(result.content)
    return bounded(GenericResult, result, cutter, content=content, content_count=count, **fields)


def render_generic(canonical: CanonicalResult, budget: GenericBudget) -> str:
    """A receipt that is the content itself: texts as they are, other types by description."""
    result = GenericResult.model_validate(canonical.result)
    artifacts = result.artifacts or ()
    texts = [(i.text_preview, i.truncated) for i in result.content if i.text_preview]
    if not _is_said_in_text(result):
        texts.extend(_structured_texts(result))
    bodies = iter(readable(texts, budget.spare_chars))
    sections: list[str] = []
    for item in result.content:
        if item.text_preview:
            sections.append(next(bodies))
        elif item.type == "binary":
            sections.append(_describe(item, artifacts))
    hidden = result.content_count - len(result.content)
    sections += hidden_lines(hidden, "content item", artifacts, result.hidden_artifact)
    sections += [body + _shortened_notice(result) for body in bodies]
    return joined(sections) or "(no content)\n"


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


def _text_of(item: ContentItem) -> StreamRecord | None:
    """What of an item can have a preview."""
    return item.stream if is_text_type(item.media_type) else None


def _project_item(cutter: Cutter, item: ContentItem, shown: Shown) -> ContentPreview:
    kind: Literal["text", "binary"] = "text" if is_text_type(item.media_type) else "binary"
    if kind == "binary":
        shown = cutter.unseen(item.stream, f"{_label(item.media_type)} is not shown")
    return ContentPreview(
        type=kind,
        text_preview=shown.text,
        text_encoding=shown.encoding,
        truncated=shown.truncated,
        media_type=item.media_type,
        size=item.stream.size,
        artifact=shown.artifact,
    )


def _describe(item: ContentPreview, artifacts: tuple[ArtifactReference, ...]) -> str:
    where = "" if item.artifact is None else f": {artifacts[item.artifact].path}"
    rest = f", {item.size:,} bytes{where}]"
    room = GenericBudget.item_chars - len(rest) - len("[\n\n")
    return f"[{shorten(_label(item.media_type), max(room, _MEDIA_TYPE_CHARS))}{rest}"


def _label(media_type: str) -> str:
    return one_line(media_type) or "unnamed type"


def _structured_texts(result: GenericResult) -> list[tuple[str, bool]]:
    match result.structured, result.structured_preview:
        case None, None:
            return []
        case None, str(text):
            return [(text, result.structured_truncated or False)]
        case whole, shortened:
            value = shortened if whole is None else whole
            return [(canonical_json.encode_text(value), False)]


def _shortened_notice(result: GenericResult) -> str:
    """The line behind a value that was made smaller by its structure."""
    if not isinstance(result.structured_preview, dict | list):
        return ""
    where = ""
    if result.artifacts and result.structured_artifact is not None:
        where = f"; full output: {result.artifacts[result.structured_artifact].path}"
    return f"[the JSON above is shortened{where}]\n"


FAMILY = Family(
    name="generic",
    result_types=(GenericOutput,),
    projector=project_generic,
    renderer=Renderer("generic", 2, render_generic),
    budget=GenericBudget(),
)
