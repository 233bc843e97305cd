"""Conversations for providers whose roles take turns, the user's first.

All results of a batch stand in one message of the user, in the order of the calls. Messages of one
role are merged. What the system says first stands apart from the messages.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from pydantic import JsonValue

from tooltrail.records import Conversation, Message, MessageBlock
from tooltrail.wire._steps import Answered, Answers, steps
from tooltrail.wire._writing import Writing
from tooltrail.wire.members import JsonObject, list_in, object_in

_BEGINNING = "(the conversation begins with the assistant)"
_SYSTEM = ("system", "developer")


@dataclass(frozen=True, slots=True)
class TurnSpelling:
    """How one format spells turns.

    Attributes:
        assistant: the name of its role.
        content: the member of a message that has its parts.
        text: the part of a text.
        parts: what blocks of a message are in its content, calls among them.
        result: the part of a result.
        merges_users: whether two messages of the user are merged, and not only the assistant's.
        may_follow: whether a part may stand behind others, of which the first one is given.
        is_result: whether a part is a result, which what follows is distinguished from.
    """

    assistant: str
    content: str
    text: Callable[[str], JsonObject]
    parts: Callable[[Writing, Message, Iterable[MessageBlock | Answered], str], Iterable[JsonValue]]
    result: Callable[[Writing, Answered], JsonValue]
    merges_users: bool = True
    may_follow: Callable[[JsonObject, JsonValue], bool] = lambda _before, _part: True
    is_result: Callable[[JsonValue], bool] = lambda _part: False


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
        parts = spelling.parts(writing, message, blocks, where)
        if isinstance(step, Answers):
            turns.add(spelling.assistant, [*parts], where)
            turns.add("user", [spelling.result(writing, one) for one in step.answered], where)
        elif message.role in _SYSTEM and not turns.messages:
            writing.note_role(message.role, "system", where)
            if system:
                writing.note("messages_merged", where, "it is one with the message before")
            system.extend(parts)
        else:
            is_assistant = message.role == "assistant"
            writing.note_role(message.role, "assistant" if is_assistant else "user", where)
            turns.add(spelling.assistant if is_assistant else "user", [*parts], where)
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
        before = list_in(last[spelling.content])
        if not spelling.is_result(before[-1]):
            note("messages_merged", where, "it is one with the message before")
        following = [part for part in parts if spelling.may_follow(object_in(before[0]), part)]
        for _ in range(len(parts) - len(following)):
            note("block_dropped", where, "thoughts amid what others said")
        last[spelling.content] = [*before, *following]
