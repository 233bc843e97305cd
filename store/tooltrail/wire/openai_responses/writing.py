"""The canonical conversation as the input of an OpenAI Responses request.

The items of one turn keep their order, and all outputs follow in the order of the calls: that is
what the strictest servers take. Ids of items, reasoning and what the provider ran itself go back
to it alone; without its id a message of the assistant is a plain text.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import count

from pydantic import JsonValue

from tooltrail.records import (
    Conversation,
    MediaBlock,
    MessageBlock,
    ProviderBlock,
    ReasoningBlock,
    TextBlock,
)
from tooltrail.wire._steps import Answered, Answers, Said, steps
from tooltrail.wire._writing import Writing
from tooltrail.wire.members import JsonObject, object_in, text_in
from tooltrail.wire.openai_responses.answering import write_answered
from tooltrail.wire.openai_responses.outputs import OUTPUT_TYPES
from tooltrail.wire.openai_responses.parts import cleaned, write_part
from tooltrail.wire.openai_responses.reading import ITEM, is_reference, thoughts_in

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
        written = [*_write_turn(writing, step)] if is_turn else [*_write_said(writing, step)]
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
        block = block.model_copy(update={"extras": _without_item(block.extras)})
    if isinstance(block, TextBlock):
        writing.note_refusal(block, where)
        return write_part(writing, block, where, replays=replays)
    if isinstance(block, MediaBlock) and takes_media:
        part = write_part(writing, block, where, replays=replays)
        if part is not None:
            return part
    if isinstance(block, ProviderBlock):
        part = write_part(writing, block, where, replays=replays)
        if part is None:
            writing.dropped_block(block, where)
        writing.note_dropped(_without_item(block.extras), where)
        return part
    if block.type == "reasoning":
        writing.dropped_block(block, where)
        return None
    text = writing.clean.text(writing.described(block, where), where)
    writing.note_extras(block, where)
    return {"type": "input_text", "text": text}


def _write_turn(writing: Writing, step: Said | Answers) -> Iterator[JsonObject]:
    """The items of what an assistant says and asks for, then all outputs in the order asked."""
    message, where = step.message, step.where
    turn = _Turn(writing, where, replays=writing.replays(message))
    writing.note_message_extras(message, where)
    outputs: list[JsonObject] = []
    for block in step.blocks() if isinstance(step, Answers) else message.blocks:
        if isinstance(block, Answered):
            call, output = write_answered(writing, block, replays=turn.replays)
            turn.close()
            turn.items.append(call)
            outputs.append(output)
        else:
            turn.take(block)
    turn.close()
    yield from turn.items
    yield from outputs


def _without_item(extras: JsonObject) -> JsonObject:
    """The extras of a block without the member `item`."""
    is_item = isinstance(extras.get(ITEM), dict)
    return {name: value for name, value in extras.items() if name != ITEM or not is_item}


@dataclass(slots=True)
class _Turn:
    """The items of one message of the assistant, as far as they have come.

    Attributes:
        writing: the export.
        where: the message stands in the conversation.
        replays: whether what the provider said for itself goes back to it.
        items: that are complete.
        about: members of the message item under construction, besides its content.
        parts: of its content.
    """

    writing: Writing
    where: str
    replays: bool
    items: list[JsonObject] = field(default_factory=list[JsonObject])
    about: JsonObject = field(default_factory=dict[str, JsonValue])
    parts: list[JsonValue] = field(default_factory=list[JsonValue])

    def take(self, block: MessageBlock) -> None:
        """Write one block that is no call."""
        if isinstance(block, TextBlock):
            self._take_text(block)
        elif isinstance(block, ProviderBlock):
            self._take_provided(block)
        elif isinstance(block, ReasoningBlock):
            self.close()
            self._take_reasoning(block)
        else:
            self.close()
            described = self.writing.described(block, self.where)
            self.writing.note_extras(block, self.where)
            self._say(described, {})

    def close(self) -> None:
        """End the message whose parts are being collected."""
        if self.parts:
            about = cleaned(self.writing, self.about, self.where)
            native: JsonObject = {"type": "message", "role": "assistant", "status": "completed"}
            self.items.append({**native, **about, "content": self.parts})
        self.about, self.parts = {}, []

    def _take_text(self, block: TextBlock) -> None:
        about = object_in(block.extras.get(ITEM))
        extras = _without_item(block.extras)
        if self.replays and text_in(about.get("id")):
            member = "refusal" if block.is_refusal else "text"
            part: JsonObject = {
                "type": "refusal" if block.is_refusal else "output_text",
                member: self.writing.clean.text(block.text, self.where),
            }
            part = self.writing.with_extras(part, extras, self.where)
            self._collect(about, part if block.is_refusal else {"annotations": [], **part})
            return
        self.close()
        self.writing.note_refusal(block, self.where)
        phase: JsonObject = {}
        if self.replays and about.keys() == {"phase"}:
            phase = cleaned(self.writing, about, self.where)
        elif about:
            extras[ITEM] = about
        self.writing.note_dropped(extras, self.where)
        self._say(block.text, phase)

    def _say(self, text: str, besides: JsonObject) -> None:
        clean = self.writing.clean.text(text, self.where)
        self.items.append({"role": "assistant", "content": clean, **besides})

    def _collect(self, about: JsonObject, part: JsonObject) -> None:
        if about != self.about:
            self.close()
        self.about = about
        self.parts.append(part)

    def _take_provided(self, block: ProviderBlock) -> None:
        native, about = object_in(block.native), block.extras.get(ITEM)
        is_known = isinstance(native.get("type"), str) or is_reference(native)
        if not (self.replays and native and is_known):
            self.close()
            self.writing.dropped_block(block, self.where)
            return
        self.writing.note_dropped(_without_item(block.extras), self.where)
        item = cleaned(self.writing, native, self.where)
        if about is None:
            self.close()
            self.items.append(item)
        elif text_in(object_in(about).get("id")):
            self._collect(object_in(about), item)
        else:
            self.close()
            phase = cleaned(self.writing, object_in(about), self.where)
            self.items.append({"role": "assistant", "content": [item], **phase})

    def _take_reasoning(self, block: ReasoningBlock) -> None:
        extras = block.extras
        # With or without an id, it goes back as it came.
        if self.replays and isinstance(extras.get("summary"), list):
            self.writing.note_thoughts(block, thoughts_in(extras), self.where)
            native = cleaned(self.writing, extras, self.where)
            self.items.append({"type": "reasoning", **native})
        else:
            self.writing.dropped_block(block, self.where)
