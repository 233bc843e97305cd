"""Writes the canonical conversation as the contents of a request to Gemini.

All responses to one batch of calls are in one content, one for each call and in their order. A
response is an object with the key `output` or `error`, so that a tool's own result with such a key
is not misread; or the complete object that was read. Parts from another model get no signature.
"""

from pydantic import JsonValue

from tooltrail.records import (
    ContentBlock,
    Conversation,
    MediaBlock,
    Message,
    MessageBlock,
    ProviderBlock,
    ReasoningBlock,
)
from tooltrail.wire._steps import Answered
from tooltrail.wire._turns import TurnSpelling, write_turns
from tooltrail.wire._writing import Writing
from tooltrail.wire.gemini.partial_arguments import PIECES
from tooltrail.wire.gemini.parts import MEDIA, kind_of
from tooltrail.wire.media_uris import has_bytes
from tooltrail.wire.members import LAYOUT, JsonObject, object_in


def write_history(writing: Writing, conversation: Conversation) -> JsonObject:
    """Write `{"systemInstruction": …, "contents": […]}`; the former for leading system messages."""
    system, contents = write_turns(writing, conversation, SPELLING)
    instruction: JsonObject = {"systemInstruction": {"parts": system}} if system else {}
    return {**instruction, "contents": [*contents]}


def _native(writing: Writing, message: Message, block: MessageBlock, where: str) -> JsonValue:
    match block:
        case ReasoningBlock() if writing.replays(message) and block.extras.get("thought") is True:
            return _part(writing, {"text": block.text}, message, block.extras, where)
        case ProviderBlock() if writing.replays(message) and object_in(block.native):
            return block.native
        case MediaBlock() if message.role == "user" or writing.replays(message):
            return _media(writing, message, block, where)
        case _:
            return None


def _part(
    writing: Writing, native: JsonObject, message: Message, extras: JsonObject, where: str
) -> JsonObject:
    """Write a part of one member, with Gemini's extras within that member and beside it."""
    ((member, members),) = native.items()
    within = extras.get(member)
    if isinstance(members, dict) and isinstance(within, dict):
        # Only the server sends a call in pieces.
        known = PIECES if member == "functionCall" else frozenset[str]()
        members = writing.beside(members, message, within, where, known)
        extras = {name: value for name, value in extras.items() if name != member}
    return writing.beside({member: members}, message, extras, where)


def _media(writing: Writing, message: Message, block: MediaBlock, where: str) -> JsonObject | None:
    """Write media as a part; None if there is none. Members that are lost are reported."""
    # Gemini knows its own files and buckets, whatever their URIs are.
    tells_place = writing.tells_place(message, block) or writing.replays(message)
    member, given = "inlineData", block.data
    if given is None and tells_place:
        member, given = "fileData", block.uri
    is_damaged = block.data is not None and not has_bytes(block)
    if given is None or block.media_type is None or is_damaged:
        return None
    members: JsonObject = {"mimeType": block.media_type, MEDIA[member]: given}
    if block.name is not None:
        members["displayName"] = block.name
    writing.note_media(block, where, *(["uri"] if block.data is not None else []))
    if block.kind != kind_of(block.media_type):
        writing.note("block_described", where, f"{block.kind} of type {block.media_type}")
    return _part(writing, {member: members}, message, block.extras, where)


def _call(writing: Writing, message: Message, answered: Answered) -> JsonObject:
    call, where = answered.call, answered.where
    members: JsonObject = {
        "name": answered.wire_name,
        "args": writing.arguments_object(call, where, "input"),
    }
    if answered.wire_id is not None:
        members["id"] = answered.wire_id
    return _part(writing, {"functionCall": members}, message, call.extras, where)


def _response(writing: Writing, answered: Answered) -> JsonObject:
    result, where = answered.result, answered.where
    native, rest = _split(writing, answered)
    value: JsonValue
    if result.has_structured and not rest:
        if isinstance(result.structured, str):
            writing.note("structured_as_text", where, "the structured value is a text here")
        value = writing.clean.value(result.structured, where)
        writing.note_status(result, where)
    else:
        spoken = result.model_copy(update={"content": rest})
        value = writing.result_text(spoken, where, prefix=False)
    within = dict(result.extras)
    is_complete = within.pop(LAYOUT, None) == result.status and isinstance(value, dict)
    named: JsonObject = {"error" if result.is_error else "output": value}
    members: JsonObject = {
        "name": answered.wire_name,
        "response": value if is_complete else named,
    }
    if answered.wire_id is not None:
        members["id"] = answered.wire_id
    if native:
        members["parts"] = native
    beside = object_in(within.pop("part")) if isinstance(within.get("part"), dict) else {}
    extras: JsonObject = {**beside, "functionResponse": within}
    return _part(writing, {"functionResponse": members}, answered.source, extras, where)


def _split(
    writing: Writing, answered: Answered
) -> tuple[list[JsonValue], tuple[ContentBlock, ...]]:
    """The native parts of a response, and the blocks that are written in its text."""
    native: list[JsonValue] = []
    rest: list[ContentBlock] = []
    for block in answered.result.content:
        part = None if answered.result.is_error else _content(writing, answered, block)
        if part is not None:
            native.append(part)
            continue
        if native:
            writing.note("order_changed", answered.where, "what is text comes first")
        rest.append(block)
    return native, tuple(rest)


def _content(writing: Writing, answered: Answered, block: ContentBlock) -> JsonValue:
    """Write a block as a part of a response; None if it is written in the text."""
    match block:
        case MediaBlock() if _is_taken(writing, block.media_type or ""):
            return _media(writing, answered.source, block, answered.where)
        case ProviderBlock() if writing.replays(answered.source) and object_in(block.native):
            return block.native
        case _:
            return None


def _is_taken(writing: Writing, media_type: str) -> bool:
    """Whether a response can contain media of this type."""
    kind = media_type.partition("/")[0]
    return not writing.capabilities.result_media.isdisjoint({media_type, f"{kind}/*"})


SPELLING = TurnSpelling(
    assistant="model",
    content="parts",
    text=lambda text: {"text": text},
    call=_call,
    result=_response,
    native=_native,
    is_result=lambda part: "functionResponse" in part,
    is_said=lambda part: bool(part["text"]) or len(part) > 1,
    merges_users=False,
)
