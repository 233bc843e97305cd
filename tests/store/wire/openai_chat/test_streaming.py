"""Streams of Chat Completions, with everything that compatible servers were seen to do."""

from typing import Any

import pytest
from tests.support.cases import each_case
from tests.support.wire.streams import read_events, told

from tooltrail.records import ProviderBlock, ReasoningBlock, TextBlock
from tooltrail.wire import Response, wire_format

FINISH: dict[str, Any] = {"index": 0, "delta": {}, "finish_reason": "tool_calls"}


def chunk(*choices: Any, **members: Any) -> dict[str, Any]:
    return {
        "id": "c",
        "object": "chat.completion.chunk",
        "model": "m",
        "choices": choices,
    } | members


def delta(finish_reason: str | None = None, **members: Any) -> dict[str, Any]:
    return chunk({"index": 0, "delta": members, "finish_reason": finish_reason})


def fragment(arguments: Any = None, name: str | None = None, **members: Any) -> dict[str, Any]:
    """A fragment of a call; what is None is not in it."""
    function = {"name": name, "arguments": arguments}
    given = {key: value for key, value in function.items() if value is not None}
    return delta(tool_calls=[{**members, "function": given}])


def finished(*chunks: dict[str, Any]) -> Response:
    return read_events("openai", *chunks, chunk(FINISH))


def test_fragments_are_joined_by_their_index() -> None:
    response = finished(
        delta(role="assistant", content=None),
        fragment("", "get_weather", index=0, id="call_a", type="function"),
        fragment('{"ci', index=0),
        fragment("", "now", index=1, id="call_b", type="function"),
        fragment('ty":"Paris"}', index=0),
        fragment("{}", index=1),
        chunk(usage={"prompt_tokens": 9}),
    )
    assert list(map(told, response.calls)) == [
        ("get_weather", "call_a", '{"city":"Paris"}'),
        ("now", "call_b", "{}"),
    ]
    assert all(call.is_executable and call.flags == () for call in response.calls)
    assert (response.unread, response.failure) == ((), None)


def test_text_and_thoughts_may_stand_between_fragments() -> None:
    response = finished(
        delta(reasoning_content="hm"),
        delta(content="I "),
        fragment('{"a":', "f", index=0, id="x"),
        delta(content="look.", obfuscation="padding"),
        fragment("1}", index=0),
    )
    said = [block for block in response.message.blocks if isinstance(block, TextBlock)]
    assert [block.text for block in said] == ["I look."]
    assert isinstance(response.message.blocks[0], ReasoningBlock)
    assert list(map(told, response.calls)) == [("f", "x", '{"a":1}')]


def test_without_an_index_an_id_begins_a_call() -> None:
    response = finished(
        fragment('{"a":', "f", id="x"),
        fragment("1}"),
        fragment('{"b":', "g", id="y"),
        fragment("2}"),
    )
    assert list(map(told, response.calls)) == [("f", "x", '{"a":1}'), ("g", "y", '{"b":2}')]
    assert [call.flags for call in response.calls] == [("index_missing",)] * 2


def test_other_ids_at_one_index_are_other_calls() -> None:
    response = finished(
        fragment('{"a":1}', "f", index=0, id="call_a"), fragment("{}", "g", index=0, id="call_b")
    )
    assert list(map(told, response.calls)) == [("f", "call_a", '{"a":1}'), ("g", "call_b", "{}")]


@pytest.mark.parametrize("again", ["call_a", "", None])
def test_an_id_that_is_repeated_or_empty_later_is_the_same_call(again: str | None) -> None:
    response = finished(
        fragment('{"a":', "f", index=0, id="call_a"), fragment("1}", index=0, id=again)
    )
    assert list(map(told, response.calls)) == [("f", "call_a", '{"a":1}')]


def test_calls_without_ids_stay_apart_and_have_none() -> None:
    response = finished(fragment('{"a":1}', "f", index=0), fragment("{}", "g", index=1))
    assert list(map(told, response.calls)) == [("f", None, '{"a":1}'), ("g", None, "{}")]
    assert [call.position for call in response.calls] == [0, 1]


