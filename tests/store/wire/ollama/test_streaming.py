"""Ollama's lines, put together."""

import json

from pydantic import JsonValue

from tooltrail.records import ReasoningBlock, TextBlock
from tooltrail.wire import JsonObject, Response, read_stream
from tooltrail.wire.ollama import FORMAT


def line(message: JsonObject | None = None, **members: JsonValue) -> JsonObject:
    head: JsonObject = {"model": "qwen3", "created_at": "2026-01-01T00:00:00Z"}
    told: JsonObject = {} if message is None else {"message": {"role": "assistant", **message}}
    return {**head, **told, "done": False, **members}


def last(message: JsonObject | None = None, **members: JsonValue) -> JsonObject:
    told: JsonObject = {"done": True, "done_reason": "stop", "eval_count": 2}
    return line({"content": ""} if message is None else message, **{**told, **members})


def call(name: str, number: int) -> JsonObject:
    function: JsonObject = {
        "index": number,
        "name": name,
        "arguments": {"n": number, "t": "ü\u2028"},
    }
    return {"id": f"call_{number}", "function": function}


def spelled(*lines: JsonObject) -> bytes:
    return b"".join(json.dumps(one, ensure_ascii=False).encode() + b"\n" for one in lines)


STREAM = (
    line({"content": "", "thinking": "Let me "}),
    line({"content": "", "thinking": "see…"}),
    line({"content": "I "}),
    line({"content": "look."}),
    line({"content": "", "tool_calls": [call("f", 0)]}),
    line({"content": "", "tool_calls": [call("g", 1), call("h", 2)]}),
    last({"content": "", "tool_calls": [call("i", 3)]}),
)
WHOLE: JsonObject = last(
    {
        "content": "I look.",
        "thinking": "Let me see…",
        "tool_calls": [call("f", 0), call("g", 1), call("h", 2), call("i", 3)],
    }
)


def read(*lines: JsonObject) -> Response:
    return read_stream(FORMAT, lines)


def test_texts_are_joined_and_calls_gathered_from_every_line_and_the_last() -> None:
    response = read(*STREAM)
    message = response.message
    assert message.blocks[:2] == (ReasoningBlock(text="Let me see…"), TextBlock(text="I look."))
    assert [one.tool_name for one in message.calls] == ["f", "g", "h", "i"]
    assert [one.call_id for one in message.calls] == ["call_0", "call_1", "call_2", "call_3"]
    assert all(one.is_executable for one in message.calls)
    assert message.origin is not None
    assert (message.origin.model, message.origin.finish_reason) == ("qwen3", "stop")
    assert response.unread == ()


def test_a_stream_gives_what_the_same_answer_in_one_piece_gives() -> None:
    assert read(*STREAM) == FORMAT.read_response(WHOLE)


def test_a_server_between_may_tell_the_end_by_done_alone() -> None:
    events = b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in STREAM[:-1])
    response = read_stream(FORMAT, [events, b"data: [DONE]\n\n"])
    assert [one.is_executable for one in response.calls] == [True, True, True]


def test_blank_lines_and_thinking_that_is_no_text_keep_no_call_from_running() -> None:
    lines = (line({"content": "", "thinking": True}), STREAM[4], last())
    data = b"\n" + b"\r\n \n\n".join(map(spelled, lines)) + b"\n"
    response = read_stream(FORMAT, [data])
    assert [one.is_executable for one in response.calls] == [True]
    assert response.unread == ()


def test_a_message_that_is_none_and_lines_behind_the_end_are_told() -> None:
    response = read({"message": "x"}, last(), line({"content": "more"}))
    assert response.unread == (
        "the message of a line is not an object",
        "a line follows the one that says that the answer is done",
    )


def test_a_line_without_a_message_is_told_and_keeps_calls_from_being_run() -> None:
    response = read(STREAM[4], {"mesage": {"content": "x"}}, last())
    assert response.unread == ("a line has no message",)
    assert [one.flags for one in response.calls] == [("incomplete",)]
    loaded: JsonObject = {"model": "m", "done": True, "done_reason": "load"}
    assert read(STREAM[4], loaded).unread == ()


def test_odd_members_of_lines_are_kept_and_told() -> None:
    response = read(line({"content": ["x"]}), last({"content": None, "audio": "y"}))
    assert response.message.origin is not None
    assert response.message.origin.extras == {"audio": "y", "content": ["x"]}
    assert response.unread == ("content of the message is not valid",)
