"""The generic family: every tool without its own family, including MCP tools.

The result is an ordered list of content items (text, or bytes of a media type), and optionally one
structured JSON value.
"""

import re
from functools import partial
from typing import Annotated, ClassVar, Self

from pydantic import Field, JsonValue

from tooltrail.records import canonical_json
from tooltrail.records._model import Record, Sentence
from tooltrail.records._text_cuts import shorten
from tooltrail.records.budgets import Budget, ReceiptChars
from tooltrail.records.cutting import Cutter, Shown
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
    structured_fields,
)
from tooltrail.records.family import Family
from tooltrail.records.readable_json import readable
from tooltrail.records.streams import StreamRecord

TEXT = "text/plain"

_MEDIA_TYPE_CHARS = 24
"""Characters of a media type that are always shown, even beside a long artifact path."""


_SUFFIXES = ("+json", "+xml", "+yaml")
"""Suffixes of structured syntaxes (RFC 6838, section 4.2.8) that are always text."""

_TEXTUAL = re.compile(
    "application/(x-)?(ecmascript|graphql|javascript|json|json-seq|json5|jsonl|ndjson|sh|sql|toml"
    "|typescript|www-form-urlencoded|xml|xml-dtd|yaml)"
)
"""Media types of text that are neither in `text/` nor have one of the suffixes."""


def is_text_type(media_type: str) -> bool:
    """Whether a media type is a type of text; case and parameters are ignored."""
    essence = media_type.partition(";")[0].strip().lower()
    return (
        essence.startswith("text/")
        or essence.endswith(_SUFFIXES)
        or _TEXTUAL.fullmatch(essence) is not None
    )


class ContentItem(Record):
    """One piece of content: text (including JSON and the like), or bytes of another media type."""

    media_type: Annotated[Sentence, Field(min_length=1, max_length=255)] = TEXT
    stream: StreamRecord


class GenericBudget(Budget):
    """Bounds of the generic family: `max_items` content items, all texts in one preview budget."""

    item_chars: ClassVar[int] = 160

    receipt_chars: ReceiptChars = 28_000


class GenericOutput(FamilyOutput):
    """The complete result of a tool without its own family.

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
        """The number of content items."""
        count = len(self.content)
        return f"tool returned {count} content {'item' if count == 1 else 'items'}"


def project_generic(result: GenericOutput, budget: GenericBudget, cutter: Cutter) -> Json:
    """Bound every item and the structured value within one shared budget.

    The artifact at `hidden_artifact` lists the items that are not in `content`. A single list keeps
    the result bounded for any number of items; their bytes are in the complete output. A structured
    value that does not fit is shortened by its structure, in `structured_preview`.
    """
    texts_of_items = ((_text_of(item),) for item in result.content)
    count = cutter.fitting(texts_of_items, budget, beside=result.structured)
    shown = cutter.items("content", result.content, count)
    texts = [_text_of(item) for item in shown]
    rooms = cutter.shares([*texts, result.structured], budget.preview_chars)
    previews = map(cutter.stream, texts, rooms)
    content = [*map(partial(_project_item, cutter), shown, previews)]
    fields: Json = {}
    if result.structured is not None:
        fields = structured_fields(result.structured, rooms[-1], cutter)
    count = len(result.content)
    return bounded(result, cutter, content=content, content_count=count, **fields)


def render_generic(canonical: CanonicalResult, budget: GenericBudget) -> str:
    """Render the content itself: texts as they are, other types by description."""
    result = json_of(canonical)
    items = result["content"]
    texts = [(i["text_preview"], i["truncated"]) for i in items if i.get("text_preview")]
    if not _is_said_in_text(result):
        texts.extend(_structured_texts(result))
    bodies = iter(readable(texts, budget.spare_chars))
    sections: list[str] = []
    for item in items:
        if item.get("text_preview"):
            sections.append(next(bodies))
        elif item["type"] == "binary":
            sections.append(_describe(item, result))
    sections += hidden_lines(result, result["content_count"] - len(items), "content item")
    sections += [body + _shortened_notice(result) for body in bodies]
    return joined(sections) or "(no content)\n"


def _is_said_in_text(result: Json) -> bool:
    """Whether a text item equals the structured value: MCP asks servers to repeat it as text."""
    if "structured" not in result:
        return False
    wanted = canonical_json.encode(result["structured"])
    return any(
        _is_json_of(item["text_preview"], wanted)
        for item in result["content"]
        if "text_preview" in item and not item["truncated"]
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
    # Strict UTF-8 cannot hold a lone surrogate; surrogatepass keeps it, and the preview escapes it.
    return ContentItem(stream=StreamRecord.from_bytes(role, part.encode("utf-8", "surrogatepass")))


def _text_of(item: ContentItem) -> StreamRecord | None:
    """The stream of an item, if it can have a preview."""
    return item.stream if is_text_type(item.media_type) else None


def _project_item(cutter: Cutter, item: ContentItem, shown: Shown) -> Json:
    """Bound one item: text gets a preview, other media types only their size."""
    is_text = is_text_type(item.media_type)
    if not is_text:
        shown = cutter.unseen(item.stream, f"{_label(item.media_type)} is not shown")
    return entry(
        item,
        type="text" if is_text else "binary",
        text_preview=shown.text,
        text_encoding=shown.encoding,
        truncated=shown.truncated,
        size=item.stream.size,
        artifact=shown.artifact,
    )


def _describe(item: Json, result: Json) -> str:
    where = f": {result['artifacts'][item['artifact']]['path']}" if "artifact" in item else ""
    rest = f", {item['size']:,} bytes{where}]"
    room = GenericBudget.item_chars - len(rest) - len("[\n\n")
    return f"[{shorten(_label(item['media_type']), max(room, _MEDIA_TYPE_CHARS))}{rest}"


def _label(media_type: str) -> str:
    return one_line(media_type) or "unnamed type"


def _structured_texts(result: Json) -> list[tuple[str, bool]]:
    preview = result.get("structured_preview")
    if isinstance(preview, str):
        return [(preview, result["structured_truncated"])]
    value = result.get("structured") if preview is None else preview
    return [] if value is None else [(canonical_json.encode_text(value), False)]


def _shortened_notice(result: Json) -> str:
    """The line after a value that was shortened by its structure."""
    if not isinstance(result.get("structured_preview"), dict | list):
        return ""
    where = ""
    if (index := result.get("structured_artifact")) is not None:
        where = f"; full output: {result['artifacts'][index]['path']}"
    return f"[the JSON above is shortened{where}]\n"


FAMILY = Family(
    name="generic",
    result_types=(GenericOutput,),
    projector=project_generic,
    render=render_generic,
    budget=GenericBudget(),
    version=2,
)
