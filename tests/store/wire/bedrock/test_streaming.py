"""Streams of ConverseStream: what its server sends, and what becomes of a broken one."""

from typing import Any

import pytest
from tests.support.cases import each_case
from tests.support.wire.streams import read_events, told

from tooltrail.records import MediaBlock, ProviderBlock, ReasoningBlock, TextBlock
from tooltrail.wire import Response, event_of, read_stream, wire_format

START: dict[str, Any] = {"messageStart": {"role": "assistant"}}
CALL: dict[str, Any] = {"toolUse": {"toolUseId": "t1", "name": "f"}}


def block(kind: str, index: Any, **members: Any) -> dict[str, Any]:
    return {f"contentBlock{kind}": {"contentBlockIndex": index, **members}}


def piece(index: Any, **delta: Any) -> dict[str, Any]:
    # The server pads its events.
    return block("Delta", index, delta=delta, p="abcdefgh")


def arguments(index: int, *fragments: str) -> list[dict[str, Any]]:
    return [piece(index, toolUse={"input": one}) for one in fragments]


def stopped(reason: str = "tool_use") -> dict[str, Any]:
    return {"messageStop": {"stopReason": reason}}


def finished(*events: dict[str, Any], reason: str = "tool_use") -> Response:
    return read_events("bedrock", START, *events, stopped(reason))


def test_blocks_of_all_kinds_are_read_in_the_order_in_which_they_began() -> None:
    response = finished(
        piece(0, reasoningContent={"text": "h"}),
        piece(0, reasoningContent={"text": "m"}),
        piece(0, reasoningContent={"signature": "c2ln"}),
        block("Stop", 0),
        piece(1, text="I "),
        piece(1, text="look."),
        block("Start", 3, start=CALL),
        block("Start", 2, start={"toolUse": {"toolUseId": "t2", "name": "now"}}),
        *arguments(3, '{"city":', ' "M\\u00fc', 'nchen"}'),
        block("Stop", 2),
        block("Stop", 3),
    )
    assert (response.unread, response.failure) == ((), None)
    assert response.message.blocks[:2] == (
        ReasoningBlock(text="hm", extras={"signature": "c2ln"}),
        TextBlock(text="I look."),
    )
    assert list(map(told, response.calls)) == [
        ("f", "t1", '{"city": "M\\u00fcnchen"}'),
        ("now", "t2", "{}"),
    ]
    assert [call.position for call in response.calls] == [0, 1]
    assert all(call.is_executable for call in response.calls)


def test_what_amazon_ran_goes_back_as_it_came_and_is_no_call_for_the_caller() -> None:
    server = {"toolUseId": "t1", "name": "nova_code_interpreter", "type": "server_tool_use"}
    result = {"toolUseId": "t1", "status": "success", "type": "nova_code_interpreter_result"}
    response = finished(
        block("Start", 0, start={"toolUse": server}),
        *arguments(0, '{"snippet":', '"1+2"}'),
        block("Stop", 0),
        block("Start", 1, start={"toolResult": result}),
        piece(1, toolResult=[{"json": {"stdOut": "3"}}]),
        block("Stop", 1),
        piece(2, reasoningContent={"redactedContent": "aGk="}),
        block("Stop", 2),
        reason="end_turn",
    )
    assert response.calls == ()
    assert response.unread == ()
    natives = [one.native for one in response.message.blocks if isinstance(one, ProviderBlock)]
    assert natives == [
        {"toolUse": {**server, "input": {"snippet": "1+2"}}},
        {"toolResult": {**result, "content": [{"json": {"stdOut": "3"}}]}},
        {"reasoningContent": {"redactedContent": "aGk="}},
    ]


def test_the_bytes_that_boto3_gives_are_base64_as_in_json() -> None:
    hidden = [piece(0, reasoningContent={"redactedContent": b"hi"}), stopped("end_turn")]
    native: Any = {"reasoningContent": {"redactedContent": "aGk="}}
    block_of_stream, *_ = read_stream(wire_format("bedrock"), hidden).message.blocks
    assert block_of_stream == ProviderBlock(native=native)
    content = [{"image": {"format": "png", "source": {"bytes": b"hi"}}}]
    answer = event_of({"output": {"message": {"content": content}}})
    (image,) = wire_format("bedrock").read_response(answer).message.blocks
    assert image == MediaBlock(kind="image", media_type="image/png", data="aGk=")


