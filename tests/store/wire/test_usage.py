"""The tokens of an answer are those that its payload tells, streamed or not, and nothing else."""

import json
from collections.abc import Iterator
from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import each_case
from tests.support.wire import recorded
from tests.support.wire.recorded import Exchange

from tooltrail.wire import JsonObject, TokenCounts, read_stream, wire_format

Events = list[dict[str, Any]]

CHAT_USAGE: JsonObject = {
    "prompt_tokens": 40,
    "completion_tokens": 7,
    "total_tokens": 47,
    "prompt_tokens_details": {"cached_tokens": 32, "audio_tokens": 0},
    "completion_tokens_details": {"reasoning_tokens": 5},
}
RESPONSES_USAGE: JsonObject = {
    "input_tokens": 40,
    "input_tokens_details": {"cached_tokens": 32},
    "output_tokens": 7,
    "output_tokens_details": {"reasoning_tokens": 5},
    "total_tokens": 47,
}
MESSAGES_USAGE: JsonObject = {
    "input_tokens": 3,
    "cache_creation_input_tokens": 5,
    "cache_read_input_tokens": 32,
    "cache_creation": {"ephemeral_5m_input_tokens": 5, "ephemeral_1h_input_tokens": 0},
    "output_tokens": 7,
    "service_tier": "standard",
}
CONVERSE_USAGE: JsonObject = {
    "inputTokens": 3,
    "cacheWriteInputTokens": 5,
    "cacheReadInputTokens": 32,
    "outputTokens": 7,
    "totalTokens": 47,
}
GEMINI_USAGE: JsonObject = {
    "promptTokenCount": 38,
    "toolUsePromptTokenCount": 2,
    "candidatesTokenCount": 2,
    "thoughtsTokenCount": 5,
    "cachedContentTokenCount": 32,
    "totalTokenCount": 47,
    "promptTokensDetails": [{"modality": "TEXT", "tokenCount": 38}],
}
COHERE_USAGE: JsonObject = {
    "billed_units": {"input_tokens": 12, "output_tokens": 5},
    "tokens": {"input_tokens": 40, "output_tokens": 7},
    "cached_tokens": 32,
}
OLLAMA_USAGE: JsonObject = {
    "prompt_eval_count": 40,
    "eval_count": 7,
    "total_duration": 8_113_331_500,
}

ALL = TokenCounts(input_tokens=40, output_tokens=7, cached_input_tokens=32)
NONE_CACHED = TokenCounts(input_tokens=40, output_tokens=7)

WHOLE: dict[str, tuple[JsonObject, TokenCounts]] = {
    "openai": (
        {"choices": [{"message": {"role": "assistant", "content": "hi"}}], "usage": CHAT_USAGE},
        ALL,
    ),
    "openai-responses": ({"status": "completed", "output": [], "usage": RESPONSES_USAGE}, ALL),
    "anthropic": (
        {"type": "message", "content": [{"type": "text", "text": "hi"}], "usage": MESSAGES_USAGE},
        ALL,
    ),
    "bedrock": (
        {"output": {"message": {"content": [{"text": "hi"}]}}, "usage": CONVERSE_USAGE},
        ALL,
    ),
    "gemini": (
        {
            "candidates": [{"content": {"parts": [{"text": "hi"}]}, "finishReason": "STOP"}],
            "usageMetadata": GEMINI_USAGE,
        },
        ALL,
    ),
    "ollama": ({"message": {"content": "hi"}, "done": True, **OLLAMA_USAGE}, NONE_CACHED),
    "cohere": (
        {"message": {"content": [{"type": "text", "text": "hi"}]}, "usage": COHERE_USAGE},
        ALL,
    ),
}

