"""Converts a tool's result in a provider's blocks to the complete output of the tool.

    output = complete_output_of_blocks("search", result.content, is_error=result.is_error)

Nothing in the blocks is dropped. Text, images, sounds, documents and resources become content items
of a `GenericOutput`, in the order of the blocks. A failure has no result; it has the same streams
as its partial output.
"""

import base64
import binascii
import json
from collections.abc import Iterable, Sequence

from pydantic import JsonValue

from tooltrail.records import canonical_json
from tooltrail.records.blocks import (
    ContentBlock,
    MediaBlock,
    ProviderBlock,
    ResourceBlock,
    ResultBlock,
    ResultStatus,
    TextBlock,
)
from tooltrail.records.envelope import CompleteOutput
from tooltrail.records.errors import InvalidRecordError
from tooltrail.records.families.generic import ContentItem, GenericOutput, content_items
from tooltrail.records.streams import StreamRecord
from tooltrail.records.tool_errors import ErrorKind, ToolError

_JSON = "application/json"
_BYTES = "application/octet-stream"
_TEXT = "text/plain"
_MEDIA_TYPE_CHARS = 255
"""Longest media type that a content item can have; RFC 6838 allows 127 for each of two names."""

_KINDS: dict[ResultStatus, str] = {
    "error": ErrorKind.TOOL_EXECUTION_FAILED,
    "timeout": ErrorKind.TOOL_TIMED_OUT,
    "cancelled": ErrorKind.CANCELLED,
    "interrupted": ErrorKind.INTERRUPTED,
    "denied": ErrorKind.PERMISSION_DENIED,
}


def complete_output_of_blocks(
    tool_name: str, blocks: Iterable[ContentBlock], *, is_error: bool = False
) -> CompleteOutput:
    """Make the complete output of a tool from the content blocks of its result.

    See `complete_output_of_result`, which also accepts a structured value and a status.
    """
    status: ResultStatus = "error" if is_error else "ok"
    return complete_output_of_result(tool_name, ResultBlock(status=status, content=tuple(blocks)))


def complete_output_of_result(tool_name: str, result: ResultBlock) -> CompleteOutput:
    """Make the complete output of a tool from its result as a provider was given it.

    A success has one content item for each text and for each payload of bytes. A link, a block that
    only its provider understands, and bytes that are not valid base64 each become an item of JSON.
    An embedded resource or a named file is preceded by an item of JSON with its name and its URI.
    The status `unknown` counts as a success, since the format has no error flag.

    The kind of a failure follows from its status. Its message is the complete text of the blocks.
    Unless the blocks are a single text, the partial output has the streams that a success would
    have, and `content` in the details has the media type of each. The details also have the
    structured value and the provider's extra members of the result.

    Args:
        tool_name: the name that the model used.
        result: the provider's result, as read by `tooltrail.wire`.
    """
    items = [item for block in result.content for item in _items_of(block)]
    if result.is_error:
        return _failure(tool_name, result, items)
    structured = None
    if result.has_structured:
        try:
            value = canonical_json.encode(result.structured)
            structured = StreamRecord.from_bytes("structured", value)
        except InvalidRecordError:  # a number or a depth that canonical JSON does not have
            items.append((_JSON, _spelled(result.structured)))
    content = content_items(items)
    return CompleteOutput.success(tool_name, GenericOutput(content=content, structured=structured))


def _failure(
    tool_name: str, result: ResultBlock, items: Sequence[tuple[str, bytes]]
) -> CompleteOutput:
    texts = [block.text for block in result.content if isinstance(block, TextBlock)]
    details: dict[str, JsonValue] = {}
    content: tuple[ContentItem, ...] = ()
    if len(result.content) > 1 or not texts:
        content = content_items(items)
    if content:
        details["content"] = [
            {"role": one.stream.role, "media_type": one.media_type} for one in content
        ]
    if result.has_structured:
        details["structured"] = result.structured
    if result.extras:
        details["provider"] = result.extras
    error = ToolError(
        kind=_KINDS.get(result.status, ErrorKind.TOOL_EXECUTION_FAILED),
        message="\n".join(text for text in texts if text.strip()) or "the tool gave no message",
        details=details or None,
    )
    return CompleteOutput.failure(tool_name, error, [one.stream for one in content])


def _items_of(block: ContentBlock) -> list[tuple[str, bytes]]:
    """The media type and the bytes of each content item of a block."""
    match block:
        case TextBlock(text=text):
            return [(_TEXT, _encoded(text))]
        case ProviderBlock(native=native):
            return [(_JSON, _spelled(native))]
        case ResourceBlock(text=str(text)):
            payload = (_media_type(block.media_type, _TEXT), _encoded(text))
            return [(_JSON, _spelled(_members(block, "text"))), payload]
        case MediaBlock(data=str(data)) | ResourceBlock(data=str(data)):
            return _items_of_bytes(block, data)
        case _:
            return [(_JSON, _spelled(_members(block)))]


def _items_of_bytes(block: MediaBlock | ResourceBlock, data: str) -> list[tuple[str, bytes]]:
    try:
        payload = base64.b64decode(data, validate=True)
    except (binascii.Error, ValueError):
        return [(_JSON, _spelled(_members(block)))]
    item = (_media_type(block.media_type, _BYTES), payload)
    if block.uri is None and block.name is None:
        return [item]
    return [(_JSON, _spelled(_members(block, "data"))), item]


def _members(block: ContentBlock, *without: str) -> dict[str, JsonValue]:
    """The members of a block except those in `without`, and those that are None, False or `{}`."""
    members = block.model_dump(exclude=set(without))
    return {name: value for name, value in members.items() if value not in (None, {}, False)}


def _media_type(given: str | None, default: str) -> str:
    return given if given and len(given) <= _MEDIA_TYPE_CHARS else default


def _encoded(text: str) -> bytes:
    # Strict UTF-8 cannot hold a lone surrogate; surrogatepass keeps it, and the preview escapes it.
    return text.encode("utf-8", "surrogatepass")


def _spelled(value: JsonValue) -> bytes:
    """A provider's value as JSON, in the order of its members."""
    return _encoded(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
