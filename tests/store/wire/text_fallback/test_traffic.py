"""Text as real servers and clients have it: recorded answers, the client's types, a client."""

import random
import re
from collections.abc import Iterable
from typing import Any

import pytest
from hypothesis import given
from tests.support.nasty_messages import tangled_conversations
from tests.support.wire.checks import history_problems
from tests.support.wire.fake_provider import fake_provider
from tests.support.wire.recorded import Exchange, of_format
from tests.support.wire.schemas import problems

from tooltrail.records import Conversation, Message
from tooltrail.wire import DEFAULT_EXPORT_POLICY, JsonObject, read_stream
from tooltrail.wire.text_fallback import FAMILIES, TextCall, text_format

families = pytest.mark.parametrize("family", sorted(FAMILIES))
RECORDED = of_format("openai")
needs_corpus = pytest.mark.skipif(not RECORDED, reason="the recorded traffic is not here")


def text_of(exchange: Exchange) -> dict[int, str]:
    """What each choice of a recorded answer says, found without the reader."""
    said: dict[int, str] = {}
    for event in exchange.events():
        for position, choice in enumerate(event.get("choices") or ()):
            told: dict[str, Any] = choice.get("delta") or choice.get("message") or {}
            content: Any = told.get("content")
            index = choice.get("index", position)
            said[index] = said.get(index, "") + (content or "")
    return said


def without_thoughts(text: str) -> str:
    """What is answered behind the thoughts that some models have in their text."""
    return re.sub(r"^<think>.*?(</think>\n{0,2}|\Z)", "", text, flags=re.DOTALL)


def cut(data: bytes, chance: random.Random) -> Iterable[bytes]:
    while data:
        size = chance.randint(1, 400)
        yield data[:size]
        data = data[size:]


@needs_corpus
@families
def test_every_recorded_answer_says_what_it_said(family: str) -> None:
    able = text_format(family)
    count = 0
    for exchange in RECORDED:
        response = read_stream(able, [exchange.response])
        assert response == read_stream(able, cut(exchange.response, random.Random(count)))
        expected = text_of(exchange)
        if exchange.status == 200 and expected:
            count += 1
            assert [one.text for one in response.messages] == [
                without_thoughts(expected[index]) for index in sorted(expected)
            ]
            # None of them was asked to call tools in words.
            assert response.calls == ()
        else:
            assert response.failure is not None or response.unread
    assert count > 50


@needs_corpus
def test_a_recorded_text_with_a_call_in_it_gives_that_call() -> None:
    for family, able in FAMILIES.items():
        asked = able.write_calls([TextCall("now", None, "{}")])
        for exchange in RECORDED[:40]:
            for text in text_of(exchange).values():
                payload: JsonObject = {"content": f"{text}\n\n{asked}"}
                response = text_format(family).read_response(payload)
                if "```" not in text and "~~~" not in text:
                    assert [call.tool_name for call in response.calls] == ["now"]


@families
@given(tangled_conversations)
def test_an_export_of_anything_is_what_a_chat_takes(
    family: str, conversation: Conversation
) -> None:
    request = text_format(family).write_history(conversation, DEFAULT_EXPORT_POLICY).request
    _check(request)


def _check(request: JsonObject) -> None:
    messages = request["messages"]
    assert isinstance(messages, list)
    for message in messages:
        assert problems("openai.message", message) == []
    assert history_problems("openai", request) == []


@families
def test_the_official_client_carries_text_both_ways(family: str) -> None:
    openai: Any = pytest.importorskip("openai")
    able = text_format(family)
    asked = FAMILIES[family].write_calls([TextCall("now", "a", "{}")])
    history = able.read_history(
        {
            "messages": [
                {"role": "user", "content": "What time is it?"},
                {"role": "assistant", "content": asked},
            ]
        }
    )
    request = able.write_history(history, DEFAULT_EXPORT_POLICY).request
    answer = {
        "id": "r1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [
            {
                "index": 0,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": f"Again.\n\n{asked}"},
            }
        ],
    }
    with fake_provider() as provider:
        provider.will_answer(answer)
        with openai.OpenAI(base_url=f"{provider.url}/v1", api_key="x", max_retries=0) as client:
            completion = client.chat.completions.create(model="m", **request)
        assert provider.refused == []
        assert provider.requests[0].body["messages"] == request["messages"]
    response = read_stream(able, [completion])
    assert [call.tool_name for call in response.calls] == ["now"]
    assert response.message.text == "Again."
    assert isinstance(response.message, Message)
