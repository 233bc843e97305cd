"""A provider's answers put into a session as they come, and messages that carry results back."""

import json
import re
from collections.abc import Callable
from typing import Any

import anthropic
import openai
import pytest
from tests.support.agents.spelled_answers import Call, asks, says, spell_whole
from tests.support.wire.fake_provider import fake_provider, request_problems

from tooltrail.journal.answers import RecordedStream, record_response, record_stream
from tooltrail.journal.tool_results import tool_results_message
from tooltrail.records import (
    InvalidRecordError,
    Message,
    NotFoundError,
    ToolCall,
    ToolDefinition,
    invoke,
)
from tooltrail.store import Store
from tooltrail.transcripts import conversation_of, export_transcript, load_transcript
from tooltrail.wire import ExportPolicy, read_stream, wire_format

ANSWER: dict[str, Any] = json.loads(
    spell_whole("openai", asks(*(Call("add", {"a": n}) for n in range(2))))
)
DONE: dict[str, Any] = json.loads(spell_whole("openai", says("3")))


def add(arguments: dict[str, Any]) -> str:
    return str(arguments["a"] + 1)


def test_the_official_client_goes_round_with_three_lines(store: Store) -> None:
    messages: list[Any] = [{"role": "user", "content": "add"}]
    with fake_provider() as provider, store.open_session() as session:
        provider.will_answer(ANSWER)
        provider.will_answer(DONE)
        client = openai.OpenAI(base_url=f"{provider.url}/v1", api_key="x", max_retries=0)
        with client:
            session.message(Message.of("user", "add"))
            asked = client.chat.completions.create(model="m", messages=messages)
            answer = record_response(session, "openai", asked)
            finished = [invoke(add, call, session.start(call).finish) for call in answer.calls]
            messages.append(asked.choices[0].message.model_dump(exclude_unset=True))
            messages += tool_results_message("openai", finished)
            said = client.chat.completions.create(model="m", messages=messages)
            record_response(session, "openai", said)
        assert provider.refused == []
        sent = provider.requests[1].body["messages"]
    assert [one["content"] for one in sent[2:]] == ["1\n", "2\n"]
    transcript = load_transcript(store.reader, "@last")
    export = export_transcript(transcript, "openai")
    assert export.report.changes == ()
    assert export.request["messages"] == [*sent, {"role": "assistant", "content": "3"}]
    conversation = conversation_of(transcript)
    assert [len(message.calls) for message in conversation.messages] == [0, 2, 0, 0]


def test_bytes_are_kept_as_they_came(store: Store) -> None:
    payload = json.dumps(ANSWER, indent=3).encode()
    with store.open_session() as session:
        answer = record_response(session, "openai", payload, provider="local")
    (view,) = store.reader.conversation(session.id, payloads=True)[1]
    assert (view.payload, view.wire_format, view.id) == (payload, "openai", answer.message_ids[0])
    assert store.reader.conversation(session.id)[1][0].payload is None
    message = Message.from_json(view.document or b"")
    assert message.origin is not None
    assert (message.origin.provider, message.origin.model) == ("local", "m")


def test_a_call_knows_its_message_and_its_place(store: Store) -> None:
    with store.open_session() as session:
        answer = record_response(session, "openai", ANSWER)
        first, second = answer.calls
        assert first.message_id == second.message_id == answer.message_ids[0]
        # Ended in another order than asked for.
        ids = [session.start(call).finish(output(call)).invocation_id for call in (second, first)]
    details = [store.reader.invocation(one) for one in ids]
    assert [(one.message_id, one.position) for one in details] == [
        (answer.message_ids[0], 1),
        (answer.message_ids[0], 0),
    ]
    export = export_transcript(load_transcript(store.reader, str(session.id)), "anthropic")
    assert request_problems("anthropic", export.request) == []
    messages: Any = export.request["messages"]
    ids = [block["tool_use_id"] for block in messages[-1]["content"]]
    assert ids == ["call_0", "call_1"]


def output(call: ToolCall) -> Any:
    from tooltrail.records import CompleteOutput, GenericOutput

    return CompleteOutput.success(call.tool_name, GenericOutput.of(call.arguments_raw))


