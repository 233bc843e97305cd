"""Streams of Anthropic Messages: what its server sends, and what proxies make of it."""

from typing import Any

import pytest
from tests.support.cases import each_case
from tests.support.wire.streams import read_events, told

from tooltrail.records import ProviderBlock, ReasoningBlock, TextBlock
from tooltrail.wire import Response

STOP: dict[str, Any] = {"type": "message_stop"}
CALL: dict[str, Any] = {"type": "tool_use", "id": "toolu_1", "name": "f", "input": {}}


def start(*content: Any, **members: Any) -> dict[str, Any]:
    """The first event, which has the members of the last one already, though without values."""
    message = {"id": "msg_1", "role": "assistant", "model": "m", "content": content}
    return {"type": "message_start", "message": {**message, "stop_reason": None, **members}}


def block(index: int, **members: Any) -> dict[str, Any]:
    return {"type": "content_block_start", "index": index, "content_block": members}


def piece(index: int, kind: str, **members: Any) -> dict[str, Any]:
    told_of = {"type": kind, **members}
    return {"type": "content_block_delta", "index": index, "delta": told_of}


def arguments(index: int, *fragments: str) -> list[dict[str, Any]]:
    return [piece(index, "input_json_delta", partial_json=one) for one in fragments]


def end(index: int) -> dict[str, Any]:
    return {"type": "content_block_stop", "index": index}


def stopped(reason: str = "tool_use") -> dict[str, Any]:
    return {"type": "message_delta", "delta": {"stop_reason": reason, "stop_sequence": None}}


def finished(*events: dict[str, Any], reason: str = "tool_use") -> Response:
    return read_events("anthropic", start(), *events, stopped(reason), STOP)


def test_blocks_are_counted_together_and_calls_by_themselves() -> None:
    response = finished(
        {"type": "ping"},
        block(0, type="thinking", thinking="", signature=""),
        piece(0, "thinking_delta", thinking="h"),
        piece(0, "thinking_delta", thinking="m"),
        piece(0, "signature_delta", signature="c2ln"),
        end(0),
        block(1, type="text", text=""),
        piece(1, "text_delta", text="I look."),
        end(1),
        block(2, **CALL),
        *arguments(2, "", '{"city":', ' "M\\u00fc', 'nchen"}'),
        end(2),
        block(3, **CALL | {"id": "toolu_2", "name": "now"}),
        end(3),
    )
    assert [call.position for call in response.calls] == [0, 1]
    assert list(map(told, response.calls)) == [
        ("f", "toolu_1", '{"city": "M\\u00fcnchen"}'),
        ("now", "toolu_2", "{}"),
    ]
    thought, said = response.message.blocks[:2]
    assert isinstance(thought, ReasoningBlock)
    assert (thought.text, thought.extras["signature"]) == ("hm", "c2ln")
    assert isinstance(said, TextBlock)
    assert (response.unread, response.failure) == ((), None)


@pytest.mark.parametrize("fragments", [[], [""], ["", ""]])
def test_a_tool_without_arguments_has_none(fragments: list[str]) -> None:
    (call,) = finished(block(0, **CALL), *arguments(0, *fragments), end(0)).calls
    assert (call.arguments_raw, call.is_executable) == ("{}", True)


def test_input_in_the_first_event_counts_where_no_fragment_comes() -> None:
    begun = CALL | {"input": {"b": 1, "a": 2}}
    (call,) = finished(block(0, **begun), end(0)).calls
    assert call.arguments_raw == '{"b":1,"a":2}'


def test_input_in_the_first_event_may_be_repeated_in_fragments() -> None:
    begun = CALL | {"input": {"b": 1, "a": 2}}
    response = finished(block(0, **begun), *arguments(0, '{"a": 2,', ' "b": 1}'), end(0))
    assert response.unread == ()
    assert [call.arguments_raw for call in response.calls] == ['{"a": 2, "b": 1}']
    assert all(call.is_executable for call in response.calls)


@each_case("raw", ['{"b":2}', '{"a":true}', "{}", '{"a":1', " "])
def test_input_in_the_first_event_and_in_fragments_is_told(raw: str) -> None:
    begun = CALL | {"input": {"a": 1}}
    response = finished(block(0, **begun), *arguments(0, "", raw, ""), end(0))
    assert response.unread == ("the input of a call comes whole and in pieces",)
    assert [(call.arguments_raw, call.is_executable) for call in response.calls] == [(raw, False)]


@pytest.mark.parametrize("reason", ["model_context_window_exceeded", "refusal"])
def test_other_early_ends_stop_the_last_call_too(reason: str) -> None:
    response = finished(block(0, **CALL), *arguments(0, "{}"), end(0), reason=reason)
    assert [call.is_executable for call in response.calls] == [False]


def test_eager_streams_may_bring_arguments_that_are_no_json() -> None:
    (call,) = finished(block(0, **CALL), *arguments(0, '{"a": tru'), end(0)).calls
    assert (call.arguments_raw, call.is_executable, call.flags) == ('{"a": tru', False, ())
    assert call.parse_error


