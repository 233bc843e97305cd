"""Chat Completions into the canonical conversation: answers, and the messages of requests.

Whether there are calls follows from the calls, never by `finish_reason`, which servers fill in as
they like. Members that are not known, or are not what they are to be, are kept as extras. A message
of a request has an origin where something in it is for this format alone; what a result says
besides goes back with the message that asked for it.
"""

from collections.abc import Iterator, Mapping

from pydantic import JsonValue

from tooltrail.records import (
    CallFlag,
    Conversation,
    Message,
    MessageBlock,
    Origin,
    ResultBlock,
    Role,
    TextBlock,
    ToolCall,
)
from tooltrail.wire._chat.answers import NO_FLAGS, ChatSpelling, Flags, asks_for_call, odd_calls
from tooltrail.wire._reading import (
    REASONING,
    ROLES,
    RepeatedIds,
    merge_results,
    message_of_request,
    result_of_text,
    spoken_in,
    thoughts_in,
    with_origins,
)
from tooltrail.wire.members import JsonObject, object_in, objects_in, others, raw_arguments, text_in
from tooltrail.wire.openai_chat.asking import read_tools
from tooltrail.wire.openai_chat.limits import NAME
from tooltrail.wire.openai_chat.parts import is_part, read_content
from tooltrail.wire.responses import Oddities

_TEXTS = ("refusal", *REASONING)
MESSAGE = frozenset({"role", "content", "tool_calls", "function_call", "annotations", *_TEXTS})
"""Members of a message that are read."""

CALL = frozenset({"id", "type", "function", "custom", "index"})
"""Members of a call that are read."""

_TOLD = {"function": frozenset({"name", "arguments"}), "custom": frozenset({"name", "input"})}
_ROLES: Mapping[str, Role] = {**ROLES, "function": "tool"}
_SAID = frozenset({"role", "content"})
_RESULT = frozenset({"role", "content", "tool_call_id", "name"})


def _blocks_of_answer(native: JsonObject, odd: Oddities, flags: Flags) -> Iterator[MessageBlock]:
    odd.unread += _unread_of(native)
    odd.remarks += _remarks_of(native)
    return assistant_blocks(native, flags)


def _unread_of(native: JsonObject) -> Iterator[str]:
    """What of the message of an answer is not what it is to be, each one a sentence."""
    yield from odd_calls(native)
    content = native.get("content")
    if not isinstance(content, str | list | None) and not is_part(content):
        yield "content of the message is no text"
    for call in objects_in(native.get("tool_calls")):
        custom = call.get("custom")
        body = custom if isinstance(custom, dict) else call.get("function")
        if not isinstance(call.get("id"), str | None):
            yield "the id of a call is no text"
        if custom and call.get("function"):
            yield "a call is of a function and of a custom tool"
        if not isinstance(body, dict):
            yield "a call has nothing to call"
        elif not isinstance(body.get("name"), str | None):
            yield "the name of a call is no text"


def _remarks_of(native: JsonObject) -> Iterator[str]:
    """What of the message of an answer is odd too, and of no call; it is read, or in the extras."""
    content = native.get("content")
    if isinstance(content, dict) and is_part(content):
        yield "content of the message is no text"
    for name in _TEXTS:
        if not isinstance(native.get(name), str | None):
            yield f"{name} of the message is no text"


def assistant_blocks(native: JsonObject, flags: Flags = NO_FLAGS) -> Iterator[MessageBlock]:
    """What a message of the assistant says, in the order in which it is written here."""
    yield from thoughts_in(native)
    content = native.get("content")
    if _has_annotations(native) and isinstance(content, str):
        yield TextBlock(text=content, extras={"annotations": native["annotations"]})
    else:
        yield from read_content(content)
    if refusal := text_in(native.get("refusal")):
        yield TextBlock(text=refusal, is_refusal=True)
    repeated = RepeatedIds()
    for position, call in enumerate(_native_calls(native)):
        yield repeated.flagged(_read_call(call, position, flags.get(position, ())))


def message_extras(native: JsonObject) -> JsonObject:
    """What a message of the assistant says besides, and members of a kind that is not read."""
    extras = others(native, MESSAGE)
    for name in _TEXTS:
        if not isinstance(native.get(name), str | None):
            extras[name] = native[name]
    if native.get("annotations") and not _has_annotations(native):
        extras["annotations"] = native["annotations"]
    if not isinstance(native.get("function_call"), dict | None):
        extras["function_call"] = native["function_call"]
    return extras


def _has_annotations(native: JsonObject) -> bool:
    """Whether there are some, and a text that they are about."""
    return bool(native.get("annotations") and text_in(native.get("content")))


def _native_calls(native: JsonObject) -> list[JsonObject]:
    calls = objects_in(native.get("tool_calls"))
    legacy = native.get("function_call")
    if asks_for_call(legacy):
        calls.append({"function": legacy})
    return calls


def _read_call(native: JsonObject, position: int, flags: tuple[CallFlag, ...]) -> ToolCall:
    is_custom = isinstance(native.get("custom"), dict)
    member = "custom" if is_custom else "function"
    members = object_in(native.get(member))
    arguments = members.get("input" if is_custom else "arguments")
    if not isinstance(arguments, str | None):
        flags = (*flags, "arguments_were_object")
    return ToolCall(
        tool_name=text_in(members.get("name")) or "",
        arguments_raw=raw_arguments(arguments),
        call_id=text_in(native.get("id")),
        kind="custom" if is_custom else "function",
        position=position,
        flags=flags,
        extras=_call_extras(native, member, members),
    )


def _call_extras(native: JsonObject, member: str, members: JsonObject) -> JsonObject:
    extras = others(native, CALL)
    if besides := others(members, _TOLD[member]):
        extras[member] = besides
    call_id = native.get("id")
    # An id that is no text is none to any caller, and still what the provider said.
    return extras if isinstance(call_id, str | None) else {**extras, "id": call_id}


SPELLING = ChatSpelling(NAME, _blocks_of_answer, message_extras, is_part)
"""How the messages of answers are read here."""


def read_history(request: JsonObject) -> Conversation:
    """The messages and tools of a request."""
    read = (_read_message(native, role) for native, role in spoken_in(request, _ROLES))
    messages = list(merge_results(read))
    native = {result.call_id for message in messages for result in message.results if result.extras}
    return Conversation.of(with_origins(messages, NAME, native), read_tools(request))


def _read_message(native: JsonObject, role: Role) -> Message:
    if role == "tool":
        result = _read_result(native)
        # So that a name goes back where one was sent; see `_write_result`.
        named = Origin(wire_format=NAME) if result.tool_name else None
        return Message(role=role, blocks=(result,), origin=named)
    blocks: tuple[MessageBlock, ...]
    if role == "assistant":
        blocks, extras = tuple(assistant_blocks(native)), message_extras(native)
    else:
        blocks, extras = tuple(read_content(native.get("content"))), others(native, _SAID)
    return message_of_request(NAME, role, blocks, extras)


def _read_result(native: JsonObject) -> ResultBlock:
    content = native.get("content")
    call_id, name = native.get("tool_call_id"), native.get("name")
    extras = others(native, _RESULT)
    for member, found in (("tool_call_id", call_id), ("name", name)):
        if not isinstance(found, str | None):
            extras[member] = found
    is_value = not isinstance(content, str | list | None) and not is_part(content)
    blocks = () if is_value else tuple(read_content(content))
    result = result_of_text(text_in(call_id), text_in(name), blocks)
    value: JsonValue = content if is_value else None
    return result.model_copy(
        update={"structured": value, "has_structured": is_value, "extras": extras}
    )
