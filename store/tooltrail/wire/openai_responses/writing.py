"""The canonical conversation as the input of an OpenAI Responses request.

The items of one turn keep their order, and all outputs follow in the order of the calls: that is
what the strictest servers take. Ids of items, reasoning and what the provider ran itself go back
to it alone; without its id a message of the assistant is a plain text.
"""

from collections.abc import Iterator
from itertools import count

from pydantic import JsonValue

from tooltrail.records import Conversation, MediaBlock, MessageBlock, ProviderBlock, TextBlock
from tooltrail.wire._steps import Answers, Said, steps
from tooltrail.wire._writing import Writing
from tooltrail.wire.members import JsonObject, object_in
from tooltrail.wire.openai_responses.items import ITEM
from tooltrail.wire.openai_responses.outputs import OUTPUT_TYPES
from tooltrail.wire.openai_responses.parts import write_part
from tooltrail.wire.openai_responses.turns import without_item, write_turn

_NAMES_ANOTHER = frozenset({"item_reference", "local_shell_call_output"})
"""Items whose `id` is that of the item they belong to."""

_STEM_LENGTH = 56
"""Characters of an id that are kept in front of a number; 64 are allowed."""


def write_history(writing: Writing, conversation: Conversation) -> JsonObject:
    """`{"input": […]}`; system messages are items of it."""
    items: list[JsonObject] = []
    follows_turn = False
    for step in steps(writing, conversation):
        is_turn = isinstance(step, Answers) or step.message.role == "assistant"
        written = [*write_turn(writing, step)] if is_turn else [*_write_said(writing, step)]
        if not written:
            writing.note("message_empty", step.where, "nothing of it can be said here")
            continue
        if is_turn and follows_turn:
            note = "nothing tells the items of this turn from those of the one before"
            writing.note("order_changed", step.where, note)
        follows_turn = is_turn and isinstance(step, Said)
        items.extend(written)
    return {"input": [*_with_ids_of_their_own(writing, items)]}


def _with_ids_of_their_own(writing: Writing, items: list[JsonObject]) -> Iterator[JsonObject]:
    """The items, of which none has the id of another: an answer may be in a session twice."""
    used: set[JsonValue] = set()
    for item in items:
        own = item.get("id")
        if not isinstance(own, str) or item.get("type") in _NAMES_ANOTHER:
            yield item
            continue
        free = own
        attempts = count(2)
        while free in used:
            free = f"{own[:_STEM_LENGTH]}_{next(attempts)}"
        if free != own:
            writing.note("id_renamed", "input", f"the item {own[:_STEM_LENGTH]!a} is {free!a} here")
        used.add(free)
        yield item if free == own else {**item, "id": free}


def is_result(item: JsonObject) -> bool:
    """Whether an item is the output of a tool."""
    return item.get("type") in OUTPUT_TYPES


def _write_said(writing: Writing, step: Said | Answers) -> Iterator[JsonObject]:
    """A message of the user, of the system or of the developer."""
    message, where = step.message, step.where
    replays = writing.replays(message)
    writing.note_message_extras(message, where)
    parts: list[JsonObject] = []
    for block in message.blocks:
        if object_in(block.extras.get(ITEM)):
            writing.note("provider_data_dropped", where, "what its item said beside the content")
        takes_media = message.role == "user"
        part = _write_block(writing, block, where, replays=replays, takes_media=takes_media)
        if part is not None:
            parts.append(part)
    if len(parts) == 1 and parts[0].keys() == {"type", "text"}:
        yield {"role": message.role, "content": parts[0]["text"]}
    elif parts:
        yield {"role": message.role, "content": [*parts]}


def _write_block(
    writing: Writing, block: MessageBlock, where: str, *, replays: bool, takes_media: bool
) -> JsonObject | None:
    if isinstance(block, TextBlock | MediaBlock):
        block = block.model_copy(update={"extras": without_item(block.extras)})
    if isinstance(block, TextBlock):
        if block.is_refusal:
            writing.note("block_described", where, "a refusal is a plain text here")
        return write_part(writing, block, where, replays=replays)
    if isinstance(block, MediaBlock) and takes_media:
        part = write_part(writing, block, where, replays=replays)
        if part is not None:
            return part
    if isinstance(block, ProviderBlock):
        part = write_part(writing, block, where, replays=replays)
        if part is None:
            writing.dropped_block(block, where)
        writing.note_extras(block.model_copy(update={"extras": without_item(block.extras)}), where)
        return part
    if block.type == "reasoning":
        writing.dropped_block(block, where)
        return None
    text = writing.clean.text(writing.described(block, where), where)
    writing.note_extras(block, where)
    return {"type": "input_text", "text": text}