def test_arguments_that_are_an_object_are_flagged_and_keep_their_order() -> None:
    (call,) = finished(fragment({"b": 1, "a": 2}, "f", index=0, id="x")).calls
    assert (call.arguments_raw, call.flags) == ('{"b":1,"a":2}', ("arguments_were_object",))


@pytest.mark.parametrize("nothing", ["", None])
def test_no_arguments_are_no_arguments(nothing: str | None) -> None:
    (call,) = finished(fragment(nothing, "f", index=0, id="x")).calls
    assert (call.arguments, call.arguments_raw, call.is_executable) == ({}, "", True)


@pytest.mark.parametrize(
    "raw", ['{"cmd": "rm -rf /tmp/x', "{'a': 1}", '{"a":1}{}', "NaN", "\ud800"]
)
def test_arguments_that_are_no_json_stay_as_they_came(raw: str) -> None:
    (call,) = finished(fragment(raw, "f", index=0, id="x")).calls
    assert (call.arguments_raw, call.is_executable) == (raw, False)
    assert call.parse_error


def test_the_sentinel_alone_ends_a_stream_too() -> None:
    response = read_events("openai", fragment('{"a":1}', "f", index=0, id="x"), is_done=True)
    (call,) = response.calls
    assert (call.flags, response.message.is_complete) == ((), True)


def test_custom_tools_get_text_in_pieces() -> None:
    response = finished(
        delta(
            tool_calls=[
                {"index": 0, "id": "x", "type": "custom", "custom": {"name": "sql", "input": ""}}
            ]
        ),
        delta(tool_calls=[{"index": 0, "custom": {"input": "SELECT "}}]),
        delta(tool_calls=[{"index": 0, "custom": {"input": "1"}}]),
    )
    (call,) = response.calls
    assert (call.kind, call.tool_name, call.arguments) == ("custom", "sql", "SELECT 1")


def test_the_older_member_for_one_call_is_read() -> None:
    response = finished(
        delta(function_call={"name": "f", "arguments": '{"a"'}),
        delta(function_call={"arguments": ":1}"}),
        delta(function_call={"name": "", "arguments": ""}),
    )
    assert list(map(told, response.calls)) == [("f", None, '{"a":1}')]


def test_an_older_member_with_nothing_in_it_is_no_call() -> None:
    nothing = {"name": "", "arguments": ""}
    response = read_events("openai", delta("stop", content="Hi.", function_call=nothing))
    assert (response.message.text, response.calls) == ("Hi.", ())


def test_each_choice_is_a_message_and_the_first_one_is_asked() -> None:
    def one(index: int, name: str) -> dict[str, Any]:
        calls = [{"index": 0, "id": f"id_{name}", "function": {"name": name, "arguments": "{}"}}]
        return {"index": index, "delta": {"tool_calls": calls}, "finish_reason": "tool_calls"}

    response = read_events("openai", chunk(one(1, "g")), chunk(one(0, "f")))
    origins = [message.origin for message in response.messages]
    assert [origin.choice for origin in origins if origin] == [0, 1]
    assert [call.tool_name for call in response.calls] == ["f"]


def test_an_index_of_a_choice_that_is_spelled_otherwise_is_that_index() -> None:
    response = read_events(
        "openai",
        chunk({"index": "0", "delta": {"content": "a"}}, {"index": "1", "delta": {"content": "b"}}),
        chunk(FINISH, {**FINISH, "index": 1.0}),
    )
    assert [message.text for message in response.messages] == ["a", "b"]


def test_what_else_a_call_says_goes_back_to_its_provider() -> None:
    signature = {"google": {"thought_signature": "c2ln"}}
    response = finished(fragment("{}", "f", index=0, id="x", extra_content=signature))
    (call,) = response.calls
    assert call.extras == {"extra_content": signature}


@pytest.mark.parametrize(
    ("ending", "message", "kind"),
    [
        ({"error": {"message": "no", "code": 502}, "finish_reason": "error"}, "no", "502"),
        ({"finish_reason": "error"}, "", None),
    ],
)
def test_a_choice_may_tell_that_its_server_failed(
    ending: dict[str, Any], message: str, kind: str | None
) -> None:
    response = read_events(
        "openai", fragment("{}", "f", index=0, id="x"), chunk({"index": 0, "delta": {}, **ending})
    )
    assert response.failure is not None
    assert (response.failure.message, response.failure.kind) == (message, kind)
    assert [call.is_executable for call in response.calls] == [False]


