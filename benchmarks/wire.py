"""Reading what providers send, beside `json.loads` of the same bytes."""

import json
from dataclasses import dataclass
from typing import Any, TypeAlias

from benchmarks._measure import Report, Times, compare, speed
from tooltrail.wire import read_stream, wire_format

Event: TypeAlias = dict[str, Any]

ROUNDS = 9
REPEATS = 20
CALLS = 4
FRAGMENTS = 120
TOKENS = 400
_CHUNK = 1_400
"""Bytes of a piece, as a network hands them on."""

_ARGUMENTS = json.dumps({"path": "src/module.py", "content": "line of code\n" * 90})
_PIECES = [
    _ARGUMENTS[at : at + len(_ARGUMENTS) // FRAGMENTS + 1]
    for at in range(0, len(_ARGUMENTS), len(_ARGUMENTS) // FRAGMENTS + 1)
]
_WORDS = ["word "] * TOKENS


@dataclass(frozen=True)
class Subject:
    """A stream of one format: some text, token by token, and calls whose arguments are streamed.

    Attributes:
        format_name: of the format.
        events: as JSON, in their order.
    """

    format_name: str
    events: tuple[str, ...]

    def body(self) -> bytes:
        """The stream as the server sends it."""
        if self.format_name == "ollama":
            return "".join(f"{event}\n" for event in self.events).encode()
        return "".join(f"data: {event}\n\n" for event in self.events).encode()


def lines(*, is_full: bool) -> Report:
    """One line for each format."""
    del is_full
    for one in _subjects():
        size = len(one.body()) * REPEATS / 1_000_000
        times = _measure(one)
        baseline = "json.loads of its events"
        yield speed(f"a stream of {one.format_name}", baseline, times, size, "≥ 0.25")


def _subjects() -> list[Subject]:
    """One stream of each format."""
    made = {
        "openai": _chat(),
        "openai-responses": _responses(),
        "anthropic": _anthropic(),
        "gemini": _gemini(),
        "ollama": _ollama(),
    }
    return [
        Subject(name, tuple(json.dumps(event, separators=(",", ":")) for event in events))
        for name, events in made.items()
    ]


def _measure(subject: Subject) -> Times:
    """Frame, assemble and read a whole stream, cut as a network does."""
    known, body = wire_format(subject.format_name), subject.body()
    chunks = [body[at : at + _CHUNK] for at in range(0, len(body), _CHUNK)]
    found = read_stream(known, chunks).calls
    if len(found) != CALLS or not all(call.is_executable for call in found):
        raise AssertionError(f"{subject.format_name}: {len(found)} calls")

    def ours() -> None:
        for _ in range(REPEATS):
            read_stream(known, chunks)

    def raw() -> None:
        for _ in range(REPEATS):
            for event in subject.events:
                json.loads(event)

    return compare(ours, raw, ROUNDS)


def _chat() -> list[Event]:
    def chunk(delta: Event, finish: str | None = None) -> Event:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        head = {"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
        return {**head, "system_fingerprint": "fp", "choices": [choice]}

    events = [chunk({"content": word}) for word in _WORDS]
    for index in range(CALLS):
        function = {"name": "write", "arguments": ""}
        call = {"index": index, "id": f"call_{index}", "type": "function", "function": function}
        events.append(chunk({"tool_calls": [call]}))
        for piece in _PIECES:
            fragment = {"index": index, "function": {"arguments": piece}}
            events.append(chunk({"tool_calls": [fragment]}))
    return [*events, chunk({}, "tool_calls")]


def _responses() -> list[Event]:
    said = {"type": "message", "id": "msg_1", "role": "assistant", "status": "completed"}
    text: Event = {"type": "output_text", "text": "".join(_WORDS), "annotations": []}
    items: list[Event] = [{**said, "content": [text]}]
    events: list[Event] = [{"type": "response.created", "response": {"id": "r", "output": []}}]
    place = {"output_index": 0, "content_index": 0, "item_id": "msg_1"}
    events.append({"type": "response.output_item.added", "output_index": 0, "item": said})
    spoken = {"type": "response.output_text.delta", **place}
    events.extend({**spoken, "delta": word} for word in _WORDS)
    events.append({"type": "response.output_item.done", "output_index": 0, "item": items[0]})
    for number in range(CALLS):
        at = {"output_index": number + 1}
        call = {"type": "function_call", "id": f"fc_{number}", "call_id": f"call_{number}"}
        whole = {**call, "name": "write", "arguments": _ARGUMENTS, "status": "completed"}
        items.append(whole)
        begun = {**whole, "arguments": "", "status": "in_progress"}
        events.append({"type": "response.output_item.added", **at, "item": begun})
        written = {
            "type": "response.function_call_arguments.delta",
            "item_id": f"fc_{number}",
            **at,
        }
        events.extend({**written, "delta": piece} for piece in _PIECES)
        events.append({"type": "response.output_item.done", **at, "item": whole})
    response = {"id": "r", "status": "completed", "output": items}
    return [*events, {"type": "response.completed", "response": response}]


def _anthropic() -> list[Event]:
    message: Event = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "m",
        "content": [],
    }
    events: list[Event] = [{"type": "message_start", "message": message}]

    def block(index: int, begun: Event, deltas: list[Event]) -> None:
        events.append({"type": "content_block_start", "index": index, "content_block": begun})
        begins = {"type": "content_block_delta", "index": index}
        events.extend({**begins, "delta": delta} for delta in deltas)
        events.append({"type": "content_block_stop", "index": index})

    block(0, {"type": "text", "text": ""}, [{"type": "text_delta", "text": one} for one in _WORDS])
    for number in range(CALLS):
        call: Event = {"type": "tool_use", "id": f"toolu_{number}", "name": "write", "input": {}}
        pieces = [{"type": "input_json_delta", "partial_json": piece} for piece in _PIECES]
        block(number + 1, call, [*pieces])
    events.append({"type": "message_delta", "delta": {"stop_reason": "tool_use"}})
    return [*events, {"type": "message_stop"}]


def _gemini() -> list[Event]:
    def event(part: Event, finish: str | None = None) -> Event:
        candidate: Event = {"content": {"role": "model", "parts": [part]}, "index": 0}
        if finish:
            candidate["finishReason"] = finish
        return {"candidates": [candidate], "modelVersion": "m", "responseId": "r"}

    call = {"functionCall": {"name": "write", "args": json.loads(_ARGUMENTS)}}
    said = [event({"text": word}) for word in _WORDS]
    return [*said, *[event(call)] * CALLS, event({"text": ""}, "STOP")]


def _ollama() -> list[Event]:
    def line(**message: Any) -> Event:
        head = {"model": "m", "created_at": "2026-01-01T00:00:00Z"}
        return {**head, "message": {"role": "assistant", "content": "", **message}, "done": False}

    call = {"function": {"name": "write", "arguments": json.loads(_ARGUMENTS)}}
    last = {"model": "m", "message": {"role": "assistant", "content": ""}, "done": True}
    said = [line(content=word) for word in _WORDS]
    return [*said, *[line(tool_calls=[call])] * CALLS, {**last, "done_reason": "stop"}]
