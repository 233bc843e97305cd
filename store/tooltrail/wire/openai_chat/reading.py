"""Chat Completions into the canonical conversation: answers, and the messages of requests.

Whether there are calls is told by the calls, never by `finish_reason`, which servers fill in as
they like. Members that are not known are kept as extras.
"""

from collections.abc import Iterator, Mapping
from itertools import groupby

from pydantic import JsonValue

from tooltrail.records import (
    CallBlock,
    CallFlag,
    Conversation,
    InvalidRecordError,
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
    canonical_json,
)
from tooltrail.wire._reading import cut_off, is_for_provider, result_of_text
from tooltrail.wire.media_uris import media_of_uri
from tooltrail.wire.members import (
    JsonObject,
    are_objects,
    list_in,
    object_in,
    objects_in,
    others,
    text_in,
)
from tooltrail.wire.openai_chat.asking import read_tools
from tooltrail.wire.openai_chat.limits import NAME
from tooltrail.wire.responses import ProviderFailure, Response

REASONING = ("reasoning_content", "reasoning")
"""Members in which compatible servers put what the model thought."""

_CUT_SHORT = {"length", "content_filter"}
"""Reasons to end that may cut the last call off."""

_MESSAGE = frozenset(
    {"role", "content", "refusal", "tool_calls", "function_call", "annotations", *REASONING}
)
_CALL = frozenset({"id", "type", "function", "custom", "index"})
_ROLES: Mapping[str, Role] = {
    "system": "system",
    "developer": "developer",
    "user": "user",
    "assistant": "assistant",
    "tool": "tool",
    "function": "tool",
}
NO_FLAGS: Mapping[int, tuple[CallFlag, ...]] = {}


def read_response(payload: JsonObject) -> Response:
    """An answer that was not streamed, with one message for each choice."""
    failure = read_failure(payload)
    choices = objects_in(payload.get("choices"))
    unread = [] if choices or failure else ["the answer has neither choices nor an error"]
    for choice in choices:
        unread += unread_of(object_in(choice.get("message")))
    messages = tuple(
        read_choice_message(object_in(choice.get("message")), origin_of(payload, choice, position))
        for position, choice in enumerate(choices)
    )
    return Response.of(messages, failure, tuple(unread))


def unread_of(native: JsonObject) -> tuple[str, ...]:
    """What a message, or a delta of one, has in the place of calls that is none."""
    is_read = are_objects(native.get("tool_calls"))
    return () if is_read else ("tool_calls of the message is not what it is to be",)


def read_failure(payload: JsonObject) -> ProviderFailure | None:
    """The error that an answer, or an event of a stream, tells."""
    error = payload.get("error")
    if not error:
        return None
    told = object_in(error)
    kind = told.get("type") or told.get("code")
    message = error if isinstance(error, str) else text_in(told.get("message")) or ""
    return ProviderFailure(message, None if kind is None else str(kind), error)


def origin_of(payload: JsonObject, choice: JsonObject, position: int) -> Origin:
    """Which answer a choice is."""
    index = choice.get("index")
    return Origin(
        wire_format=NAME,
        model=text_in(payload.get("model")),
        response_id=text_in(payload.get("id")),
        finish_reason=text_in(choice.get("finish_reason")),
        choice=index if isinstance(index, int) and index >= 0 else position,
    )


def read_choice_message(
    native: JsonObject,
    origin: Origin,
    *,
    is_complete: bool = True,
    flags: Mapping[int, tuple[CallFlag, ...]] = NO_FLAGS,
) -> Message:
    """The message of one choice.

    Args:
        native: the message.
        origin: of the answer; what else the message has becomes extras of it.
        is_complete: whether the answer came to its end.
        flags: of calls, by position.
    """
    is_cut = origin.finish_reason in _CUT_SHORT
    blocks = [*_assistant_blocks(native, flags)]
    calls = [number for number, block in enumerate(blocks) if isinstance(block, CallBlock)]
    # Only the last call can be cut off, unless nobody knows where the answer ended.
    for number in calls if not is_complete else calls[-1:] if is_cut else ():
        blocks[number] = cut_off(blocks[number])
    if extras := others(native, _MESSAGE):
        origin = origin.model_copy(update={"extras": extras})
    return Message(
        role="assistant",
        blocks=tuple(blocks),
        origin=origin,
        is_complete=is_complete and not is_cut,
    )


def read_history(request: JsonObject) -> Conversation:
    """The messages and tools of a request.

    Raises:
        InvalidRecordError: there are no messages, or one is no object or of an unknown role.
    """
    natives = request.get("messages")
    if not isinstance(natives, list):
        raise InvalidRecordError("the request has no messages")
    read = (_read_message(object_in(native), place) for place, native in enumerate(natives))
    messages: list[Message] = []
    # One message for each result here, one for the whole batch in the conversation.
    for is_answer, group in groupby(read, key=lambda message: message.role == "tool"):
        if is_answer:
            blocks = tuple(block for message in group for block in message.blocks)
            messages.append(Message(role="tool", blocks=blocks))
        else:
            messages.extend(group)
    return Conversation.of(messages, read_tools(request))


