"""Answers of text, whole and streamed: calls are taken out of the text, and failures are told."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue
from tests.store.wire.text_fallback.test_markup import any_texts
from tests.support.cases import each_case

from tooltrail.records import Origin, ProviderBlock, ReasoningBlock, TextBlock
from tooltrail.wire import Chunk, JsonObject, Response, read_stream, wire_format
from tooltrail.wire.text_fallback import FAMILIES, TextCall, text_format

families = pytest.mark.parametrize("family", sorted(FAMILIES))
FORMAT = wire_format("text-fallback")
CALLS = [TextCall("now", None, '{"zone":"UTC"}'), TextCall("then", None, "{}")]


def answer(text: str, **choice: str) -> JsonObject:
    return {
        "id": "r1",
        "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text}, **choice}],
    }


def chunk(text: str | None = None, **more: str) -> JsonObject:
    delta: JsonObject = {} if text is None else {"content": text}
    return {"id": "r1", "model": "m", "choices": [{"index": 0, "delta": delta, **more}]}


def streamed(family: str, pieces: list[str], end: str | None = "stop") -> Response:
    events: list[Chunk] = [chunk(piece) for piece in pieces]
    if end is not None:
        events.append(chunk(finish_reason=end))
    return read_stream(text_format(family), events)


@families
def test_calls_are_taken_out_of_an_answer(family: str) -> None:
    text = f"Let me look.\n\n{FAMILIES[family].write_calls(CALLS)}"
    response = text_format(family).read_response(answer(text, finish_reason="stop"))
    assert [call.tool_name for call in response.calls] == ["now", "then"]
    assert [call.position for call in response.calls] == [0, 1]
    assert all(call.is_executable for call in response.calls)
    assert response.message.text == "Let me look."
    assert response.message.origin == Origin(
        wire_format="text-fallback", model="m", response_id="r1", finish_reason="stop"
    )
    assert response.message.is_complete
    assert (response.unread, response.failure) == ((), None)


@families
@given(st.lists(st.integers(0, 80), max_size=8), any_texts)
def test_a_stream_gives_the_same_answer_wherever_it_is_cut(
    family: str, sizes: list[int], text: str
) -> None:
    said = f"{text}\n\n{FAMILIES[family].write_calls(CALLS)}"
    rest, pieces = said, list[str]()
    for size in sizes:
        pieces.append(rest[:size])
        rest = rest[size:]
    whole = text_format(family).read_response(answer(said, finish_reason="stop"))
    assert streamed(family, [*pieces, rest]) == whole
    assert read_stream(text_format(family), [answer(said, finish_reason="stop")]) == whole


@families
def test_nothing_of_a_stream_without_an_end_is_to_be_run(family: str) -> None:
    said = FAMILIES[family].write_calls(CALLS)
    for end in range(0, len(said) + 1, 3):
        response = streamed(family, [said[:end]], end=None)
        assert not any(call.is_executable for call in response.calls)
        assert all(call.flags.count("incomplete") == 1 for call in response.calls)
        assert not response.message.is_complete


@families
@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_the_last_call_of_an_answer_that_was_cut_short_is_not_to_be_run(
    family: str, reason: str
) -> None:
    said = FAMILIES[family].write_calls(CALLS)
    for response in (
        streamed(family, [said], end=reason),
        text_format(family).read_response(answer(said, finish_reason=reason)),
    ):
        assert [call.is_executable for call in response.calls] == [True, False]
        assert not response.message.is_complete


@pytest.mark.parametrize(
    "payload",
    [
        {"content": "Noon."},
        {"role": "assistant", "content": "Noon."},
        {"choices": [{"message": {"content": "Noon."}}]},
        {"choices": [{"message": {"content": [{"type": "text", "text": "Noon."}]}}]},
    ],
)
def test_an_answer_is_in_the_shape_of_a_chat_or_its_text(payload: JsonObject) -> None:
    response = FORMAT.read_response(payload)
    assert response.message.blocks == (TextBlock(text="Noon."),)
    assert (response.unread, response.failure) == ((), None)


def test_thoughts_and_other_members_are_kept() -> None:
    message: JsonObject = {"content": "x", "reasoning_content": "hm", "annotations": [1]}
    response = FORMAT.read_response({"choices": [{"message": message}]})
    expected = (
        ReasoningBlock(text="hm", extras={"member": "reasoning_content"}),
        TextBlock(text="x"),
    )
    assert response.message.blocks == expected
    assert response.message.origin is not None
    assert response.message.origin.extras == {"annotations": [1]}
    events: list[Chunk] = [
        {"choices": [{"delta": {"role": "assistant", "reasoning_content": "h"}}]},
        {"choices": [{"delta": {"reasoning_content": "m", "content": None}}]},
        {"choices": [{"delta": {"content": "x", "annotations": [1]}}]},
    ]
    streamed_message = read_stream(FORMAT, events).message
    assert streamed_message.blocks == expected
    assert streamed_message.origin is not None
    assert streamed_message.origin.extras == {"annotations": [1]}


def test_native_calls_are_kept_and_told_but_not_read() -> None:
    message: JsonObject = {"content": None, "tool_calls": [{"id": "a"}]}
    response = FORMAT.read_response({"choices": [{"message": message}]})
    assert response.calls == ()
    assert response.unread == (
        "the answer has native calls; this format has them in its text alone",
    )
    assert response.message.origin is not None
    assert response.message.origin.extras == {"tool_calls": [{"id": "a"}]}


def test_what_only_looks_like_a_call_keeps_no_call_from_running() -> None:
    call = '<tool_call name="now">\n{}\n</tool_call>'
    text = f"Like so:\n```\n{call}\n```\n{call}"
    for response in (
        FORMAT.read_response({"content": text}),
        read_stream(FORMAT, [{"content": text}]),
    ):
        assert [one.is_executable for one in response.calls] == [True]


@pytest.mark.parametrize("error", ["", False, None, {}])
def test_an_error_of_nothing_is_no_failure(error: JsonValue) -> None:
    content = FAMILIES["tool_result"].write_calls(CALLS)
    choice: JsonObject = {"message": {"content": content}, "finish_reason": "stop"}
    streamed: JsonObject = {"delta": {"content": content}, "finish_reason": "stop"}
    for response in (
        FORMAT.read_response({"error": error, "content": content}),
        FORMAT.read_response({"error": error, "choices": [{**choice, "error": error}]}),
        read_stream(FORMAT, [{"error": error, "choices": [{**streamed, "error": error}]}]),
    ):
        assert response.failure is None
        assert response.unread == ()
        assert response.calls
        assert all(call.is_executable for call in response.calls)
    alone = FORMAT.read_response({"error": error})
    assert alone.unread == ("there is neither a message nor an error",)


def test_an_answer_without_anything_is_told() -> None:
    assert FORMAT.read_response({}).unread == ("there is neither a message nor an error",)
    assert read_stream(FORMAT, []).unread == ("there is neither a message nor an error",)
    usage: list[Chunk] = [{"choices": []}, {"choices": [7]}, {"usage": {}}]
    assert read_stream(FORMAT, usage).unread == ("a choice is not an object",)


CALL = FAMILIES["tool_result"].write_calls(CALLS[:1])


def test_parts_that_are_no_text_are_thoughts_or_told() -> None:
    thought: JsonObject = {"type": "thinking", "thinking": [{"type": "text", "text": "hm"}]}
    image: JsonObject = {"type": "image_url", "image_url": {"url": "https://example.org/x"}}
    events: list[Chunk] = [
        {"choices": [{"delta": {"content": [thought]}}]},
        chunk("x"),
        {"choices": [{"delta": {"content": [image]}, "finish_reason": "stop"}]},
    ]
    whole: JsonObject = {"content": [thought, {"type": "text", "text": "x"}, image]}
    for response in (read_stream(FORMAT, events), FORMAT.read_response(whole)):
        assert response.message.blocks == (
            ReasoningBlock(text="hm"),
            TextBlock(text="x"),
            ProviderBlock(native=image),
        )
        assert response.unread == ("a part of the content is not a string",)


def test_texts_without_choices_are_put_together() -> None:
    """As the server of llama.cpp completes a prompt."""
    texts: list[Chunk] = [{"content": CALL[:9], "stop": False}, {"content": CALL[9:]}]
    end: list[Chunk] = [{"content": "", "stop": True, "model": "m"}]
    response = read_stream(FORMAT, [*texts, *end])
    assert [call.is_executable for call in response.calls] == [True]
    assert response.message.is_complete
    cut_off = read_stream(FORMAT, texts)
    assert [call.tool_name for call in cut_off.calls] == ["now"]
    assert [call.flags for call in cut_off.calls] == [("incomplete",)]
    assert not cut_off.message.is_complete
    hello: list[Chunk] = [{"content": "Hel"}, {"content": "lo"}]
    assert read_stream(FORMAT, hello).message.text == "Hello"


DAMAGED: list[tuple[Chunk, str]] = [
    ({"choices": {"delta": {}}}, "choices of an event is not a list"),
    ({"choices": [None]}, "a choice is not an object"),
    ({"choices": [{"delta": "x"}]}, "a delta is not an object"),
    ({"choices": [{"index": "first", "delta": {}}]}, "the index of a choice is not a number"),
    ({"choices": [{"delta": {"content": 7}}]}, "content of a delta is not a string"),
    (answer("x"), "the stream has more than one answer; one of them is read"),
]


@each_case(("event", "told"), DAMAGED)
def test_an_event_amid_a_stream_that_cannot_be_read_is_told(event: Chunk, told: str) -> None:
    events = [chunk(CALL[:9]), event, chunk(CALL[9:]), chunk(finish_reason="stop")]
    response = read_stream(FORMAT, events)
    assert told in response.unread
    assert not any(call.is_executable for call in response.calls)


WITHOUT_MESSAGE: list[tuple[JsonObject, str]] = [
    ({"choices": [{"text": "x"}]}, "choices[0] has no message"),
    ({"choices": [{"message": {"content": "x"}}, 7]}, "choices of the answer is not valid"),
    ({"content": {"a": 1}}, "the content is neither a text nor parts"),
    ({"content": 7}, "the content is neither a text nor parts"),
]


@pytest.mark.parametrize(("payload", "told"), WITHOUT_MESSAGE)
def test_what_is_no_message_is_told(payload: JsonObject, told: str) -> None:
    assert FORMAT.read_response(payload).unread == (told,)
