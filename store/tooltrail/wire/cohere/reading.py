"""Reads answers and requests of Cohere's chat into the canonical conversation.

An answer is read as a chat with one choice. The model's plan before its tool calls is read as
reasoning. A document of a result is the output of its tool, so it is read as text; extras of the
text allow writing it as a document again. Citations are extras of the message.

A content is a text or a list of parts, which may contain one text. Extras note which one it was:

- A message with a `LAYOUT` had a text if that is an empty text, and an empty list if it is a list.
- Any other message with an origin had a list. Every answer of Cohere has one.
- A result had a list if it has a `LAYOUT`, and a text otherwise.
"""

from collections.abc import Iterable, Iterator

from pydantic import JsonValue

from tooltrail.records import (
    Conversation,
    Message,
    MessageBlock,
    Origin,
    ReasoningBlock,
    ResultBlock,
    Role,
    TextBlock,
)
from tooltrail.wire._chat import answers
from tooltrail.wire._chat.answers import NO_FLAGS, ChatSpelling, Flags, odd_texts
from tooltrail.wire._chat.calls import read_calls, read_result, unread_in
from tooltrail.wire._chat.parts import Part, is_part, read_part
from tooltrail.wire._reading import merge_results, message_of_request, spoken_in
from tooltrail.wire.cohere.asking import NAME, read_tools
from tooltrail.wire.members import (
    LAYOUT,
    JsonObject,
    items_of,
    object_in,
    objects_in,
    others,
    raw_arguments,
    text_in,
)
from tooltrail.wire.responses import Response

DOCUMENT, PLAN, THINKING = "document", "tool_plan", "thinking"
MESSAGE = frozenset({"role", "content", "tool_calls", PLAN, THINKING})
"""The members of the assistant's message that are read; `thinking` occurs only in streams."""

RESULT = frozenset({"role", "content", "tool_call_id"})
"""The members of a result that are read."""

_SAID = frozenset({"role", "content"})
_THOUGHTS = (PLAN, THINKING)


def read_response(payload: JsonObject) -> Response:
    """Read an answer that was not streamed."""
    return answers.read_response(SPELLING, as_chat(payload))


def as_chat(payload: JsonObject) -> JsonObject:
    """An answer or the body of an error in the form of a chat; anything else has no choices.

    The body of an error is `{"message": "…", "id": "…"}`.
    """
    message = payload.get("message")
    if isinstance(message, str):
        return {"error": payload}
    choices: list[JsonValue] = [payload] if isinstance(message, dict) else []
    return {**payload, "choices": choices}


def _assistant_blocks(
    native: JsonObject, unread: list[str], flags: Flags = NO_FLAGS
) -> Iterator[MessageBlock]:
    """The blocks of a message of the assistant, in the order in which this format has them."""
    unread += unread_in(native)
    if plan := text_in(native.get(PLAN)):
        yield ReasoningBlock(text=plan, extras={"member": PLAN})
    if thought := text_in(native.get(THINKING)):
        yield ReasoningBlock(text=thought)
    yield from map(_read_said, items_of(native.get("content")))
    yield from read_calls(objects_in(native.get("tool_calls")), flags)


def _read_said(part: JsonValue) -> Part | ReasoningBlock:
    members = object_in(part)
    if members.get("type") == THINKING and isinstance(text := members.get(THINKING), str):
        return ReasoningBlock(text=text, extras=others(members, frozenset({"type", THINKING})))
    return read_part(part)


def _message_extras(native: JsonObject) -> JsonObject:
    extras = {**others(native, MESSAGE), **odd_texts(native, _THOUGHTS)}
    return {**extras, PLAN: ""} if native.get(PLAN) == "" else extras


SPELLING = ChatSpelling(NAME, _assistant_blocks, _message_extras, is_part, ("content", *_THOUGHTS))
"""How this format reads the messages of answers."""


def read_history(request: JsonObject) -> Conversation:
    """Read the messages and tools of a request."""
    read = (_read_message(native, role) for native, role in spoken_in(request))
    return Conversation.of(merge_results(read), read_tools(request))


def _read_message(native: JsonObject, role: Role) -> Message:
    blocks: Iterable[MessageBlock]
    content = native.get("content")
    if role == "tool":
        return message_of_request(NAME, role, [_read_result(native)])
    if role == "assistant":
        blocks, extras = _assistant_blocks(native, []), _message_extras(native)
    else:
        blocks, extras = map(read_part, items_of(content)), others(native, _SAID)
    message = message_of_request(NAME, role, blocks, extras)
    if content in ("", []):
        extras[LAYOUT] = content
    elif isinstance(content, str) and message.origin:
        extras[LAYOUT] = ""
    if not (extras or isinstance(content, list)):
        return message
    return message.model_copy(update={"origin": Origin(wire_format=NAME, extras=extras)})


def _read_result(native: JsonObject) -> ResultBlock:
    result = read_result(native, RESULT, _read_given)
    if not isinstance(native.get("content"), list):
        return result
    return result.model_copy(update={"extras": {**result.extras, LAYOUT: []}})


def _read_given(part: JsonValue) -> Part:
    """Read a part of a result; a document becomes its data, as JSON unless they are a text."""
    members = object_in(part)
    document = object_in(members.get(DOCUMENT))
    data = document.get("data")
    if members.get("type") != DOCUMENT or data is None:
        return read_part(part)
    known = frozenset({"data"} if isinstance(data, str) else ())
    extras = others(members, frozenset({"type", DOCUMENT}))
    extras[DOCUMENT] = others(document, known)
    return TextBlock(text=raw_arguments(data), extras=extras)
