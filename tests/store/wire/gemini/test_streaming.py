"""Streams of Gemini: parts chunk by chunk, signatures, arguments in pieces, and refusals."""

from typing import Any

import pytest
from tests.support.wire.streams import read_events, told

from tooltrail.records import ProviderBlock, ReasoningBlock, TextBlock
from tooltrail.wire import Response


def event(*parts: Any, finish: str | None = None, **members: Any) -> dict[str, Any]:
    candidate: dict[str, Any] = {"index": 0, "content": {"role": "model", "parts": parts}}
    if finish:
        candidate["finishReason"] = finish
    return {"candidates": [candidate], "modelVersion": "m", "responseId": "r", **members}


def asked(name: str = "f", **members: Any) -> dict[str, Any]:
    return {"functionCall": {"name": name, **members}}


def read(*events: Any) -> Response:
    return read_events("gemini", *events)


def test_calls_come_whole_in_any_chunk_and_keep_their_order() -> None:
    response = read(
        event({"text": "I "}),
        event({"text": "look."}, asked(id="a", args={"b": 1, "a": [2]})),
        event(asked("g", args={})),
        event(finish="STOP"),
    )
    assert list(map(told, response.calls)) == [("f", "a", '{"b":1,"a":[2]}'), ("g", None, "{}")]
    assert [call.position for call in response.calls] == [0, 1]
    assert all(call.is_executable for call in response.calls)
    assert response.message.text == "I look."
    origin = response.message.origin
    assert origin is not None
    assert (origin.model, origin.response_id, origin.finish_reason) == ("m", "r", "STOP")
    assert (response.unread, response.failure) == ((), None)


def test_a_call_without_arguments_has_none() -> None:
    (call,) = read(event(asked(), finish="STOP")).calls
    assert (call.arguments, call.is_executable) == ({}, True)


def test_keys_in_the_other_spelling_are_read_and_those_of_the_user_are_not_touched() -> None:
    call = {"function_call": {"name": "f", "args": {"snake_key": 1}}, "thought_signature": "AQL_"}
    candidate = {"content": {"parts": [call]}, "finish_reason": "STOP"}
    (read_call,) = read({"candidates": [candidate], "model_version": "m"}).calls
    assert read_call.arguments_raw == '{"snake_key":1}'
    assert read_call.extras == {"thoughtSignature": "AQL_"}


def test_a_signature_stays_with_its_part() -> None:
    response = read(
        event({"text": "hm", "thought": True}),
        event(asked(args={}) | {"thoughtSignature": "AQL_c2ln"}, asked("g", args={})),
        event({"text": "", "thoughtSignature": "bGF0ZQ=="}, finish="STOP"),
    )
    first, second = response.calls
    assert (first.extras, second.extras) == ({"thoughtSignature": "AQL_c2ln"}, {})
    thought, *_, last = response.message.blocks
    assert isinstance(thought, ReasoningBlock)
    assert isinstance(last, TextBlock)
    assert (last.text, last.extras) == ("", {"thoughtSignature": "bGF0ZQ=="})


def test_signed_texts_are_parts_of_their_own_and_others_are_joined() -> None:
    response = read(
        event({"text": "a"}),
        event({"text": "b"}),
        event({"text": "c", "thoughtSignature": "c2ln"}),
        event({"text": "d"}, finish="STOP"),
    )
    texts = [block.text for block in response.message.blocks if isinstance(block, TextBlock)]
    assert texts == ["ab", "c", "d"]


def piece(path: str, *, goes_on: bool = False, **value: Any) -> dict[str, Any]:
    told_of = {"jsonPath": path, **value}
    return told_of | {"willContinue": True} if goes_on else told_of


def part(*pieces: Any, goes_on: bool, **members: Any) -> dict[str, Any]:
    call = {**members, "partialArgs": list(pieces)} if pieces else {**members}
    return {"functionCall": call | ({"willContinue": True} if goes_on else {})}


def test_arguments_in_pieces_are_put_at_their_paths() -> None:
    response = read(
        event({"functionCall": {"name": "f", "id": "a", "willContinue": True}}),
        event(part(piece("$.city", stringValue="Mün", goes_on=True), goes_on=True)),
        event(part(piece("$.city", stringValue="chen"), goes_on=True)),
        event(part(piece("$.days[0]['a.b']", numberValue=1), goes_on=True)),
        event(part(piece('$.days[1]["c]"]', boolValue=True), goes_on=True)),
        event(part(piece("$.unit", nullValue="NULL_VALUE"), goes_on=True)),
        event({"functionCall": {}}),
        event(asked("g", args={}), finish="STOP"),
    )
    first, second = response.calls
    assert first.arguments == {
        "city": "München",
        "days": [{"a.b": 1}, {"c]": True}],
        "unit": None,
    }
    assert (first.call_id, first.is_executable, second.tool_name) == ("a", True, "g")


