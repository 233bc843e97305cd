"""The generic family: every tool without its own family, including MCP tools.

The result is an ordered list of content items (text, or bytes of a media type), and optionally one
structured JSON value.
"""

import re
from collections.abc import Iterable
from typing import Annotated, ClassVar, Self, cast

from pydantic import Field, JsonValue

from tooltrail.records import canonical_json
from tooltrail.records._model import Record, Sentence
from tooltrail.records._text_cuts import shorten
from tooltrail.records.budgets import Budget, ReceiptChars
from tooltrail.records.cutting import Cutter
from tooltrail.records.envelope import CanonicalResult, FamilyOutput
from tooltrail.records.errors import InvalidRecordError
from tooltrail.records.families._shared import (
    Json,
    bounded,
    entry,
    hidden_lines,
    joined,
    json_of,
    one_line,
    path_at,
    structured_fields,
)
from tooltrail.records.family import Family
from tooltrail.records.readable_json import readable
from tooltrail.records.streams import StreamRecord

TEXT = "text/plain"

_TEXTUAL = re.compile(
    r"\s*(text/.*|[^;]*\+(json|xml|yaml)|application/(x-)?(ecmascript|graphql|javascript|json|json-seq"
    r"|json5|jsonl|ndjson|sh|sql|toml|typescript|www-form-urlencoded|xml|xml-dtd|yaml))\s*(;.*)?",
    re.IGNORECASE | re.DOTALL,
)
"""Media types of text, with any parameters; for the suffixes see RFC 6838, section 4.2.8."""


class ContentItem(Record):
    """One piece of content: text (including JSON and the like), or bytes of another media type."""

    media_type: Annotated[Sentence, Field(min_length=1, max_length=255)] = TEXT
    stream: StreamRecord

    @property
    def text(self) -> StreamRecord | None:
        """The stream, if its media type is a type of text."""
        return self.stream if _TEXTUAL.fullmatch(self.media_type) else None


def content_items(parts: Iterable[tuple[str, bytes]]) -> tuple[ContentItem, ...]:
    """The content items of parts, each with its media type; the roles are `content.0` and so on."""
    return tuple(
        ContentItem(media_type=kind, stream=StreamRecord.from_bytes(f"content.{n}", data))
        for n, (kind, data) in enumerate(parts)
    )


class GenericBudget(Budget):
    """Bounds of the generic family: `max_items` content items, all texts in one preview budget."""

    item_chars: ClassVar[int] = 160

    receipt_chars: ReceiptChars = 28_000


class GenericOutput(FamilyOutput):
    """The complete result of a tool: items in the tool's order, and a value as canonical JSON."""

    content: tuple[ContentItem, ...] = ()
    structured: StreamRecord | None = None

    @classmethod
    def of(cls, *content: str | bytes, structured: JsonValue = None) -> Self:
        """The result of a tool that returned text, bytes or a JSON value.

        Raises:
            InvalidRecordError: `content` or `structured` is of another type.
        """
        # Not every caller checks its types.
        for part in cast("tuple[object, ...]", content):
            if not isinstance(part, str | bytes):
                raise InvalidRecordError("content must be str or bytes; pass JSON as structured=")
        # Strict UTF-8 cannot hold a lone surrogate; surrogatepass keeps it for the preview.
        parts = [
            ("application/octet-stream", part)
            if isinstance(part, bytes)
            else (TEXT, part.encode("utf-8", "surrogatepass"))
            for part in content
        ]
        value = None
        if structured is not None:
            value = StreamRecord.from_bytes("structured", canonical_json.encode(structured))
        return cls(content=content_items(parts), structured=value)

    def summary(self) -> str:
        """The number of content items."""
        count = len(self.content)
        return f"tool returned {count} content {'item' if count == 1 else 'items'}"


def project_generic(result: GenericOutput, budget: GenericBudget, cutter: Cutter) -> Json:
    """Bound every item and the structured value within one shared budget.

    The artifact at `hidden_artifact` lists the items that are not in `content`. A single list keeps
    the result bounded for any number of items; their bytes are in the complete output. A structured
    value that does not fit is shortened by its structure, in `structured_preview`.
    """
    texts = ((item.text,) for item in result.content)
    count = cutter.fitting(texts, budget, beside=result.structured)
    shown = cutter.items("content", result.content, count)
    streams = [*(item.text for item in shown), result.structured]
    *rooms, rest = cutter.shares(streams, budget.preview_chars)
    content = [_project_item(item, room, cutter) for item, room in zip(shown, rooms, strict=True)]
    fields: Json = {}
    if result.structured is not None:
        fields = structured_fields(result.structured, rest, cutter)
    count = len(result.content)
    return bounded(result, cutter, content=content, content_count=count, **fields)


def _project_item(item: ContentItem, room: int, cutter: Cutter) -> Json:
    """Bound one item: text gets a preview, other media types only their size."""
    if item.text is None:
        shown = cutter.unseen(item.stream, f"{_label(item.media_type)} is not shown")
    else:
        shown = cutter.stream(item.text, room)
    return entry(
        item,
        type="binary" if item.text is None else "text",
        text_preview=shown.text,
        text_encoding=shown.encoding,
        truncated=shown.truncated,
        size=item.stream.size,
        artifact=shown.artifact,
    )


def render_generic(canonical: CanonicalResult, budget: GenericBudget) -> str:
    """Render the content itself: texts as they are, other types by description."""
    result = json_of(canonical)
    items = result["content"]
    texts = [(i["text_preview"], i["truncated"]) for i in items if i.get("text_preview")]
    bodies = iter(readable([*texts, *_structured_texts(result)], budget.spare_chars))
    sections: list[str] = []
    for item in items:
        if item.get("text_preview"):
            sections.append(next(bodies))
        elif item["type"] == "binary":
            sections.append(_describe(item, result))
    sections += hidden_lines(result, result["content_count"] - len(items), "content item")
    sections += [body + _shortened_notice(result) for body in bodies]
    return joined(sections) or "(no content)\n"


def _structured_texts(result: Json) -> list[tuple[str, bool]]:
    """The structured value as text, and whether it was cut; none if a text item is the same value.

    MCP asks servers to repeat a structured value as text.
    """
    preview = result.get("structured_preview")
    if isinstance(preview, str):
        return [(preview, result["structured_truncated"])]
    value = result.get("structured", preview)
    if value is None:
        return []
    text = canonical_json.encode_text(value)
    said = (_canonical(item.get("text_preview", "")) for item in result["content"])
    return [] if preview is None and text in said else [(text, False)]


def _canonical(text: str) -> str | None:
    """The canonical JSON of a text that is JSON."""
    try:
        return canonical_json.encode_text(canonical_json.decode(text))
    except InvalidRecordError:
        return None


def _shortened_notice(result: Json) -> str:
    """The line after a value that was shortened by its structure."""
    if not isinstance(result.get("structured_preview"), dict | list):
        return ""
    where = path_at(result, result.get("structured_artifact"), "; full output: ")
    return f"[the JSON above is shortened{where}]\n"


def _describe(item: Json, result: Json) -> str:
    where = path_at(result, item.get("artifact"), ": ")
    rest = f", {item['size']:,} bytes{where}]"
    room = GenericBudget.item_chars - len(rest) - len("[\n\n")
    return f"[{shorten(_label(item['media_type']), room)}{rest}"


def _label(media_type: str) -> str:
    return one_line(media_type) or "unnamed type"


FAMILY = Family(
    name="generic",
    result_types=(GenericOutput,),
    projector=project_generic,
    render=render_generic,
    budget=GenericBudget(),
    version=2,
)
