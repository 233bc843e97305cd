"""Writes the canonical conversation as the messages of a request to Converse.

All results of a batch are at the beginning of one message of the user, in the order of the calls.
Adjacent messages of one role are merged, because roles must alternate. The server refuses a blank
text, a document in a message without text, and two documents with one name.
"""

import re

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
from tooltrail.wire.bedrock.reading import CALL, MEDIA, read_block
from tooltrail.wire.media_uris import has_bytes
from tooltrail.wire.members import JsonObject, list_in, object_in, objects_in, text_in

_ILLEGAL = re.compile(r"[^a-zA-Z0-9 ()\[\]-]+| {2,}")
_NAME_CHARS = 190
"""Maximum length of a document's name in characters; the server accepts 200."""

_UNNAMED = "document"
_BESIDE = "(a document)"


def write_history(writing: Writing, conversation: Conversation) -> JsonObject:
    """Write `{"system": …, "messages": […]}`; `system` only for leading system messages."""
    system, messages = write_turns(writing, conversation, SPELLING)
    names: set[str] = set()
    for message in messages:
        _fit_documents(writing, message, names)
    request: JsonObject = {"messages": [*messages]}
    return {"system": system, **request} if system else request


def _fit_documents(writing: Writing, message: JsonObject, names: set[str]) -> None:
    """Give each document a legal and unique name, and its message a text."""
    spoken = objects_in(message["content"])
    results = (object_in(part.get("toolResult")).get("content") for part in spoken)
    for part in (*spoken, *(part for content in results for part in objects_in(content))):
        if isinstance(document := part.get("document"), dict):
            given = document.get("name")
            name = _new_name(text_in(given) or _UNNAMED, names)
            part["document"] = {**document, "name": name}
            if name != given:
                note = f"the document {given!a} is {name!r} here"
                writing.note("block_described", "messages", note)
    if any("document" in part for part in spoken) and not any("text" in part for part in spoken):
        writing.note("message_added", "messages", f"{_BESIDE!r} stands beside a document")
        message["content"] = [*list_in(message["content"]), {"text": _BESIDE}]


def _new_name(given: str, names: set[str]) -> str:
    legal = _ILLEGAL.sub("-", given)[:_NAME_CHARS].strip() or _UNNAMED
    name, number = legal, len(names)
    while name.lower() in names:
        number += 1
        name = f"{legal} {number}"
    names.add(name.lower())
    return name


def _call(writing: Writing, message: Message, answered: Answered) -> JsonObject:
    call, where = answered.call, answered.where
    native: JsonObject = {
        "toolUseId": answered.wire_id,
        "name": answered.wire_name,
        "input": writing.arguments_object(call, where, "input"),
    }
    return {"toolUse": writing.beside(native, message, call.extras, where, CALL)}


def _result(writing: Writing, answered: Answered) -> JsonObject:
    result, where = answered.result, answered.where
    shown = result.content
    if result.is_error and any(not isinstance(block, TextBlock) for block in shown):
        # With an error, Anthropic's models accept only text.
        shown = (TextBlock(text=writing.content_text(shown, where)),)
    content: list[JsonValue] = [*SPELLING.parts(writing, answered.source, shown, where)]
    if content and result.has_structured:
        writing.note("structured_dropped", where, "the structured value beside the content")
    elif isinstance(result.structured, dict):
        content = [{"json": writing.clean.value(result.structured, where)}]
    elif not content:
        bare = result.model_copy(update={"content": ()})
        text = writing.result_text(bare, where, prefix=False, has_status=True)
        content = [{"text": text}]
    native: JsonObject = {"toolUseId": answered.wire_id, "content": content}
    if result.status != "unknown":
        writing.note_status(result, where)
        native["status"] = "error" if result.is_error else "success"
    return {"toolResult": writing.beside(native, answered.source, result.extras, where)}


def _native(writing: Writing, message: Message, block: MessageBlock, where: str) -> JsonValue:
    match block:
        case ReasoningBlock() if writing.replays(message) and (block.text or block.extras):
            thought = writing.beside({"text": block.text}, message, block.extras, where)
            return {"reasoningContent": {"reasoningText": thought}}
        case ProviderBlock() if _is_native(writing, message, block):
            return {**object_in(block.native)}
        case MediaBlock() if message.role in ("user", "tool"):
            return _media(writing, message, block, where)
        case _:
            return None


def _is_native(writing: Writing, message: Message, block: ProviderBlock) -> bool:
    """Whether the block is written unchanged; the server refuses a call or result alone."""
    member = next(iter(object_in(block.native)), "")
    is_half = member == "toolUse" and block.call is None
    is_half = is_half or (member == "toolResult" and message.role != "assistant")
    return writing.replays(message) and not is_half and read_block(block.native) == block


def _media(writing: Writing, message: Message, block: MediaBlock, where: str) -> JsonObject | None:
    if block.media_type not in MEDIA or not has_bytes(block):
        return None
    member, spelled = MEDIA[block.media_type]
    native: JsonObject = {"format": spelled, "source": {"bytes": block.data}}
    if block.kind != member:
        writing.note("block_described", where, f"{block.kind} of type {block.media_type}")
    if member == "document":
        native["name"] = block.name or _UNNAMED
        if not block.name:
            writing.note("block_described", where, f"a file without a name is {_UNNAMED!r} here")
    writing.note_media(block, where, "uri", *["name"] * (member == "image"))
    return {member: writing.beside(native, message, block.extras, where)}


SPELLING = TurnSpelling(
    assistant="assistant",
    content="content",
    text=lambda text: {"text": text},
    call=_call,
    result=_result,
    native=_native,
    is_result=lambda block: "toolResult" in block,
    has_text_extras=False,
)