def _read_message(native: JsonObject, position: int) -> Message:
    role = _ROLES.get(str(native.get("role")))
    if role is None:
        raise InvalidRecordError(f"messages[{position}] has no role that is known")
    if role == "tool":
        return Message(role=role, blocks=(_read_result(native),))
    if role != "assistant":
        return Message(role=role, blocks=tuple(_content_blocks(native.get("content"))))
    blocks = tuple(_assistant_blocks(native, NO_FLAGS))
    extras = others(native, _MESSAGE)
    is_native = extras or any(map(is_for_provider, blocks))
    origin = Origin(wire_format=NAME, extras=extras) if is_native else None
    return Message(role=role, blocks=blocks, origin=origin)


def _read_result(native: JsonObject) -> ResultBlock:
    content = tuple(_content_blocks(native.get("content")))
    return result_of_text(text_in(native.get("tool_call_id")), text_in(native.get("name")), content)


def _assistant_blocks(
    native: JsonObject, flags: Mapping[int, tuple[CallFlag, ...]]
) -> Iterator[MessageBlock]:
    for member in REASONING:
        if thought := text_in(native.get(member)):
            yield ReasoningBlock(text=thought, extras={"member": member})
    yield from _content_blocks(native.get("content"), native.get("annotations"))
    if refusal := text_in(native.get("refusal")):
        yield TextBlock(text=refusal, is_refusal=True)
    seen: set[str] = set()
    for position, call in enumerate(_native_calls(native)):
        yield CallBlock(call=_read_call(call, position, seen, flags.get(position, ())))


def _native_calls(native: JsonObject) -> list[JsonObject]:
    calls = objects_in(native.get("tool_calls"))
    legacy = native.get("function_call")
    if asks_for_call(legacy):
        calls.append({"function": legacy})
    return calls


def asks_for_call(legacy: JsonValue) -> bool:
    """Whether the older member for a call has one: some servers always send it, with nothing in it.

    Snowflake's does, beside an answer that is text alone.
    """
    return isinstance(legacy, dict) and any(legacy.values())


def _read_call(
    native: JsonObject, position: int, seen: set[str], flags: tuple[CallFlag, ...]
) -> ToolCall:
    is_custom = isinstance(native.get("custom"), dict)
    told = object_in(native.get("custom" if is_custom else "function"))
    raw, is_text = raw_arguments(told.get("input" if is_custom else "arguments"))
    if not is_text:
        flags = (*flags, "arguments_were_object")
    call_id = text_in(native.get("id"))
    if call_id is not None and call_id in seen:
        flags = (*flags, "id_repeated")
    seen.add(call_id or "")
    return ToolCall(
        tool_name=text_in(told.get("name")) or "",
        arguments_raw=raw,
        call_id=call_id,
        kind="custom" if is_custom else "function",
        position=position,
        flags=flags,
        extras=others(native, _CALL),
    )


def raw_arguments(value: JsonValue) -> tuple[str, bool]:
    """The text of arguments, and whether they came as text or not at all."""
    if value is None:
        return "", True
    if isinstance(value, str):
        return value, True
    return canonical_json.encode_text(value), False


def _content_blocks(
    content: JsonValue, annotations: JsonValue = None
) -> Iterator[TextBlock | MediaBlock | ProviderBlock]:
    if isinstance(content, str):
        if content:
            yield TextBlock(
                text=content, extras={"annotations": annotations} if annotations else {}
            )
        return
    for part in list_in(content):
        yield _content_block(part)


def _content_block(part: JsonValue) -> TextBlock | MediaBlock | ProviderBlock:
    match part:
        case {"type": "text", "text": str(text)}:
            return TextBlock(text=text)
        case {"type": "refusal", "refusal": str(text)}:
            return TextBlock(text=text, is_refusal=True)
        case _:
            return _media_block(object_in(part)) or ProviderBlock(native=part)


def _media_block(part: JsonObject) -> MediaBlock | None:
    told = object_in(part.get(str(part.get("type"))))
    match part.get("type"), told:
        case "image_url", {"url": str(uri)}:
            return media_of_uri("image", uri)
        case "input_audio", {"data": str(data), "format": str(kind)}:
            return MediaBlock(kind="audio", media_type=f"audio/{kind}", data=data)
        case "file", {"file_data": str(uri)}:
            return media_of_uri("document", uri, text_in(told.get("filename")))
        case "file", {"file_id": str(name)}:
            return MediaBlock(kind="document", uri=f"file:{name}")
        case _:
            return None
