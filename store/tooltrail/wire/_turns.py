"""Writes conversations for providers whose roles alternate, beginning with the user.

All results of a batch are in one message of the user, in the order of the calls. Adjacent messages
of one role are merged. Leading system messages are returned apart from the other messages.
"""

from collections.abc import Callable, Iterable, Iterator
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
from tooltrail.wire._steps import Answered, steps
from tooltrail.wire._writing import Writing
from tooltrail.wire.members import JsonObject, list_in, object_in, objects_in

_BEGINNING = "(the conversation begins with the assistant)"
_SYSTEM = ("system", "developer")


@dataclass(frozen=True, slots=True)
class TurnSpelling:
    """How one format writes turns.

    Attributes:
        assistant: the name of the assistant's role.
        content: the member of a message that holds its parts.
        text: makes the part for a text.
        call: makes the part for a call.
        result: makes the part for a result.
        native: makes the part for any other block; None if the format has none for it.
        is_result: whether a part is a result; merging a message after results is not reported.
        is_said: whether the server accepts a text part.
        has_text_extras: whether extras of a text are written beside the text.
        merges_users: whether messages of the user are merged, too, not only the assistant's.
        may_follow: whether a part may be appended to a message, given the message's first part.
    """

    assistant: str
    content: str
    text: Callable[[str], JsonObject]
    call: Callable[[Writing, Message, Answered], JsonValue]
    result: Callable[[Writing, Answered], JsonValue]
    native: Callable[[Writing, Message, MessageBlock, str], JsonValue]
    is_result: Callable[[JsonObject], bool]
    is_said: Callable[[JsonObject], bool] = lambda part: bool(str(part["text"]).strip())
    has_text_extras: bool = True
    merges_users: bool = True
    may_follow: Callable[[JsonObject, JsonObject], bool] = lambda _before, _part: True

    def brings_results(self, item: JsonObject) -> bool:
        """Whether a message contains tool results."""
        return any(map(self.is_result, objects_in(item.get(self.content))))

    def parts(
        self,
        writing: Writing,
        message: Message,
        blocks: Iterable[MessageBlock | Answered],
        where: str,
    ) -> Iterator[JsonValue]:
        """Write blocks and calls as parts; blocks that get no part are in the report."""
        for block in blocks:
            match block:
                case Answered():
                    if block.call.kind not in ("function", "custom"):
                        note = f"kind {block.call.kind}"
                        writing.note("provider_data_dropped", block.where, note)
                    yield self.call(writing, message, block)
                case TextBlock():
                    yield from self._said(writing, message, block, where)
                case _ if native := self.native(writing, message, block, where):
                    yield native
                case ReasoningBlock() | ProviderBlock() if message.role != "tool":
                    writing.dropped_block(block, where)
                case _:
                    yield self.text(writing.described(block, where))

    def _said(
        self, writing: Writing, message: Message, block: TextBlock, where: str
    ) -> Iterator[JsonValue]:
        writing.note_refusal(block, where)
        part = self.text(writing.clean.text(block.text, where))
        if self.has_text_extras:
            part = writing.beside(part, message, block.extras, where)
        else:
            writing.note_extras(block, where)
        if self.is_said(part):
            yield part
        else:
            writing.note("block_dropped", where, "[text without a word]")


def write_turns(
    writing: Writing, conversation: Conversation, spelling: TurnSpelling
) -> tuple[list[JsonValue], list[JsonObject]]:
    """Write a conversation: the parts of its leading system messages, and the other messages."""
    turns = _Turns(writing, spelling)
    system: list[JsonValue] = []
    for step in steps(writing, conversation):
        message, where = step.message, step.where
        writing.note_message_extras(message, where)
        parts = [*spelling.parts(writing, message, step.blocks(), where)]
        if step.answered:
            turns.add(spelling.assistant, parts, where)
            turns.add("user", [spelling.result(writing, one) for one in step.answered], where)
        elif message.role in _SYSTEM and not turns.messages:
            writing.note_role(message.role, "system", where)
            if system:
                writing.note("messages_merged", where, "merged with the previous message")
            system.extend(parts)
        else:
            is_assistant = message.role == "assistant"
            writing.note_role(message.role, "assistant" if is_assistant else "user", where)
            turns.add(spelling.assistant if is_assistant else "user", parts, where)
    return system, turns.messages


class _Turns:
    def __init__(self, writing: Writing, spelling: TurnSpelling) -> None:
        self._writing = writing
        self._spelling = spelling
        self.messages: list[JsonObject] = []

    def add(self, role: str, parts: list[JsonValue], where: str) -> None:
        spelling, note = self._spelling, self._writing.note
        if not parts:
            self._writing.note_empty(where)
            return
        if not self.messages and role != "user":
            note("message_added", where, f"{_BEGINNING!r} stands before it")
            self.messages.append({"role": "user", spelling.content: [spelling.text(_BEGINNING)]})
        last = self.messages[-1] if self.messages else {}
        is_merged = spelling.merges_users or role == spelling.assistant
        if not is_merged or last.get("role") != role:
            self.messages.append({"role": role, spelling.content: parts})
            return
        before, may_follow = list_in(last[spelling.content]), spelling.may_follow
        if not spelling.is_result(object_in(before[-1])):
            note("messages_merged", where, "merged with the previous message")
        following = [part for part in parts if may_follow(object_in(before[0]), object_in(part))]
        for _ in range(len(parts) - len(following)):
            note(
                "block_dropped", where, "reasoning inside a message that begins with other content"
            )
        last[spelling.content] = [*before, *following]
