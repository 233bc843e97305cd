"""A stream is taken in as bytes, text or events, and gives one answer."""

import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, ConfigDict, Field

from tooltrail.records import InvalidRecordError
from tooltrail.wire import ResponseStream, event_of, read_stream, wire_format

OPENAI = wire_format("openai")
EVENTS: list[dict[str, Any]] = [
    {"id": "r", "choices": [{"index": 0, "delta": {"content": "H\u00e9"}}]},
    {
        "choices": [
            {
                "index": 0,
                "delta": {
                    "tool_calls": [
                        {"index": 0, "id": "a", "function": {"name": "now", "arguments": '{"a"'}}
                    ]
                },
            }
        ]
    },
    {
        "choices": [
            {
                "index": 0,
                "delta": {"tool_calls": [{"index": 0, "function": {"arguments": ":1}"}}]},
                "finish_reason": "tool_calls",
            }
        ]
    },
]
SPELLED = "".join(f"data: {json.dumps(one, ensure_ascii=False)}\n\n" for one in EVENTS)
STREAM = f"{SPELLED}data: [DONE]\n\n".encode()


class Event(BaseModel):
    """An event as an official client gives it."""

    model_config = ConfigDict(extra="allow")

    choices: list[dict[str, Any]]
    kind: str = Field(default="chunk", alias="type")


def pieces(data: bytes, sizes: Sequence[int]) -> list[bytes]:
    found: list[bytes] = []
    for size in sizes:
        found.append(data[:size])
        data = data[size:]
    return [*found, data]


@given(st.lists(st.integers(0, 60)))
def test_the_answer_is_the_same_wherever_the_chunks_begin_and_end(sizes: list[int]) -> None:
    response = read_stream(OPENAI, pieces(STREAM, sizes))
    assert response == read_stream(OPENAI, EVENTS)
    assert response.message.text == "H\u00e9"
    assert [call.arguments for call in response.calls] == [{"a": 1}]
    assert response.calls[0].is_executable


def test_text_and_clients_objects_are_taken_like_bytes_and_mappings() -> None:
    whole = read_stream(OPENAI, EVENTS)
    assert read_stream(OPENAI, [STREAM.decode()]) == whole
    assert read_stream(OPENAI, [Event.model_validate(one) for one in EVENTS]) == whole


def test_an_event_has_the_names_of_the_wire_and_only_what_was_sent() -> None:
    assert event_of(Event.model_validate({"choices": []})) == {"choices": []}
    sent: dict[str, Any] = {"choices": [], "type": "x", "more": 1}
    assert event_of(Event.model_validate(sent)) == sent


@pytest.mark.parametrize("chunk", [7, None, [], SimpleNamespace(choices=[])])
def test_what_no_stream_consists_of_is_refused(chunk: Any) -> None:
    with pytest.raises(InvalidRecordError, match="is no answer and no part of a stream"):
        ResponseStream(OPENAI).feed(chunk)


@pytest.mark.parametrize(
    ("chunk", "advice"),
    [
        (SimpleNamespace(parse=print), ": pass its .parse() result or its bytes"),
        (iter([]), ""),
        (bytearray(b"data: {}"), ""),
        (SimpleNamespace(), ""),
    ],
)
def test_a_refusal_says_what_to_pass(chunk: object, advice: str) -> None:
    with pytest.raises(InvalidRecordError) as refused:
        event_of(chunk)
    name = type(chunk).__name__
    assert str(refused.value) == f"{name} is no answer and no part of a stream{advice}"


@pytest.mark.parametrize("lines", [STREAM.decode().splitlines(), STREAM.splitlines()])
def test_lines_without_their_ends_are_read(lines: Sequence[Any]) -> None:
    assert read_stream(OPENAI, lines) == read_stream(OPENAI, [STREAM])
    assert read_stream(OPENAI, [line for line in lines if line]) == read_stream(OPENAI, [STREAM])


@pytest.mark.parametrize("wrong", ["openai", None, {}])
def test_what_is_no_format_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidRecordError, match="wire_format must be of type WireFormat"):
        read_stream(wrong, [])


@pytest.mark.parametrize("wrong", [OPENAI, None, {}])
def test_what_is_no_name_of_a_format_is_refused(wrong: Any) -> None:
    with pytest.raises(InvalidRecordError, match="the name of a wire format must be of type str"):
        wire_format(wrong)


@given(st.integers(0, len(SPELLED.encode()) - 3))
def test_a_stream_that_is_cut_off_gives_no_call_to_run(end: int) -> None:
    response = read_stream(OPENAI, [STREAM[:end]])
    assert not any(call.is_executable for call in response.calls)


def test_what_was_left_at_the_end_is_taken_when_nothing_follows() -> None:
    stream = ResponseStream(OPENAI)
    stream.feed(STREAM[: len(SPELLED.encode()) - 2])
    assert stream.finish() == read_stream(OPENAI, EVENTS)
