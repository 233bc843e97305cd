"""Reads answers and requests of Converse into the canonical conversation.

A block has one member, whose name is the kind of block. Calls that Amazon ran itself and unknown
blocks are kept unchanged. The input of a streamed call is the joined text of its fragments.
"""

from collections.abc import Iterator
from collections.abc import Set as AbstractSet
from dataclasses import replace

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
from tooltrail.wire.bedrock.asking import NAME, read_tools
from tooltrail.wire.members import (
    JsonObject,
    list_in,
    object_in,
    objects_in,
    others,
    raw_arguments,
    spelled,
    text_in,
)
from tooltrail.wire.responses import ProviderFailure, Response, failure_of

_WHOLE = frozenset({"end_turn", "tool_use", "stop_sequence", None})
"""Stop reasons after which the last call is complete; any other may have cut it off."""

CALL = frozenset({"toolUseId", "name", "input", "type"})
_TYPE = frozenset({"type"})
_RESULT = frozenset({"toolUseId", "content", "status"})
_MESSAGE = frozenset({"role", "content", "stopReason"})
_MEDIA = frozenset({"format", "source", "name"})
_OFFICE = "application/vnd.openxmlformats-officedocument"
MEDIA = {
    **{f"image/{one}": ("image", one) for one in ("gif", "jpeg", "png", "webp")},
    "application/msword": ("document", "doc"),
    "application/pdf": ("document", "pdf"),
    "application/vnd.ms-excel": ("document", "xls"),
    f"{_OFFICE}.spreadsheetml.sheet": ("document", "xlsx"),
    f"{_OFFICE}.wordprocessingml.document": ("document", "docx"),
    "text/csv": ("document", "csv"),
    "text/html": ("document", "html"),
    "text/markdown": ("document", "md"),
    "text/plain": ("document", "txt"),
}
"""For each media type: the member of its block, and the name of the type in the block."""

_MEDIA_TYPES = {place: media_type for media_type, place in MEDIA.items()}


def read_response(payload: JsonObject) -> Response:
    """Read an answer that was not streamed."""
    failure = read_failure(payload)
    native = object_in(object_in(payload.get("output")).get("message"))
    content = native.get("content")
    if not isinstance(content, list):
        return Response.of((), failure)
    are_read = all(len(others(object_in(one), _TYPE)) == 1 for one in content)
    unread = () if are_read else ("a block of the content is not an object of one member",)
    message = read_message({**native, "stopReason": payload.get("stopReason")})
    return Response.of((message,), failure, unread)


def read_failure(payload: JsonObject) -> ProviderFailure | None:
    """The error if an answer, or an event of a stream, is one."""
    name = next((one for one in payload if one.endswith("Exception")), None)
    is_error = isinstance(payload.get("message"), str)
    error = payload.get(name or "error") or (payload if name or is_error else None)
    failure = failure_of(error, payload, ("__type", "type", "code")) if error else None
    return failure if failure is None or name is None else replace(failure, kind=name)


def read_message(
    native: JsonObject, *, is_complete: bool = True, cut: AbstractSet[int] = frozenset()
) -> Message:
    """Read the message of an answer.

    Args:
        native: the message, with the stop reason of the answer.
        is_complete: whether the end of the answer was received.
        cut: the indexes of blocks that may be incomplete even if the answer is complete.
    """
    reason = text_in(native.get("stopReason"))
    origin = Origin(wire_format=NAME, finish_reason=reason, extras=others(native, _MESSAGE))
    blocks, is_cut = [*_blocks(native.get("content"))], reason not in _WHOLE
    return message_of_answer(blocks, origin, is_complete=is_complete, is_cut=is_cut, cut=cut)


def read_history(request: JsonObject) -> Conversation:
    """Read the messages and tools of a request; `system` is the first message."""
    messages: list[Message] = []
    if system := list_in(request.get("system")):
        messages.append(message_of_request(NAME, "system", _blocks(system)))
    for native, role in spoken_in(request):
        blocks = _blocks(native.get("content"), is_user=role == "user")
        messages.extend(messages_of_request(NAME, role, blocks, others(native, _MESSAGE)))
    return Conversation.of(messages, read_tools(request))


def _blocks(content: JsonValue, *, is_user: bool = False) -> Iterator[MessageBlock]:
    return numbered(read_block(part, is_user=is_user) for part in list_in(content))


def read_block(part: JsonValue, *, is_user: bool = False) -> MessageBlock:
    """Read one block of a message; only the user's messages have results of the caller's tools."""
    member, value = _only(part)
    native = object_in(value)
    match member, value:
        case "toolUse", _ if native.get("type", "tool_use") == "tool_use":
            return CallBlock(call=_call(native))
        case "toolUse", dict():
            # The type is `server_tool_use`, or an unknown one, which callers must not run.
            call = _call(native).model_copy(update={"by_provider": True})
            whole: JsonValue = {"toolUse": {**native, "input": call.arguments}}
            return ProviderBlock(native=part if call.parse_error else whole, call=call)
        case "toolResult", dict() if is_user:
            return _result(native)
        case "reasoningContent", {"reasoningText": {"text": str(text), **extras}}:
            return ReasoningBlock(text=text, extras=extras)
        case "citationsContent", {"content": list(said)}:
            text = "".join(text_in(one.get("text")) or "" for one in objects_in(said))
            return TextBlock(text=text, extras={member: native})
        case _:
            return _content_block(part)


def _only(part: JsonValue) -> tuple[str, JsonValue]:
    """The single member of a block; an empty name unless the block has exactly one."""
    members = [*others(object_in(part), _TYPE).items()]
    return members[0] if len(members) == 1 else ("", None)


def _call(native: JsonObject) -> ToolCall:
    return ToolCall(
        tool_name=text_in(native.get("name")) or "",
        arguments_raw=raw_arguments(native.get("input")) or "{}",
        call_id=text_in(native.get("toolUseId")),
        extras=others(native, CALL),
    )


def _result(native: JsonObject) -> ResultBlock:
    """Read a result; if its only part is a JSON object, that is the structured value."""
    parts, status = list_in(native.get("content")), native.get("status")
    member, structured = _only(parts[0]) if len(parts) == 1 else ("", None)
    has_structured = member == "json" and isinstance(structured, dict)
    return ResultBlock(
        call_id=text_in(native.get("toolUseId")),
        status="ok" if status == "success" else "error" if status == "error" else "unknown",
        content=() if has_structured else tuple(map(_content_block, parts)),
        structured=structured if has_structured else None,
        has_structured=has_structured,
        extras=others(native, _RESULT),
    )


def _content_block(part: JsonValue) -> ContentBlock:
    """Read a block that messages and results share, or JSON, which the model reads as a text."""
    member, value = _only(part)
    native = object_in(value)
    match member, value:
        case "text", str(text):
            return TextBlock(text=text)
        case "json", _:
            return TextBlock(text=spelled(value), extras={member: value})
        case ("image" | "document") as kind, {"source": {"bytes": str(data)}}:
            return MediaBlock(
                kind=kind,
                media_type=_MEDIA_TYPES.get((kind, str(native.get("format")))),
                data=data,
                name=text_in(native.get("name")),
                extras=others(native, _MEDIA),
            )
        case _:
            return ProviderBlock(native=part)
