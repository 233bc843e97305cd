"""The parts of a message for all formats: text, calls, results, and so on.

A call that was run has its own entry, with its result. The message refers to this entry by its
sequence number, so that nothing is printed twice. Content that is not text is described.
"""

import json
from collections.abc import Iterator
from typing import Any, Literal

from tooltrail.records import (
    CallBlock,
    MediaBlock,
    Message,
    MessageBlock,
    ProviderBlock,
    ReasoningBlock,
    ResourceBlock,
    ResultBlock,
    TextBlock,
    ToolCall,
)
from tooltrail.records.frozen import Frozen
from tooltrail.records.tool_calls import name_with_server
from tooltrail.store.views import InvocationDetail, MessageView
from tooltrail.transcripts._pairs import Pairs, repeats_receipt
from tooltrail.transcripts._wording import one_line
from tooltrail.wire import describe_block
from tooltrail.wire.finish_reasons import End, end_of

BROKEN_OFF = "the answer broke off here"

_ENDS: dict[End, str] = {
    "refused": "the model refused",
    "filtered": "the answer was cut: a content filter stopped it",
    "cut": "the answer was cut: the token limit was reached",
}
"""Why an incomplete answer ended."""

_SAID = "said"
_WORDLESS = "[not in words]"


class Part(Frozen):
    """A part of a message in the formats for people.

    Attributes:
        label: description of the part on one line; empty for text at the start of a message.
        style: whether the text is a message (`said`), output (`text`) or JSON.
    """

    label: str
    text: str = ""
    style: Literal["said", "text", "json"] = "said"


def parts_of(view: MessageView, pairs: Pairs) -> Iterator[Part]:
    """Yield the parts of a message in order; none for a message without content."""
    message = _recorded(view, pairs)
    if message is None:
        yield Part("", view.text)
        return
    parts: list[Part] = []
    if label := _choice_of(view, message, pairs):
        parts.append(Part(label))
    for number, block in enumerate(message.blocks):
        asked = pairs.calls.get((view.id, number))
        is_answered = asked is not None and asked.results > 0
        part = _part(block, _run_of(view, number, block, pairs), is_answered=is_answered)
        if not (part.label or part.text):
            continue
        if _is_said(part) and parts and _is_said(parts[-1]):
            # Adjacent text blocks are joined, since one text can be split into several blocks.
            parts[-1] = parts[-1].replaced(text=parts[-1].text + part.text)
        else:
            parts.append(part.replaced(label=_SAID) if _is_said(part) and parts else part)
    if not message.is_complete:
        reason = _finish_reason(message)
        end = end_of(reason)
        parts.append(Part(BROKEN_OFF if end is None else f"{_ENDS[end]} ({reason})"))
    yield from parts or [Part("") for _ in message.blocks[:1]]


def members_of(view: MessageView, pairs: Pairs) -> dict[str, Any]:
    """JSON members of a message besides its text; often empty."""
    message = _recorded(view, pairs)
    if message is None:
        return {}
    members: dict[str, Any] = {}
    if not all(isinstance(block, TextBlock) and not block.is_refusal for block in message.blocks):
        members["blocks"] = [
            _spelled(block, _run_of(view, number, block, pairs))
            for number, block in enumerate(message.blocks)
        ]
    if not message.is_complete:
        members["is_complete"] = False
        if reason := _finish_reason(message):
            members["finish_reason"] = reason
    if message.origin is not None and message.origin.choice:
        members["choice"] = message.origin.choice
    if view.id in pairs.left:
        members["is_continued"] = False
    return members


def _recorded(view: MessageView, pairs: Pairs) -> Message | None:
    """The recorded message; None if only its text is stored."""
    return None if view.document is None else pairs.messages.get(view.id)


def _finish_reason(message: Message) -> str | None:
    return None if message.origin is None else message.origin.finish_reason


def _choice_of(view: MessageView, message: Message, pairs: Pairs) -> str:
    """The label of a message that is one of several answers; empty for a single answer."""
    number = 0 if message.origin is None else message.origin.choice
    left = ", not continued" if view.id in pairs.left else ""
    return f"choice {number} of the answer{left}" if number or left else ""


