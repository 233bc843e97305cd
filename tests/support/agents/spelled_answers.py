"""One turn of a model, written by hand as the answer of five providers, streamed or not."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool.

    Attributes:
        tool: name of the tool.
        arguments: arguments as JSON, or the exact text for formats that have a text.
        call_id: id of the call, or None; formats that always have ids then get one by number.
    """

    tool: str
    arguments: dict[str, Any] | str
    call_id: str | None = None

    @property
    def text(self) -> str:
        return self.arguments if isinstance(self.arguments, str) else json.dumps(self.arguments)

    @property
    def value(self) -> dict[str, Any]:
        """The arguments for formats that have an object; such a server cannot send broken JSON."""
        return self.arguments if isinstance(self.arguments, dict) else {"broken": self.arguments}


@dataclass(frozen=True, slots=True)
class Turn:
    """The content of one answer of a model.

    Attributes:
        text: text of the answer.
        calls: calls of the answer.
        is_cut: whether the model reached its token limit, in the middle of the last call if there
            is one.
        usage: tokens of the input and of the output; None to report no usage.
    """

    text: str = ""
    calls: tuple[Call, ...] = ()
    is_cut: bool = False
    usage: tuple[int, int] | None = (10, 5)


def says(text: str, *calls: Call, is_cut: bool = False) -> Turn:
    return Turn(text, calls, is_cut)


def asks(*calls: Call, is_cut: bool = False) -> Turn:
    return Turn("", calls, is_cut)


def spell_whole(format_name: str, turn: Turn) -> bytes:
    return json.dumps(_WHOLE[format_name](turn)).encode()


def stream_events(format_name: str, turn: Turn) -> list[dict[str, Any]]:
    return [*_STREAMS[format_name](turn)]


def spell_stream(format_name: str, turn: Turn) -> bytes:
    events = stream_events(format_name, turn)
    if format_name == "ollama":
        return b"".join(json.dumps(event).encode() + b"\n" for event in events)
    lines: list[str] = []
    for event in events:
        if format_name in {"anthropic", "openai-responses"}:
            lines.append(f"event: {event['type']}\n")
        lines.append(f"data: {json.dumps(event)}\n\n")
    if format_name == "openai":
        lines.append("data: [DONE]\n\n")
    return "".join(lines).encode()


def _id(call: Call, number: int) -> str:
    return f"call_{number}" if call.call_id is None else call.call_id


