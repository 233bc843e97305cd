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


def read(*events: Any) -> Response:
    return read_stream(wire_format("anthropic"), [BEGINNING, *events, *ENDED])


def told(call: ToolCall) -> tuple[str | None, str, bool]:
    return call.call_id, call.arguments_raw, call.is_executable


def test_two_open_blocks_at_one_index_are_both_there_and_told() -> None:
    response = read(
        start(0),
        delta(0, '{"a":1}'),
        start(0, "b"),
        delta(0, '{"b":1}'),
        stop(0),
        start(0, "c"),
        stop(0),
    )
    assert [told(call) for call in response.message.calls] == [
        ("a", '{"a":1}', False),
        ("b", '{"b":1}', False),
        ("c", "{}", False),
    ]
    assert response.unread == ("a block begins at 0, which is not a number, or is still open",)


def with_a_text_as_index(event: Any) -> Any:
    return {**event, "index": "0"}


@pytest.mark.parametrize("make", [without_index, with_a_text_as_index])
def test_a_block_without_an_index_is_there_and_told(make: Any) -> None:
    events = [start(0), delta(0, '{"a":'), delta(0, "1}"), stop(0)]
    response = read(*map(make, events), *map(make, [start(0, "b"), stop(0)]))
    assert [told(call) for call in response.message.calls] == [
        ("a", '{"a":1}', False),
        ("b", "{}", False),
    ]
    assert len(response.unread) == 2