def _run_of(
    view: MessageView, number: int, block: MessageBlock, pairs: Pairs
) -> InvocationDetail | None:
    """The invocation whose entry shows the content of a block; None if the block shows it."""
    place = (view.id, number)
    if isinstance(block, CallBlock):
        return pairs.calls[place].run
    found = pairs.results.get(place)
    if not isinstance(block, ResultBlock) or found is None or found.run is None:
        return None
    return found.run if repeats_receipt(block, found.run) else None


def _is_said(part: Part) -> bool:
    return part.label in {"", _SAID}


def _part(block: MessageBlock, run: InvocationDetail | None, *, is_answered: bool) -> Part:
    match block:
        case TextBlock():
            part = Part("refusal" if block.is_refusal else "", block.text)
        case ReasoningBlock():
            part = Part("reasoning", block.text or _WORDLESS)
        case CallBlock() if run is not None:
            part = Part(f"asks for #{run.summary.seq}")
        case CallBlock():
            state = "run elsewhere" if is_answered else "not run"
            is_cut = "incomplete" in block.call.flags
            named = _named(block.call, f"cut off, {state}" if is_cut else state)
            part = Part(named, block.call.arguments_raw, "json")
        case ResultBlock() if run is not None:
            part = Part(f"tells the result of #{run.summary.seq}")
        case ResultBlock():
            tool = name_with_server(block.namespace, block.tool_name or "")
            name = one_line(f"{tool} {block.call_id or ''}")
            part = Part(one_line(f"result {name} [{block.status}]"), _content(block), "text")
        case ProviderBlock(call=ToolCall() as call):
            part = Part(_named(call, "run by the provider"), call.arguments_raw, "json")
        case ResourceBlock(text=str(text)):
            part = Part(describe_block(block), text, "text")
        case _:
            part = Part(describe_block(block))
    return part


def _named(call: ToolCall, state: str) -> str:
    return one_line(f"call {call.full_name} {call.call_id or ''} [{state}]")


def _content(result: ResultBlock) -> str:
    """The text of a result, one block after the other."""
    texts = [_content_text(block) for block in result.content]
    if result.has_structured:
        texts.append(json.dumps(result.structured, ensure_ascii=False, separators=(",", ":")))
    return "\n".join(texts)


def _content_text(block: TextBlock | MediaBlock | ResourceBlock | ProviderBlock) -> str:
    if isinstance(block, TextBlock):
        return block.text
    text = block.text if isinstance(block, ResourceBlock) else None
    return describe_block(block) if text is None else f"{describe_block(block)}\n{text}"


def _spelled(block: MessageBlock, run: InvocationDetail | None) -> dict[str, Any]:
    return {"type": block.type, **({"invocation_seq": run.summary.seq} if run else _members(block))}


def _members(block: MessageBlock) -> dict[str, Any]:
    match block:
        case TextBlock():
            refusal = {"is_refusal": True} if block.is_refusal else {}
            members: dict[str, Any] = {"text": block.text, **refusal}
        case ReasoningBlock():
            members = {"text": block.text}
        case CallBlock():
            members = _call(block.call)
        case ResultBlock():
            structured = {"structured": block.structured} if block.has_structured else {}
            members = {
                "call_id": block.call_id,
                "namespace": block.namespace,
                "tool_name": block.tool_name,
                "status": block.status,
                "content": [_spelled(one, None) for one in block.content],
                **structured,
            }
        case ProviderBlock(call=ToolCall() as call):
            members = {"description": describe_block(block), "call": _call(call)}
        case ResourceBlock(text=str(text)):
            members = {"description": describe_block(block), "text": text}
        case _:
            members = {"description": describe_block(block)}
    return members


def _call(call: ToolCall) -> dict[str, Any]:
    return {
        "call_id": call.call_id,
        "namespace": call.namespace,
        "tool_name": call.tool_name,
        "arguments_raw": call.arguments_raw,
        "flags": list(call.flags),
    }