def test_the_first_event_may_bring_whole_blocks() -> None:
    begun = [{"type": "text", "text": "I"}, CALL | {"input": {"a": 1}}]
    response = read_events("anthropic", start(*begun), stopped(), STOP)
    assert list(map(told, response.calls)) == [("f", "toolu_1", '{"a":1}')]
    assert response.message.text == "I"


def test_two_messages_in_one_stream_are_one_in_which_no_call_runs() -> None:
    response = read_events(
        "anthropic",
        start(),
        block(0, **CALL),
        *arguments(0, "{}"),
        end(0),
        start(id="msg_2"),
        block(0, type="text", text=""),
        piece(0, "text_delta", text="b"),
        end(0),
        stopped("end_turn"),
        STOP,
    )
    assert response.unread == ("the stream has more than one message",)
    assert [block.type for block in response.message.blocks] == ["tool_call", "text"]
    assert not any(call.is_executable for call in response.calls)


def test_what_the_provider_runs_itself_is_no_call_of_ours() -> None:
    searched: dict[str, Any] = {
        "type": "server_tool_use",
        "id": "srvtoolu_1",
        "name": "web_search",
        "input": {},
    }
    found: dict[str, Any] = {
        "type": "web_search_tool_result",
        "tool_use_id": "srvtoolu_1",
        "content": [],
    }
    response = finished(
        block(0, **searched),
        *arguments(0, '{"query": "x"}'),
        end(0),
        block(1, **found),
        end(1),
        reason="pause_turn",
    )
    assert response.calls == ()
    (call,) = response.message.provider_calls
    assert (call.tool_name, call.arguments, call.by_provider) == (
        "web_search",
        {"query": "x"},
        True,
    )
    first, second = response.message.blocks
    assert isinstance(first, ProviderBlock)
    assert isinstance(second, ProviderBlock)
    assert first.native == searched | {"input": {"query": "x"}}
    assert second.native == found
    assert response.message.is_complete


def test_citations_are_collected_on_their_text() -> None:
    response = finished(
        block(0, type="text", text="", citations=None),
        piece(0, "text_delta", text="It is so."),
        piece(0, "citations_delta", citation={"cited_text": "so"}),
        piece(0, "citations_delta", citation={"cited_text": "it"}),
        end(0),
        reason="end_turn",
    )
    (said,) = response.message.blocks
    assert said.extras["citations"] == [{"cited_text": "so"}, {"cited_text": "it"}]


def test_what_belongs_nowhere_is_told_and_nothing_is_guessed() -> None:
    response = finished(
        piece(7, "text_delta", text="lost"),
        block(0, type="text", text="a"),
        piece(0, "brand_new_delta", x=1),
        end(0),
        {"type": "brand_new_event"},
        reason="end_turn",
    )
    assert response.unread == ("an event of block 7, which is not open",)
    assert response.message.text == "a"


@pytest.mark.parametrize(("number", "runs"), [(0, True), (1, False)])
def test_a_new_kind_of_delta_stops_a_call_that_it_is_of_and_no_other(
    number: int, *, runs: bool
) -> None:
    response = finished(
        block(0, type="text", text="a"),
        block(1, **CALL),
        piece(number, "brand_new_delta", x=1),
        *arguments(1, "{}"),
        end(1),
        end(0),
        reason="tool_use",
    )
    assert [call.is_executable for call in response.calls] == [runs]
    assert response.unread == (
        () if runs else ("a piece 'brand_new_delta' does not fit a block 'tool_use'",)
    )


@pytest.mark.parametrize(
    ("odd", "told_of"),
    [
        (
            {"index": 0, "delta": {"type": "input_json_delta", "partial_json": '"/tmp"'}},
            "an event has no type",
        ),
        (arguments(0, '"/tmp"')[0] | {"type": None}, "an event has no type"),
        (arguments(0, '"/tmp"')[0] | {"type": 5}, "an event has no type"),
        (
            arguments(0, '"/tmp"')[0] | {"type": "content_block_patch"},
            "cannot read content_block_patch of block 0",
        ),
    ],
)
def test_an_event_that_may_be_of_a_call_is_told_and_no_call_is_run(odd: Any, told_of: str) -> None:
    response = finished(block(0, **CALL), odd, *arguments(0, "{}"), end(0))
    assert response.unread == (told_of,)
    assert [call.is_executable for call in response.calls] == [False]


@pytest.mark.parametrize(
    ("kind", "of"), [("signature_delta", "signature"), ("thinking_delta", "thinking")]
)
def test_a_piece_of_a_thought_without_a_text_keeps_no_call_from_running(kind: str, of: str) -> None:
    response = finished(
        block(0, type="thinking", thinking="hm", signature="c2ln"),
        piece(0, kind, **{of: None}),
        end(0),
        block(1, **CALL),
        end(1),
    )
    assert response.unread == ()
    assert [call.is_executable for call in response.calls] == [True]
    (thought,) = response.message.blocks[:1]
    assert isinstance(thought, ReasoningBlock)
    assert (thought.text, thought.extras["signature"]) == ("hm", "c2ln")


