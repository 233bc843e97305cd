"""The canonical conversation as messages of text alone.

Calls stand in the text of the assistant at their places, a blank line around them; the results of a
batch follow in one message of the user. What the assistant says besides is escaped where it could
be read as a call, so that reading gives the same conversation again.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from pydantic import JsonValue

from tooltrail.records import (
    CallBlock,
    Conversation,
    Message,
    MessageBlock,
    ProviderBlock,
    ReasoningBlock,
    TextBlock,
)
from tooltrail.wire._steps import Answered, Answers, Said, steps, text_call, text_result
from tooltrail.wire._writing import Writing
from tooltrail.wire.members import JsonObject
from tooltrail.wire.text_fallback.calls_in_text import (
    marked_text,
    read_calls,
)
from tooltrail.wire.text_fallback.families import text_family
from tooltrail.wire.text_fallback.family import TextFamily
from tooltrail.wire.text_fallback.markup import FENCES


@dataclass(frozen=True, slots=True)
class _Piece:
    """Text of the assistant, or calls."""

    text: str
    calls: int = 0


def write_history(writing: Writing, conversation: Conversation) -> JsonObject:
    """`{"messages": […]}`, the content of each message one text."""
    family = text_family(writing.policy.text_family)
    messages: list[JsonValue] = []
    for step in steps(writing, conversation):
        if isinstance(step, Answers):
            said = list(step.blocks())
            messages.append(_assistant(writing, family, step.message, said, step.where))
            results = [
                text_result(
                    writing, family, one.result, one.where, name=one.wire_name, call_id=one.wire_id
                )
                for one in step.answered
            ]
            messages.append({"role": "user", "content": family.write_results(results)})
            continue
        native = _write_said(writing, family, step)
        if native["role"] == "assistant" and not native["content"]:
            # Servers refuse an assistant that says nothing.
            writing.note("message_empty", step.where, "it says nothing, and is left out")
        else:
            messages.append(native)
    return {"messages": messages}


def is_result(item: JsonObject) -> bool:
    """Whether a message may bring results: as text they are the user's, behind the calls."""
    return item.get("role") == "user"


def _write_said(writing: Writing, family: TextFamily, step: Said) -> JsonObject:
    message, where = step.message, step.where
    role = "system" if message.role == "developer" else message.role
    writing.note_role(message.role, role, where)
    if message.role == "assistant":
        return _assistant(writing, family, message, message.blocks, where)
    text = writing.joined([*_texts(writing, message.blocks, where)], where)
    return writing.with_message_extras({"role": role, "content": text}, message, where)


def _assistant(
    writing: Writing,
    family: TextFamily,
    message: Message,
    blocks: Sequence[MessageBlock | Answered],
    where: str,
) -> JsonObject:
    pieces = list(_pieces(writing, family, blocks, where))
    content = _joined(family, pieces, everywhere=False)
    if any(not one.calls and FENCES.marks(one.text) for one in pieces):
        # A code block could hide a call; it seldom does.
        read = read_calls(content, family.name)
        if _said(read.blocks) != [one.calls or one.text for one in pieces]:
            content = _joined(family, pieces, everywhere=True)
    native: JsonObject = {"role": "assistant", "content": content}
    return writing.with_message_extras(native, message, where)


def _joined(family: TextFamily, pieces: Sequence[_Piece], *, everywhere: bool) -> str:
    return "\n\n".join(
        one.text if one.calls else marked_text(family, one.text, everywhere=everywhere)
        for one in pieces
    )


def _said(blocks: Sequence[TextBlock | CallBlock | ReasoningBlock]) -> list[str | int]:
    """The texts, and how many calls stand between them."""
    said: list[str | int] = []
    for block in blocks:
        if isinstance(block, TextBlock):
            said.append(block.text)
        elif isinstance(block, CallBlock) and said and isinstance(said[-1], int):
            said[-1] += 1
        else:
            said.append(1)
    return said


def _pieces(
    writing: Writing, family: TextFamily, blocks: Sequence[MessageBlock | Answered], where: str
) -> Iterator[_Piece]:
    for is_call, run in groupby(
        (block for block in blocks if not _is_dropped(writing, block, where)),
        key=lambda block: isinstance(block, Answered),
    ):
        if is_call:
            calls = [
                text_call(
                    writing, family, one.call, one.where, name=one.wire_name, call_id=one.wire_id
                )
                for one in run
                if isinstance(one, Answered)
            ]
            yield _Piece(family.write_calls(calls), len(calls))
        else:
            said = [one for one in run if not isinstance(one, Answered)]
            if text := writing.joined([*_texts(writing, said, where)], where):
                yield _Piece(text)


def _is_dropped(writing: Writing, block: MessageBlock | Answered, where: str) -> bool:
    """Whether a block has no place in text; one without a word parts no calls."""
    if isinstance(block, ReasoningBlock | ProviderBlock):
        writing.dropped_block(block, where)
        return True
    if isinstance(block, TextBlock) and not block.text:
        writing.note_text(block, where)
        return True
    return False


def _texts(writing: Writing, blocks: Sequence[MessageBlock], where: str) -> Iterator[str]:
    for block in blocks:
        if _is_dropped(writing, block, where):
            continue
        if isinstance(block, TextBlock):
            writing.note_text(block, where)
            yield writing.clean.text(block.text, where)
        else:
            yield writing.described(block, where)
