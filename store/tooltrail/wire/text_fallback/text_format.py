"""The text-only format for each family of models, and its writer.

Calls are at their positions in the text of the assistant, with blank lines around them; the results
of a batch follow in one message of the user. Other text of the assistant is escaped if it could be
read as a call, so that reading returns the same conversation again.
"""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import partial
from itertools import groupby
from typing import TypeVar

from pydantic import JsonValue

from tooltrail.records import Conversation, MessageBlock, ProviderBlock, ReasoningBlock, TextBlock
from tooltrail.wire._steps import Answered, Step, calls_as_text, results_as_text, steps
from tooltrail.wire._writing import Writing
from tooltrail.wire.formats import WireFormat
from tooltrail.wire.members import JsonObject
from tooltrail.wire.text_fallback import asking
from tooltrail.wire.text_fallback.calls_in_text import marked_text, read_calls
from tooltrail.wire.text_fallback.family import CAPABILITIES, NAME, TextFamily, text_family
from tooltrail.wire.text_fallback.reading import TextAssembler, read_history, read_response

BlockT = TypeVar("BlockT", bound=MessageBlock | Answered)


def text_format(family_name: str) -> WireFormat:
    """Return the format that reads and writes the text of this family, ignoring the policy's.

    Raises:
        NotFoundError: no family has this name.
    """
    family = text_family(family_name)
    return WireFormat(
        name=NAME,
        capabilities=CAPABILITIES,
        response_reader=partial(read_response, family),
        new_assembler=partial(TextAssembler, family),
        history_reader=partial(read_history, family),
        history_writer=partial(_write_as, family_name),
        # As text, results are in messages of the user.
        is_result=lambda item: item.get("role") == "user",
        tools_writer=partial(asking.write_tools, family),
        tools_reader=asking.read_tools,
        choice_writer=None,
    )


def _write_as(family_name: str, writing: Writing, conversation: Conversation) -> JsonObject:
    writing.policy = replace(writing.policy, text_family=family_name)
    return write_history(writing, conversation)


def write_history(writing: Writing, conversation: Conversation) -> JsonObject:
    """Write `{"messages": […]}`; the content of each message is one text."""
    family = text_family(writing.policy.text_family)
    messages: list[JsonValue] = []
    for step in steps(writing, conversation):
        native = _message(writing, family, step)
        if native["role"] == "assistant" and not native["content"]:
            # Servers refuse an empty message of the assistant.
            writing.note_empty(step.where)
        else:
            messages.append(native)
        if step.answered:
            results = results_as_text(writing, family, step.answered)
            messages.append({"role": "user", "content": results})
    return {"messages": messages}


def _message(writing: Writing, family: TextFamily, step: Step) -> JsonObject:
    message, where = step.message, step.where
    role = "system" if message.role == "developer" else message.role
    writing.note_role(message.role, role, where)
    if step.answered:
        content = _text_with_calls(writing, family, step)
    else:
        content = writing.content_text(_kept(writing, message.blocks, where), where)
        if role == "assistant":
            content = marked_text(family, content, everywhere=False)
    return writing.with_message_extras({"role": role, "content": content}, message, where)


def _text_with_calls(writing: Writing, family: TextFamily, step: Step) -> str:
    pieces = [*_pieces(writing, family, step)]
    for everywhere in (False, True):
        content = "\n\n".join(
            text if are_calls else marked_text(family, text, everywhere=everywhere)
            for text, are_calls in pieces
        )
        # A code block may hide a call; only then, escape all fences.
        if len(read_calls(content, family.name).calls) == len(step.answered):
            break
    return content


def _pieces(writing: Writing, family: TextFamily, step: Step) -> Iterator[tuple[str, bool]]:
    """The texts of a message in order, each with whether it is a text of calls."""
    blocks = _kept(writing, step.blocks(), step.where)
    for are_calls, run in groupby(blocks, key=lambda block: isinstance(block, Answered)):
        if are_calls:
            calls = (one for one in run if isinstance(one, Answered))
            yield calls_as_text(writing, family, calls), True
        else:
            said = (one for one in run if not isinstance(one, Answered))
            yield writing.content_text(said, step.where), False


def _kept(writing: Writing, blocks: Iterable[BlockT], where: str) -> Iterator[BlockT]:
    """The blocks that can be written as text; an empty text is left out and separates no calls."""
    for block in blocks:
        if isinstance(block, ReasoningBlock | ProviderBlock):
            writing.dropped_block(block, where)
        elif isinstance(block, TextBlock) and not block.text:
            writing.block_text(block, where)
        else:
            yield block


FORMAT = replace(text_format("tool_result"), history_writer=write_history)
"""The format that writes the policy's family and reads `tool_result`; see `text_format`."""
