"""Reads answers and requests of Ollama's native chat into the canonical conversation.

Arguments are an object here; their raw text is its JSON, with members in their order. Only newer
servers send ids and indexes; missing ones are not replaced. Calls are read from the message:
`done_reason` is `stop` with and without calls. Unknown members and members of the wrong type are
kept as extras.
"""

import re
from collections.abc import Iterator
from typing import TypeGuard

from pydantic import JsonValue

from tooltrail.records import (
    CallBlock,
    Conversation,
    InvalidRecordError,
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
    ROLES,
    merge_results,
    message_of_answer,
    message_of_request,
    messages_in,
    numbered,
    result_of_text,
)
from tooltrail.wire.media_uris import decoded, has_bytes
from tooltrail.wire.members import (
    JsonObject,
    list_in,
    object_in,
    objects_in,
    others,
    raw_arguments,
    text_in,
)
from tooltrail.wire.ollama.asking import NAME, read_tools
from tooltrail.wire.responses import ProviderFailure, Response, failure_of

MESSAGE = frozenset({"role", "content", "thinking", "images", "tool_calls"})
_RESULT = frozenset({"role", "content", "images", "tool_name", "name", "tool_call_id"})
_CALL = frozenset({"id", "type", "function"})
_FUNCTION = frozenset({"name", "arguments"})

_HEAD_CHARS = 16
"""Number of base64 characters that encode the first twelve bytes."""

_HEADS = {
    "image/png": re.compile(rb"\x89PNG\r\n\x1a\n"),
    "image/jpeg": re.compile(rb"\xff\xd8\xff"),
    "image/gif": re.compile(rb"GIF8[79]a"),
    "image/webp": re.compile(rb"RIFF.{4}WEBP", re.DOTALL),
}
"""The first bytes of an image of each type."""


def read_response(payload: JsonObject) -> Response:
    """Read an answer that was not streamed."""
    failure = read_failure(payload)
    message = payload.get("message")
    if isinstance(message, dict):
        return read_answer(message, payload, failure)
    return Response.of((), failure)


def read_failure(payload: JsonObject) -> ProviderFailure | None:
    """The error in an answer or in a line of a stream."""
    error = payload.get("error")
    return None if error is None else failure_of(error, payload)


def read_answer(
    native: JsonObject,
    last: JsonObject,
    failure: ProviderFailure | None,
    *,
    is_done: bool = False,
) -> Response:
    """Read a message as an answer; `last` is the object around it, with the model and the reason.

    `is_done`: the end of the answer was received, even if `last` does not say so.
    """
    # Malformed reasoning cannot hide a call.
    odd = _odd(native).keys() - {"thinking"}
    unread = [f"{name} of the message is not valid" for name in sorted(odd)]
    is_whole = is_done or last.get("done") is True
    if not is_whole and failure is None:
        unread.append("the answer does not say that it is done")
    origin = Origin(
        wire_format=NAME,
        model=text_in(last.get("model")),
        finish_reason=text_in(last.get("done_reason")),
        extras=others(native, MESSAGE) | _odd(native),
    )
    message = message_of_answer(
        [*_blocks(native)],
        origin,
        is_complete=is_whole and failure is None,
        is_cut=origin.finish_reason == "length",
    )
    return Response.of((message,), failure, unread)


def _odd(native: JsonObject) -> JsonObject:
    """The members of the wrong type; they are kept as extras."""
    images, calls = list_in(native.get("images")), list_in(native.get("tool_calls"))
    read: JsonObject = {
        "content": text_in(native.get("content")) or "",
        "thinking": text_in(native.get("thinking")) or "",
        "images": [image for image in images if isinstance(image, str)],
        "tool_calls": [*filter(_is_call, calls)],
    }
    return {name: native[name] for name in read if native.get(name) not in (None, read[name])}


def read_history(request: JsonObject) -> Conversation:
    """Read the messages and tools of a request."""
    read = (_read_message(object_in(one), n) for n, one in enumerate(messages_in(request)))
    return Conversation.of(merge_results(read), read_tools(request))


def _read_message(native: JsonObject, position: int) -> Message:
    spelled_role = text_in(native.get("role"))
    if spelled_role is None:
        raise InvalidRecordError(f"messages[{position}] has no role")
    role = ROLES.get(spelled_role)
    if role == "tool":
        return Message(role="tool", blocks=(_read_result(native),))
    if role is None:
        # Some models have special roles, such as `control`.
        return message_of_request(NAME, "system", [ProviderBlock(native=native)])
    return message_of_request(NAME, role, _blocks(native), others(native, MESSAGE) | _odd(native))


def _read_result(native: JsonObject) -> ResultBlock:
    name = text_in(native.get("tool_name")) or text_in(native.get("name"))
    content = tuple(_content_blocks(native))
    result = result_of_text(text_in(native.get("tool_call_id")), name, content)
    return result.model_copy(update={"extras": others(native, _RESULT) | _odd(native)})


def _blocks(native: JsonObject) -> Iterator[MessageBlock]:
    if thinking := text_in(native.get("thinking")):
        yield ReasoningBlock(text=thinking)
    yield from _content_blocks(native)
    calls = filter(_is_call, objects_in(native.get("tool_calls")))
    yield from numbered(CallBlock(call=_read_call(call)) for call in calls)


def _content_blocks(native: JsonObject) -> Iterator[TextBlock | MediaBlock]:
    if content := text_in(native.get("content")):
        yield TextBlock(text=content)
    for image in list_in(native.get("images")):
        if isinstance(image, str):
            yield image_of_base64(image)


def _is_call(native: JsonValue) -> bool:
    return isinstance(native, dict) and isinstance(native.get("function"), dict)


def _read_call(native: JsonObject) -> ToolCall:
    function = object_in(native.get("function"))
    extras = others(native, _CALL)
    if beside := others(function, _FUNCTION):
        extras["function"] = beside
    return ToolCall(
        tool_name=text_in(function.get("name")) or "",
        arguments_raw=raw_arguments(function.get("arguments")),
        call_id=text_in(native.get("id")),
        extras=extras,
    )


def image_of_base64(data: str) -> MediaBlock:
    """The block of an image; its type is None if its first bytes match no known type."""
    head = decoded(data[:_HEAD_CHARS]) or b""
    media_type = next((kind for kind, start in _HEADS.items() if start.match(head)), None)
    return MediaBlock(kind="image", media_type=media_type, data=data)


def is_image(block: object) -> TypeGuard[MediaBlock]:
    """Whether a block can be sent as an image: it has bytes in valid base64."""
    return isinstance(block, MediaBlock) and block.kind == "image" and has_bytes(block)
