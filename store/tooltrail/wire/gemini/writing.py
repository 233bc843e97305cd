"""The canonical conversation as the contents of a request to Gemini.

All responses to one turn of calls stand in one content, as many as there were calls and in their
order. A response is always an object with the key `output` or `error`, so that a tool whose own
result has such a key is not misread. No signature is made up for what another model said.
"""

from collections.abc import Iterable, Iterator

from pydantic import JsonValue

from tooltrail.records import (
    ContentBlock,
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
from tooltrail.wire.gemini.partial_arguments import PIECES
from tooltrail.wire.gemini.parts import is_part, kind_of, part_of_media
from tooltrail.wire.members import JsonObject, object_in, objects_in


def write_history(writing: Writing, conversation: Conversation) -> JsonObject:
    """`{"systemInstruction": …, "contents": […]}`, the former if it begins with one."""
    system, contents = write_turns(writing, conversation, _SPELLING)
    instruction: JsonObject = {"systemInstruction": {"parts": system}} if system else {}
    return {**instruction, "contents": [*contents]}


def is_result(item: JsonObject) -> bool:
    """Whether a content brings responses of functions."""
    return any("functionResponse" in part for part in objects_in(item.get("parts")))


def _parts(
    writing: Writing, message: Message, blocks: Iterable[MessageBlock | Answered], where: str
) -> Iterator[JsonValue]:
    for block in blocks:
        match block:
            case Answered():
                yield _call(writing, message, block)
            case TextBlock():
                yield from _text(writing, message, block, where)
            case ReasoningBlock() if (
                writing.replays(message) and block.extras.get("thought") is True
            ):
                yield _part(writing, {"text": block.text}, message, block.extras, where)
            case ProviderBlock() if writing.replays(message) and is_part(block.native):
                yield block.native
            case MediaBlock() if (message.role == "user" or writing.replays(message)) and (
                native := _media(writing, message, block, where)
            ):
                yield native
            case ReasoningBlock() | ProviderBlock():
                writing.dropped_block(block, where)
            case _:
                yield {"text": writing.described(block, where)}


def _part(
    writing: Writing, native: JsonObject, message: Message, extras: JsonObject, where: str
) -> JsonObject:
    """A part of one member, with what Gemini said of it: within that member, and beside it."""
    ((member, members),) = native.items()
    within = extras.get(member)
    if isinstance(members, dict) and isinstance(within, dict):
        members = writing.beside(members, message, within, where)
        extras = {name: value for name, value in extras.items() if name != member}
    return writing.beside({member: members}, message, extras, where)


def _text(writing: Writing, message: Message, block: TextBlock, where: str) -> Iterator[JsonValue]:
    writing.note_refusal(block, where)
    text = writing.clean.text(block.text, where)
    part = _part(writing, {"text": text}, message, block.extras, where)
    if text or len(part) > 1:
        yield part
    else:
        writing.note("block_dropped", where, "[empty text]")


def _media(writing: Writing, message: Message, block: MediaBlock, where: str) -> JsonObject | None:
    """The part of media, if there is one; what of them it does not say is in the report."""
    # Gemini knows its own files and buckets, whatever they are called.
    tells_place = writing.tells_place(message, block) or writing.replays(message)
    native = part_of_media(block, tells_place=tells_place)
    if native is None:
        return None
    writing.note_media(block, where, *(["uri"] if block.data is not None else []))
    if block.kind != kind_of(block.media_type):
        writing.note("block_described", where, f"{block.kind} of type {block.media_type}")
    return _part(writing, native, message, block.extras, where)


def _call(writing: Writing, message: Message, answered: Answered) -> JsonObject:
    call, where = answered.call, answered.where
    if call.kind not in ("function", "custom"):
        writing.note("provider_data_dropped", where, f"kind {call.kind}")
    members: JsonObject = {
        "name": answered.wire_name,
        "args": writing.arguments_object(call, where, "input"),
    }
    if answered.wire_id is not None:
        members["id"] = answered.wire_id
    # Only the server sends a call in pieces.
    within = dict.fromkeys(PIECES & object_in(call.extras.get("functionCall")).keys())
    extras = dict(call.extras)
    if within:
        extras["functionCall"] = {**object_in(extras["functionCall"]), **within}
    return _part(writing, {"functionCall": members}, message, extras, where)


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
    members: JsonObject = {
        "name": answered.wire_name,
        "response": {"error" if result.is_error else "output": value},
    }
    if answered.wire_id is not None:
        members["id"] = answered.wire_id
    if native:
        members["parts"] = native
    within = dict(result.extras)
    beside = object_in(within.pop("part")) if isinstance(within.get("part"), dict) else {}
    extras: JsonObject = {**beside, "functionResponse": within}
    return _part(writing, {"functionResponse": members}, answered.source, extras, where)


def _split(
    writing: Writing, answered: Answered
) -> tuple[list[JsonValue], tuple[ContentBlock, ...]]:
    """The parts of a response beside its text, and the blocks that are written in that text."""
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
    """A part of a response for what has one; None for what is written in its text."""
    match block:
        case MediaBlock() if _is_taken(writing, block.media_type or ""):
            return _media(writing, answered.source, block, answered.where)
        case ProviderBlock() if writing.replays(answered.source) and is_part(block.native):
            return block.native
        case _:
            return None


def _is_taken(writing: Writing, media_type: str) -> bool:
    """Whether a response can hold it."""
    kind = media_type.partition("/")[0]
    return not writing.capabilities.result_media.isdisjoint({media_type, f"{kind}/*"})


_SPELLING = TurnSpelling(
    assistant="model",
    content="parts",
    text=lambda text: {"text": text},
    parts=_parts,
    result=_response,
    merges_users=False,
)
