"""Ollama's native chat into the canonical conversation: answers, and the messages of requests.

Arguments are an object here; their raw text is JSON of it, members in their order. Ids and indexes
are there on newer servers only, and nothing stands in for them. Whether there are calls follows
from the calls: `done_reason` is `stop` with them and without. Members that are not known are
extras, members of another kind than theirs become provider blocks.
"""

from collections.abc import Iterable, Iterator

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
    RepeatedIds,
    merge_results,
    message_of_answer,
    message_of_request,
    messages_in,
    result_of_text,
)
from tooltrail.wire.media_uris import decoded, has_bytes
from tooltrail.wire.members import JsonObject, object_in, objects_in, others, raw_arguments, text_in
from tooltrail.wire.ollama.asking import read_tools
from tooltrail.wire.ollama.limits import NAME
from tooltrail.wire.responses import ProviderFailure, Response, failure_of

_MESSAGE = frozenset({"role", "content", "thinking", "images", "tool_calls"})
_RESULT = frozenset({"role", "content", "images", "tool_name", "name", "tool_call_id"})
_CALL = frozenset({"id", "type", "function"})
_FUNCTION = frozenset({"name", "arguments"})

_HEAD_CHARS = 16
"""Characters of base64 that hold the first twelve bytes."""


def read_response(payload: JsonObject) -> Response:
    """An answer in one piece."""
    failure = read_failure(payload)
    message = payload.get("message")
    if isinstance(message, dict):
        return read_answer(message, payload, failure)
    unread = () if failure else ("the answer has neither a message nor an error",)
    return Response.of((), failure, unread)


def read_failure(payload: JsonObject) -> ProviderFailure | None:
    """The error that an answer, or a line of a stream, tells."""
    error = payload.get("error")
    if error is None:
        return None
    return failure_of(error, payload)


def read_answer(
    native: JsonObject,
    last: JsonObject,
    failure: ProviderFailure | None,
    *,
    is_done: bool = False,
    odd: Iterable[JsonValue] = (),
) -> Response:
    """The answer that is this message.

    Args:
        native: the message.
        last: what else the answer says of itself: its model, whether and why it is done.
        failure: what the provider said of one.
        is_done: whether something else than `last` says that the answer came to its end.
        odd: what the message has besides, and was not as the format says.
    """
    blocks = [*_assistant_blocks(native), *(ProviderBlock(native=one) for one in odd)]
    unread, remarks = _oddities(native, blocks)
    is_whole = is_done or last.get("done") is True
    if not is_whole and failure is None:
        unread.append("the answer does not say that it is done")
    is_whole = is_whole and failure is None
    origin = Origin(
        wire_format=NAME,
        model=text_in(last.get("model")),
        finish_reason=text_in(last.get("done_reason")),
        extras=others(native, _MESSAGE),
    )
    is_cut = origin.finish_reason == "length"
    message = message_of_answer(blocks, origin, is_complete=is_whole, is_cut=is_cut)
    return Response.of((message,), failure, unread, remarks)


def _oddities(native: JsonObject, blocks: list[MessageBlock]) -> tuple[list[str], list[str]]:
    """What of the message is not as the format says: what may be of a call, and all else."""
    unread, remarks = list[str](), list[str]()
    if native.get("role", "assistant") != "assistant":
        unread.append("the message is not of the role assistant")
    for block in blocks:
        if isinstance(block, ProviderBlock):
            names = [*object_in(block.native)]
            # Whatever was thought, no call is a part of it.
            odd = remarks if names == ["thinking"] else unread
            odd.append(f"{', '.join(names) or 'a line'} of the message is not what it is to be")
    calls = [block.call for block in blocks if isinstance(block, CallBlock)]
    for function, call in zip(map(_function, _native_calls(native)), calls, strict=True):
        if isinstance(function.get("arguments"), str) and not _is_object(call):
            unread.append(f"the arguments of call {call.position} are a text, not an object")
    return unread, remarks


def _is_object(call: ToolCall) -> bool:
    """Whether the raw arguments are the JSON of an object; a blank text is none."""
    return bool(call.arguments_raw.strip()) and isinstance(call.arguments, dict)


def read_history(request: JsonObject) -> Conversation:
    """The messages and tools of a request."""
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
        # Some models are steered by roles of their own, such as `control`.
        return Message(
            role="system", blocks=(ProviderBlock(native=native),), origin=Origin(wire_format=NAME)
        )
    blocks = tuple(_assistant_blocks(native))
    extras = others(native, _MESSAGE)
    return message_of_request(NAME, role, blocks, extras)


def _read_result(native: JsonObject) -> ResultBlock:
    content = tuple(_content_blocks(native))
    name = text_in(native.get("tool_name")) or text_in(native.get("name"))
    result = result_of_text(text_in(native.get("tool_call_id")), name, content)
    extras = others(native, _RESULT)
    return result.model_copy(update={"extras": extras}) if extras else result


def _assistant_blocks(native: JsonObject) -> Iterator[MessageBlock]:
    thinking = native.get("thinking")
    if isinstance(thinking, str):
        if thinking:
            yield ReasoningBlock(text=thinking)
    elif thinking is not None:
        yield ProviderBlock(native={"thinking": thinking})
    yield from _content_blocks(native)
    repeated = RepeatedIds()
    for position, call in enumerate(_native_calls(native)):
        yield repeated.flagged(_read_call(call, position))
    calls = native.get("tool_calls")
    if isinstance(calls, list):
        yield from (
            ProviderBlock(native={"tool_calls": [one]}) for one in calls if not _is_call(one)
        )
    elif calls is not None:
        yield ProviderBlock(native={"tool_calls": calls})


def _content_blocks(native: JsonObject) -> Iterator[TextBlock | MediaBlock | ProviderBlock]:
    content, images = native.get("content"), native.get("images")
    if isinstance(content, str):
        if content:
            yield TextBlock(text=content)
    elif content is not None:
        yield ProviderBlock(native={"content": content})
    if isinstance(images, list):
        for image in images:
            if isinstance(image, str):
                yield image_of_base64(image)
            else:
                yield ProviderBlock(native={"images": [image]})
    elif images is not None:
        yield ProviderBlock(native={"images": images})


def _is_call(native: JsonValue) -> bool:
    return isinstance(native, dict) and isinstance(native.get("function"), dict)


def _native_calls(native: JsonObject) -> list[JsonObject]:
    return list(filter(_is_call, objects_in(native.get("tool_calls"))))


def _function(call: JsonObject) -> JsonObject:
    return object_in(call.get("function"))


def _read_call(native: JsonObject, position: int) -> ToolCall:
    function = _function(native)
    extras = others(native, _CALL)
    if beside := others(function, _FUNCTION):
        extras["function"] = beside
    return ToolCall(
        tool_name=text_in(function.get("name")) or "",
        arguments_raw=raw_arguments(function.get("arguments")),
        call_id=text_in(native.get("id")),
        position=position,
        extras=extras,
    )


def image_of_base64(data: str) -> MediaBlock:
    """The block of an image; its type is None where its first bytes are of none that is known."""
    return MediaBlock(kind="image", media_type=_media_type(data), data=data)


def is_image(block: object) -> bool:
    """Whether a block can go on the wire as an image: its bytes are there, and are base64."""
    return isinstance(block, MediaBlock) and block.kind == "image" and has_bytes(block)


def _media_type(data: str) -> str | None:
    head = decoded(data[:_HEAD_CHARS]) or b""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "image/gif"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "image/webp"
    return None
