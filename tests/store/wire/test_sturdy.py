"""Parts that no record can hold: the rest is read, no call runs, and what was so is said."""

from typing import Any, cast

import pytest
from tests.store.wire.test_odd_payloads import ANSWERS, runnable

from tooltrail.records import InvalidRecordError, Message
from tooltrail.wire import ResponseStream, wire_format
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


def with_odd(value: Any, odd: Any) -> Any:
    """A payload with one more member in each of its objects."""
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        return {**{name: with_odd(one, odd) for name, one in members.items()}, "odd": odd}
    if isinstance(value, list):
        return [with_odd(one, odd) for one in cast("list[Any]", value)]
    return value


@pytest.mark.parametrize("extra", [nested(260), nested(900), LONG], ids=["260", "900", "long"])
@pytest.mark.parametrize(("name", "answer"), ANSWERS, ids=[name for name, _ in ANSWERS])
def test_the_rest_of_an_answer_is_read_and_no_call_of_it_runs(
    name: str, answer: dict[str, Any], extra: Any
) -> None:
    known = wire_format(name)
    sound = known.read_response(with_odd(answer, nested(100)))
    payload = with_odd(answer, extra)
    stream = ResponseStream(known)
    stream.feed(payload)
    assert TOO_DEEP not in sound.unread
    for response in (known.read_response(payload), stream.finish()):
        assert TOO_DEEP in response.unread
        assert runnable(response) == []
        for message, expected in zip(response.messages, sound.messages, strict=True):
            assert message.text == expected.text
            assert [call.call_id for call in message.calls] == [
                call.call_id for call in expected.calls
            ]
            assert Message.from_json(message.to_json()) == message


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
