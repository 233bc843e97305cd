"""Converts a tool's result in a provider's blocks to the complete output of the tool.

    output = complete_output_of_result("search", result)

Nothing in the blocks is dropped.
"""

import base64
import json
from collections.abc import Sequence
from contextlib import suppress

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
from tooltrail.records.families.generic import GenericOutput, content_items
from tooltrail.records.streams import StreamRecord
from tooltrail.records.tool_errors import ErrorKind, ToolError

_JSON = "application/json"
_BYTES = "application/octet-stream"
_TEXT = "text/plain"
_MEDIA_TYPE_CHARS = 255
"""Longest media type that a content item can have; RFC 6838 allows 127 for each of two names."""

_KINDS: dict[ResultStatus, str] = {
    "timeout": ErrorKind.TOOL_TIMED_OUT,
    "cancelled": ErrorKind.CANCELLED,
    "interrupted": ErrorKind.INTERRUPTED,
    "denied": ErrorKind.PERMISSION_DENIED,
}


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
    content = () if texts and len(result.content) == 1 else content_items(items)
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
    if isinstance(block, TextBlock):
        return [(_TEXT, _encoded(block.text))]
    if isinstance(block, ProviderBlock):
        return [(_JSON, _spelled(block.native))]
    member, default, payload = _payload_of(block)
    described = (_JSON, _spelled(block.model_dump(exclude={member}, exclude_defaults=True)))
    if payload is None:
        return [described]
    kind = block.media_type or default
    item = (kind if len(kind) <= _MEDIA_TYPE_CHARS else default, payload)
    return [item] if block.uri is None and block.name is None else [described, item]


def _payload_of(block: MediaBlock | ResourceBlock) -> tuple[str, str, bytes | None]:
    """The member of a block that holds its content, the usual media type, and the bytes, if any."""
    if isinstance(block, ResourceBlock) and block.text is not None:
        return "text", _TEXT, _encoded(block.text)
    if block.data is not None:
        with suppress(ValueError):
            return "data", _BYTES, base64.b64decode(block.data, validate=True)
    return "", _BYTES, None


def _encoded(text: str) -> bytes:
    # Strict UTF-8 cannot hold a lone surrogate; surrogatepass keeps it, and the preview escapes it.
    return text.encode("utf-8", "surrogatepass")


def _spelled(value: JsonValue) -> bytes:
    """A provider's value as JSON, in the order of its members."""
    return _encoded(json.dumps(value, ensure_ascii=False, separators=(",", ":")))
