"""What providers really sent: every call is found, every history can be read and sent again.

The numbers are of the corpus, whose calls are counted by a walk that assembles nothing.
"""

import json
import random
from collections.abc import Iterable
from itertools import groupby, pairwise
from typing import Any, cast

import pytest
from tests.support.wire import recorded
from tests.support.wire.fake_provider import request_problems
from tests.support.wire.recorded import Exchange

from tooltrail.records import (
    CallBlock,
    Conversation,
    Message,
    MessageBlock,
    ResultBlock,
    TextBlock,
    ToolCall,
)
from tooltrail.wire import DEFAULT_EXPORT_POLICY, Response, read_stream, wire_format

CALLS = {
    "openai": 74,
    "openai-responses": 43,
    "anthropic": 61,
    "bedrock": 34,
    "gemini": 85,
    "ollama": 0,
    "cohere": 7,
}
"""Calls in the first choices of all recorded answers."""

FORMATS = tuple(CALLS)

ODD = {
    "parallel-tool-call-wrapper.1.chunks.txt": 3,  # events that are no JSON, the last one too
    "test_openai_previous_response_id.yaml": 1,  # the status "complete", which is no status
}
"""Recordings of which something is unread, and how much."""

EXACT = ("bedrock", "ollama", "cohere")
"""Formats whose recorded requests are all written again without a word in the report."""

needs_corpus = pytest.mark.skipif(not recorded.exchanges(), reason="the corpus is not there")


def read(exchange: Exchange) -> Response:
    known = wire_format(exchange.wire_format or "")
    if exchange.is_stream:
        return read_stream(known, [exchange.response])
    return known.read_response(json.loads(exchange.response))


def call_count(response: Response) -> int:
    """Calls of first choices; a recording may hold several answers one behind the other."""
    messages = [one for one in response.messages if one.origin and one.origin.choice == 0]
    return sum(len(message.calls) for message in messages)


@needs_corpus
@pytest.mark.parametrize("name", FORMATS)
def test_every_recorded_call_is_found(name: str) -> None:
    answers = recorded.of_format(name)
    wrong = [str(one) for one in answers if call_count(read(one)) != one.call_count()]
    assert wrong == []
    assert sum(call_count(read(one)) for one in answers) == CALLS[name]


CHAT_SERVERS = {"mistral": 5, "groq": 5, "xai": 4, "deepseek": 8, "openrouter": 1}
"""Servers that speak Chat Completions, and how many of their recorded answers ask for calls."""


@needs_corpus
@pytest.mark.parametrize("server", CHAT_SERVERS)
def test_calls_of_each_chat_server_may_run_and_go_back_as_they_came(server: str) -> None:
    known = wire_format("openai")
    recordings = [one for one in recorded.of_format("openai") if server in str(one)]
    answers = [answer for answer in map(read, recordings) if answer.calls]
    assert len(answers) == CHAT_SERVERS[server]
    for answer in answers:
        assert all(call.is_executable for call in answer.calls)
        done = TextBlock(text="done")
        results = [
            ResultBlock(call_id=call.call_id, status="unknown", content=(done,))
            for call in answer.calls
        ]
        said = [
            Message.of("user", "go"),
            answer.message,
            Message(role="tool", blocks=tuple(results)),
        ]
        export = known.write_history(Conversation.of(said), DEFAULT_EXPORT_POLICY)
        assert not export.report
        again = known.read_history(export.request).messages[1]
        # An index is in answers alone, and so is the flag that it was missing.
        assert [without_flags(call) for call in again.calls] == [
            without_flags(call) for call in answer.calls
        ]
        assert without_calls(again) == without_calls(answer.message)


def without_flags(call: ToolCall) -> ToolCall:
    return call.model_copy(update={"flags": ()})


def without_calls(message: Message) -> list[MessageBlock]:
    return [block for block in message.blocks if not isinstance(block, CallBlock)]


@needs_corpus
@pytest.mark.parametrize("name", FORMATS)
def test_of_recorded_answers_only_what_is_odd_is_unread(name: str) -> None:
    for exchange in recorded.of_format(name):
        response = read(exchange)
        odd = [told for told in response.unread if "more than one" not in told]
        expected = next((n for part, n in ODD.items() if part in exchange.path), 0)
        assert len(odd) == expected, (str(exchange), odd)
        assert response.messages or response.failure, str(exchange)
        if exchange.status >= 400:
            assert response.failure is not None, str(exchange)