STREAMED: dict[str, tuple[Events, TokenCounts]] = {
    # With `include_usage`: null in every chunk, and a last one without choices.
    "openai": (
        [
            {"choices": [{"index": 0, "delta": {"content": "hi"}}], "usage": None},
            {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "usage": None},
            {"choices": [], "usage": CHAT_USAGE},
        ],
        ALL,
    ),
    "openai-responses": (
        [
            {"type": "response.created", "response": {"id": "r", "output": [], "usage": None}},
            {
                "type": "response.completed",
                "response": {"id": "r", "output": [], "usage": RESPONSES_USAGE},
            },
        ],
        ALL,
    ),
    "anthropic": (
        [
            {
                "type": "message_start",
                "message": {"content": [], "usage": {**MESSAGES_USAGE, "output_tokens": 1}},
            },
            {
                "type": "content_block_start",
                "index": 0,
                "content_block": {"type": "text", "text": "hi"},
            },
            {"type": "content_block_stop", "index": 0},
            {
                "type": "message_delta",
                "delta": {"stop_reason": "end_turn"},
                "usage": {"output_tokens": 7},
            },
            {"type": "message_stop"},
        ],
        ALL,
    ),
    "bedrock": (
        [
            {"contentBlockDelta": {"contentBlockIndex": 0, "delta": {"text": "hi"}}},
            {"messageStop": {"stopReason": "end_turn"}},
            {"metadata": {"usage": CONVERSE_USAGE, "metrics": {"latencyMs": 1}}},
        ],
        ALL,
    ),
    "gemini": (
        [
            {
                "candidates": [{"content": {"parts": [{"text": "h"}]}}],
                "usageMetadata": {"promptTokenCount": 38, "candidatesTokenCount": 1},
            },
            {
                "candidates": [{"content": {"parts": [{"text": "i"}]}, "finishReason": "STOP"}],
                "usageMetadata": GEMINI_USAGE,
            },
        ],
        ALL,
    ),
    "ollama": (
        [
            {"message": {"content": "h"}, "done": False},
            {"message": {"content": "i"}, "done": True, **OLLAMA_USAGE},
        ],
        NONE_CACHED,
    ),
    "cohere": (
        [
            {
                "type": "content-delta",
                "index": 0,
                "delta": {"message": {"content": {"text": "hi"}}},
            },
            {"type": "message-end", "delta": {"finish_reason": "COMPLETE", "usage": COHERE_USAGE}},
        ],
        ALL,
    ),
}


@each_case("name", WHOLE)
def test_a_whole_answer_tells_its_tokens(name: str) -> None:
    payload, expected = WHOLE[name]
    assert wire_format(name).read_response(payload).usage == expected


@each_case("name", STREAMED)
def test_a_stream_tells_its_tokens(name: str) -> None:
    events, expected = STREAMED[name]
    response = read_stream(wire_format(name), events)
    assert response.usage == expected
    assert response.unread == ()


@each_case("name", STREAMED)
def test_an_answer_without_counts_has_none(name: str) -> None:
    bare = {"usage", "usageMetadata", *OLLAMA_USAGE}
    payload = {key: value for key, value in WHOLE[name][0].items() if key not in bare}
    assert wire_format(name).read_response(payload).usage is None
    assert read_stream(wire_format(name), [payload]).usage is None


@pytest.mark.parametrize("name", ["text-fallback", "mcp"])
def test_formats_of_text_and_of_tools_tell_no_tokens(name: str) -> None:
    payload: JsonObject = {"choices": [], "content": [], "usage": CHAT_USAGE, "": 1}
    assert wire_format(name).read_response(payload).usage is None
    assert read_stream(wire_format(name), [payload]).usage is None


