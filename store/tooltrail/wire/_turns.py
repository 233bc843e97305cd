"""Conversations for providers whose roles take turns, the user's first.

All results of a batch stand in one message of the user, in the order of the calls. Messages of one
role are merged. What the system says first stands apart from the messages.
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
from tooltrail.wire._steps import Answered, Answers, steps
from tooltrail.wire._writing import Writing
from tooltrail.wire.members import JsonObject, list_in, object_in, objects_in

_BEGINNING = "(the conversation begins with the assistant)"
_SYSTEM = ("system", "developer")


@dataclass(frozen=True, slots=True)
class TurnSpelling:
    """How one format spells turns.

    Attributes:
        assistant: the name of its role.
        content: the member of a message that has its parts.
        text: the part of a text.
        call: the part of a call.
        result: the part of a result.
        native: the part of any other block; None where the format has none for it.
        is_result: whether a part is a result, which what follows is distinguished from.
        is_said: whether the server takes the part of a text.
        has_text_extras: whether what a provider said of a text stands beside it.
        merges_users: whether two messages of the user are merged, and not only the assistant's.
        may_follow: whether a part may stand behind others, of which the first one is given.
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
        """Whether a message brings results of tools."""
        return any(map(self.is_result, objects_in(item.get(self.content))))

    def parts(
        self,
        writing: Writing,
        message: Message,
        blocks: Iterable[MessageBlock | Answered],
        where: str,
    ) -> Iterator[JsonValue]:
        """The parts of blocks, calls among them; what has no part is in the report."""
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
    """The parts of what the system says first, and the messages."""
    turns = _Turns(writing, spelling)
    system: list[JsonValue] = []
    for step in steps(writing, conversation):
        message, where = step.message, step.where
        writing.note_message_extras(message, where)
        blocks = step.blocks() if isinstance(step, Answers) else iter(message.blocks)
        parts = [*spelling.parts(writing, message, blocks, where)]
        if isinstance(step, Answers):
            turns.add(spelling.assistant, parts, where)
            turns.add("user", [spelling.result(writing, one) for one in step.answered], where)
        elif message.role in _SYSTEM and not turns.messages:
            writing.note_role(message.role, "system", where)
            if system:
                writing.note("messages_merged", where, "it is one with the message before")
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
            note("message_empty", where, "nothing of it can be said; left out")
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
            note("messages_merged", where, "it is one with the message before")
        following = [part for part in parts if may_follow(object_in(before[0]), object_in(part))]
        for _ in range(len(parts) - len(following)):
            note("block_dropped", where, "thoughts amid what others said")
        last[spelling.content] = [*before, *following]