@needs_corpus
@pytest.mark.parametrize("name", FORMATS)
def test_a_recorded_stream_is_the_same_wherever_it_is_cut(name: str) -> None:
    chance = random.Random(name)
    for exchange in recorded.of_format(name):
        if exchange.is_stream:
            data = exchange.response
            places = chance.choices(range(len(data)), k=40)
            cuts = sorted({0, len(data), *places})
            chunks = [data[start:end] for start, end in pairwise(cuts)]
            assert read_stream(wire_format(name), chunks) == read(exchange), str(exchange)


def streams_with_calls(name: str) -> list[bytes]:
    """Recorded streams in which there are calls.

    There are none of Ollama; so those calls that its recorded requests bring are streamed, a line
    for each as its server does.
    """
    if name != "ollama":
        recordings = [one for one in recorded.of_format(name) if one.is_stream and read(one).calls]
        return [one.response for one in recordings]
    streams: list[bytes] = []
    for exchange in recorded.of_format(name):
        for message in exchange.request["messages"]:
            if calls := message.get("tool_calls"):
                each = [{"message": {"tool_calls": [call]}} for call in calls]
                last = {"message": {"content": ""}, "done": True, "done_reason": "stop"}
                lines: list[dict[str, Any]] = [*each, last]
                streams.append("\n".join(map(json.dumps, lines)).encode())
    return streams


STREAMS = {
    "openai": 22,
    "openai-responses": 18,
    "anthropic": 13,
    "bedrock": 9,
    "gemini": 50,
    "ollama": 3,
    "cohere": 2,
}


@needs_corpus
@pytest.mark.parametrize("name", FORMATS)
def test_what_leaves_a_recorded_stream_that_is_cut_off_is_whole_or_flagged(name: str) -> None:
    chance, known = random.Random(name), wire_format(name)
    streams = streams_with_calls(name)
    assert len(streams) == STREAMS[name]
    cut_calls = 0
    for data in streams:
        whole = {
            (call.tool_name, call.call_id, call.arguments_raw)
            for message in read_stream(known, [data]).messages
            for call in message.calls
        }
        for end in chance.choices(range(len(data)), k=20):
            response = read_stream(known, [data[:end]])
            for message in response.messages:
                for call in message.calls:
                    cut_calls += not call.is_executable
                    told = (call.tool_name, call.call_id, call.arguments_raw)
                    assert not call.is_executable or told in whole, data
    # Many were cut in a call, or before the answer had said that it is done.
    assert cut_calls > 10


def without_names(conversation: Conversation) -> Conversation:
    """As it is, but for the names of tools in results, which not every format has."""
    messages: list[Message] = []
    for message in conversation.messages:
        blocks = tuple(
            block.model_copy(update={"tool_name": None, "namespace": None})
            if isinstance(block, ResultBlock)
            else block
            for block in message.blocks
        )
        messages.append(message.model_copy(update={"blocks": blocks}))
    return Conversation.of(messages)


@needs_corpus
@pytest.mark.parametrize("name", FORMATS)
def test_every_recorded_history_can_be_read_and_sent_again(name: str) -> None:
    known = wire_format(name)
    count = 0
    for exchange in recorded.exchanges():
        request: Any = exchange.request
        if exchange.wire_format != name or not isinstance(request, dict):
            continue
        count += 1
        body = cast("dict[str, Any]", request)
        conversation = known.read_history(body)
        export = known.write_history(conversation, DEFAULT_EXPORT_POLICY)
        # Requests with blocks of beta versions are refused by the client's types as they were.
        if not request_problems(name, without_tools(body)):
            assert request_problems(name, export.request) == [], str(exchange)
        again = known.read_history(export.request)
        assert name not in EXACT or not export.report, str(exchange)
        if not export.report:
            assert joined(without_names(again)) == joined(without_names(conversation))
    assert count >= {"bedrock": 17, "ollama": 15, "gemini": 42, "anthropic": 66, "cohere": 3}.get(
        name, 60
    )


def without_tools(request: dict[str, object]) -> dict[str, object]:
    return {member: value for member, value in request.items() if member != "tools"}


def joined(conversation: Conversation) -> list[tuple[object, ...]]:
    """What is said, parts of one text put together: all blocks, and what a provider said beside."""
    return [
        (
            message.role,
            [_together(is_text, run) for is_text, run in groupby(message.blocks, key=_is_plain)],
            message.origin.extras if message.origin else {},
        )
        for message in conversation.messages
    ]


def _is_plain(block: MessageBlock) -> bool:
    return isinstance(block, TextBlock) and not block.extras and not block.is_refusal


def _together(is_text: bool, run: Iterable[MessageBlock]) -> object:
    if is_text:
        return "\n".join(block.text for block in run if isinstance(block, TextBlock))
    return [*run]
