"""Parts that no record can hold: the rest is read, no call runs, and what was so is said."""

from collections.abc import Callable
from typing import Any

import pytest
from pydantic import JsonValue

from tooltrail.records import InvalidRecordError, Message
from tooltrail.wire import JsonObject, ResponseStream, wire_format
from tooltrail.wire.sturdy import MOST_LEVELS, TOO_DEEP, bounded, is_bounded

LONG = 10**5_000
"""Of more digits than Python prints."""


def nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("value", "is_kept"),
    [
        (nested(MOST_LEVELS), True),
        (nested(MOST_LEVELS + 1), False),
        ({"a": [1, "x", None, {"b": nested(3)}]}, True),
        ([10**4_000], True),
        ({"a": LONG}, False),
    ],
    ids=["deep", "deeper", "mixed", "long", "longer"],
)
def test_what_a_record_can_hold_stays_as_it_is(value: Any, is_kept: bool) -> None:
    assert is_bounded(value) is is_kept
    assert (bounded(value) == value) is is_kept
    assert is_bounded(bounded(value))


def test_what_it_cannot_hold_is_text() -> None:
    assert bounded({"a": [[1]]}, 2) == {"a": ["[1]"]}
    assert bounded({"a": LONG}) == {"a": hex(LONG)}


def chat(extra: Any) -> JsonObject:
    call: JsonObject = {"id": "a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message: JsonObject = {"role": "assistant", "content": "so", "tool_calls": [call], "odd": extra}
    choice: JsonObject = {"index": 0, "finish_reason": "tool_calls", "message": message}
    return {"choices": [choice]}


def responses(extra: Any) -> JsonObject:
    said: JsonObject = {
        "type": "message",
        "role": "assistant",
        "content": [{"type": "output_text", "text": "so"}],
    }
    call: JsonObject = {"type": "function_call", "call_id": "a", "name": "f", "arguments": "{}"}
    output: list[JsonValue] = [said, call, {"type": "odd", "odd": extra}]
    return {"object": "response", "status": "completed", "output": output}


def anthropic(extra: Any) -> JsonObject:
    call: JsonObject = {"type": "tool_use", "id": "a", "name": "f", "input": {}}
    content: list[JsonValue] = [{"type": "text", "text": "so"}, call, {"type": "odd", "odd": extra}]
    return {"type": "message", "role": "assistant", "content": content, "stop_reason": "tool_use"}


def bedrock(extra: Any) -> JsonObject:
    call: JsonObject = {"toolUse": {"toolUseId": "a", "name": "f", "input": {}}}
    content: list[JsonValue] = [{"text": "so"}, call, {"odd": extra}]
    message: JsonObject = {"role": "assistant", "content": content}
    return {"output": {"message": message}, "stopReason": "tool_use"}


def gemini(extra: Any) -> JsonObject:
    parts: list[JsonValue] = [{"text": "so"}, {"functionCall": {"name": "f"}}, {"odd": extra}]
    return {"candidates": [{"content": {"parts": parts}, "finishReason": "STOP"}]}


def ollama(extra: Any) -> JsonObject:
    call: JsonObject = {"function": {"name": "f", "arguments": {}}}
    message: JsonObject = {"role": "assistant", "content": "so", "tool_calls": [call], "odd": extra}
    return {"message": message, "done": True, "done_reason": "stop"}


ANSWERS: dict[str, Callable[[Any], JsonObject]] = {
    "openai": chat,
    "openai-responses": responses,
    "anthropic": anthropic,
    "bedrock": bedrock,
    "gemini": gemini,
    "ollama": ollama,
}


@pytest.mark.parametrize("extra", [nested(260), nested(900), LONG], ids=["260", "900", "long"])
@pytest.mark.parametrize("name", ANSWERS)
def test_the_rest_of_an_answer_is_read_and_no_call_of_it_runs(name: str, extra: Any) -> None:
    known, payload = wire_format(name), ANSWERS[name](extra)
    stream = ResponseStream(known)
    stream.feed(payload)
    for response in (known.read_response(payload), stream.finish()):
        (message,) = response.messages
        assert message.text == "so"
        assert [(call.tool_name, call.is_executable) for call in message.calls] == [("f", False)]
        assert TOO_DEEP in response.unread
        assert Message.from_json(message.to_json()) == message


@pytest.mark.parametrize("name", ANSWERS)
def test_an_answer_that_a_record_can_hold_is_read_as_ever(name: str) -> None:
    response = wire_format(name).read_response(ANSWERS[name](nested(100)))
    assert [call.is_executable for call in response.calls] == [True]


@pytest.mark.parametrize(
    ("name", "member"),
    [
        ("openai", "messages"),
        ("openai-responses", "input"),
        ("anthropic", "messages"),
        ("bedrock", "messages"),
        ("gemini", "contents"),
        ("ollama", "messages"),
    ],
)
def test_a_history_that_no_record_can_hold_is_refused(name: str, member: str) -> None:
    said = {"role": "user", "type": "odd", "content": [{"type": "odd", "odd": nested(400)}]}
    item: Any = {"role": "user", "parts": [{"odd": nested(400)}]} if name == "gemini" else said
    if name == "ollama":
        item = {"role": "user", "content": "x", "odd": nested(400)}
    with pytest.raises(InvalidRecordError):
        wire_format(name).read_history({member: [item]})
