"""Answers of Ollama, and the messages of requests to it."""

import json

import pytest
from pydantic import JsonValue
from tests.support.cases import each_case

from tooltrail.records import (
    CallBlock,
    InvalidRecordError,
    MediaBlock,
    Message,
    Origin,
    ProviderBlock,
    ResultBlock,
    TextBlock,
    ToolCall,
    ToolDefinition,
)
from tooltrail.wire import JsonObject
from tooltrail.wire.ollama.reading import read_history, read_response

PNG = "iVBORw0KGgoAAAANSUhEUg=="


def answer(message: JsonObject, **members: JsonValue) -> JsonObject:
    return {
        "model": "qwen3",
        "created_at": "2026-01-01T00:00:00Z",
        "message": {"role": "assistant", **message},
        "done": True,
        "done_reason": "stop",
        **members,
    }


def calling(*calls: JsonValue, **members: JsonValue) -> JsonObject:
    return answer({"content": "", "tool_calls": [*calls]}, **members)


def called(name: str, arguments: JsonValue, **members: JsonValue) -> JsonObject:
    return {"function": {"name": name, "arguments": arguments}, **members}


def test_an_id_that_comes_twice_is_flagged_the_second_time() -> None:
    first, second = read_response(
        calling(called("f", {}, id="call_0"), called("g", {}, id="call_0"))
    ).calls
    assert (first.flags, second.flags) == ((), ("id_repeated",))


def test_all_calls_may_have_the_same_index() -> None:
    same: JsonObject = {"function": {"index": 0, "name": "f", "arguments": {"n": 1}}}
    other: JsonObject = {"function": {"index": 0, "name": "f", "arguments": {"n": 2}}}
    calls = read_response(calling(same, other)).calls
    assert [(call.position, call.arguments) for call in calls] == [(0, {"n": 1}), (1, {"n": 2})]


def test_arguments_that_are_the_text_of_an_object_run() -> None:
    response = read_response(calling(called("f", '{"a" :1}'), called("g", {"b": 2})))
    first, second = response.calls
    assert (first.arguments_raw, first.arguments, first.flags) == ('{"a" :1}', {"a": 1}, ())
    assert second.arguments_raw == '{"b":2}'
    assert [call.is_executable for call in response.calls] == [True, True]
    assert response.unread == ()


@pytest.mark.parametrize("text", ['{"a": 1', '{"a": 1} {}'])
def test_arguments_that_are_no_json_are_kept_and_may_not_run(text: str) -> None:
    response = read_response(calling(called("f", '{"a" :1}'), called("g", text)))
    assert [call.arguments_raw for call in response.calls] == ['{"a" :1}', text]
    assert [call.is_executable for call in response.calls] == [True, False]


@pytest.mark.parametrize("thinking", [True, False, {"text": "x"}, ["x"]])
def test_thinking_that_is_no_text_keeps_no_call_from_running(thinking: JsonValue) -> None:
    message: JsonObject = {"thinking": thinking, "content": "", "tool_calls": [called("f", {})]}
    response = read_response(answer(message))
    assert response.message.origin is not None
    assert response.message.origin.extras == {"thinking": thinking}
    assert [call.is_executable for call in response.calls] == [True]
    assert response.unread == ()


@each_case(
    ("arguments", "raw"),
    [
        (None, ""),
        ([1, 2], "[1,2]"),
        (7, "7"),
        ({"n": 12345678901234567890123, "x": 1.5}, '{"n":12345678901234567890123,"x":1.5}'),
        ({"\ud800": "\0"}, '{"\ud800":"\\u0000"}'),
    ],
)
def test_arguments_of_every_kind_keep_their_json(arguments: JsonValue, raw: str) -> None:
    (call,) = read_response(calling(called("f", arguments))).calls
    assert call.arguments_raw == raw


def test_a_number_beyond_a_double_cannot_be_read_as_arguments() -> None:
    payload = json.loads(json.dumps(calling(called("f", {"a": 1}))).replace('"a": 1', '"a": 1e999'))
    (call,) = read_response(payload).calls
    assert call.parse_error is not None
    assert not call.is_executable


def test_an_image_has_the_type_that_its_first_bytes_tell() -> None:
    images: list[JsonValue] = [PNG, "/9j/4AAQSkZJRg==", "R0lGODlhAQABAAAA", "UklGRgAAAABXRUJQVlA4"]
    message = read_response(
        answer({"content": "", "images": [*images, "AAEC", "no base64!"]})
    ).message
    types = [block.media_type for block in message.blocks if isinstance(block, MediaBlock)]
    assert types == ["image/png", "image/jpeg", "image/gif", "image/webp", None, None]