@each_case(
    ("usage", "expected"),
    [
        ({"prompt_tokens": 4, "completion_tokens": 2}, TokenCounts(4, 2)),
        ({"prompt_tokens": 0, "completion_tokens": 0}, TokenCounts(0, 0)),
        ({"prompt_tokens": 4}, TokenCounts(4)),
        # Clients whose types have floats give a count so.
        ({"prompt_tokens": 4.0}, TokenCounts(4)),
        ({"prompt_tokens": 4, "prompt_cache_hit_tokens": 3}, TokenCounts(4, None, 3)),
        ({"prompt_tokens": 4, "num_cached_tokens": 3}, TokenCounts(4, None, 3)),
        ({"prompt_tokens": 4, "cached_tokens": 3}, TokenCounts(4, None, 3)),
        # xAI: 307 and 26 and the thoughts are the total, so those are not within the 26.
        (
            {
                "prompt_tokens": 307,
                "completion_tokens": 26,
                "total_tokens": 560,
                "completion_tokens_details": {"reasoning_tokens": 227},
            },
            TokenCounts(307, 253),
        ),
        # OpenAI: they are within.
        (
            {
                "prompt_tokens": 307,
                "completion_tokens": 253,
                "total_tokens": 560,
                "completion_tokens_details": {"reasoning_tokens": 227},
            },
            TokenCounts(307, 253),
        ),
    ],
)
def test_compatible_servers_tell_tokens_in_ways_of_their_own(
    usage: JsonObject, expected: TokenCounts
) -> None:
    payload: JsonObject = {"choices": [{"message": {"content": "hi"}}], "usage": usage}
    assert wire_format("openai").read_response(payload).usage == expected


def test_groq_tells_tokens_in_a_member_of_its_own() -> None:
    usage = {"queue_time": 0.04, "prompt_tokens": 210, "completion_tokens": 15}
    events: Events = [
        {"choices": [{"delta": {"content": "hi"}}], "x_groq": {"id": "req_1"}},
        {"choices": [{"delta": {}, "finish_reason": "stop"}], "x_groq": {"usage": usage}},
    ]
    assert read_stream(wire_format("openai"), events).usage == TokenCounts(210, 15)


def test_gemini_tells_tokens_under_either_spelling() -> None:
    usage: JsonObject = {"prompt_token_count": 4, "thoughts_token_count": 2}
    payload: JsonObject = {
        "candidates": [{"content": {"parts": [{"text": "hi"}]}}],
        "usage_metadata": usage,
    }
    assert wire_format("gemini").read_response(payload).usage == TokenCounts(4, 2)