def test_calls_without_ids_get_ids_that_no_other_call_has(store: Store) -> None:
    part = {"functionCall": {"name": "add", "args": {"a": 1}}}
    payload = {"candidates": [{"content": {"parts": [part, part]}, "finishReason": "STOP"}]}
    with store.open_session() as session:
        calls = [
            call for _ in range(2) for call in record_response(session, "gemini", payload).calls
        ]
        finished = [invoke(add, call, session.start(call).finish) for call in calls]
    assert len({call.call_id for call in calls}) == 4
    assert all("id_synthesised" in call.flags for call in calls)
    # The provider that sent no ids gets none.
    (message,) = tool_results_message("gemini", finished[:2])
    assert "id" not in json.dumps(message).replace("inlineData", "")
    # Another format gets the ids that were made if the policy asks for them, else text.
    made = ExportPolicy(ids="synthesise")
    others: Any = tool_results_message("openai", finished[:2], made)
    assert [one["tool_call_id"] for one in others] == [call.call_id for call in calls[:2]]
    (as_text,) = tool_results_message("openai", finished[:2])
    assert as_text == {
        "role": "user",
        "content": '<tool_result name="add" status="ok">\n2\n\n</tool_result>\n\n'
        '<tool_result name="add" status="ok">\n2\n\n</tool_result>',
    }


@pytest.mark.parametrize(
    ("name", "calls"),
    [
        ("openai", asks(Call("add", {"a": 1}), Call("add", {"a": 2}))),
        ("openai-responses", asks(Call("add", {"a": 1}))),
        ("anthropic", asks(Call("add", {"a": 1}))),
    ],
)
def test_no_result_has_an_id_that_its_provider_did_not_send(
    store: Store, name: str, calls: Any
) -> None:
    payload = re.sub(
        r'("(?:id|call_id)": ?)"call_[^"]*"', r'\1""', spell_whole(name, calls).decode()
    )
    with store.open_session() as session:
        answer = record_response(session, name, payload)
        finished = [invoke(add, call, session.start(call).finish) for call in answer.calls]
    assert finished
    assert all("id_synthesised" in one.call.flags for one in finished)
    (as_text,) = tool_results_message(name, finished)
    assert "call_" not in json.dumps(as_text)
    assert json.dumps(as_text).count("<tool_result name=") == len(finished)
    # An export of the session has the ids that were made, and says so.
    export = export_transcript(load_transcript(store.reader, str(session.id)), name)
    kinds = [change.kind for change in export.report]
    assert kinds.count("id_synthesised") == len(finished)
    assert all(str(one.call.call_id) in json.dumps(export.request) for one in finished)


STREAM = (
    (
        b'data: {"id":"c","model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,'
        b'"id":"a","function":{"name":"add","arguments":"{\\"a\\":"}}]}}]}\n\n'
    ),
    (
        b'data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":'
        b'"1}"}}]}}]}\n\n'
    ),
    b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"}]}\n\ndata: [DONE]\n\n',
)


def test_a_stream_passes_through_and_is_recorded_at_its_end(store: Store) -> None:
    with store.open_session() as session:
        stream = RecordedStream(session, "openai", STREAM)
        with pytest.raises(InvalidRecordError, match="has not ended"):
            _ = stream.answer
        assert tuple(stream) == STREAM
        (call,) = stream.answer.calls
        assert (call.arguments, call.is_executable) == ({"a": 1}, True)
        stream.close()
    (view,) = store.reader.conversation(session.id, payloads=True)[1]
    assert view.payload == b"".join(STREAM)


@pytest.mark.parametrize("has_blank_lines", [True, False])
def test_a_stream_of_lines_without_their_ends_passes_through_and_is_recorded(
    store: Store, has_blank_lines: bool
) -> None:
    lines = b"".join(STREAM).decode().splitlines()
    chunks = [line for line in lines if line or has_blank_lines]
    with store.open_session() as session:
        stream = record_stream(session, "openai", iter(chunks))
        assert list(stream) == chunks
        assert [call.arguments for call in stream.answer.calls] == [{"a": 1}]
    (view,) = store.reader.conversation(session.id, payloads=True)[1]
    assert view.payload == b"".join(STREAM).strip()
    again = read_stream(wire_format("openai"), [view.payload])
    assert again.message.text == stream.answer.response.message.text
    assert (len(again.calls), again.unread) == (1, ())


