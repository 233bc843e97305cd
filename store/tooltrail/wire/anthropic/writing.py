"""The canonical conversation as the messages of a request to Anthropic.

All results of a batch stand in one message of the user, first in it and in the order of the calls.
Messages of one role are merged, for the roles take turns. A block without a word is refused by the
server, so there is none.
"""

from collections.abc import Iterable, Iterator, Sequence

from pydantic import JsonValue

from tooltrail.records import (
    Conversation,
    MediaBlock,
    Message,
    MessageBlock,
    ProviderBlock,
    ReasoningBlock,
    TextBlock,
)
from tooltrail.wire._steps import Answered
from tooltrail.wire._turns import TurnSpelling, write_turns
from tooltrail.wire._writing import Writing
from tooltrail.wire.anthropic.media import write_media
from tooltrail.wire.members import JsonObject, list_in, object_in, objects_in, text_in

_PAIRED = ("tool_use", "tool_result")
_THOUGHTS = ("thinking", "redacted_thinking")


def write_history(writing: Writing, conversation: Conversation) -> JsonObject:
    """`{"system": …, "messages": […]}`, the former where the conversation begins with one."""
    system, messages = write_turns(writing, conversation, _SPELLING)
    request: JsonObject = {
        "messages": [{**one, "content": _simple(list_in(one["content"]))} for one in messages]
    }
    return {"system": _simple(system), **request} if system else request


def is_result(item: JsonObject) -> bool:
    """Whether a message brings results of tools."""
    return any(map(_is_result, objects_in(item.get("content"))))


def _is_result(block: JsonValue) -> bool:
    return object_in(block).get("type") == "tool_result"


def _may_follow(before: JsonObject, block: JsonValue) -> bool:
    """Whether it can be said: no thoughts, unless the turn begins with some."""
    return _is_thought(before) or not _is_thought(block)


def _is_thought(block: JsonValue) -> bool:
    return object_in(block).get("type") in _THOUGHTS


def _call(writing: Writing, message: Message, answered: Answered) -> JsonObject:
    call, where = answered.call, answered.where
    native: JsonObject = {
        "type": "tool_use",
        "id": answered.wire_id,
        "name": answered.wire_name,
        "input": writing.arguments_object(call, where, "input"),
    }
    if writing.has_server_field(call, replays=writing.replays(message)):
        native["toolset_name"] = call.namespace
    if call.kind not in ("function", "custom"):
        writing.note("provider_data_dropped", where, f"kind {call.kind}")
    return writing.beside(native, message, call.extras, where)


def _result(writing: Writing, answered: Answered) -> JsonObject:
    result, source, where = answered.result, answered.source, answered.where
    native: JsonObject = {"type": "tool_result", "tool_use_id": answered.wire_id}
    # The server takes text alone beside an error.
    is_native = [not result.is_error and _is_native(writing, source, b) for b in result.content]
    has_extras = any(block.extras for block in result.content) and writing.replays(source)
    if len(is_native) > 1 or any(is_native) or has_extras:
        native["content"] = [*_blocks(writing, source, _shown(writing, answered, is_native), where)]
    if native.get("content"):
        writing.note_status(result, where)
        if result.has_structured:
            writing.note("structured_dropped", where, "the structured value beside the content")
    else:
        native["content"] = writing.result_text(result, where, prefix=False)
    if result.is_error:
        native["is_error"] = True
    return writing.beside(native, source, result.extras, where)


def _shown(writing: Writing, answered: Answered, is_native: list[bool]) -> Iterator[MessageBlock]:
    """The content of a result: what is neither native nor text is described."""
    for block, is_sendable in zip(answered.result.content, is_native, strict=True):
        if is_sendable or isinstance(block, TextBlock):
            yield block
        else:
            yield TextBlock(text=writing.described(block, answered.where))


def _is_native(writing: Writing, message: Message, block: MessageBlock) -> bool:
    """Whether there is a block for what is neither text nor a call."""
    match block:
        case MediaBlock():
            tells_place = writing.tells_place(message, block)
            return write_media(block, tells_place=tells_place) is not None
        case ProviderBlock():
            kind = object_in(block.native).get("type")
            # Half of a call and its result would be refused, with all that is said besides.
            is_whole = isinstance(kind, str) and kind not in _PAIRED
            return is_whole and writing.replays(message)
        case _:
            return False


def _media(writing: Writing, message: Message, block: MediaBlock, where: str) -> JsonObject | None:
    """The block of media, if there is one; what of them it does not say is in the report."""
    native = write_media(block, tells_place=writing.tells_place(message, block))
    if native is None:
        return None
    unsaid = ["name"] if block.kind == "image" else []
    unsaid.append("uri" if block.data is not None else "media_type")
    writing.note_media(block, where, *unsaid)
    return writing.beside(native, message, block.extras, where)


def _said_text(
    writing: Writing, message: Message, block: TextBlock, where: str
) -> Iterator[JsonValue]:
    writing.note_refusal(block, where)
    text = writing.clean.text(block.text, where)
    if text.strip():
        yield writing.beside(_text(text), message, block.extras, where)
    else:
        writing.note("block_dropped", where, "[text without a word]")


def _blocks(
    writing: Writing, message: Message, blocks: Iterable[MessageBlock | Answered], where: str
) -> Iterator[JsonValue]:
    for block in blocks:
        match block:
            case Answered():
                yield _call(writing, message, block)
            case TextBlock():
                yield from _said_text(writing, message, block, where)
            case ReasoningBlock() if writing.replays(message) and _is_thought(block.extras):
                writing.note_thoughts(block, text_in(block.extras.get("thinking")) or "", where)
                yield dict(block.extras)
            case ProviderBlock() if _is_native(writing, message, block):
                yield block.native
            case MediaBlock() if message.role in ("user", "tool") and (
                native := _media(writing, message, block, where)
            ):
                yield native
            case ReasoningBlock() | ProviderBlock():
                writing.dropped_block(block, where)
            case _:
                yield _text(writing.described(block, where))


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _simple(blocks: Sequence[JsonValue]) -> JsonValue:
    """The content of a message: of one text that text, of anything else the blocks."""
    first = object_in(blocks[0])
    if len(blocks) == 1 and set(first) == {"type", "text"}:
        return first["text"]
    return list(blocks)


_SPELLING = TurnSpelling(
    assistant="assistant",
    content="content",
    text=_text,
    parts=_blocks,
    result=_result,
    may_follow=_may_follow,
    is_result=_is_result,
)
