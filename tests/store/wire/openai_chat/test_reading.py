"""Answers and requests of Chat Completions, with what stands where something else is to be."""

from typing import Any

import pytest
from tests.support.cases import each_case

from tooltrail.records import (
    MediaBlock,
    Message,
    MessageBlock,
    Origin,
    ProviderBlock,
    ReasoningBlock,
    ResultBlock,
    TextBlock,
)
from tooltrail.wire import Response
from tooltrail.wire.openai_chat import FORMAT

CALL: dict[str, Any] = {"id": "x", "function": {"name": "f", "arguments": "{}"}}


def answered(message: Any, finish_reason: str = "stop", **members: Any) -> Response:
    choice = {"index": 0, "message": message, "finish_reason": finish_reason, **members}
    return FORMAT.read_response({"id": "c", "model": "m", "choices": [choice]})


def read(*messages: dict[str, Any]) -> tuple[Message, ...]:
    return FORMAT.read_history({"messages": [*messages]}).messages


def own(**extras: Any) -> Origin:
    return Origin(wire_format="openai", extras=extras)


def said(content: Any) -> tuple[MessageBlock, ...]:
    (message,) = read({"role": "user", "content": content})
    return message.blocks


def test_an_answer_says_what_was_thought_then_text_a_refusal_and_calls() -> None:
    response = answered(
        {
            "role": "assistant",
            "reasoning_content": "hm",
            "content": "I see.",
            "refusal": "no",
            "tool_calls": [CALL],
            "provider_specific_fields": {"a": 1},
        }
    )
    thought, text, refusal, call = response.message.blocks
    assert thought == ReasoningBlock(text="hm", extras={"member": "reasoning_content"})
    assert (text, refusal) == (TextBlock(text="I see."), TextBlock(text="no", is_refusal=True))
    assert call.type == "tool_call"
    assert response.message.origin == Origin(
        wire_format="openai",
        model="m",
        response_id="c",
        finish_reason="stop",
        extras={"provider_specific_fields": {"a": 1}},
    )
    assert response.unread == ()
    assert response.calls[0].is_executable


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("content", {"type": "text", "text": "hi"}),
        ("reasoning", {"a": 1}),
        ("reasoning_content", ["a"]),
        ("refusal", False),
    ],
)
def test_a_text_that_is_none_keeps_no_call_from_running(name: str, value: Any) -> None:
    response = answered({"tool_calls": [CALL], name: value})
    assert response.unread == ()
    assert response.calls[0].is_executable


def test_a_custom_tool_that_is_null_beside_a_function_is_none() -> None:
    response = answered({"tool_calls": [{**CALL, "custom": None}]})
    assert (response.unread, response.calls[0].is_executable) == ((), True)


@each_case(
    ("message", "told"),
    [
        (None, "choices[0] has no message"),
        ("x", "choices[0] has no message"),
        ({"content": {"a": 1}}, "content of the message is not a string"),
        ({"content": 5}, "content of the message is not a string"),
        ({"tool_calls": [{**CALL, "id": 5}]}, "a call is not valid"),
        ({"tool_calls": [{"id": "x"}]}, "a call is not valid"),
        ({"tool_calls": [{"id": "x", "function": {"name": 5}}]}, "a call is not valid"),
        ({"tool_calls": CALL}, "tool_calls of the message is not valid"),
    ],
)
def test_what_is_not_as_the_format_says_is_told(message: Any, told: str) -> None:
    response = answered(message)
    assert response.unread == (told,)
    assert not any(call.is_executable for call in response.calls)


def test_what_else_a_call_and_its_function_say_is_kept() -> None:
    function = {**CALL["function"], "x": 1}
    (call,) = answered({"tool_calls": [{**CALL, "function": function, "y": 2}]}).calls
    assert call.extras == {"function": {"x": 1}, "y": 2}