@pytest.mark.parametrize("stream", [[b"data: {}"], iter([b"data: {}"])])
def test_a_stream_that_is_recorded_as_one_answer_is_refused_with_advice(
    store: Store, stream: Any
) -> None:
    with (
        store.open_session() as session,
        pytest.raises(InvalidRecordError, match="is not one answer: use record_stream"),
    ):
        record_response(session, "openai", stream)


@pytest.mark.parametrize("chunk", [bytearray(b"{}"), memoryview(b"{}"), [b"{}"]])
def test_a_wrong_chunk_of_a_stream_is_refused_without_that_advice(store: Store, chunk: Any) -> None:
    with (
        store.open_session() as session,
        pytest.raises(InvalidRecordError, match=r"is no answer and no part of a stream$"),
    ):
        list(record_stream(session, "openai", iter([chunk])))


def test_a_client_s_stream_of_events_is_recorded_as_their_json(store: Store) -> None:
    events = (
        (
            b'event: message_start\ndata: {"type":"message_start","message":{"id":"m",'
            b'"type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,'
            b'"usage":{"input_tokens":1,"output_tokens":1}}}\n\n'
        ),
        (
            b'event: content_block_start\ndata: {"type":"content_block_start","index":0,'
            b'"content_block":{"type":"tool_use","id":"t","name":"add","input":{}}}\n\n'
        ),
        (
            b'event: content_block_delta\ndata: {"type":"content_block_delta","index":0,"delta":'
            b'{"type":"input_json_delta","partial_json":"{\\"a\\":1}"}}\n\n'
        ),
        b'event: content_block_stop\ndata: {"type":"content_block_stop","index":0}\n\n',
        (
            b'event: message_delta\ndata: {"type":"message_delta","delta":'
            b'{"stop_reason":"tool_use","stop_sequence":null},"usage":{"output_tokens":1}}\n\n'
        ),
        b'event: message_stop\ndata: {"type":"message_stop"}\n\n',
    )
    with fake_provider() as provider, store.open_session() as session:
        provider.will_stream(events)
        with anthropic.Anthropic(base_url=provider.url, api_key="x", max_retries=0) as client:
            raw = client.messages.create(
                model="m", max_tokens=9, messages=[{"role": "user", "content": "add"}], stream=True
            )
            stream = RecordedStream(session, "anthropic", raw)
            kinds = [event.type for event in stream]
        (call,) = stream.answer.calls
    assert (kinds[0], kinds[-1]) == ("message_start", "message_stop")
    assert (call.call_id, call.arguments_raw, call.is_executable) == ("t", '{"a":1}', True)
    (view,) = store.reader.conversation(session.id, payloads=True)[1]
    assert [json.loads(line)["type"] for line in (view.payload or b"").splitlines()] == kinds


def test_the_events_of_openai_s_stream_helper_are_chunks(store: Store) -> None:
    choices: list[dict[str, Any]] = [
        {"index": 0, "delta": {"role": "assistant", "content": "he"}},
        {"index": 0, "delta": {"content": "llo"}},
        {"index": 0, "delta": {}, "finish_reason": "stop"},
    ]
    head = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    chunks = [{**head, "choices": [one]} for one in choices]
    with fake_provider() as provider, store.open_session() as session:
        provider.will_stream([f"data: {json.dumps(one)}\n\n".encode() for one in chunks])
        with openai.OpenAI(base_url=f"{provider.url}/v1", api_key="x", max_retries=0) as client:
            asked = client.chat.completions.stream(
                model="m", messages=[{"role": "user", "content": "greet"}]
            )
            with asked as events, RecordedStream(session, "openai", events) as stream:
                kinds = {event.type for event in stream}
    assert {"chunk", "content.delta", "content.done"} <= kinds
    (message,) = stream.answer.response.messages
    assert (message.text, message.is_complete) == ("hello", True)
    (view,) = store.reader.conversation(session.id, payloads=True)[1]
    lines = [json.loads(line) for line in (view.payload or b"").splitlines()]
    assert [line["choices"] for line in lines if line] == [[one] for one in choices]


def test_an_answer_that_is_an_error_is_part_of_the_record(store: Store) -> None:
    payload = b'{"error":{"message":"no","type":"overloaded"}}'
    with store.open_session() as session:
        answer = record_response(session, "openai", payload)
    assert answer.calls == ()
    assert answer.response.failure is not None
    (view,) = store.reader.conversation(session.id, payloads=True)[1]
    assert view.payload == payload