def test_what_is_not_known_is_kept_as_extras_of_the_call_and_of_the_message() -> None:
    call: JsonObject = {
        "id": "c",
        "type": "function",
        "signature": "s",
        "function": {"name": "f", "arguments": {}, "index": 3, "odd": [1]},
    }
    message = read_response(answer({"content": "", "tool_calls": [call], "logprobs": [0]})).message
    assert message.calls[0].extras == {"signature": "s", "function": {"index": 3, "odd": [1]}}
    assert message.origin is not None
    assert message.origin.extras == {"logprobs": [0]}


@each_case(
    "member",
    [
        {"content": [{"type": "text", "text": "x"}]},
        {"images": "x"},
        {"images": [{"url": "x"}]},
        {"tool_calls": {"function": {}}},
        {"tool_calls": ["f"]},
        {"tool_calls": [{"function": "f"}]},
    ],
)
def test_a_member_of_another_kind_is_kept_and_told(member: JsonObject) -> None:
    response = read_response(answer({"content": "", **member}))
    assert response.message.origin is not None
    assert response.message.origin.extras == member
    (name,) = member
    assert response.unread == (f"{name} of the message is not valid",)


@pytest.mark.parametrize("members", [{"done": False}, {"done": None}])
def test_an_answer_that_is_not_done_has_no_executable_call(members: JsonObject) -> None:
    response = read_response(calling(called("f", {}), called("g", {}), **members))
    assert [call.is_executable for call in response.calls] == [False, False]
    assert response.unread == ("the answer does not say that it is done",)


def test_the_answer_to_loading_a_model_is_empty_and_complete() -> None:
    message = read_response(answer({"content": ""}, done_reason="load")).message
    assert message.blocks == ()
    assert message.is_complete


@pytest.mark.parametrize(
    ("payload", "message", "kind"),
    [
        ({"error": "model 'x' not found"}, "model 'x' not found", None),
        ({"error": {"message": "no", "type": "api_error"}}, "no", "api_error"),
        ({"error": {"code": 500}}, "", "500"),
        ({"error": ""}, "", None),
    ],
)
def test_an_error_is_a_failure(payload: JsonObject, message: str, kind: str | None) -> None:
    response = read_response(payload)
    assert response.failure is not None
    assert (response.failure.message, response.failure.kind) == (message, kind)
    assert response.failure.native == payload
    assert response.messages == ()
    assert response.unread == ()


def test_a_history_is_read_with_its_tools_and_batches() -> None:
    conversation = read_history(
        {
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Weather?", "images": [PNG]},
                {
                    "role": "assistant",
                    "content": "",
                    "tool_calls": [called("f", {"n": 1}, id="call_1"), called("f", {"n": 2})],
                },
                {"role": "tool", "content": "18 C", "tool_name": "f", "tool_call_id": "call_1"},
                {"role": "tool", "content": "ERROR: no", "name": "f", "score": 1},
                {"role": "assistant", "content": "18 C."},
            ],
            "tools": [
                {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}
            ],
        }
    )
    assert conversation.tools == (ToolDefinition(name="f", parameters={"type": "object"}),)
    assert conversation.messages == (
        Message.of("system", "Be brief."),
        Message(
            role="user",
            blocks=(
                TextBlock(text="Weather?"),
                MediaBlock(kind="image", media_type="image/png", data=PNG),
            ),
        ),
        Message(
            role="assistant",
            blocks=(
                CallBlock(call=ToolCall(tool_name="f", arguments_raw='{"n":1}', call_id="call_1")),
                CallBlock(call=ToolCall(tool_name="f", arguments_raw='{"n":2}', position=1)),
            ),
        ),
        Message(
            role="tool",
            blocks=(
                ResultBlock(
                    call_id="call_1",
                    tool_name="f",
                    status="unknown",
                    content=(TextBlock(text="18 C"),),
                ),
                ResultBlock(
                    tool_name="f",
                    status="error",
                    content=(TextBlock(text="ERROR: no"),),
                    extras={"score": 1},
                ),
            ),
        ),
        Message.of("assistant", "18 C."),
    )


def test_a_role_that_only_some_models_know_is_kept_whole() -> None:
    native: JsonObject = {"role": "control", "content": "thinking"}
    (message,) = read_history({"messages": [native]}).messages
    assert message.blocks == (ProviderBlock(native=native),)
    assert message.origin == Origin(wire_format="ollama")


def test_results_behind_results_of_another_batch_are_messages_of_their_own() -> None:
    tool: JsonObject = {"role": "tool", "content": "x"}
    user: JsonObject = {"role": "user", "content": "y"}
    messages = read_history({"messages": [tool, tool, user, tool]}).messages
    assert [len(message.blocks) for message in messages] == [2, 1, 1]


@pytest.mark.parametrize(
    "request_body", [{}, {"messages": "x"}, {"messages": ["x"]}, {"messages": [{"content": "x"}]}]
)
def test_what_is_no_history_is_refused(request_body: JsonObject) -> None:
    with pytest.raises(InvalidRecordError):
        read_history(request_body)
