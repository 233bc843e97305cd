"""Recorded traffic of Ollama's native chat, and its official client."""

import json
import random
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from tests.support.conversations import conversations
from tests.support.effort import times
from tests.support.wire.fake_provider import FakeProvider, fake_provider, request_problems
from tests.support.wire.recorded import Exchange, of_format

from tooltrail.records import (
    CallBlock,
    Conversation,
    Message,
    ResultBlock,
    TextBlock,
    ToolCall,
    ToolDefinition,
)
from tooltrail.wire import DEFAULT_EXPORT_POLICY, JsonObject, Response, read_stream
from tooltrail.wire.members import objects_in
from tooltrail.wire.ollama import FORMAT


def recorded() -> list[Exchange]:
    return of_format("ollama")


needs_corpus = pytest.mark.skipif(not recorded(), reason="the corpus is not there")


def read(exchange: Exchange) -> Response:
    if exchange.is_stream:
        return read_stream(FORMAT, [exchange.response])
    return FORMAT.read_response(json.loads(exchange.response))


@needs_corpus
def test_every_recorded_answer_is_read_with_all_of_its_calls() -> None:
    assert len(recorded()) >= 15
    for exchange in recorded():
        response = read(exchange)
        assert len(response.calls) == exchange.call_count(), exchange
        assert response.unread == (), exchange
        assert response.message.is_complete, exchange
        told: list[str] = [event["message"]["content"] for event in exchange.events()]
        assert response.message.text == "".join(told), exchange


@needs_corpus
def test_every_recorded_stream_is_the_same_wherever_its_chunks_end() -> None:
    chance = random.Random(3)
    for exchange in recorded():
        expected = read_stream(FORMAT, [exchange.response])
        assert expected.messages == read(exchange).messages
        for _ in range(20):
            size = len(exchange.response)
            cuts = sorted(chance.choices(range(size + 1), k=chance.randrange(30)))
            chunks = [exchange.response[a:b] for a, b in pairwise([0, *cuts, size])]
            assert read_stream(FORMAT, chunks) == expected, exchange


@needs_corpus
def test_every_recorded_history_is_read_and_written_so_that_it_can_be_sent() -> None:
    calls = 0
    for exchange in recorded():
        conversation = FORMAT.read_history(exchange.request)
        natives = exchange.request["messages"]
        asked = [call for one in natives for call in one.get("tool_calls") or ()]
        read_calls = [call for one in conversation.messages for call in one.calls]
        assert [call.arguments for call in read_calls] == [
            one["function"]["arguments"] for one in asked
        ]
        calls += len(read_calls)
        export = FORMAT.write_history(conversation, DEFAULT_EXPORT_POLICY)
        assert request_problems("ollama", export.request) == [], exchange
        assert not export.report
        written = objects_in(export.request["messages"])
        assert [one["content"] for one in written] == [one["content"] for one in natives]
    assert calls == 3


@settings(suppress_health_check=[HealthCheck.too_slow], max_examples=times(12))
@given(conversations())
def test_every_export_is_what_the_client_and_the_server_allow(conversation: Conversation) -> None:
    export = FORMAT.write_history(conversation, DEFAULT_EXPORT_POLICY)
    found = request_problems("ollama", export.request)
    # Arguments are no text of JSON here; the check takes a key of them for one, `NaN` among them.
    assert [problem for problem in found if "(decoded)" not in problem] == []


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