@pytest.mark.parametrize(
    ("kind", "delta", "of"),
    [
        ("thinking", "text_delta", "text"),
        ("text", "thinking_delta", "thinking"),
        ("text", "signature_delta", "thinking"),
    ],
)
def test_a_known_piece_in_a_block_of_another_kind_is_reported(
    kind: str, delta: str, of: str
) -> None:
    lost = piece(0, delta, **{delta.removesuffix("_delta"): "lost"})
    response = finished(block(0, type=kind, **{kind: "a"}), lost, end(0))
    assert response.unread == (f"a piece {of!r} does not fit a block {kind!r}",)


@pytest.mark.parametrize("pieces", [["a", ["b"]], ["a", 7]])
def test_a_piece_of_another_type_is_reported_and_the_earlier_ones_are_kept(pieces: Any) -> None:
    deltas = [piece(0, "text_delta", text=one) for one in pieces]
    response = finished(block(0, type="text", text=""), *deltas, end(0))
    assert response.unread == ("a piece 'text' does not fit a block 'text'",)
    assert response.message.text == "a"


def two_calls(*events: dict[str, Any]) -> Response:
    return finished(
        block(0, type="text", text=""),
        block(1, **CALL),
        *events,
        end(0),
        end(1),
        block(2, **CALL | {"id": "toolu_2"}),
        *arguments(2, "{}"),
        end(2),
    )


@each_case(
    ("event", "told_of"),
    [
        (arguments(0, '"/tmp"')[0], "a piece 'tool_use' does not fit a block 'text'"),
        (piece(1, "text_delta", text="lost"), "a piece 'text' does not fit a block 'tool_use'"),
        (
            piece(1, "input_json_delta", partial_json=None),
            "a piece 'tool_use' does not fit a block 'tool_use'",
        ),
        (
            piece(1, "input_json_delta", partial_json=7),
            "a piece 'tool_use' does not fit a block 'tool_use'",
        ),
        (piece(1, "input_json_delta"), "a piece 'tool_use' does not fit a block 'tool_use'"),
        (piece(1, "signature_delta"), "a piece 'thinking' does not fit a block 'tool_use'"),
        (arguments(9, "x")[0], "an event of block 9, which is not open"),
    ],
)
def test_a_piece_that_may_be_missing_from_a_call_is_told_and_no_call_is_run(
    event: dict[str, Any], told_of: str
) -> None:
    response = two_calls(*arguments(1, '{"a":1'), event, *arguments(1, "}"))
    assert response.unread == (told_of,)
    assert [call.flags for call in response.calls] == [("incomplete",)] * 2


@pytest.mark.parametrize("raw", ["[1]", "null", '"x"', "7"])
def test_input_that_is_no_object_is_told(raw: str) -> None:
    response = finished(block(0, **CALL), *arguments(0, raw), end(0))
    assert response.unread == ("the arguments of a call are not an object",)
    assert [call.is_executable for call in response.calls] == [False]


OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


def test_an_error_behind_a_whole_answer_is_told() -> None:
    message = start(CALL, type="message", stop_reason="tool_use")["message"]
    response = read_events("anthropic", message, OVERLOADED)
    assert response.failure is not None
    assert (response.failure.kind, response.failure.message) == ("overloaded_error", "Overloaded")
    assert [call.is_executable for call in response.calls] == [False]


def test_a_whole_answer_amid_a_stream_is_told() -> None:
    message = start(CALL, type="message", stop_reason="tool_use")["message"]
    response = finished(block(0, **CALL), end(0), message)
    assert response.unread == ("the stream has a whole message, too",)


def ran(response: Response) -> list[tuple[str | None, str, bool]]:
    return [(one.call_id, one.arguments_raw, one.is_executable) for one in response.calls]


def test_two_open_blocks_at_one_index_are_both_there_and_told() -> None:
    first = [block(0, **CALL), *arguments(0, '{"a":1}')]
    second = [block(0, **CALL | {"id": "b"}), *arguments(0, '{"b":1}'), end(0)]
    response = finished(*first, *second, block(0, **CALL | {"id": "c"}), end(0))
    assert ran(response) == [
        ("toolu_1", '{"a":1}', False),
        ("b", '{"b":1}', False),
        ("c", "{}", False),
    ]
    assert response.unread == ("a block begins at 0, which is not a number, or is still open",)


@pytest.mark.parametrize("index", [None, "0"])
def test_a_block_without_an_index_is_there_and_told(index: Any) -> None:
    first = [block(0, **CALL), *arguments(0, '{"a":', "1}"), end(0)]
    events = [*first, block(0, **CALL | {"id": "b"}), end(0)]
    placed = [{**one, "index": index} for one in events]
    if index is None:
        placed = [{key: one[key] for key in one if key != "index"} for one in events]
    response = finished(*placed)
    assert ran(response) == [("toolu_1", '{"a":1}', False), ("b", "{}", False)]
    assert len(response.unread) == 2
