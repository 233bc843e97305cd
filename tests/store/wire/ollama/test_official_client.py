"""Ollama's official client takes an export, and what it gives is read."""

import json
from collections.abc import Iterator
from typing import Any

import pytest
from tests.support.wire.fake_provider import FakeProvider, fake_provider

from tooltrail.records import (
    CallBlock,
    Conversation,
    Message,
    ResultBlock,
    TextBlock,
    ToolCall,
    ToolDefinition,
)
from tooltrail.wire import DEFAULT_EXPORT_POLICY, JsonObject, read_stream
from tooltrail.wire.ollama import FORMAT


@pytest.fixture(name="provider")
def _provider() -> Iterator[FakeProvider]:
    with fake_provider() as provider:
        yield provider


def history() -> Conversation:
    calls = [
        ToolCall(tool_name="f", arguments_raw='{"a":1}', call_id="call_1"),
        ToolCall(tool_name="g", arguments_raw="{}", position=1),
    ]
    results = [
        ResultBlock(call_id="call_1", content=(TextBlock(text="18 C"),)),
        ResultBlock(status="error"),
    ]
    return Conversation.of(
        [
            Message.of("user", "Weather?"),
            Message(role="assistant", blocks=tuple(CallBlock(call=call) for call in calls)),
            Message(role="tool", blocks=tuple(results)),
        ]
    )


ANSWER: JsonObject = {
    "model": "m",
    "created_at": "2026-01-01T00:00:00Z",
    "message": {
        "role": "assistant",
        "content": "",
        "tool_calls": [{"id": "call_9", "function": {"index": 0, "name": "f", "arguments": {}}}],
    },
    "done": True,
    "done_reason": "stop",
}


def test_an_export_posted_as_it_is_arrives_with_its_ids(provider: FakeProvider) -> None:
    httpx = pytest.importorskip("httpx")
    export = FORMAT.write_history(history(), DEFAULT_EXPORT_POLICY)
    tools = FORMAT.write_tools([ToolDefinition(name="f", parameters={"type": "object"})])
    provider.will_stream([json.dumps(ANSWER).encode()[:40], json.dumps(ANSWER).encode()[40:]])
    body = {"model": "m", **export.request, **tools.request}
    with httpx.Client(trust_env=False) as client:
        answer = client.post(f"{provider.url}/api/chat", json=body)
    assert provider.refused == []
    assert provider.requests[0].body == body
    (call,) = read_stream(FORMAT, [answer.content]).calls
    assert call.call_id == "call_9"


@pytest.mark.parametrize("is_stream", [False, True])
def test_the_official_client_takes_an_export_and_its_answer_is_read(
    provider: FakeProvider, *, is_stream: bool
) -> None:
    ollama = pytest.importorskip("ollama")
    export = FORMAT.write_history(history(), DEFAULT_EXPORT_POLICY)
    if is_stream:
        provider.will_stream([json.dumps(ANSWER).encode() + b"\n"])
    else:
        provider.will_answer(ANSWER)
    messages: Any = export.request["messages"]
    client = ollama.Client(host=provider.url, trust_env=False)
    try:
        answer = client.chat("m", messages=messages, stream=is_stream)
        response = read_stream(FORMAT, answer if is_stream else [answer])
    finally:
        client.close()
    # The client leaves ids away on both ways.
    (call,) = response.calls
    assert (call.tool_name, call.arguments, call.call_id) == ("f", {}, None)
    assert call.is_executable