def test_the_end_of_an_anthropic_stream_tells_all_tokens_anew() -> None:
    begun = {"input_tokens": 690, "cache_read_input_tokens": 10, "output_tokens": 8}
    ended = {"input_tokens": 4714, "cache_read_input_tokens": 0, "output_tokens": 304}
    events: Events = [
        {"type": "message_start", "message": {"content": [], "usage": begun}},
        {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": ended},
        {"type": "message_stop"},
    ]
    assert read_stream(wire_format("anthropic"), events).usage == TokenCounts(4714, 304, 0)


def test_a_stream_that_broke_off_tells_what_it_told_so_far() -> None:
    message: JsonObject = {"content": [], "usage": MESSAGES_USAGE}
    begun: JsonObject = {"type": "message_start", "message": message}
    response = read_stream(wire_format("anthropic"), [begun])
    assert response.usage == ALL
    assert response.message.is_complete is False


ODD: list[Any] = ["7", -1, True, None, 7.5, float("inf"), [7], {"a": 7}, (1 << 53), 10**5_000]


@each_case("odd", ODD)
@each_case("name", WHOLE)
def test_what_is_no_count_is_passed_over(name: str, odd: Any) -> None:
    payload, expected = WHOLE[name]
    spoiled = {key: replaced(value, odd) for key, value in payload.items()}
    assert wire_format(name).read_response(spoiled).usage is None
    assert read_stream(wire_format(name), [spoiled]).usage is None
    # Nor does it take the place of a count that was told before.
    assert read_stream(wire_format(name), [payload, spoiled]).usage == expected


def replaced(value: Any, odd: Any) -> Any:
    """The value with another in the place of each count."""
    if isinstance(value, dict):
        return {key: replaced(one, odd) for key, one in cast("dict[str, Any]", value).items()}
    return odd if type(value) is int else value


def test_the_largest_count_is_the_largest_integer_that_json_is_sure_to_hold() -> None:
    usage: JsonObject = {"prompt_tokens": 9_007_199_254_740_991}
    payload: JsonObject = {"choices": [{"message": {"content": "hi"}}], "usage": usage}
    expected = TokenCounts(input_tokens=9_007_199_254_740_991)
    assert wire_format("openai").read_response(payload).usage == expected


@each_case("odd", [7, "7", [], [7], True, {}])
@each_case("name", WHOLE)
def test_what_is_no_usage_tells_nothing(name: str, odd: Any) -> None:
    payload: JsonObject = {"usage": odd, "usageMetadata": odd, "x_groq": odd, "eval_count": "7"}
    for event in (payload, {"message": odd, "response": odd}):
        assert wire_format(name).read_response(event).usage is None
        assert read_stream(wire_format(name), [event]).usage is None


COUNTS = st.integers(0, 1 << 40)


@given(st.lists(st.tuples(COUNTS, COUNTS), min_size=1))
def test_what_was_told_last_counts(told: list[tuple[int, int]]) -> None:
    events: Events = [
        {"type": "message_delta", "usage": {"input_tokens": given_in, "output_tokens": said}}
        for given_in, said in told
    ]
    assert read_stream(wire_format("anthropic"), events).usage == TokenCounts(*told[-1])


NAMES = {
    "bedrock": (
        ("inputTokens", "cacheReadInputTokens", "cacheWriteInputTokens"),
        ("outputTokens",),
    ),
    "openai": (("prompt_tokens",), ("completion_tokens",)),
    "openai-responses": (("input_tokens",), ("output_tokens",)),
    "anthropic": (
        ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens"),
        ("output_tokens",),
    ),
    "gemini": (
        ("promptTokenCount", "toolUsePromptTokenCount"),
        ("candidatesTokenCount", "thoughtsTokenCount"),
    ),
    "ollama": (("prompt_eval_count",), ("eval_count",)),
    # Those of `billed_units` stand in front of these.
    "cohere": (("input_tokens",), ("output_tokens",)),
}
"""The members that are input, and those that are output, each with its sum."""

LEAST = {"bedrock": 29, "cohere": 6, "ollama": 12}

THOUGHTS_BESIDE = "xai"
"""Part of the names of recordings whose output leaves the thoughts out."""


@pytest.mark.skipif(not recorded.exchanges(), reason="the corpus is not there")
@pytest.mark.parametrize(("name", "least"), [(n, LEAST.get(n, 75)) for n in NAMES])
def test_recorded_answers_have_the_tokens_that_their_payloads_tell(name: str, least: int) -> None:
    found = 0
    for exchange in recorded.of_format(name):
        usage = usage_read(exchange)
        expected = tuple(sum_of(exchange.events(), names) for names in NAMES[name])
        told = (usage.input_tokens, usage.output_tokens) if usage else (None, None)
        found += usage is not None
        if name == "openai" and THOUGHTS_BESIDE in exchange.path:
            assert told[0] == expected[0]
            assert (told[1] or 0) >= (expected[1] or 0)
        else:
            assert told == expected, str(exchange)
    assert found >= least


def usage_read(exchange: Exchange) -> TokenCounts | None:
    known = wire_format(exchange.wire_format or "")
    if exchange.is_stream:
        return read_stream(known, [exchange.response]).usage
    return known.read_response(json.loads(exchange.response)).usage


def sum_of(events: list[Any], names: tuple[str, ...]) -> int | None:
    """The last values of the members, wherever they stand outside of arrays."""
    told = [one for event in events for one in counts_within(event) if one[0] in names]
    return sum(dict(told).values()) if told else None


def counts_within(value: Any) -> Iterator[tuple[str, int]]:
    """All members that are integers; those of `tool_usage` are of other models."""
    if isinstance(value, dict):
        for key, one in cast("dict[str, Any]", value).items():
            if isinstance(one, int):
                yield key, one
            elif key != "tool_usage":
                yield from counts_within(one)
