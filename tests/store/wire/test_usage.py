"""What an answer cost in tokens, as each provider tells it."""

import json
from typing import Any

import pytest
from tests.support.agents.scripted_provider import FORMATS
from tests.support.agents.spelled_answers import Turn, says, spell_stream, spell_whole

from tooltrail.wire import TokenCounts, read_stream, wire_format

ODD: tuple[Any, ...] = ("12", -1, 1.5, True, None, [], {}, 2**53)


@pytest.mark.parametrize("name", FORMATS)
def test_an_answer_tells_its_tokens_streamed_and_whole(name: str) -> None:
    known = wire_format(name)
    whole = known.read_response(json.loads(spell_whole(name, says("It is 3."))))
    streamed = read_stream(known, [spell_stream(name, says("It is 3."))])
    assert whole.usage == streamed.usage == TokenCounts(10, 5)
    silent = Turn("It is 3.", usage=None)
    assert read_stream(known, [spell_stream(name, silent)]).usage in {
        None,
        # Anthropic's first event has zero of each where nothing is told.
        TokenCounts(0, 0),
    }


@pytest.mark.parametrize(
    ("name", "payload", "usage"),
    [
        (
            "openai",
            {
                "usage": {
                    "prompt_tokens": 100,
                    "completion_tokens": 20,
                    "total_tokens": 120,
                    "prompt_tokens_details": {"cached_tokens": 64},
                    "completion_tokens_details": {"reasoning_tokens": 8},
                }
            },
            TokenCounts(100, 20, 64),
        ),
        # xAI counts thoughts beside the answer.
        (
            "openai",
            {
                "usage": {
                    "prompt_tokens": 100,
                    "completion_tokens": 20,
                    "total_tokens": 128,
                    "completion_tokens_details": {"reasoning_tokens": 8},
                }
            },
            TokenCounts(100, 28),
        ),
        ("openai", {"x_groq": {"usage": {"prompt_tokens": 3}}}, TokenCounts(3)),
        (
            "openai-responses",
            {
                "usage": {
                    "input_tokens": 9,
                    "output_tokens": 4,
                    "input_tokens_details": {"cached_tokens": 2},
                }
            },
            TokenCounts(9, 4, 2),
        ),
        (
            "anthropic",
            {
                "usage": {
                    "input_tokens": 5,
                    "cache_read_input_tokens": 100,
                    "cache_creation_input_tokens": 20,
                    "output_tokens": 7,
                }
            },
            TokenCounts(125, 7, 100),
        ),
        (
            "gemini",
            {
                "usageMetadata": {
                    "promptTokenCount": 10,
                    "toolUsePromptTokenCount": 3,
                    "candidatesTokenCount": 4,
                    "thoughtsTokenCount": 6,
                    "cachedContentTokenCount": 8,
                }
            },
            TokenCounts(13, 10, 8),
        ),
        ("ollama", {"eval_count": 4}, TokenCounts(None, 4)),
    ],
)
def test_what_each_provider_counts_on_its_own(
    name: str, payload: dict[str, Any], usage: TokenCounts
) -> None:
    assert wire_format(name).read_response(payload).usage == usage


@pytest.mark.parametrize("value", ODD, ids=repr)
@pytest.mark.parametrize("name", FORMATS)
def test_what_is_no_count_is_passed_over(name: str, value: Any) -> None:
    members = {
        "openai": {"usage": {"prompt_tokens": value, "completion_tokens": 1}},
        "openai-responses": {"usage": {"input_tokens": value, "output_tokens": 1}},
        "anthropic": {"usage": {"input_tokens": value, "output_tokens": 1}},
        "gemini": {"usageMetadata": {"promptTokenCount": value, "candidatesTokenCount": 1}},
        "ollama": {"prompt_eval_count": value, "eval_count": 1},
    }
    assert wire_format(name).read_response(members[name]).usage == TokenCounts(None, 1)
    for odd in (value, [value]):
        told = {"usage": odd, "usageMetadata": odd, "x_groq": odd, "message": odd, "response": odd}
        assert wire_format(name).read_response(told).usage is None


@pytest.mark.parametrize("name", ["mcp", "text-fallback"])
def test_a_format_that_tells_no_tokens_has_none(name: str) -> None:
    assert wire_format(name).usage is None


def test_a_stream_that_broke_off_tells_what_it_had_told() -> None:
    data = spell_stream("anthropic", says("It is 3."))
    begun = data[: data.index(b"content_block_start")]
    response = read_stream(wire_format("anthropic"), [begun])
    assert response.usage == TokenCounts(10, 1)