def test_what_no_record_can_hold_keeps_no_answer_from_being_recorded(store: Store) -> None:
    deep: Any = []
    for _ in range(400):
        deep = [deep]
    block = {"type": "odd", "deep": deep, "long": 10**5_000}
    text = {"type": "text", "text": "so"}
    payload = {"type": "message", "role": "assistant", "content": [block, text]}
    with store.open_session() as session:
        whole = record_response(session, "anthropic", payload)
        streamed = RecordedStream(session, "anthropic", [payload])
        assert list(streamed) == [payload]
    for answer in (whole, streamed.answer):
        assert answer.response.message.text == "so"
        assert answer.response.unread
    first, second = store.reader.conversation(session.id, payloads=True)[1]
    lines = (first.payload or b"").splitlines()
    assert lines == (second.payload or b"").splitlines()
    assert json.loads(lines[0])["content"][1] == text
    # So that who reads it again does not take it for all there was.
    assert lines[1] == b"[what is nested deeper than 200 levels is kept as text]"


@pytest.mark.parametrize("odd", ["1" * 5_000, "[" * 100_000 + "]" * 100_000], ids=["long", "deep"])
def test_json_that_this_program_cannot_read_is_kept(store: Store, odd: str) -> None:
    payload = f'{{"choices":[],"odd":{odd}}}'.encode()
    with store.open_session() as session:
        answer = record_response(session, "openai", payload)
    assert answer.calls == ()
    assert answer.response.unread[0].startswith("the answer cannot be read: ")
    (view,) = store.reader.conversation(session.id, payloads=True)[1]
    assert view.payload == payload
    assert Message.from_json(view.document or b"").is_complete is False


@pytest.mark.parametrize("payload", [b"no", b"[]", "{", b"\xff"])
def test_what_is_no_answer_is_refused(store: Store, payload: bytes | str) -> None:
    with store.open_session() as session:
        with pytest.raises(InvalidRecordError, match=r"the answer is not (a )?JSON"):
            record_response(session, "openai", payload)
        with pytest.raises(NotFoundError, match="no wire format 'x'"):
            record_response(session, "x", payload)


def test_the_results_of_a_batch_without_ids_are_text_or_get_ids(store: Store) -> None:
    with store.open_session() as session:
        finished = [
            invoke(add, call, session.start(call).finish)
            for call in (ToolCall.of("add", {"a": 1}), ToolCall.of("add", {"a": 2}, call_id="b"))
        ]
    (as_text,) = tool_results_message("openai", finished)
    assert as_text == {
        "role": "user",
        "content": '<tool_result name="add" status="ok">\n2\n\n</tool_result>\n\n'
        '<tool_result id="b" name="add" status="ok">\n3\n\n</tool_result>',
    }
    results: Any = tool_results_message("openai", finished, ExportPolicy(ids="synthesise"))
    assert [one["content"] for one in results] == ["2\n", "3\n"]


def test_a_session_knows_the_servers_of_the_tools_that_it_offers(store: Store) -> None:
    read = {"name": "disk___read", "arguments": "{}"}
    call = {"id": "call_1", "type": "function", "function": read}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    answer = {**ANSWER, "choices": [{"index": 0, "finish_reason": "stop", "message": message}]}
    with store.open_session() as session:
        servers = ("disk", "net")
        session.offer_tools([ToolDefinition(name="read", namespace=one) for one in servers])
        (asked,) = record_response(session, "openai", answer).calls
        with RecordedStream(session, "openai", [answer]) as stream:
            list(stream)
        table: dict[str, Callable[[Any], object]] = {
            "disk___read": lambda _: "of the disk",
            "net___read": lambda _: "of the net",
        }
        ended = invoke(table, asked, session.start(asked).finish)
    assert "of the disk" in ended.receipt.text
    assert [one.name for one in store.reader.tools(latest=True)] == ["disk___read", "net___read"]
    for one in (asked, *stream.answer.calls):
        assert (one.namespace, one.tool_name) == ("disk", "read")
    named: Any = tool_results_message("ollama", [ended])
    assert named[0]["tool_name"] == "disk___read"
    kept = load_transcript(store.reader, str(session.id))
    again: Any = export_transcript(kept, "openai").request["messages"]
    assert again[0]["tool_calls"][0]["function"]["name"] == "disk___read"