def test_a_call_whose_arguments_never_ended_is_not_run() -> None:
    response = read(
        event(asked("g", args={})),
        event({"functionCall": {"name": "f", "willContinue": True}}),
        event(part(piece("$.path", stringValue="/tm", goes_on=True), goes_on=True), finish="STOP"),
    )
    whole, cut = response.calls
    assert whole.is_executable
    assert (cut.arguments, cut.flags) == ({"path": "/tm"}, ("incomplete",))


@pytest.mark.parametrize("path", ["", "$", "city", "$[0]", "$.a[1]", "$..a", "$.a[x]", "$.a.b["])
def test_a_piece_that_belongs_nowhere_is_told_and_its_call_is_not_run(path: str) -> None:
    response = read(
        event({"functionCall": {"name": "f", "willContinue": True}}),
        event(part(piece("$.b", numberValue=1), goes_on=True)),
        event(part(piece(path, numberValue=2), goes_on=False), finish="STOP"),
    )
    (call,) = response.calls
    assert isinstance(call.arguments, dict)
    assert (call.arguments["b"], call.flags) == (1, ("incomplete",))
    assert "2" not in call.arguments_raw
    assert len(response.unread) == 1
    assert response.unread[0].startswith("a piece of a call's arguments: ")


@pytest.mark.parametrize(
    "reason",
    [
        "MALFORMED_FUNCTION_CALL",
        "UNEXPECTED_TOOL_CALL",
        "TOO_MANY_TOOL_CALLS",
        "MISSING_THOUGHT_SIGNATURE",
    ],
)
def test_a_call_that_went_wrong_is_a_failure(reason: str) -> None:
    response = read(event(asked(args={}), finish=reason))
    assert response.failure is not None
    assert response.failure.kind == reason
    assert [call.is_executable for call in response.calls] == [False]


@pytest.mark.parametrize("reason", ["MAX_TOKENS", "SAFETY", "BRAND_NEW"])
def test_an_answer_that_ended_early_has_no_call_to_run(reason: str) -> None:
    response = read(event(asked(args={}), finish=reason))
    assert [call.flags for call in response.calls] == [("incomplete",)]
    assert not response.message.is_complete


def test_a_stream_that_breaks_off_has_no_call_to_run() -> None:
    response = read(event(asked(args={})))
    assert [call.is_executable for call in response.calls] == [False]


def test_a_blocked_prompt_is_a_failure_without_messages() -> None:
    response = read({"promptFeedback": {"blockReason": "SAFETY"}})
    assert response.failure is not None
    assert (response.failure.kind, response.messages) == ("SAFETY", ())


def test_a_candidate_without_content_is_an_empty_message() -> None:
    response = read({"candidates": [{"finishReason": "SAFETY"}]})
    assert response.message.blocks == ()
    assert not response.message.is_complete


def test_an_error_amid_the_stream_is_told_and_stops_every_call() -> None:
    error = {"code": 503, "message": "overloaded", "status": "UNAVAILABLE"}
    response = read(event(asked(args={}), finish="STOP"), {"error": error})
    assert response.failure is not None
    assert (response.failure.kind, response.failure.message) == ("UNAVAILABLE", "overloaded")
    assert [call.is_executable for call in response.calls] == [False]


def test_what_the_provider_runs_itself_is_no_call_of_ours() -> None:
    code = {"executableCode": {"language": "PYTHON", "code": "print(1)"}}
    ran = {"codeExecutionResult": {"outcome": "OUTCOME_OK", "output": "1\n"}}
    searched = {"toolCall": {"id": "t", "toolType": "GOOGLE_SEARCH", "args": {"q": "x"}}}
    response = read(event(code, ran, searched, finish="STOP"))
    assert response.calls == ()
    assert [call.tool_name for call in response.message.provider_calls] == [
        "code_execution",
        "GOOGLE_SEARCH",
    ]
    natives = [
        block.native for block in response.message.blocks if isinstance(block, ProviderBlock)
    ]
    assert natives == [code, ran, searched]


def test_each_candidate_is_a_message_and_the_first_one_is_asked() -> None:
    candidates = [
        {"index": 1, "content": {"parts": [asked("g")]}, "finishReason": "STOP"},
        {"index": 0, "content": {"parts": [asked("f")]}, "finishReason": "STOP"},
    ]
    response = read({"candidates": candidates})
    assert [call.tool_name for call in response.calls] == ["f"]
    assert [message.calls[0].tool_name for message in response.messages] == ["f", "g"]


def test_a_stream_without_candidates_is_told() -> None:
    assert read({"modelVersion": "m"}).unread == ("the stream has no candidates",)
