"""Answers and contents of Gemini that came whole: nothing odd is lost, and nothing is guessed."""

from typing import Any

import pytest
from tests.support.cases import each_case

from tooltrail.records import (
    CallBlock,
    Conversation,
    MediaBlock,
    Message,
    Origin,
    ProviderBlock,
    ResultBlock,
    TextBlock,
)
from tooltrail.wire import Response, wire_format

GEMINI = wire_format("gemini")
OURS = Origin(wire_format="gemini")


def answer(*parts: Any, finish: str = "STOP") -> Response:
    candidate: Any = {"content": {"role": "model", "parts": list(parts)}, "finishReason": finish}
    return GEMINI.read_response({"candidates": [candidate]})


def history(*contents: Any, **members: Any) -> Conversation:
    return GEMINI.read_history({"contents": list(contents), **members})


def result(**members: Any) -> ResultBlock:
    """What is read of one response of a function."""
    part = {"functionResponse": {"name": "f", **members}}
    (message,) = history({"role": "user", "parts": [part]}).messages
    assert message.role == "tool"
    (block,) = message.results
    return block


def test_a_call_in_pieces_that_was_not_streamed_is_not_run() -> None:
    pieces = [{"jsonPath": "$.path", "stringValue": "/"}]
    for members in ({"willContinue": True}, {"partialArgs": pieces}):
        response = answer({"functionCall": {"name": "rm", **members}})
        (call,) = response.calls
        assert call.flags == ("incomplete",)
        assert call.extras == {"functionCall": members}


@pytest.mark.parametrize(
    "members", [{"willContinue": False}, {"partialArgs": []}, {"will_continue": False}]
)
def test_a_call_of_which_nothing_is_to_come_is_whole(members: Any) -> None:
    response = answer({"functionCall": {"name": "f", "args": {"a": 1}, **members}})
    assert response.unread == ()
    (call,) = response.calls
    assert (call.arguments_raw, call.is_executable, call.extras) == ('{"a":1}', True, {})


@pytest.mark.parametrize("odd", [{"willContinue": "no"}, {"partialArgs": "x"}, {"partialArgs": 1}])
def test_a_call_without_a_clear_end_may_not_run(odd: Any) -> None:
    response = answer({"functionCall": {"name": "f", "args": {}, **odd}})
    assert [call.is_executable for call in response.calls] == [False]


def test_an_empty_text_is_left_out_of_an_answer_unless_more_is_said_of_it() -> None:
    signed = {"text": "", "thoughtSignature": "c2ln"}
    call = {"functionCall": {"name": "f"}}
    said = answer({"text": ""}, {"text": "a"}, {"text": "", "thoughtSignature": None}, call, signed)
    first, asked, last = said.message.blocks
    assert (first, last) == (
        TextBlock(text="a"),
        TextBlock(text="", extras={"thoughtSignature": "c2ln"}),
    )
    assert isinstance(asked, CallBlock)
    assert answer({"text": ""}).message.blocks == ()


def test_what_stands_beside_a_call_and_in_it_is_kept() -> None:
    told: Any = {"name": "f", "args": {}, "brandNew": 1}
    (call,) = answer({"functionCall": told, "thoughtSignature": "c2ln"}).calls
    assert call.extras == {"thoughtSignature": "c2ln", "functionCall": {"brandNew": 1}}
    assert call.is_executable


def test_two_calls_with_one_id_are_both_there_and_the_second_is_flagged() -> None:
    asked: Any = {"functionCall": {"name": "f", "id": "a", "args": {}}}
    bare = {"functionCall": {"name": "g"}}
    calls = answer(asked, asked, bare, bare).calls
    assert [call.flags for call in calls] == [(), ("id_repeated",), (), ()]


def test_an_error_that_is_a_text_is_a_failure() -> None:
    response = GEMINI.read_response({"error": "boom"})
    assert response.failure is not None
    assert (response.failure.message, response.failure.kind) == ("boom", None)
    assert response.unread == ()


@pytest.mark.parametrize(
    ("data", "standard"),
    [("iVBORw0KGgr7__7_7w==", "iVBORw0KGgr7//7/7w=="), ("-_8", "+/8="), ("aGk=", "aGk=")],
)
def test_bytes_of_the_official_client_are_in_the_other_alphabet(data: str, standard: str) -> None:
    part = {"inlineData": {"mimeType": "image/png", "data": data}}
    expected = MediaBlock(kind="image", media_type="image/png", data=standard)
    (message,) = history({"role": "user", "parts": [part]}).messages
    assert message.blocks == (expected,)
    assert result(response={"output": "a"}, parts=[part]).content[1:] == (expected,)