def test_an_error_with_nothing_around_it_is_one() -> None:
    response = read_events("openai", {"object": "error", "message": "no", "code": 400})
    assert response.failure is not None
    assert (response.failure.message, response.failure.kind) == ("no", "400")
    assert response.unread == ()


def test_a_whole_answer_amid_the_pieces_of_one_is_told() -> None:
    whole = {"choices": [{"message": {"content": "Hi."}, "finish_reason": "stop"}]}
    told = ("the stream has more than one answer; one of them is read",)
    response = finished(fragment("{}", "f", index=0, id="x"), whole)
    assert response.unread == told
    assert [call.is_executable for call in response.calls] == [False]
    assert read_events("openai", whole, whole).unread == told


def test_text_that_comes_in_parts_stays_in_its_order() -> None:
    thought: dict[str, Any] = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    response = finished(
        delta(content=[thought]),
        delta(content=[{"type": "text", "text": "I "}]),
        delta(content="see."),
    )
    blocks = (ProviderBlock(native=thought), TextBlock(text="I see."))
    assert (response.message.blocks, response.unread) == (blocks, ())


def test_what_else_comes_in_pieces_is_put_together() -> None:
    cited: list[Any] = [{"type": "url_citation", "url": "https://a"}]
    response = finished(
        delta(audio={"id": "a", "data": "aGk=", "transcript": "h"}),
        delta(audio={"data": "aGk=", "transcript": "i", "expires_at": 1}),
        delta(content="hi", annotations=cited, reasoning_details=[1]),
        delta(annotations=cited, reasoning_details=[2]),
    )
    origin = response.message.origin
    assert origin is not None
    assert origin.extras == {
        "audio": {"id": "a", "data": "aGk=aGk=", "transcript": "hi", "expires_at": 1},
        "reasoning_details": [1, 2],
    }
    assert response.message.blocks == (
        TextBlock(text="hi", extras={"annotations": [*cited, *cited]}),
    )


def test_sound_in_many_pieces_takes_time_by_their_number() -> None:
    # Where each piece is joined to a copy of all before it, this does not end in its time.
    piece = "aGk=" * 2048
    assembler = wire_format("openai").new_assembler()
    for _ in range(10_000):
        assembler.feed({"choices": [{"index": 0, "delta": {"audio": {"data": piece}}}]})
    response = assembler.finish(is_done=True)
    assert response.message.origin is not None
    assert response.message.origin.extras == {"audio": {"data": piece * 10_000}}


@each_case(
    ("event", "expected"),
    [
        (delta(content=5), "content of a delta is not a string"),
        (delta(content={"a": 1}), "content of a delta is not a string"),
        (chunk({"index": 0, "delta": "x"}), "a delta is not an object"),
        (chunk("x"), "a choice is not an object"),
        ({"choices": {"index": 0, "delta": {}}}, "choices of an event is not a list"),
        ({"choices": "x"}, "choices of an event is not a list"),
        (chunk({"index": "a", "delta": {}}), "the index of a choice is not a number"),
        (delta(function_call="x"), "function_call of a delta is not an object"),
    ],
)
def test_what_is_not_as_the_format_says_is_told(event: dict[str, Any], expected: str) -> None:
    response = finished(fragment("{}", "f", index=0, id="x"), event)
    assert (response.unread, response.calls[0].is_executable) == ((expected,), False)


@pytest.mark.parametrize(
    ("name", "value"), [("reasoning", {"a": 1}), ("reasoning_content", ["a"]), ("refusal", False)]
)
def test_a_text_that_is_none_keeps_no_call_from_running(name: str, value: Any) -> None:
    response = finished(fragment("{}", "f", index=0, id="x"), delta(**{name: value}))
    assert (response.unread, response.calls[0].is_executable) == ((), True)
    assert response.message.origin is not None
    assert response.message.origin.extras == {name: value}
