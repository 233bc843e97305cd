"""What stands where calls are to be and is none is told; a call without a name is not run."""

from typing import Any

import pytest
from tests.support.cases import each_case

from tooltrail.wire import read_stream, wire_format

CALL = {"id": "a", "function": {"name": "x", "arguments": "{}"}}


@each_case("odd", [CALL, "x", 1, [CALL, "x"], [None]])
def test_calls_of_a_chat_that_are_none_are_told(odd: Any) -> None:
    known = wire_format("openai")
    message: Any = {"role": "assistant", "content": "y", "tool_calls": odd}
    choice: Any = {"index": 0, "finish_reason": "tool_calls"}
    expected = ("tool_calls of the message is not valid",)
    whole = known.read_response({"choices": [{**choice, "message": message}]})
    assert whole.unread == expected
    streamed = read_stream(known, [{"choices": [{**choice, "delta": message}]}])
    assert streamed.unread == expected
    count = 1 if isinstance(odd, list) and CALL in odd else 0
    assert len(whole.message.calls) == len(streamed.message.calls) == count


@pytest.mark.parametrize("calls", [None, [], [CALL]])
def test_calls_of_a_chat_that_are_some_or_none_are_not_told(calls: Any) -> None:
    message: Any = {"role": "assistant", "content": "y", "tool_calls": calls}
    choice: Any = {"index": 0, "finish_reason": "tool_calls", "message": message}
    assert wire_format("openai").read_response({"choices": [choice]}).unread == ()


@pytest.mark.parametrize("odd", [{"functionCall": {"name": "x", "args": {}}}, "x", 1])
def test_parts_of_gemini_that_are_none_are_told(odd: Any) -> None:
    known = wire_format("gemini")
    payload: Any = {
        "candidates": [{"content": {"role": "model", "parts": odd}, "finishReason": "STOP"}]
    }
    expected = ("parts of the content is not valid",)
    assert known.read_response(payload).unread == expected
    assert read_stream(known, [payload]).unread == expected


@pytest.mark.parametrize("odd", [[{"toolUseId": "a", "name": "x", "input": {}}], "x", 7])
def test_a_call_of_bedrock_that_is_no_object_is_told(odd: Any) -> None:
    sound = {"toolUse": {"toolUseId": "b", "name": "y", "input": {}}}
    message: Any = {"role": "assistant", "content": [sound, {"toolUse": odd}]}
    payload: Any = {"output": {"message": message}, "stopReason": "tool_use"}
    answer = wire_format("bedrock").read_response(payload)
    assert answer.unread == ("a call has no name",)
    assert not any(call.is_executable for call in answer.calls)


@pytest.mark.parametrize("name", [None, "", " "])
def test_a_call_without_a_name_is_not_run(name: str | None) -> None:
    call = {"index": 0, "id": "a", "function": {"name": name, "arguments": "{}"}}
    events = [
        {"choices": [{"index": 0, "delta": {"tool_calls": [call]}, "finish_reason": "tool_calls"}]}
    ]
    (read,) = read_stream(wire_format("openai"), events).message.calls
    assert (read.tool_name, read.is_executable) == ("(unnamed)", False)