def test_what_stands_beside_media_and_in_them_is_kept() -> None:
    video = {
        "fileData": {"mimeType": "video/mp4", "fileUri": "gs://b/x", "displayName": "x.mp4"},
        "videoMetadata": {"startOffset": "1s"},
    }
    drawn = {
        "inlineData": {"mimeType": "image/png", "data": "aGk=", "brandNew": 1},
        "thoughtSignature": "c2ln",
    }
    (message,) = history({"role": "model", "parts": [video, drawn]}).messages
    assert message.origin == OURS
    assert message.blocks == (
        MediaBlock(
            kind="document",
            media_type="video/mp4",
            uri="gs://b/x",
            name="x.mp4",
            extras={"videoMetadata": {"startOffset": "1s"}},
        ),
        MediaBlock(
            kind="image",
            media_type="image/png",
            data="aGk=",
            extras={"thoughtSignature": "c2ln", "inlineData": {"brandNew": 1}},
        ),
    )


TEXT = (TextBlock(text="ok"),)


RESPONSES: list[Any] = [
    ({"output": "ok"}, "ok", TEXT, None),
    ({"output": "ok", "error": None}, "ok", TEXT, None),
    ({"output": ""}, "ok", (), None),
    ({"output": {"a": 1}}, "ok", (), ({"a": 1},)),
    ({"output": None}, "ok", (), (None,)),
    ({"a": 1}, "ok", (), ({"a": 1},)),
    ({}, "ok", (), ({},)),
    ({"error": "ok"}, "error", TEXT, None),
    ({"error": {"code": 2}}, "error", (), ({"code": 2},)),
    ({"output": "ok", "exit_code": 3}, "ok", (), ({"output": "ok", "exit_code": 3},)),
    ({"output": "ok", "error": "full"}, "error", (), ({"output": "ok", "error": "full"},)),
    ({"error": "x", "detail": "y"}, "error", (), ({"error": "x", "detail": "y"},)),
    ("ok", "ok", TEXT, None),
    (["x"], "ok", (), (["x"],)),
]


@each_case(("response", "status", "content", "structured"), RESPONSES)
def test_nothing_of_a_response_is_lost(
    response: Any, status: Any, content: Any, structured: Any
) -> None:
    read = result(response=response)
    assert (read.status, read.content) == (status, content)
    assert ((read.structured,) if read.has_structured else None) == structured


def test_what_stands_beside_a_response_and_in_it_is_kept() -> None:
    told = {"name": "f", "id": "a", "response": {"output": "a"}, "willContinue": False}
    part = {"functionResponse": told, "thoughtSignature": "c2ln"}
    (message,) = history({"role": "user", "parts": [part]}).messages
    assert message.origin == OURS
    (block,) = message.results
    assert block.extras == {"willContinue": False, "part": {"thoughtSignature": "c2ln"}}
    (bare,) = history({"parts": [{"functionResponse": {"name": "f"}}]}).messages
    assert bare.results == (ResultBlock(tool_name="f"),)


def test_parts_of_a_response_that_are_no_media_are_kept() -> None:
    odd: Any = {"brandNew": 1}
    assert result(response={"output": ""}, parts=[odd, "x"]).content == (
        ProviderBlock(native=odd),
        ProviderBlock(native="x"),
    )
    assert result(response={"output": ""}, parts=odd).content == (ProviderBlock(native=odd),)


@each_case(
    "request_",
    [
        {"contents": [{"role": "user", "parts": {"text": "a"}}]},
        {"contents": {"role": "user", "parts": [{"text": "a"}]}},
        {"contents": {"parts": "a"}},
        {"contents": ["a"]},
        {"contents": [[{"text": "a"}]]},
        {"contents": "a"},
    ],
)
def test_a_content_by_itself_is_one_of_the_user(request_: Any) -> None:
    assert GEMINI.read_history(request_).messages == (Message.of("user", "a"),)


@pytest.mark.parametrize("system", ["a", {"parts": {"text": "a"}}, {"parts": [{"text": "a"}]}])
def test_an_instruction_in_each_of_its_spellings_is_the_system_s(system: Any) -> None:
    assert history(systemInstruction=system).messages == (Message.of("system", "a"),)


@pytest.mark.parametrize(("uri", "origin"), [("gs://b/x", OURS), ("https://x/y", None)])
def test_a_place_that_only_gemini_knows_says_whose_it_is(uri: str, origin: Origin | None) -> None:
    part = {"fileData": {"mimeType": "image/png", "fileUri": uri}}
    told = {"functionResponse": {"name": "f", "response": {"output": ""}, "parts": [part]}}
    said, results = history({"parts": [part]}, {"parts": [told]}).messages
    assert (said.role, said.origin) == ("user", origin)
    assert (results.role, results.origin) == ("tool", origin)
