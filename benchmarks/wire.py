"""Reading provider streams, against `json.loads` of the same events."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeAlias

from benchmarks._measure import Report, Times, compare, consume, speed
from tooltrail.wire import read_stream, wire_format

Event: TypeAlias = dict[str, Any]

ROUNDS = 9
REPEATS = 20
CALLS = 4
FRAGMENTS = 120
_CHUNK = 1_400
"""Bytes of one chunk, as from a network."""

_ARGUMENTS = json.dumps({"path": "src/module.py", "content": "line of code\n" * 90})
_STEP = len(_ARGUMENTS) // FRAGMENTS + 1
_PIECES = [_ARGUMENTS[at : at + _STEP] for at in range(0, len(_ARGUMENTS), _STEP)]
_WORDS = ["word "] * 400


def lines() -> Report:
    """A stream of each format: text word by word, and calls with streamed arguments."""
    for name, make in _STREAMS.items():
        events = [json.dumps(event, separators=(",", ":")) for event in make()]
        frame = "{}\n" if name == "ollama" else "data: {}\n\n"
        body = "".join(map(frame.format, events)).encode()
        size = len(body) * REPEATS / 1_000_000
        times = _measure(name, events, body)
        yield speed(f"a stream of {name}", "json.loads of its events", times, size, "≥ 0.25")


def _measure(name: str, events: list[str], body: bytes) -> Times:
    """Frame, assemble and read a complete stream, cut into chunks as by a network."""
    known = wire_format(name)
    chunks = [body[at : at + _CHUNK] for at in range(0, len(body), _CHUNK)]
    found = read_stream(known, chunks).calls
    if len(found) != CALLS or not all(call.is_executable for call in found):
        raise AssertionError(f"{name}: {len(found)} calls")

    return compare(
        lambda: consume(read_stream(known, chunks) for _ in range(REPEATS)),
        lambda: consume(json.loads(event) for _ in range(REPEATS) for event in events),
        ROUNDS,
    )


def _chat() -> Iterator[Event]:
    head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}

    def chunk(delta: Event, finish: str | None = None) -> Event:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return {**head, "system_fingerprint": "fp", "choices": [choice]}

    yield from (chunk({"content": word}) for word in _WORDS)
    for n in range(CALLS):
        function = {"name": "write", "arguments": ""}
        call = {"index": n, "id": f"call_{n}", "type": "function", "function": function}
        yield chunk({"tool_calls": [call]})
        for piece in _PIECES:
            yield chunk({"tool_calls": [{"index": n, "function": {"arguments": piece}}]})
    yield chunk({}, "tool_calls")


def _responses() -> Iterator[Event]:
    def item(n: int, whole: Event, kind: str, pieces: Iterable[str]) -> Iterator[Event]:
        yield {"type": "response.output_item.added", "output_index": n, "item": {**whole, **begun}}
        at = {"type": kind, "output_index": n, "content_index": 0, "item_id": whole["id"]}
        yield from ({**at, "delta": piece} for piece in pieces)
        yield {"type": "response.output_item.done", "output_index": n, "item": whole}

    begun: Event = {"status": "in_progress", "content": []}
    content: list[Event] = [{"type": "output_text", "text": "".join(_WORDS), "annotations": []}]
    said = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    items: list[Event] = [{**said, "content": content}]
    yield {"type": "response.created", "response": {"id": "r", "output": []}}
    yield from item(0, items[0], "response.output_text.delta", _WORDS)
    begun = {"status": "in_progress", "arguments": ""}
    for n in range(1, CALLS + 1):
        call = {"type": "function_call", "id": f"fc_{n}", "call_id": f"call_{n}", "name": "write"}
        items.append({**call, "arguments": _ARGUMENTS, "status": "completed"})
        yield from item(n, items[n], "response.function_call_arguments.delta", _PIECES)
    response = {"id": "r", "status": "completed", "output": items}
    yield {"type": "response.completed", "response": response}


def _anthropic() -> Iterator[Event]:
    def block(n: int, begun: Event, deltas: Iterable[Event]) -> Iterator[Event]:
        yield {"type": "content_block_start", "index": n, "content_block": begun}
        for delta in deltas:
            yield {"type": "content_block_delta", "index": n, "delta": delta}
        yield {"type": "content_block_stop", "index": n}

    said: Event = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
    }
    yield {"type": "message_start", "message": said}
    words = ({"type": "text_delta", "text": word} for word in _WORDS)
    yield from block(0, {"type": "text", "text": ""}, words)
    for n in range(1, CALLS + 1):
        call: Event = {"type": "tool_use", "id": f"toolu_{n}", "name": "write", "input": {}}
        pieces = ({"type": "input_json_delta", "partial_json": piece} for piece in _PIECES)
        yield from block(n, call, pieces)
    yield {"type": "message_delta", "delta": {"stop_reason": "tool_use"}}
    yield {"type": "message_stop"}


def _gemini() -> Iterator[Event]:
    call = {"functionCall": {"name": "write", "args": json.loads(_ARGUMENTS)}}
    for part in (*({"text": word} for word in _WORDS), *[call] * CALLS, {"text": ""}):
        candidate: Event = {"content": {"role": "model", "parts": [part]}, "index": 0}
        if part == {"text": ""}:
            candidate["finishReason"] = "STOP"
        yield {"candidates": [candidate], "modelVersion": "m", "responseId": "r"}


def _ollama() -> Iterator[Event]:
    head = {"model": "m", "created_at": "2026-01-01T00:00:00Z", "done": False}
    said = {"role": "assistant", "content": ""}
    call = {"function": {"name": "write", "arguments": json.loads(_ARGUMENTS)}}
    yield from ({**head, "message": {**said, "content": word}} for word in _WORDS)
    yield from [{**head, "message": {**said, "tool_calls": [call]}}] * CALLS
    yield {**head, "message": said, "done": True, "done_reason": "stop"}


_STREAMS: dict[str, Callable[[], Iterator[Event]]] = {
    "openai": _chat,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "ollama": _ollama,
}
