"""Streams of Gemini: parts chunk by chunk, signatures, arguments in pieces, and refusals."""

from typing import Any

import pytest
from tests.support.cases import each_case
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
    assert first.arguments == {"city": "München", "days": [{"a.b": 1}, {"c]": True}], "unit": None}
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


@each_case("path", ["", "$", "city", "$[0]", "$.a[1]", "$..a", "$.a[x]", "$.a.b["])
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


def pieces(*told_of: Any, **last: Any) -> Response:
    """A call of a file's removal whose arguments come in these pieces, and that has ended."""
    return read(
        event({"functionCall": {"name": "rm", "willContinue": True}}),
        *[event(part(one, goes_on=True)) for one in told_of],
        event({"functionCall": last}, finish="STOP"),
    )


OPEN = piece("$.path", stringValue="/home/me/pro", goes_on=True)


def test_a_call_that_ends_amid_a_text_is_not_run() -> None:
    response = pieces(OPEN)
    (call,) = response.calls
    assert (call.arguments, call.flags) == ({"path": "/home/me/pro"}, ("incomplete",))
    assert response.unread == ("a call ended before a text in its arguments did",)


def test_a_text_ends_with_its_last_piece_which_may_be_empty() -> None:
    response = pieces(OPEN, piece("$['path']", stringValue=""))
    (call,) = response.calls
    assert (call.arguments, call.is_executable) == ({"path": "/home/me/pro"}, True)
    assert response.unread == ()


@each_case(
    ("odd", "told_of"),
    [
        ({"jsonPath": "$.path"}, "a piece has 0 values, and not one"),
        (piece("$.path", stringValue="x", boolValue=True), "a piece has 2 values, and not one"),
        (piece("$.path", numberValue=1), "a piece that continues a text is not a text"),
        (piece("$.other", numberValue=1, goes_on=True), "only a string can be continued"),
        (
            piece("$.path.name", stringValue="x"),
            "a path leads into a value that is not an object or a list",
        ),
    ],
)
def test_a_piece_without_a_value_for_its_place_replaces_nothing(odd: Any, told_of: str) -> None:
    response = pieces(OPEN, odd)
    (call,) = response.calls
    assert (call.arguments, call.flags) == ({"path": "/home/me/pro"}, ("incomplete",))
    assert f"a piece of a call's arguments: {told_of}" in response.unread


def test_a_second_value_for_one_place_is_told() -> None:
    response = pieces(piece("$.n", numberValue=1), piece("$.n", numberValue=2))
    (call,) = response.calls
    assert (call.arguments, call.flags) == ({"n": 1}, ("incomplete",))
    assert response.unread == ("a piece of a call's arguments: a path has a value already",)


@each_case("odd", [{"jsonPath": "$.a", "numberValue": 1}, ["x"], [None], "x", 1])
def test_pieces_that_are_no_list_of_objects_are_told(odd: Any) -> None:
    response = pieces(partialArgs=odd)
    assert [(call.arguments, call.flags) for call in response.calls] == [({}, ("incomplete",))]
    assert response.unread == ("a piece of a call's arguments: not a list of objects",)


def test_a_call_behind_one_that_has_not_ended_leaves_that_one_open() -> None:
    response = read(
        event({"functionCall": {"name": "rm", "willContinue": True}}),
        event(part(piece("$.path", stringValue="/"), goes_on=True)),
        event(asked("g", args={}), finish="STOP"),
    )
    assert list(map(told, response.calls)) == [("rm", None, '{"path":"/"}'), ("g", None, "{}")]
    assert not any(call.is_executable for call in response.calls)
    assert response.unread == (
        "another call begins before the arguments of the one before it ended",
    )


def test_arguments_both_whole_and_in_pieces_are_told() -> None:
    response = pieces(piece("$.path", stringValue="/tmp"), args={"path": "/"})
    assert [call.flags for call in response.calls] == [("incomplete",)]
    assert response.unread == ("arguments come whole and in pieces",)


@pytest.mark.parametrize(
    ("call", "told_of"),
    [
        ({"args": {}}, "a call has no name"),
        ({"name": "f", "args": "x"}, "the arguments of a call are not an object"),
        ({"name": "f", "args": [1]}, "the arguments of a call are not an object"),
        (7, "a call has no name"),
    ],
)
def test_a_call_that_is_none_is_told_and_not_run(call: Any, told_of: str) -> None:
    response = read(event({"functionCall": call}, finish="STOP"))
    assert response.unread == (told_of,)
    assert [one.is_executable for one in response.calls] == [False]


@each_case(
    ("odd", "told_of"),
    [
        ({"candidates": ["x"]}, "the candidates are not valid"),
        ({"candidates": {"content": {}}}, "the candidates are not valid"),
        ({"candidates": [{"content": "rm"}]}, "the content is not an object"),
        ({"candidates": [{"content": ["rm"]}]}, "the content is not an object"),
        (
            {"candidates": [{"content": {"parts": {"text": "a"}}}]},
            "parts of the content is not valid",
        ),
    ],
)
def test_what_stands_in_the_place_of_an_answer_is_told(odd: Any, told_of: str) -> None:
    response = read(event(asked(args={})), odd, event(finish="STOP"))
    assert response.unread == (told_of,)
    assert [call.is_executable for call in response.calls] == [False]


@pytest.mark.parametrize("error", ["boom", ["boom"], 7])
def test_an_error_of_any_kind_is_a_failure(error: Any) -> None:
    response = read(event(asked(args={}), finish="STOP"), {"error": error})
    assert response.failure is not None
    assert response.failure.native == error
    assert response.failure.message == ("boom" if error == "boom" else "")
    assert [call.is_executable for call in response.calls] == [False]


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


@pytest.mark.parametrize("reason", ["SAFETY", "OTHER"])
def test_a_blocked_prompt_is_a_failure_without_messages(reason: str) -> None:
    response = read({"promptFeedback": {"blockReason": reason}})
    assert response.failure is not None
    assert (response.failure.kind, response.messages) == (reason, ())
    assert response.failure.is_refusal


def test_a_candidate_without_content_is_an_empty_message() -> None:
    response = read({"candidates": [{"finishReason": "SAFETY"}]})
    assert response.message.blocks == ()
    assert not response.message.is_complete


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
