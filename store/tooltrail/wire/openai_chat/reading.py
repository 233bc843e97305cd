"""Reads answers and requests of Chat Completions into the canonical conversation.

Calls are read from the message, never inferred from `finish_reason`, which servers fill
inconsistently. Unknown members and members of the wrong type are kept as extras. A message of a
request has an origin if a part of it can be written only in this format.
"""

from collections.abc import Iterator, Mapping

from tooltrail.records import Conversation, Message, MessageBlock, Origin, Role, TextBlock
from tooltrail.wire._chat.answers import NO_FLAGS, ChatSpelling, Flags, asks_for_call, odd_texts
from tooltrail.wire._chat.calls import read_calls, read_result, unread_in
from tooltrail.wire._chat.parts import is_part, read_part
from tooltrail.wire._reading import (
    REASONING,
    ROLES,
    merge_results,
    message_of_request,
    spoken_in,
    thoughts_in,
)
from tooltrail.wire.members import JsonObject, items_of, objects_in, others, text_in
from tooltrail.wire.openai_chat.asking import NAME, read_tools

_TEXTS = ("refusal", *REASONING)
MESSAGE = frozenset({"role", "content", "tool_calls", "function_call", "annotations", *_TEXTS})
"""The members of a message that are read."""

_ROLES: Mapping[str, Role] = {**ROLES, "function": "tool"}
_SAID = frozenset({"role", "content"})

RESULT = frozenset({"role", "content", "tool_call_id", "name"})
"""The members of a result that are read."""


def _assistant_blocks(
    native: JsonObject, unread: list[str], flags: Flags = NO_FLAGS
) -> Iterator[MessageBlock]:
    """The blocks of a message of the assistant, in the order in which this format has them."""
    unread += unread_in(native)
    yield from thoughts_in(native)
    content = native.get("content")
    if _has_annotations(native) and isinstance(content, str):
        yield TextBlock(text=content, extras={"annotations": native["annotations"]})
    else:
        yield from map(read_part, items_of(content))
    if refusal := text_in(native.get("refusal")):
        yield TextBlock(text=refusal, is_refusal=True)
    yield from read_calls(_native_calls(native), flags)


def _message_extras(native: JsonObject) -> JsonObject:
    """The other members of a message of the assistant, and members of the wrong type."""
    extras = others(native, MESSAGE) | odd_texts(native, _TEXTS)
    if native.get("annotations") and not _has_annotations(native):
        extras["annotations"] = native["annotations"]
    if not isinstance(native.get("function_call"), dict | None):
        extras["function_call"] = native["function_call"]
    return extras


def _has_annotations(native: JsonObject) -> bool:
    """Whether the message has annotations and a text to which they refer."""
    return bool(native.get("annotations") and text_in(native.get("content")))


def _native_calls(native: JsonObject) -> list[JsonObject]:
    calls = objects_in(native.get("tool_calls"))
    legacy = native.get("function_call")
    if asks_for_call(legacy):
        calls.append({"function": legacy})
    return calls


SPELLING = ChatSpelling(NAME, _assistant_blocks, _message_extras, is_part)
"""How this format reads the messages of answers."""


def read_history(request: JsonObject) -> Conversation:
    """Read the messages and tools of a request."""
    read = (_read_message(native, role) for native, role in spoken_in(request, _ROLES))
    return Conversation.of(merge_results(read), read_tools(request))


def _read_message(native: JsonObject, role: Role) -> Message:
    if role == "tool":
        result = read_result(native, RESULT)
        # The origin makes `_write_result` write the name only if the provider sent one.
        is_native = result.tool_name or result.extras
        origin = Origin(wire_format=NAME) if is_native else None
        return Message(role=role, blocks=(result,), origin=origin)
    if role == "assistant":
        said = _assistant_blocks(native, [])
        return message_of_request(NAME, role, said, _message_extras(native))
    parts = map(read_part, items_of(native.get("content")))
    return message_of_request(NAME, role, parts, others(native, _SAID))
