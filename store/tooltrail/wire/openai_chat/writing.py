"""Writes the canonical conversation as the messages of a Chat Completions request.

Results are plain text, because some servers split a list of parts and lose its id. Text and calls
of one turn become one message, with the text first. Reasoning and other provider data are written
only for the provider that sent them.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import JsonValue

from tooltrail.records import (
    Conversation,
    Message,
    MessageBlock,
    ProviderBlock,
    ReasoningBlock,
    TextBlock,
)
from tooltrail.wire._chat.calls import CALL, write_call
from tooltrail.wire._chat.parts import content_of, own_part, write_part
from tooltrail.wire._reading import REASONING
from tooltrail.wire._steps import Answered, Step, steps
from tooltrail.wire._writing import Writing
from tooltrail.wire.members import JsonObject, object_in, text_in
from tooltrail.wire.openai_chat.reading import MESSAGE, RESULT

_SAID_BY = ("content", "refusal", "audio")
"""The members of which a message without calls needs at least one."""

_PLACES = (*REASONING, "content", "refusal", "tool_calls")
"""The order in which the members of a message are read."""

_UNSENT = MESSAGE | {"usage"}
"""Members that extras must not set; importers keep the token counts of an answer in `usage`."""

_MEDIA = frozenset({"image", "audio", "document"})


def write_history(writing: Writing, conversation: Conversation) -> JsonObject:
    """Write `{"messages": […]}`."""
    messages: list[JsonValue] = []
    for step in steps(writing, conversation):
        if said := _write_said(writing, step):
            messages.append(said)
        messages.extend(_write_result(writing, answered) for answered in step.answered)
    return {"messages": messages}


def _write_said(writing: Writing, step: Step) -> JsonObject | None:
    """Write a message; None for an empty message of the assistant."""
    message, where = step.message, step.where
    if message.role != "assistant":
        content = _Speech(writing, message, where).content(message.blocks)
        native: JsonObject = {"role": message.role, "content": content}
        return writing.with_message_extras(native, message, where, _UNSENT)
    blocks = [*step.blocks()]
    calls: list[JsonValue] = [
        _write_call(writing, message, block) for block in blocks if isinstance(block, Answered)
    ]
    native = _Speech(writing, message, where).assistant(blocks)
    if calls:
        return {**native, "content": native["content"] or None, "tool_calls": calls}
    if any(native.get(member) for member in _SAID_BY):
        return native
    writing.note_empty(where)
    return None


def _write_call(writing: Writing, message: Message, answered: Answered) -> JsonObject:
    call, where = answered.call, answered.where
    arguments = writing.arguments_text(call, where)
    native = write_call(writing, answered, arguments, is_custom=call.kind == "custom")
    return writing.beside(native, message, call.extras, where, CALL)


def _write_result(writing: Writing, answered: Answered) -> JsonObject:
    call, result, where = answered.call, answered.result, answered.where
    native: JsonObject = {
        "role": "tool",
        "tool_call_id": answered.wire_id,
        "content": writing.result_text(result, where),
    }
    if result.tool_name and writing.replays(answered.source):
        # Only for a provider that sent the name: not every server accepts this member.
        is_same = (result.namespace, result.tool_name) == (call.namespace, call.tool_name)
        native["name"] = answered.wire_name if is_same else result.tool_name
    return writing.beside(native, answered.source, result.extras, where, RESULT)


@dataclass(frozen=True, slots=True)
class _Speech:
    """Writes the members of one message other than its calls."""

    writing: Writing
    message: Message
    where: str

    def assistant(self, blocks: Sequence[MessageBlock | Answered]) -> JsonObject:
        """Write a message without its calls; the calls' positions show changes of order."""
        texts: dict[str, list[str]] = {}
        spoken: list[MessageBlock] = []
        places: list[int] = []
        for block in blocks:
            member = "tool_calls" if isinstance(block, Answered) else self._member(block)
            if member is not None and (not isinstance(block, TextBlock) or block.text):
                places.append(_PLACES.index(member))
            if isinstance(block, Answered) or member is None:
                continue
            if member == "content":
                spoken.append(block)
            elif isinstance(block, TextBlock | ReasoningBlock) and block.text:
                texts.setdefault(member, []).append(self.writing.clean.text(block.text, self.where))
        if places != sorted(places):
            note = "what was thought stands first, then text, a refusal, and the calls"
            self.writing.note("order_changed", self.where, note)
        # Parts are written only to go back to the provider that sent one of them.
        has_own = any(isinstance(block, ProviderBlock) for block in spoken)
        content = self.content(spoken) if has_own else self.writing.content_text(spoken, self.where)
        native: JsonObject = {"role": "assistant", "content": content}
        for name, pieces in texts.items():
            native[name] = self.writing.joined(pieces, self.where)
        extras = self.message.origin.extras if self.message.origin else {}
        if self.writing.replays(self.message):
            extras = self._taken_back(extras)
        return self.writing.beside(native, self.message, extras, self.where, _UNSENT)

    def _member(self, block: MessageBlock) -> str | None:
        """The member for a block; None if the block is left out."""
        match block:
            case ReasoningBlock(extras={"member": str(member)}) if (
                member in REASONING and block.text and self.writing.replays(self.message)
            ):
                self.writing.note_dropped(block.extras.keys() - {"member"}, self.where)
                return member
            case ReasoningBlock() | ProviderBlock() if not own_part(
                self.writing, self.message, block
            ):
                self.writing.dropped_block(block, self.where)
                return None
            case TextBlock(is_refusal=True):
                self.writing.note_extras(block, self.where)
                if not block.text:
                    self.writing.note("block_dropped", self.where, "a refusal without words")
                return "refusal"
            case _:
                return "content"

    def _taken_back(self, extras: JsonObject) -> JsonObject:
        """The extras of an answer that a request accepts: of `audio` only the id."""
        if "audio" not in extras:
            return extras
        audio = object_in(extras["audio"])
        audio_id = text_in(audio.get("id"))
        unsaid = ", ".join(sorted(audio.keys() - ({"id"} if audio_id else ())))
        if unsaid:
            self.writing.note("provider_data_dropped", self.where, f"audio: {unsaid}")
        return {**extras, "audio": {"id": audio_id} if audio_id else None}

    def content(self, blocks: Sequence[MessageBlock]) -> JsonValue:
        """Content: one text as a text, anything more as parts."""
        parts = (
            write_part(self.writing, self.message, block, self.where, _MEDIA) for block in blocks
        )
        return content_of([part for part in parts if part])
