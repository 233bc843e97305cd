"""Writes the canonical conversation as the messages of a request to Anthropic.

All results of a batch are at the beginning of one message of the user, in the order of the calls.
Adjacent messages of one role are merged, because roles must alternate. Blank text blocks are left
out, because the server refuses them.
"""

from collections.abc import Iterable, Sequence

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
from tooltrail.wire.media_uris import FILE, decoded
from tooltrail.wire.members import JsonObject, list_in, object_in, text_in

IMAGES = frozenset({"image/jpeg", "image/png", "image/gif", "image/webp"})
DOCUMENTS = frozenset({"application/pdf", "text/plain"})
_PAIRED = ("tool_use", "tool_result")
_THOUGHTS = ("thinking", "redacted_thinking")


def write_history(writing: Writing, conversation: Conversation) -> JsonObject:
    """Write `{"system": …, "messages": […]}`; `system` only for leading system messages."""
    system, messages = write_turns(writing, conversation, SPELLING)
    request: JsonObject = {
        "messages": [{**one, "content": _simple(list_in(one["content"]))} for one in messages]
    }
    return {"system": _simple(system), **request} if system else request


def _may_follow(before: JsonObject, block: JsonObject) -> bool:
    """Whether a block may follow: reasoning may do so only if the turn begins with reasoning."""
    return _is_thought(before) or not _is_thought(block)


def _is_thought(block: JsonObject) -> bool:
    return block.get("type") in _THOUGHTS


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
    return writing.beside(native, message, call.extras, where)


def _result(writing: Writing, answered: Answered) -> JsonObject:
    result, source, where = answered.result, answered.source, answered.where
    native: JsonObject = {"type": "tool_result", "tool_use_id": answered.wire_id}
    shown: Iterable[MessageBlock] = result.content
    if result.is_error:
        # With an error, the server accepts only text.
        shown = [
            one if isinstance(one, TextBlock) else TextBlock(text=writing.described(one, where))
            for one in result.content
        ]
    if content := [*SPELLING.parts(writing, source, shown, where)]:
        native["content"] = _simple(content)
        writing.note_status(result, where)
        if result.has_structured:
            writing.note("structured_dropped", where, "the structured value beside the content")
    else:
        bare = result.model_copy(update={"content": ()})
        native["content"] = writing.result_text(bare, where, prefix=False)
    if result.is_error:
        native["is_error"] = True
    return writing.beside(native, source, result.extras, where)


def _native(writing: Writing, message: Message, block: MessageBlock, where: str) -> JsonValue:
    match block:
        case ReasoningBlock() if writing.replays(message) and _is_thought(block.extras):
            writing.note_thoughts(block, text_in(block.extras.get("thinking")) or "", where)
            return dict(block.extras)
        case ProviderBlock() if writing.replays(message):
            kind = object_in(block.native).get("type")
            # A call without its result, or a result alone, makes the server refuse the request.
            return block.native if isinstance(kind, str) and kind not in _PAIRED else None
        case MediaBlock() if message.role in ("user", "tool"):
            return _media(writing, message, block, where)
        case _:
            return None


def _media(writing: Writing, message: Message, block: MediaBlock, where: str) -> JsonObject | None:
    """Write media as a block; None if there is none. Members that are lost are reported."""
    source = _source(writing, message, block)
    if source is None:
        return None
    native: JsonObject = {"type": block.kind, "source": source}
    if block.name is not None and block.kind == "document":
        native["title"] = block.name
    unsaid = ["name"] if block.kind == "image" else []
    unsaid.append("uri" if block.data is not None else "media_type")
    writing.note_media(block, where, *unsaid)
    return writing.beside(native, message, block.extras, where)


def _source(writing: Writing, message: Message, block: MediaBlock) -> JsonObject | None:
    """The `source` of media; None for a kind or a type that the format does not have."""
    content = decoded(block.data or "") or b""
    has_place = block.data is None and writing.tells_place(message, block)
    if block.kind == "audio" or not (content or has_place):
        return None
    if has_place:
        uri = block.uri or ""
        is_file = uri.startswith(FILE)
        place: JsonObject = {"type": "file", "file_id": uri.removeprefix(FILE)}
        return place if is_file else {"type": "url", "url": uri}
    native: JsonObject = {"media_type": block.media_type, "data": block.data}
    if block.kind == "document" and block.media_type == "text/plain":
        try:
            return {"type": "text", **native, "data": content.decode()}
        except UnicodeDecodeError:
            return None
    is_taken = block.media_type in (IMAGES if block.kind == "image" else DOCUMENTS)
    return {"type": "base64", **native} if is_taken else None


def _simple(blocks: Sequence[JsonValue]) -> JsonValue:
    """The content of a message: a single plain text as a text, anything else as blocks."""
    first = object_in(blocks[0])
    if len(blocks) == 1 and set(first) == {"type", "text"}:
        return first["text"]
    return list(blocks)


SPELLING = TurnSpelling(
    assistant="assistant",
    content="content",
    text=lambda text: {"type": "text", "text": text},
    call=_call,
    result=_result,
    native=_native,
    is_result=lambda block: block.get("type") == "tool_result",
    may_follow=_may_follow,
)