def _cut(text: str, turn: Turn, number: int) -> str:
    """The arguments of a call; cut in half if it is the last call of a cut answer."""
    is_last = number == len(turn.calls) - 1
    return text[: max(len(text) // 2, 1)] if turn.is_cut and is_last else text


# OpenAI Chat Completions


def _chat_reason(turn: Turn) -> str:
    return "length" if turn.is_cut else "tool_calls" if turn.calls else "stop"


def _chat_call(call: Call, number: int, turn: Turn) -> dict[str, Any]:
    function = {"name": call.tool, "arguments": _cut(call.text, turn, number)}
    return {"id": _id(call, number), "type": "function", "function": function}


def _chat_usage(turn: Turn) -> dict[str, Any]:
    given, made = turn.usage or (0, 0)
    return {"prompt_tokens": given, "completion_tokens": made, "total_tokens": given + made}


def _chat_whole(turn: Turn) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": turn.text or None}
    if turn.calls:
        message["tool_calls"] = [_chat_call(call, n, turn) for n, call in enumerate(turn.calls)]
    choice = {"index": 0, "message": message, "finish_reason": _chat_reason(turn)}
    usage = {"usage": _chat_usage(turn)} if turn.usage else {}
    named = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m"}
    return {**named, "choices": [choice], **usage}


def _chat_chunk(delta: dict[str, Any], reason: str | None = None) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": reason}
    named = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    return {**named, "choices": [choice]}


def _chat_stream(turn: Turn) -> Iterator[dict[str, Any]]:
    yield _chat_chunk({"role": "assistant", "content": ""})
    for start in range(0, len(turn.text), 7):
        yield _chat_chunk({"content": turn.text[start : start + 7]})
    for number, call in enumerate(turn.calls):
        whole = _chat_call(call, number, turn)
        text = whole["function"]["arguments"]
        head = {**whole, "index": number, "function": {"name": call.tool, "arguments": ""}}
        yield _chat_chunk({"tool_calls": [head]})
        for start in range(0, len(text), 9):
            piece = {"index": number, "function": {"arguments": text[start : start + 9]}}
            yield _chat_chunk({"tool_calls": [piece]})
    yield _chat_chunk({}, _chat_reason(turn))
    if turn.usage:
        yield {**_chat_chunk({}), "choices": [], "usage": _chat_usage(turn)}


# OpenAI Responses


def _items(turn: Turn) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    if turn.text:
        part: dict[str, Any] = {"type": "output_text", "text": turn.text, "annotations": []}
        said = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
        items.append({**said, "content": [part]})
    for number, call in enumerate(turn.calls):
        is_cut = turn.is_cut and number == len(turn.calls) - 1
        items.append(
            {
                "type": "function_call",
                "id": f"fc_{number}",
                "call_id": _id(call, number),
                "name": call.tool,
                "arguments": _cut(call.text, turn, number),
                "status": "incomplete" if is_cut else "completed",
            }
        )
    return items


def _responses_whole(turn: Turn) -> dict[str, Any]:
    given, made = turn.usage or (0, 0)
    usage = {"input_tokens": given, "output_tokens": made, "total_tokens": given + made}
    ended: dict[str, Any] = {"status": "completed"}
    if turn.is_cut:
        ended = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
    told = {"usage": usage} if turn.usage else {}
    named = {"id": "resp_1", "object": "response", "created_at": 1, "model": "m"}
    asked: dict[str, Any] = {"parallel_tool_calls": True, "tool_choice": "auto", "tools": []}
    return {**named, **asked, **ended, "output": _items(turn), **told}


def _responses_stream(turn: Turn) -> Iterator[dict[str, Any]]:
    begun = {"id": "resp_1", "object": "response", "model": "m", "status": "in_progress"}
    yield {"type": "response.created", "response": {**begun, "output": []}}
    for index, item in enumerate(_items(turn)):
        place = {"output_index": index, "item_id": item["id"]}
        if item["type"] == "message":
            head: dict[str, Any] = {**item, "content": [], "status": "in_progress"}
            yield {"type": "response.output_item.added", "output_index": index, "item": head}
            yield {
                "type": "response.output_text.delta",
                "content_index": 0,
                "delta": turn.text,
                **place,
            }
        else:
            head = {**item, "arguments": "", "status": "in_progress"}
            yield {"type": "response.output_item.added", "output_index": index, "item": head}
            text = item["arguments"]
            for start in range(0, len(text), 9):
                delta = {"delta": text[start : start + 9]}
                yield {"type": "response.function_call_arguments.delta", **delta, **place}
        yield {"type": "response.output_item.done", "output_index": index, "item": item}
    kind = "response.incomplete" if turn.is_cut else "response.completed"
    yield {"type": kind, "response": _responses_whole(turn)}


# Anthropic Messages


def _messages_reason(turn: Turn) -> str:
    return "max_tokens" if turn.is_cut else "tool_use" if turn.calls else "end_turn"


def _messages_whole(turn: Turn) -> dict[str, Any]:
    given, made = turn.usage or (0, 0)
    content: list[dict[str, Any]] = [{"type": "text", "text": turn.text}] if turn.text else []
    content += [
        {"type": "tool_use", "id": _id(call, number), "name": call.tool, "input": call.value}
        for number, call in enumerate(turn.calls)
    ]
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": content,
        "stop_reason": _messages_reason(turn),
        "stop_sequence": None,
        "usage": {"input_tokens": given, "output_tokens": made},
    }


def _messages_stream(turn: Turn) -> Iterator[dict[str, Any]]:
    given, made = turn.usage or (0, 0)
    begun: dict[str, Any] = {**_messages_whole(turn), "content": [], "stop_reason": None}
    usage = {"input_tokens": given, "output_tokens": 1}
    yield {"type": "message_start", "message": {**begun, "usage": usage}}
    index = 0
    if turn.text:
        block = {"type": "text", "text": ""}
        yield {"type": "content_block_start", "index": 0, "content_block": block}
        delta = {"type": "text_delta", "text": turn.text}
        yield {"type": "content_block_delta", "index": 0, "delta": delta}
        yield {"type": "content_block_stop", "index": 0}
        index = 1
    for number, call in enumerate(turn.calls):
        named: dict[str, Any] = {"id": _id(call, number), "name": call.tool, "input": {}}
        yield {
            "type": "content_block_start",
            "index": index,
            "content_block": {"type": "tool_use", **named},
        }
        text = _cut(call.text, turn, number)
        for start in range(0, len(text), 9):
            delta = {"type": "input_json_delta", "partial_json": text[start : start + 9]}
            yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
        index += 1
    ended = {"stop_reason": _messages_reason(turn), "stop_sequence": None}
    yield {"type": "message_delta", "delta": ended, "usage": {"output_tokens": made}}
    yield {"type": "message_stop"}


# Google Gemini


def _gemini_parts(turn: Turn) -> list[dict[str, Any]]:
    parts: list[dict[str, Any]] = [{"text": turn.text}] if turn.text else []
    for call in turn.calls:
        named = {} if call.call_id is None else {"id": call.call_id}
        parts.append({"functionCall": {**named, "name": call.tool, "args": call.value}})
    return parts


def _gemini_candidate(turn: Turn, parts: list[dict[str, Any]], *, is_last: bool) -> dict[str, Any]:
    content = {"role": "model", "parts": parts}
    reason = {"finishReason": "MAX_TOKENS" if turn.is_cut else "STOP"} if is_last else {}
    return {"content": content, "index": 0, **reason}


def _gemini_usage(turn: Turn) -> dict[str, Any]:
    if turn.usage is None:
        return {}
    given, made = turn.usage
    return {"usageMetadata": {"promptTokenCount": given, "candidatesTokenCount": made}}


def _gemini_whole(turn: Turn) -> dict[str, Any]:
    candidate = _gemini_candidate(turn, _gemini_parts(turn), is_last=True)
    return {"candidates": [candidate], "modelVersion": "m", **_gemini_usage(turn)}


def _gemini_stream(turn: Turn) -> Iterator[dict[str, Any]]:
    for part in _gemini_parts(turn):
        candidate = _gemini_candidate(turn, [part], is_last=False)
        yield {"candidates": [candidate], "modelVersion": "m"}
    last = _gemini_candidate(turn, [], is_last=True)
    yield {"candidates": [last], "modelVersion": "m", **_gemini_usage(turn)}


# Ollama


def _ollama_message(turn: Turn) -> dict[str, Any]:
    calls = [{"function": {"name": c.tool, "arguments": c.value}} for c in turn.calls]
    message: dict[str, Any] = {"role": "assistant", "content": turn.text}
    return {**message, "tool_calls": calls} if calls else message


def _ollama_end(turn: Turn) -> dict[str, Any]:
    given, made = turn.usage or (None, None)
    usage = {} if given is None else {"prompt_eval_count": given, "eval_count": made}
    return {"done": True, "done_reason": "length" if turn.is_cut else "stop", **usage}


def _ollama_whole(turn: Turn) -> dict[str, Any]:
    named = {"model": "m", "created_at": "2026-01-01T00:00:00Z"}
    return {**named, "message": _ollama_message(turn), **_ollama_end(turn)}


def _ollama_stream(turn: Turn) -> Iterator[dict[str, Any]]:
    named = {"model": "m", "created_at": "2026-01-01T00:00:00Z"}
    yield {**named, "message": _ollama_message(turn), "done": False}
    yield {**named, "message": {"role": "assistant", "content": ""}, **_ollama_end(turn)}


_WHOLE = {
    "openai": _chat_whole,
    "openai-responses": _responses_whole,
    "anthropic": _messages_whole,
    "gemini": _gemini_whole,
    "ollama": _ollama_whole,
}
_STREAMS = {
    "openai": _chat_stream,
    "openai-responses": _responses_stream,
    "anthropic": _messages_stream,
    "gemini": _gemini_stream,
    "ollama": _ollama_stream,
}
