"""Text as real servers and clients have it: recorded answers, the client's types, a client."""

import random
import re
from collections.abc import Iterable
from typing import Any

import pytest
from tests.support.wire.recorded import Exchange, of_format

from tooltrail.wire import JsonObject, read_stream
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
