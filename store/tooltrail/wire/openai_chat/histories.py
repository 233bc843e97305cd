"""The messages of a Chat Completions request into the canonical conversation.

A message has an origin where something in it is for this format alone, and keeps there what it
says besides its content. What a result says besides goes back with the message that asked for it.
"""

from collections.abc import Mapping

from pydantic import JsonValue

from tooltrail.records import (
    Conversation,
    InvalidRecordError,
    Message,
    MessageBlock,
    Origin,
    ResultBlock,
    Role,
)
from tooltrail.wire._reading import (
    ROLES,
    is_for_provider,
    merge_results,
    messages_in,
    result_of_text,
    with_origins,
)
from tooltrail.wire.members import JsonObject, object_in, others, text_in
from tooltrail.wire.openai_chat.asking import read_tools
from tooltrail.wire.openai_chat.limits import NAME
from tooltrail.wire.openai_chat.parts import is_part, read_content
from tooltrail.wire.openai_chat.reading import assistant_blocks, message_extras

_ROLES: Mapping[str, Role] = {**ROLES, "function": "tool"}
_SAID = frozenset({"role", "content"})
_RESULT = frozenset({"role", "content", "tool_call_id", "name"})


def read_history(request: JsonObject) -> Conversation:
    """The messages and tools of a request."""
    read = (
        _read_message(object_in(native), place) for place, native in enumerate(messages_in(request))
    )
    messages = list(merge_results(read))
    native = {result.call_id for message in messages for result in message.results if result.extras}
    return Conversation.of(with_origins(messages, NAME, native), read_tools(request))


def _read_message(native: JsonObject, position: int) -> Message:
    role = _ROLES.get(str(native.get("role")))
    if role is None:
        raise InvalidRecordError(f"messages[{position}] has no role that is known")
    if role == "tool":
        return Message(role=role, blocks=(_read_result(native),))
    blocks: tuple[MessageBlock, ...]
    if role == "assistant":
        blocks, extras = tuple(assistant_blocks(native)), message_extras(native)
    else:
        blocks, extras = tuple(read_content(native.get("content"))), others(native, _SAID)
    is_native = extras or any(map(is_for_provider, blocks))
    origin = Origin(wire_format=NAME, extras=extras) if is_native else None
    return Message(role=role, blocks=blocks, origin=origin)


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
