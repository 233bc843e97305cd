"""Streams of JSON-RPC messages."""

import json

import pytest
from pydantic import JsonValue

from tooltrail.records import InvalidRecordError, Message, ProviderBlock, TextBlock
from tooltrail.wire import JsonObject, read_stream
from tooltrail.wire.mcp import FORMAT, read_call, read_result

PROGRESS: JsonObject = {
    "jsonrpc": "2.0",
    "method": "notifications/progress",
    "params": {"progressToken": 1, "progress": 0.5},
}
ASKED: JsonObject = {
    "jsonrpc": "2.0",
    "id": 7,
    "method": "elicitation/create",
    "params": {"message": "Sure?"},
}
RESPONSE: JsonObject = {
    "jsonrpc": "2.0",
    "id": 7,
    "result": {"content": [{"type": "text", "text": "ü\u2028"}], "resultType": "complete"},
}
FAILED: JsonObject = {"jsonrpc": "2.0", "id": 8, "error": {"code": -32602, "message": "no"}}


def deep(levels: int) -> JsonValue:
    value: JsonValue = 1
    for _ in range(levels):
        value = [value]
    return value


def events(*messages: JsonObject) -> bytes:
    return b"".join(
        b"event: message\r\nid: 1\r\ndata: " + json.dumps(one).encode() + b"\r\n\r\n"
        for one in messages
    )


def test_notifications_and_requests_of_the_server_are_no_results() -> None:
    response = read_stream(FORMAT, [events(PROGRESS, ASKED, RESPONSE)])
    assert response == FORMAT.read_response(RESPONSE)
    assert response.message.results == (read_result(RESPONSE),)
    assert response.message.role == "tool"
    assert response.message.is_complete
    assert response.calls == ()
    assert response.unread == ()


def test_a_stream_that_is_cut_off_has_no_result() -> None:
    data = events(PROGRESS, RESPONSE)
    end_of_json = data.rindex(b"}") + 1
    for end in range(end_of_json):
        response = read_stream(FORMAT, [data[:end]])
        assert response.messages == ()
        assert response.unread[-1] == "the stream has no response"


def test_responses_to_several_requests_are_a_message_each() -> None:
    response = read_stream(FORMAT, [RESPONSE, FAILED, {"jsonrpc": "2.0"}])
    first, second = response.messages
    assert first.results[0].content == (TextBlock(text="ü\u2028"),)
    assert second.results[0].status == "denied"
    assert second.origin is not None
    assert second.origin.choice == 1
    assert response.failure is not None
    assert (response.failure.kind, response.failure.message) == ("-32602", "no")
    assert response.unread == ("an event is no message of JSON-RPC",)


def task(status: str, task_id: str = "t1", **more: JsonValue) -> JsonObject:
    params: JsonObject = {"taskId": task_id, "status": status, **more}
    return {"jsonrpc": "2.0", "method": "notifications/tasks", "params": params}


PUT_OFF: JsonObject = {
    "jsonrpc": "2.0",
    "id": 7,
    "result": {"resultType": "task", "taskId": "t1", "status": "working"},
}
NOON: JsonObject = {"content": [{"type": "text", "text": "noon"}]}


def test_the_notification_that_ends_a_task_brings_its_result() -> None:
    ended = task("completed", result=NOON)
    response = read_stream(FORMAT, [PUT_OFF, PROGRESS, task("working"), RESPONSE, ended])
    first, second = response.messages
    assert (first.is_complete, second.is_complete) == (True, True)
    assert first.results[0].content == (TextBlock(text="noon"),)
    assert second.results[0].content == (TextBlock(text="ü\u2028"),)
    assert response.unread == ()
    # It is the result that a history of the same messages has.
    asked: JsonObject = {"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": {"name": "f"}}
    history = FORMAT.read_history({"messages": [asked, PUT_OFF, task("working"), ended]})
    told = history.messages[-1].results[0]
    assert told.model_copy(update={"key": None}) == first.results[0]


def test_a_task_may_end_by_a_notification_without_a_result() -> None:
    response = read_stream(FORMAT, [PUT_OFF, task("cancelled")])
    assert [result.status for result in response.message.results] == ["cancelled"]
    waiting = read_stream(FORMAT, [PUT_OFF, task("working"), task("completed", "t2", result=NOON)])
    assert [one.is_complete for one in waiting.messages] == [False, True]
    assert waiting.message.blocks == (ProviderBlock(native=PUT_OFF),)


def test_the_result_of_a_task_is_kept_whatever_comes_after_it() -> None:
    noon, night = task("completed", result=NOON), task("completed", result={"content": []})
    assert read_stream(FORMAT, [noon, PUT_OFF]) == read_stream(FORMAT, [PUT_OFF, noon])
    twice = read_stream(FORMAT, [noon, night])
    assert [one.results[0].content for one in twice.messages] == [(TextBlock(text="noon"),), ()]
    assert twice.unread == ("the task 't1' has more than one result",)


def test_an_error_of_the_protocol_is_a_failure_and_a_result_that_says_so() -> None:
    response = FORMAT.read_response(FAILED)
    assert response.failure is not None
    assert response.failure.native == FAILED["error"]
    assert [result.status for result in response.message.results] == ["denied"]
    tool_error: JsonObject = {"jsonrpc": "2.0", "id": 1, "result": {"content": [], "isError": True}}
    assert FORMAT.read_response(tool_error).failure is None


@pytest.mark.parametrize(
    ("result", "unread"),
    [
        ({"resultType": "input_required", "inputRequests": {}}, ()),
        ({"task": {"taskId": "t", "status": "working"}}, ()),
        ({"tools": []}, ("the response is no answer to a call of a tool",)),
    ],
)
def test_what_is_no_result_is_kept_whole_and_not_complete(
    result: JsonObject, unread: tuple[str, ...]
) -> None:
    payload: JsonObject = {"jsonrpc": "2.0", "id": 7, "result": result}
    response = FORMAT.read_response(payload)
    assert response.message.blocks == (ProviderBlock(native=payload),)
    assert not response.message.is_complete
    assert response.unread == unread


@pytest.mark.parametrize("result", [{"content": [], "_meta": {"a": deep(500)}}, {"x": deep(500)}])
def test_what_is_nested_deeper_than_a_record_can_hold_is_told(result: JsonObject) -> None:
    response = FORMAT.read_response({"jsonrpc": "2.0", "id": 1, "result": result})
    assert response.unread[-1] == "what is nested deeper than 200 levels is kept as text"
    assert Message.from_json(response.message.to_json()) == response.message
    with pytest.raises(InvalidRecordError):
        FORMAT.read_history({"messages": [{"jsonrpc": "2.0", "id": 1, "result": result}]})
    with pytest.raises(InvalidRecordError):
        read_call({"method": "tools/call", "params": {"name": "f", "_meta": result}})
