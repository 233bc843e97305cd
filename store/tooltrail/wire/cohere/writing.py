"""Writes the canonical conversation as the messages of a request to Cohere.

A message of the assistant has its plan, its content and its calls in this order, regardless of
their original order. Each result is a separate message with a text. Documents and reasoning are
written only if they came from Cohere.
"""

from pydantic import JsonValue

from tooltrail.records import (
    Conversation,
    Message,
    MessageBlock,
    ReasoningBlock,
    TextBlock,
)
from tooltrail.wire._chat.calls import CALL, write_call
from tooltrail.wire._chat.parts import content_of, write_part, write_text
from tooltrail.wire._reading import result_of_text
from tooltrail.wire._steps import Answered, Step, steps
from tooltrail.wire._writing import Writing
from tooltrail.wire.cohere.asking import FREE_TEXT
from tooltrail.wire.cohere.reading import DOCUMENT, MESSAGE, PLAN, RESULT, THINKING
from tooltrail.wire.members import LAYOUT, JsonObject, raw_arguments, spelled

_DOCUMENT = frozenset({DOCUMENT})
_IMAGES = frozenset({"image"})


def write_history(writing: Writing, conversation: Conversation) -> JsonObject:
    """Write `{"messages": […]}`."""
    messages: list[JsonValue] = []
    for step in steps(writing, conversation):
        calls: list[JsonValue] = [_write_call(writing, step, one) for one in step.answered]
        spoken = _spoken(writing, step)
        if calls:
            messages.append(_said(writing, step, {**spoken, "tool_calls": calls}))
            messages.extend(_write_result(writing, answered) for answered in step.answered)
        elif "content" in spoken:
            messages.append(_said(writing, step, spoken))
        else:
            writing.note_empty(step.where)
    return {"messages": messages}


def _said(writing: Writing, step: Step, spoken: JsonObject) -> JsonObject:
    message = step.message
    role = "system" if message.role == "developer" else message.role
    writing.note_role(message.role, role, step.where)
    extras = dict(message.origin.extras) if message.origin else {}
    layout = extras.pop(LAYOUT, None)
    if layout is not None and writing.replays(message):
        spoken = {"content": layout, **spoken}
    native: JsonObject = {"role": role, **spoken}
    return writing.beside(native, message, extras, step.where, MESSAGE - {PLAN})


def _spoken(writing: Writing, step: Step) -> JsonObject:
    """Write a message without its calls; the calls' positions show changes of order."""
    message, where = step.message, step.where
    plans, parts, places = list[str](), list[JsonObject](), list[int]()
    for block in step.blocks():
        if isinstance(block, Answered):
            places.append(2)
        elif isinstance(block, ReasoningBlock) and (
            block.extras.get("member") == PLAN and block.text and _goes_back(writing, message)
        ):
            writing.note_dropped(block.extras.keys() - {"member"}, where)
            plans.append(block.text)
            places.append(0)
        elif (part := _write_part(writing, message, block, where)) is not None:
            parts.append(part)
            places.append(1)
    if places != sorted(places):
        writing.note("order_changed", where, "the plan stands first, then the content, the calls")
    plan: JsonObject = {PLAN: writing.joined(plans, where)} if plans else {}
    if not parts:
        return plan
    is_text = message.origin is None or message.origin.extras.get(LAYOUT) == ""
    is_list = writing.replays(message) and not is_text
    return {**plan, "content": [*parts] if is_list else content_of(parts)}


def _write_part(
    writing: Writing, message: Message, block: MessageBlock, where: str
) -> JsonObject | None:
    """Write a block as a part; None, with a report, if it cannot be written."""
    if isinstance(block, TextBlock):
        return _write_text(writing, message, block, where)
    if isinstance(block, ReasoningBlock) and _goes_back(writing, message):
        thought: JsonObject = {"type": THINKING, THINKING: block.text}
        return writing.beside(thought, message, block.extras, where)
    return write_part(writing, message, block, where, _IMAGES)


def _goes_back(writing: Writing, message: Message) -> bool:
    """Whether the reasoning of a message is written."""
    return writing.replays(message) and message.role == "assistant"


def _write_text(
    writing: Writing, message: Message, block: TextBlock, where: str
) -> JsonObject | None:
    """Write a text, or the document with this text as data; None for an empty text."""
    extras = dict(block.extras)
    document = extras.pop(DOCUMENT, None)
    if (
        isinstance(document, dict)
        and writing.replays(message)
        and raw_arguments(document.get("data", block.text)) == block.text
    ):
        writing.note_refusal(block, where)
        text = writing.clean.text(block.text, where)
        native: JsonObject = {"type": DOCUMENT, DOCUMENT: {"data": text, **document}}
        return writing.beside(native, message, extras, where)
    return write_text(writing, message, block, where, _DOCUMENT)


def _write_call(writing: Writing, step: Step, answered: Answered) -> JsonObject:
    call, where = answered.call, answered.where
    if call.kind == "custom":
        arguments = spelled(writing.arguments_object(call, where, FREE_TEXT))
    else:
        arguments = writing.arguments_text(call, where)
    native = write_call(writing, answered, arguments)
    return writing.beside(native, step.message, call.extras, where, CALL)


def _write_result(writing: Writing, answered: Answered) -> JsonObject:
    result, where = answered.result, answered.where
    native: JsonObject = {
        "role": "tool",
        "tool_call_id": answered.wire_id,
        "content": _result_parts(writing, answered) or writing.result_text(result, where),
    }
    extras = dict(result.extras)
    extras.pop(LAYOUT, None)
    return writing.beside(native, answered.source, extras, where, RESULT)


def _result_parts(writing: Writing, answered: Answered) -> list[JsonValue]:
    """The parts that go back to Cohere unchanged; none if the result must be written as text.

    Parts cannot carry a structured value, nor a status that does not follow from their text.
    """
    result, source = answered.result, answered.source
    is_list = LAYOUT in result.extras and writing.replays(source)
    status = result_of_text(None, None, result.content).status
    if not is_list or result.status != status or result.has_structured:
        return []
    parts = (_write_part(writing, source, block, answered.where) for block in result.content)
    return [part for part in parts if part is not None]
