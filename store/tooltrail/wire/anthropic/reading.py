"""Anthropic Messages into the canonical conversation: answers, and the messages of requests.

An answer's blocks keep their order, and so do text and calls. What the provider ran itself, and
every block that is not known, is kept as it came.
"""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from itertools import groupby

from pydantic import JsonValue

from tooltrail.records import (
    CallBlock,
    ContentBlock,
    Conversation,
    InvalidRecordError,
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
from tooltrail.wire._reading import cut_off, is_for_provider
from tooltrail.wire.anthropic.asking import read_tools
from tooltrail.wire.anthropic.limits import NAME
from tooltrail.wire.anthropic.media import read_media
from tooltrail.wire.members import (
    JsonObject,
    list_in,
    object_in,
    objects_in,
    others,
    spelled,
    text_in,
)
from tooltrail.wire.responses import ProviderFailure, Response

_CUT_SHORT = {"max_tokens", "model_context_window_exceeded", "refusal"}
"""Reasons to stop that may cut the last block off."""

_CALL = frozenset({"type", "id", "name", "input", "toolset_name"})
_MESSAGE = frozenset({"type", "id", "role", "model", "content", "stop_reason", "usage"})
_RESULT = frozenset({"type", "tool_use_id", "content", "is_error"})
_TEXT = frozenset({"type", "text"})
_ROLES: Mapping[str, Role] = {"user": "user", "assistant": "assistant", "system": "system"}
NO_RAW: Mapping[int, str] = {}
NONE_CUT: AbstractSet[int] = frozenset()


def read_response(payload: JsonObject) -> Response:
    """An answer that was not streamed."""
    failure = read_failure(payload)
    if failure is not None:
        return Response.of(failure=failure)
    if not isinstance(payload.get("content"), list):
        return Response.of(unread=("the answer has neither content nor an error",))
    return Response.of((read_message(payload),))


def read_failure(payload: JsonObject) -> ProviderFailure | None:
    """The error that an answer, or an event of a stream, is."""
    if payload.get("type") != "error":
        return None
    error = object_in(payload.get("error"))
    return ProviderFailure(
        text_in(error.get("message")) or "", text_in(error.get("type")), dict(payload)
    )


def read_message(
    native: JsonObject,
    *,
    raw: Mapping[int, str] = NO_RAW,
    is_complete: bool = True,
    cut: AbstractSet[int] = NONE_CUT,
) -> Message:
    """The message of an answer.

    Args:
        native: the message.
        raw: the arguments as the model wrote them, by the place of their block, where they are
            known.
        is_complete: whether the answer came to its end.
        cut: the places of blocks that may not be whole all the same.
    """
    blocks = list(_blocks(native.get("content"), raw))
    is_cut = text_in(native.get("stop_reason")) in _CUT_SHORT
    for number, block in enumerate(blocks):
        if not is_complete or number in cut or (is_cut and number == len(blocks) - 1):
            blocks[number] = cut_off(block)
    origin = Origin(
        wire_format=NAME,
        model=text_in(native.get("model")),
        response_id=text_in(native.get("id")),
        finish_reason=text_in(native.get("stop_reason")),
        extras=others(native, _MESSAGE),
    )
    return Message(
        role="assistant",
        blocks=tuple(blocks),
        origin=origin,
        is_complete=is_complete and not is_cut,
    )


def read_history(request: JsonObject) -> Conversation:
    """The messages and tools of a request, its `system` as the first message.

    Raises:
        InvalidRecordError: there are no messages, or one is no object or of an unknown role.
    """
    natives = request.get("messages")
    if not isinstance(natives, list):
        raise InvalidRecordError("the request has no messages")
    messages: list[Message] = []
    if request.get("system"):
        messages.append(Message(role="system", blocks=tuple(_blocks(request["system"]))))
    for position, native in enumerate(natives):
        messages.extend(_read_messages(object_in(native), position))
    return Conversation.of(messages, read_tools(request))


def _read_messages(native: JsonObject, position: int) -> Iterator[Message]:
    role = _ROLES.get(str(native.get("role")))
    if role is None:
        raise InvalidRecordError(f"messages[{position}] has no role that is known")
    blocks = list(_blocks(native.get("content")))
    if role == "user" and any(isinstance(block, ResultBlock) for block in blocks):
        for is_result, group in groupby(blocks, key=lambda one: isinstance(one, ResultBlock)):
            yield Message(role="tool" if is_result else "user", blocks=tuple(group))
        return
    extras = others(native, frozenset({"role", "content"}))
    needs_origin = extras or any(is_for_provider(block) for block in blocks)
    origin = Origin(wire_format=NAME, extras=extras) if needs_origin else None
    yield Message(role=role, blocks=tuple(blocks), origin=origin)


def _blocks(content: JsonValue, raw: Mapping[int, str] = NO_RAW) -> Iterator[MessageBlock]:
    if isinstance(content, str):
        if content:
            yield TextBlock(text=content)
        return
    position = 0
    for number, part in enumerate(list_in(content)):
        block = _block(part, position, raw.get(number))
        position += isinstance(block, CallBlock)
        yield block


def _block(part: JsonValue, position: int, raw: str | None) -> MessageBlock:
    native = object_in(part)
    match native.get("type"), native:
        case "text", {"text": str(text)}:
            return TextBlock(text=text, extras=others(native, _TEXT))
        case "thinking" | "redacted_thinking", _:
            return ReasoningBlock(text=text_in(native.get("thinking")) or "", extras=native)
        case "tool_use", {"name": str()}:
            return CallBlock(call=_call(native, position, raw))
        case "server_tool_use" | "mcp_tool_use", {"name": str()}:
            call = _call(native, 0, raw).model_copy(update={"by_provider": True})
            if server := text_in(native.get("server_name")):
                call = call.model_copy(update={"kind": "mcp", "namespace": server})
            return ProviderBlock(native=_with_input(native, call, raw), call=call)
        case "tool_result", _:
            return _result(native)
        case _:
            return read_media(native) or ProviderBlock(native=part)


def _call(native: JsonObject, position: int, raw: str | None) -> ToolCall:
    if raw is None:
        raw = spelled(native.get("input", {}))
    return ToolCall(
        tool_name=text_in(native.get("name")) or "",
        arguments_raw=raw,
        call_id=text_in(native.get("id")),
        namespace=text_in(native.get("toolset_name")),
        position=position,
        extras=others(native, _CALL),
    )


def _with_input(native: JsonObject, call: ToolCall, raw: str | None) -> JsonObject:
    """The block with the input that was streamed, if it was and can be read."""
    if raw is None or call.parse_error is not None:
        return native
    return {**native, "input": call.arguments}


def _result(native: JsonObject) -> ResultBlock:
    return ResultBlock(
        call_id=text_in(native.get("tool_use_id")),
        status="error" if native.get("is_error") is True else "ok",
        content=tuple(_content(native.get("content"))),
        extras=others(native, _RESULT),
    )


def _content(content: JsonValue) -> Sequence[ContentBlock]:
    if isinstance(content, str):
        return [TextBlock(text=content)] if content else []
    return [_content_block(part) for part in objects_in(content)]


def _content_block(native: JsonObject) -> ContentBlock:
    text = native.get("text")
    if native.get("type") == "text" and isinstance(text, str):
        return TextBlock(text=text, extras=others(native, _TEXT))
    return read_media(native) or ProviderBlock(native=native)
