"""One turn of the model as items, its calls among them, and the outputs of the calls behind it."""

from collections.abc import Iterator
from dataclasses import dataclass, field

from pydantic import JsonValue

from tooltrail.records import (
    Message,
    MessageBlock,
    ProviderBlock,
    ReasoningBlock,
    ResultBlock,
    TextBlock,
)
from tooltrail.wire._steps import Answered, Answers, Said
from tooltrail.wire._writing import Writing
from tooltrail.wire.members import JsonObject, object_in, text_in
from tooltrail.wire.openai_responses.answering import write_answered
from tooltrail.wire.openai_responses.items import ITEM, is_reference, thoughts_in
from tooltrail.wire.openai_responses.parts import cleaned, kept_extras, with_extras


def write_turn(writing: Writing, step: Said | Answers) -> Iterator[JsonObject]:
    """The items of what an assistant says and asks for, then all outputs in the order asked."""
    message, where = step.message, step.where
    turn = _Turn(writing, message, where, replays=writing.replays(message))
    if message.role != "assistant":
        writing.note("role_changed", where, f"{message.role} is assistant here")
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


def without_item(extras: JsonObject) -> JsonObject:
    """The extras of a block without what its item said, which is the item's again."""
    is_item = isinstance(extras.get(ITEM), dict)
    return {name: value for name, value in extras.items() if name != ITEM or not is_item}


@dataclass(slots=True)
class _Turn:
    """The items of one message of the assistant, as far as they have come.

    Attributes:
        writing: the export.
        message: that is written.
        where: it stands in the conversation.
        replays: whether what its provider said goes back to it.
        items: that are whole.
        about: what the item says beside its content whose parts are being collected.
        parts: of that item.
    """

    writing: Writing
    message: Message
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
        elif not isinstance(block, ResultBlock):
            # A result is written behind the call that it belongs to.
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
        extras = without_item(block.extras)
        if self.replays and text_in(about.get("id")):
            member = "refusal" if block.is_refusal else "text"
            part: JsonObject = {
                "type": "refusal" if block.is_refusal else "output_text",
                member: self.writing.clean.text(block.text, self.where),
            }
            part = with_extras(self.writing, part, extras, self.where, replays=True)
            self._collect(about, part if block.is_refusal else {"annotations": [], **part})
            return
        self.close()
        if block.is_refusal:
            self.writing.note("block_described", self.where, "a refusal is a plain text here")
        phase: JsonObject = {}
        if self.replays and about.keys() == {"phase"}:
            phase = cleaned(self.writing, about, self.where)
        elif about:
            extras[ITEM] = about
        kept_extras(self.writing, extras, self.where, replays=False)
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
        besides = block.model_copy(update={"extras": without_item(block.extras)})
        self.writing.note_extras(besides, self.where)
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
        if self.replays and "id" in extras and isinstance(extras.get("summary"), list):
            self.writing.note_thoughts(block, thoughts_in(extras), self.where)
            native = cleaned(self.writing, extras, self.where)
            self.items.append({"type": "reasoning", **native})
        else:
            self.writing.dropped_block(block, self.where)
