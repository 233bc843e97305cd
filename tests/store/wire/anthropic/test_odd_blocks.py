"""Blocks of a stream that begin twice, nowhere, or never end: none vanishes, none odd is run."""

from typing import Any

import pytest

from tooltrail.records import ToolCall
from tooltrail.wire import Response, read_stream, wire_format

BEGINNING: Any = {
    "type": "message_start",
    "message": {"id": "m", "type": "message", "role": "assistant", "model": "m", "content": []},
}
ENDED: tuple[Any, ...] = (
    {"type": "message_delta", "delta": {"stop_reason": "tool_use"}},
    {"type": "message_stop"},
)


def start(index: Any, call_id: str = "a", **native: Any) -> Any:
    block: Any = {"type": "tool_use", "id": call_id, "name": "x", "input": {}, **native}
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index: Any, piece: str) -> Any:
    told = {"type": "input_json_delta", "partial_json": piece}
    return {"type": "content_block_delta", "index": index, "delta": told}


def stop(index: Any) -> Any:
    return {"type": "content_block_stop", "index": index}


def without_index(event: Any) -> Any:
    return {name: value for name, value in event.items() if name != "index"}


def read(*events: Any, ended: tuple[Any, ...] = ENDED) -> Response:
    return read_stream(wire_format("anthropic"), [BEGINNING, *events, *ended])


def told(call: ToolCall) -> tuple[str | None, str, bool]:
    return call.call_id, call.arguments_raw, call.is_executable


def test_two_blocks_at_one_index_are_both_there() -> None:
    response = read(
        start(0),
        delta(0, '{"a":1}'),
        start(0, "b"),
        delta(0, '{"b":1}'),
        stop(0),
        start(1, "c"),
        stop(1),
    )
    assert [told(call) for call in response.message.calls] == [
        ("a", '{"a":1}', True),
        ("b", '{"b":1}', True),
        ("c", "{}", True),
    ]
    assert response.unread == ()


def with_a_text_as_index(event: Any) -> Any:
    return {**event, "index": "0"}


@pytest.mark.parametrize("make", [without_index, with_a_text_as_index])
def test_a_block_without_an_index_is_there(make: Any) -> None:
    events = [start(0), delta(0, '{"a":'), delta(0, "1}"), stop(0)]
    response = read(*map(make, events), *map(make, [start(0, "b"), stop(0)]))
    assert [told(call) for call in response.message.calls] == [
        ("a", '{"a":1}', True),
        ("b", "{}", True),
    ]
    assert response.unread == ()


def test_a_beginning_without_a_block_is_told() -> None:
    response = read({"type": "content_block_start", "index": 0}, stop(0))
    assert response.message.calls == ()
    assert response.unread == ("an event that begins a block has none",)


@pytest.mark.parametrize("reason", ["tool_use", "pause_turn", "end_turn"])
def test_a_call_that_never_ended_is_run_only_if_its_arguments_are_whole(reason: str) -> None:
    ended = ({"type": "message_delta", "delta": {"stop_reason": reason}}, {"type": "message_stop"})
    pieces = {"": False, '{"a":': False, '{"a":1}': True, "1": False}
    for piece, is_executable in pieces.items():
        deltas = [delta(0, piece)] if piece else []
        (call,) = read(start(0), *deltas, ended=ended).message.calls
        assert call.is_executable == is_executable, piece
        assert ("incomplete" in call.flags) == (not is_executable)
    (call,) = read(start(0, input={"a": 1}), ended=ended).message.calls
    assert told(call) == ("a", '{"a":1}', True)
    (call,) = read(start(0), stop(0), ended=ended).message.calls
    assert told(call) == ("a", "{}", True)
