"""Reads answers and requests of Anthropic Messages into the canonical conversation.

The blocks of an answer keep their order, text and calls included. Calls that the provider ran
itself and unknown blocks are kept unchanged. The input of a streamed call is the joined text of its
fragments.
"""

import base64
from collections.abc import Iterator, Mapping
from collections.abc import Set as AbstractSet

from pydantic import JsonValue

from tooltrail.records import (
    CallBlock,
    ContentBlock,
    Conversation,
    MediaBlock,
    Message,
    MessageBlock,
    Origin,
    ProviderBlock,
    ReasoningBlock,
    ResultBlock,
    Role,
    TextBlock,
    ToolCall,
)
from tooltrail.wire._reading import (
    message_of_answer,
    message_of_request,
    messages_of_request,
    numbered,
    spoken_in,
)
from tooltrail.wire.anthropic.asking import NAME, read_tools
from tooltrail.wire.finish_reasons import end_of
from tooltrail.wire.media_uris import FILE
from tooltrail.wire.members import (
    JsonObject,
    are_objects,
    items_of,
    object_in,
    others,
    raw_arguments,
    text_in,
)
from tooltrail.wire.responses import ProviderFailure, Response, failure_of

_CALL = frozenset({"type", "id", "name", "input", "toolset_name"})
_MESSAGE = frozenset({"type", "id", "role", "model", "content", "stop_reason", "usage"})
_RESULT = frozenset({"type", "tool_use_id", "content", "is_error"})
_TEXT = frozenset({"type", "text"})
_MEDIA = frozenset({"type", "source", "title"})
_SAID = frozenset({"role", "content"})
_ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}


def read_response(payload: JsonObject) -> Response:
    """Read an answer that was not streamed."""
    failure = read_failure(payload)
    if not isinstance(payload.get("content"), list):
        return Response.of((), failure)
    are_read = are_objects(payload.get("content"))
    unread = () if are_read else ("a block of the content is not an object",)
    return Response.of((read_message(payload),), failure, unread)


def read_failure(payload: JsonObject) -> ProviderFailure | None:
    """The error if an answer or an event is one; proxies leave out its `type`."""
    error = payload.get("error")
    if payload.get("type") != "error" and ("type" in payload or error is None):
        return None
    return failure_of(error, dict(payload), ("type",))


def read_message(
    native: JsonObject,
    *,
    is_complete: bool = True,
    cut: AbstractSet[int] = frozenset(),
) -> Message:
    """Read the message of an answer.

    Args:
        native: the message.
        is_complete: whether the end of the answer was received.
        cut: the indexes of blocks that may be incomplete even if the answer is complete.
    """
    origin = Origin(
        wire_format=NAME,
        model=text_in(native.get("model")),
        response_id=text_in(native.get("id")),
        finish_reason=text_in(native.get("stop_reason")),
        extras=others(native, _MESSAGE),
    )
    return message_of_answer(
        [*_blocks(native.get("content"))],
        origin,
        is_complete=is_complete,
        is_cut=end_of(origin.finish_reason) is not None,
        cut=cut,
    )


def read_history(request: JsonObject) -> Conversation:
    """Read the messages and tools of a request; `system` is the first message."""
    messages: list[Message] = []
    if system := request.get("system"):
        messages.append(message_of_request(NAME, "system", _blocks(system)))
    for native, role in spoken_in(request, _ROLES):
        blocks, extras = _blocks(native.get("content")), others(native, _SAID)
        messages.extend(messages_of_request(NAME, role, blocks, extras))
    return Conversation.of(messages, read_tools(request))


def _blocks(content: JsonValue) -> Iterator[MessageBlock]:
    return numbered(map(_block, items_of(content)))


def _block(part: JsonValue) -> MessageBlock:
    native = object_in(part)
    match native.get("type"), native:
        case "thinking" | "redacted_thinking", _:
            return ReasoningBlock(text=text_in(native.get("thinking")) or "", extras=native)
        case "tool_use", _:
            return CallBlock(call=_call(native))
        case "server_tool_use" | "mcp_tool_use", {"name": str()}:
            call = _call(native).model_copy(update={"by_provider": True})
            if server := text_in(native.get("server_name")):
                call = call.model_copy(update={"kind": "mcp", "namespace": server})
            whole: JsonValue = {**native, "input": call.arguments}
            return ProviderBlock(native=native if call.parse_error else whole, call=call)
        case "tool_result", _:
            return _result(native)
        case _:
            return _content_block(part)


def _call(native: JsonObject) -> ToolCall:
    return ToolCall(
        tool_name=text_in(native.get("name")) or "",
        arguments_raw=raw_arguments(native.get("input")) or "{}",
        call_id=text_in(native.get("id")),
        namespace=text_in(native.get("toolset_name")),
        extras=others(native, _CALL),
    )


def _result(native: JsonObject) -> ResultBlock:
    return ResultBlock(
        call_id=text_in(native.get("tool_use_id")),
        status="error" if native.get("is_error") is True else "ok",
        content=tuple(map(_content_block, items_of(native.get("content")))),
        extras=others(native, _RESULT),
    )


def _content_block(part: JsonValue) -> ContentBlock:
    native = object_in(part)
    match part:
        case str():
            return TextBlock(text=part)
        case {"type": "text", "text": str(text)}:
            return TextBlock(text=text, extras=others(native, _TEXT))
        case _:
            return _media(native) or ProviderBlock(native=part)


def _media(native: JsonObject) -> MediaBlock | None:
    """Read an image or a document; None for another block or an unknown source."""
    kind, source = native.get("type"), object_in(native.get("source"))
    if kind not in ("image", "document"):
        return None
    data, uri = text_in(source.get("data")), None
    match source.get("type"):
        case "base64" if data is not None:
            pass
        case "text" if data is not None:
            data = base64.b64encode(data.encode("utf-8", "replace")).decode()
        case "url":
            uri = text_in(source.get("url"))
        case "file":
            uri = f"{FILE}{source.get('file_id')}"
        case _:
            return None
    return MediaBlock(
        kind=kind,
        media_type=text_in(source.get("media_type")),
        data=data,
        uri=uri,
        name=text_in(native.get("title")),
        extras=others(native, _MEDIA),
    )
