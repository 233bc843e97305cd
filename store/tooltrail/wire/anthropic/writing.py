"""The canonical conversation as the messages of a request to Anthropic.

All results of a batch stand in one message of the user, first in it and in the order of the calls.
Messages of one role are merged, for the roles take turns. A block without a word is refused by the
server, so there is none.
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
    ResultBlock,
    TextBlock,
)
from tooltrail.wire._descriptions import describe_block
from tooltrail.wire._steps import Answered, Answers, Said, steps
from tooltrail.wire._writing import Writing
from tooltrail.wire.anthropic.limits import CAPABILITIES, NAME
from tooltrail.wire.anthropic.media import write_media
from tooltrail.wire.exports import DEFAULT_EXPORT_POLICY, Export, ExportPolicy
from tooltrail.wire.members import JsonObject, list_in, object_in, objects_in, text_in

_BEGINNING = "(the conversation begins with the assistant)"
_SYSTEM = ("system", "developer")


def write_history(
    conversation: Conversation, policy: ExportPolicy = DEFAULT_EXPORT_POLICY
) -> Export:
    """`{"system": …, "messages": […]}`, the former where the conversation begins with one.

    Raises:
        ExportRefusedError: something would be changed, and the policy is strict.
    """
    writing = Writing(NAME, CAPABILITIES, policy)
    turns = _Turns(writing)
    system: list[JsonValue] = []
    for step in steps(writing, conversation):
        if isinstance(step, Answers):
            turns.add("assistant", _calls(writing, step), step.where)
            results = [_result(writing, answered) for answered in step.answered]
            turns.add("user", results, step.where)
        elif step.message.role in _SYSTEM and not turns.messages:
            _note_role(writing, step.message.role, "system", step.where)
            system.extend(_said(writing, step))
        else:
            role = "assistant" if step.message.role == "assistant" else "user"
            _note_role(writing, step.message.role, role, step.where)
            turns.add(role, list(_said(writing, step)), step.where)
    request: JsonObject = {"messages": list(turns.messages)}
    return writing.export({"system": _simple(system), **request} if system else request)


def is_result(item: JsonObject) -> bool:
    """Whether a message brings results of tools."""
    return any(block.get("type") == "tool_result" for block in objects_in(item.get("content")))


class _Turns:
    """Messages whose roles take turns, the user's first."""

    def __init__(self, writing: Writing) -> None:
        self._writing = writing
        self.messages: list[JsonValue] = []

    def add(self, role: str, blocks: Sequence[JsonValue], where: str) -> None:
        if not blocks:
            self._writing.note("message_empty", where, "nothing of it can be said; left out")
            return
        if not self.messages and role != "user":
            self._writing.note("message_added", where, f"{_BEGINNING!r} stands before it")
            self.messages.append({"role": "user", "content": _BEGINNING})
        last = object_in(self.messages[-1]) if self.messages else {}
        if last.get("role") == role:
            content = last["content"]
            before = [_text(content)] if isinstance(content, str) else list_in(content)
            if not _are_results(before):
                self._writing.note("messages_merged", where, "it is one with the message before")
            last["content"] = [*before, *blocks]
        else:
            self.messages.append({"role": role, "content": _simple(blocks)})


def _are_results(blocks: Sequence[JsonValue]) -> bool:
    """Whether what is said behind them is told apart from them all the same."""
    return object_in(blocks[-1]).get("type") == "tool_result"


def _note_role(writing: Writing, role: str, told: str, where: str) -> None:
    if role != told:
        writing.note("role_changed", where, f"{role} is {told} here")


def _said(writing: Writing, step: Said) -> Iterator[JsonValue]:
    for block in step.message.blocks:
        yield from _block(writing, step.message, block, step.where)


def _calls(writing: Writing, step: Answers) -> list[JsonValue]:
    natives: list[JsonValue] = []
    for block in step.blocks():
        if isinstance(block, Answered):
            natives.append(_call(writing, step.message, block))
        else:
            natives.extend(_block(writing, step.message, block, step.where))
    return natives


def _call(writing: Writing, message: Message, answered: Answered) -> JsonObject:
    call, where = answered.call, answered.where
    extras = writing.extras(message, call.extras, where)
    if call.namespace is not None:
        extras.update(writing.extras(message, {"toolset_name": call.namespace}, where))
    return {
        **extras,
        "type": "tool_use",
        "id": answered.wire_id,
        "name": answered.wire_name,
        "input": writing.arguments_object(call, where),
    }


def _result(writing: Writing, answered: Answered) -> JsonObject:
    result, where = answered.result, answered.where
    native: JsonObject = {"type": "tool_result", "tool_use_id": answered.wire_id}
    media = [block for block in result.content if isinstance(block, MediaBlock)]
    if result.is_error or not any(map(write_media, media)):
        # Beside an error the server takes text alone.
        native["content"] = writing.result_text(result, where, prefix=False)
    else:
        native["content"] = list(_content(writing, result, where))
        writing.note_status(result, where)
    if result.is_error:
        native["is_error"] = True
    writing.note_extras(result, where)
    return native


def _content(writing: Writing, result: ResultBlock, where: str) -> Iterator[JsonValue]:
    for block in result.content:
        native = write_media(block) if isinstance(block, MediaBlock) else None
        if native is not None:
            writing.note_extras(block, where)
            yield native
        elif (text := writing.content_text((block,), where)).strip():
            yield _text(text)
        else:
            writing.note("block_dropped", where, "[text without a word]")
    if result.has_structured:
        writing.note("structured_dropped", where, "the structured value beside the content")


def _block(
    writing: Writing, message: Message, block: MessageBlock, where: str
) -> Iterator[JsonValue]:
    match block:
        case TextBlock():
            text = writing.clean.text(block.text, where)
            if text.strip():
                yield {**_text(text), **writing.extras(message, block.extras, where)}
            else:
                writing.note("block_dropped", where, "[text without a word]")
        case ReasoningBlock() if writing.replays(message) and "type" in block.extras:
            writing.note_thoughts(block, text_in(block.extras.get("thinking")) or "", where)
            yield dict(block.extras)
        case ProviderBlock() if writing.replays(message):
            yield block.native
        case MediaBlock() if message.role == "user" and (native := write_media(block)):
            yield {**native, **writing.extras(message, block.extras, where)}
        case ReasoningBlock() | ProviderBlock():
            writing.dropped_block(block, where)
        case _:
            writing.note("block_described", where, describe_block(block))
            yield _text(describe_block(block))


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _simple(blocks: Sequence[JsonValue]) -> JsonValue:
    """The content of a message: of one text that text, of anything else the blocks."""
    first = object_in(blocks[0])
    if len(blocks) == 1 and set(first) == {"type", "text"}:
        return first["text"]
    return list(blocks)