def test_an_image_and_hidden_thoughts_in_pieces_are_complete() -> None:
    response = finished(
        block("Start", 0, start={"image": {"format": "png"}}),
        piece(0, image={"source": {"bytes": "aGk="}}),
        block("Stop", 0),
        piece(1, reasoningContent={"redactedContent": "YQ=="}),
        piece(1, reasoningContent={"redactedContent": "Yg=="}),
        block("Stop", 1),
        reason="end_turn",
    )
    image, hidden = response.message.blocks
    assert image == MediaBlock(kind="image", media_type="image/png", data="aGk=")
    native: Any = {"reasoningContent": {"redactedContent": "YWI="}}
    assert hidden == ProviderBlock(native=native)


def test_a_citation_amid_a_text_stops_no_call_and_is_kept() -> None:
    response = finished(
        piece(0, text="Green."),
        piece(0, citation={"title": "a"}),
        block("Start", 1, start=CALL),
        *arguments(1, "{}"),
        block("Stop", 1),
    )
    said = response.message.blocks[0]
    assert isinstance(said, TextBlock)
    assert said.text == "Green."
    assert said.extras == {
        "citationsContent": {"content": [{"text": "Green."}], "citations": [{"title": "a"}]}
    }
    assert [call.is_executable for call in response.calls] == [True]


@pytest.mark.parametrize("reason", ["max_tokens", "malformed_tool_use", "content_filtered"])
def test_a_limit_may_have_cut_the_last_call_off(reason: str) -> None:
    events = [block("Start", 0, start=CALL), *arguments(0, '{"a":1}'), block("Stop", 0)]
    response = finished(*events, reason=reason)
    assert [call.flags for call in response.calls] == [("incomplete",)]
    assert not response.message.is_complete


def test_an_exception_amid_the_stream_is_a_failure() -> None:
    events = [block("Start", 0, start=CALL), *arguments(0, '{"a":1}')]
    thrown = {"modelStreamErrorException": {"message": "no", "originalStatusCode": 500}}
    response = read_events("bedrock", START, *events, thrown, stopped())
    assert response.failure is not None
    assert (response.failure.kind, response.failure.message) == ("modelStreamErrorException", "no")
    assert not any(call.is_executable for call in response.calls)


@each_case(
    "odd",
    [
        [piece(0, toolUse={"input": "{}"})],
        [block("Start", 0, start=CALL), piece(0, text="a")],
        [block("Start", 0, start=CALL), block("Start", 0, start=CALL)],
        [block("Start", 0, start=CALL), block("Stop", 0), *arguments(0, "{}")],
        [block("Start", 0, start=CALL), block("Delta", 0)],
        [block("Start", None, start=CALL)],
        [block("Start", 0, start=CALL), {"contentBlockMove": {"contentBlockIndex": 0}}],
        [START],
        [stopped(), *arguments(0, "{}")],
        [{}],
    ],
)
def test_a_piece_that_may_be_of_any_call_lets_none_run(odd: list[dict[str, Any]]) -> None:
    sound = [block("Start", 7, start=CALL), *arguments(7, '{"a":1}'), block("Stop", 7)]
    assert [call.is_executable for call in finished(*sound).calls] == [True]
    response = finished(*sound, *odd)
    assert response.unread
    assert not any(call.is_executable for call in response.calls)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"text": "a"}, {"text": ["b"]}),
        ({"text": "a"}, {"reasoningContent": {"text": "b"}}),
        ({"reasoningContent": {"text": "a"}}, {"reasoningContent": {"text": ["b"]}}),
    ],
)
def test_a_piece_that_does_not_fit_is_reported_and_replaces_nothing(
    first: Any, second: Any
) -> None:
    response = finished(piece(0, **first), piece(0, **second), block("Stop", 0))
    assert len(response.unread) == 1
    assert response.message.blocks == finished(piece(0, **first), block("Stop", 0)).message.blocks