def test_members_of_another_kind_are_kept_as_extras() -> None:
    message = {"content": "", "reasoning": {"a": 1}, "annotations": [1], "function_call": "f"}
    origin = answered(message).message.origin
    assert origin is not None
    assert origin.extras == {"reasoning": {"a": 1}, "annotations": [1], "function_call": "f"}


@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_what_was_cut_short_has_its_last_call_flagged(reason: str) -> None:
    response = answered({"tool_calls": [CALL, {**CALL, "id": "y"}]}, reason)
    assert [call.flags for call in response.calls] == [(), ("incomplete",)]
    assert not response.message.is_complete


@pytest.mark.parametrize("error", [{"message": "no", "code": 502}, None])
def test_a_choice_that_failed_is_a_failure(error: Any) -> None:
    response = answered({"tool_calls": [CALL]}, "error", error=error)
    assert response.failure is not None
    assert response.failure.message == ("no" if error else "")
    assert [call.is_executable for call in response.calls] == [False]


def test_an_answer_of_nothing_is_told() -> None:
    assert FORMAT.read_response({}).unread == ("there is neither a message nor an error",)
    odd = FORMAT.read_response({"choices": ["x"]})
    assert odd.unread[0] == "choices of the answer is not valid"


def test_what_else_a_message_of_a_request_says_is_kept() -> None:
    system, user = read(
        {"role": "system", "content": "a", "name": "s"},
        {"role": "user", "content": "b", "name": "bob"},
    )
    assert (system.origin, user.origin) == (own(name="s"), own(name="bob"))
    assert read({"role": "user", "content": "b"})[0].origin is None


PARTS: list[tuple[Any, MessageBlock]] = [
    ("a", TextBlock(text="a")),
    (
        {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}},
        TextBlock(text="a", extras={"cache_control": {"type": "ephemeral"}}),
    ),
    (
        {"type": "image_url", "image_url": {"url": "https://a/b", "detail": "high"}, "c": 1},
        MediaBlock(
            kind="image", uri="https://a/b", extras={"image_url": {"detail": "high"}, "c": 1}
        ),
    ),
    (
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,aGk="}},
        MediaBlock(kind="image", media_type="image/png", data="aGk="),
    ),
    (
        {"type": "input_audio", "input_audio": {"data": "aGk=", "format": "mp3"}},
        MediaBlock(kind="audio", media_type="audio/mpeg", data="aGk="),
    ),
    (
        {"type": "file", "file": {"file_id": "file-1"}},
        MediaBlock(kind="document", uri="file:file-1"),
    ),
    (
        {"type": "file", "file": {"file_data": "aGk=", "filename": "a.pdf"}},
        MediaBlock(kind="document", data="aGk=", name="a.pdf"),
    ),
    (
        {"type": "file", "file": {"file_data": "https://a/b"}},
        MediaBlock(kind="document", uri="https://a/b"),
    ),
    (
        {"type": "video_url", "video_url": 1},
        ProviderBlock(native={"type": "video_url", "video_url": 1}),
    ),
    (5, ProviderBlock(native=5)),
]


@each_case(("part", "block"), PARTS)
def test_a_part_is_read_in_a_list_and_by_itself(part: Any, block: MessageBlock) -> None:
    assert said([part]) == (block,)
    assert said(part) == (block,)


@pytest.mark.parametrize("value", [{"temp": 5}, 5, False])
def test_the_content_of_a_result_that_is_a_value_is_one(value: Any) -> None:
    (message,) = read({"role": "tool", "tool_call_id": "x", "content": value})
    expected = ResultBlock(call_id="x", status="unknown", structured=value, has_structured=True)
    assert message.results == (expected,)


def test_what_else_a_result_says_goes_back_with_its_call() -> None:
    asked, answer = read(
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "x", "name": "f", "content": "1", "cached": True},
    )
    (result,) = answer.results
    assert (result.tool_name, result.extras) == ("f", {"cached": True})
    assert (asked.origin, answer.origin) == (None, own())
