"""Parts that no record can hold: the rest is read, no call runs, and what was so is said."""

# JSON of others, looked at as it is.
# pyright: reportUnknownVariableType=false

from typing import Any

import pytest
from tests.store.wire.test_odd_payloads import ANSWERS, runnable
from tests.support.cases import each_case
from tests.support.wire.changed_parts import each_changed

from tooltrail.records import InvalidRecordError, Message
from tooltrail.wire import ResponseStream, wire_format
from tooltrail.wire.sturdy import MOST_LEVELS, bounded, is_bounded

LONG = 10**5_000
"""Of more digits than Python prints."""


def nested(levels: int) -> Any:
    value: Any = []
    for _ in range(levels - 1):
        value = [value]
    return value


@each_case(
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


@each_case("extra", [nested(260), nested(900), LONG], ids=["260", "900", "long"])
@each_case(("name", "payload"), ANSWERS, ids=[name for name, _ in ANSWERS])
def test_the_rest_of_an_answer_is_read_and_no_call_of_it_runs(
    name: str, payload: dict[str, Any], extra: Any
) -> None:
    known = wire_format(name)
    sound = known.read_response(payload)
    # With one more member in each object of the answer in turn.
    for odd in each_changed(
        payload, lambda part: [{**part, "odd": extra}] if isinstance(part, dict) else []
    ):
        stream = ResponseStream(known)
        stream.feed(odd)
        for response in (known.read_response(odd), stream.finish()):
            assert runnable(response) == []
            assert len(response.messages) == len(sound.messages)
            for message in response.messages:
                assert Message.from_json(message.to_json()) == message
        assert known.read_response(odd).unread


@each_case(
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
