"""The canonical conversation as the contents of a request to Gemini.

All responses to one turn of calls stand in one content, as many as there were calls and in their
order. A response is always an object with the key `output` or `error`, so that a tool whose own
result has such a key is not misread. No signature is made up for what another model said.
"""

from collections.abc import Iterator, Sequence

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
from tooltrail.wire._descriptions import describe_block
from tooltrail.wire._steps import Answered, Answers, steps
from tooltrail.wire._writing import Writing
from tooltrail.wire.exports import DEFAULT_EXPORT_POLICY, Export, ExportPolicy
from tooltrail.wire.gemini.limits import CAPABILITIES, NAME
from tooltrail.wire.gemini.parts import part_of_media
from tooltrail.wire.members import JsonObject, list_in, object_in, objects_in

_BEGINNING = "(the conversation begins with the assistant)"
_SYSTEM = ("system", "developer")


def write_history(
    conversation: Conversation, policy: ExportPolicy = DEFAULT_EXPORT_POLICY
) -> Export:
    """`{"systemInstruction": …, "contents": […]}`, the former where there is one at the beginning.

    Raises:
        ExportRefusedError: something would be changed, and the policy is strict.
    """
    writing = Writing(NAME, CAPABILITIES, policy)
    turns = _Turns(writing)
    system: list[JsonValue] = []
    for step in steps(writing, conversation):
        message, where = step.message, step.where
        if isinstance(step, Answers):
            turns.add("model", list(_parts(writing, message, step.blocks(), where)), where)
            turns.add("user", [_response(writing, one) for one in step.answered], where)
        elif message.role in _SYSTEM and not turns.contents:
            _note_role(writing, message.role, "system", where)
            system.extend(_parts(writing, message, iter(message.blocks), where))
        else:
            role = "model" if message.role == "assistant" else "user"
            _note_role(writing, message.role, "assistant" if role == "model" else "user", where)
            turns.add(role, list(_parts(writing, message, iter(message.blocks), where)), where)
    request: JsonObject = {"contents": list(turns.contents)}
    instruction: JsonObject = {"systemInstruction": {"parts": system}} if system else {}
    return writing.export({**instruction, **request})


def is_result(item: JsonObject) -> bool:
    """Whether a content brings responses of functions."""
    return any("functionResponse" in part for part in objects_in(item.get("parts")))


class _Turns:
    """Contents, of which one with calls follows one of the user's."""

    def __init__(self, writing: Writing) -> None:
        self._writing = writing
        self.contents: list[JsonValue] = []

    def add(self, role: str, parts: Sequence[JsonValue], where: str) -> None:
        if not parts:
            self._writing.note("message_empty", where, "nothing of it can be said; left out")
            return
        if not self.contents and role != "user":
            self._writing.note("message_added", where, f"{_BEGINNING!r} stands before it")
            self.contents.append({"role": "user", "parts": [{"text": _BEGINNING}]})
        last = object_in(self.contents[-1]) if self.contents else {}
        if role == "model" and last.get("role") == "model":
            self._writing.note("messages_merged", where, "it is one with the message before")
            last["parts"] = [*list_in(last["parts"]), *parts]
        else:
            self.contents.append({"role": role, "parts": list(parts)})


def _note_role(writing: Writing, role: str, told: str, where: str) -> None:
    if role != told:
        writing.note("role_changed", where, f"{role} is {told} here")


def _parts(
    writing: Writing, message: Message, blocks: Iterator[MessageBlock | Answered], where: str
) -> Iterator[JsonValue]:
    for block in blocks:
        match block:
            case Answered():
                yield _call(writing, message, block)
            case TextBlock():
                yield from _text(writing, message, block, where)
            case ReasoningBlock() if writing.replays(message) and block.extras:
                yield {"text": block.text, **block.extras}
            case ProviderBlock() if writing.replays(message):
                yield block.native
            case MediaBlock() if message.role == "user" and (native := part_of_media(block)):
                yield native
            case ReasoningBlock() | ProviderBlock():
                writing.dropped_block(block, where)
            case _:
                writing.note("block_described", where, describe_block(block))
                yield {"text": describe_block(block)}


def _text(writing: Writing, message: Message, block: TextBlock, where: str) -> Iterator[JsonValue]:
    text, extras = (
        writing.clean.text(block.text, where),
        writing.extras(message, block.extras, where),
    )
    if text or extras:
        yield {"text": text, **extras}
    else:
        writing.note("block_dropped", where, "[empty text]")


def _call(writing: Writing, message: Message, answered: Answered) -> JsonObject:
    call, where = answered.call, answered.where
    extras = writing.extras(message, call.extras, where)
    if call.namespace is not None:
        writing.note("provider_data_dropped", where, f"namespace {call.namespace}")
    told: JsonObject = {
        **object_in(extras.pop("functionCall", None)),
        "name": answered.wire_name,
        "args": writing.arguments_object(call, where),
    }
    if answered.wire_id is not None:
        told["id"] = answered.wire_id
    return {"functionCall": told, **extras}


def _response(writing: Writing, answered: Answered) -> JsonObject:
    result, where = answered.result, answered.where
    media = [
        native
        for block in result.content
        if isinstance(block, MediaBlock) and (native := part_of_media(block))
    ]
    response: JsonObject
    if result.is_error:
        response = {"error": writing.result_text(result, where, prefix=False)}
    elif result.has_structured and not result.content:
        response = {"output": writing.clean.value(result.structured, where)}
    else:
        texts = tuple(
            one
            for one in result.content
            if not isinstance(one, MediaBlock) or part_of_media(one) is None
        )
        spoken = result.model_copy(update={"content": texts})
        response = {"output": writing.result_text(spoken, where, prefix=False)}
    told: JsonObject = {"name": answered.wire_name, "response": response}
    if answered.wire_id is not None:
        told["id"] = answered.wire_id
    if media and not result.is_error:
        told["parts"] = list(media)
    writing.note_extras(result, where)
    return {"functionResponse": told}
