"""A session in providers' formats: with messages as they were recorded, and without."""

import json
from typing import Any

import pytest
from tests.support.recording import run_command
from tests.support.wire.fake_provider import request_problems

from tooltrail.records import (
    AmbiguousNameError,
    CallBlock,
    CompleteOutput,
    GenericOutput,
    Message,
    NotFoundError,
    ResultBlock,
    TextBlock,
    ToolCall,
)
from tooltrail.store import Session, Store
from tooltrail.transcripts import (
    FORMATS,
    Transcript,
    conversation_of,
    export_transcript,
    fit,
    load_transcript,
    provider_writer,
    until,
    write_export,
    write_payloads,
)
from tooltrail.wire import ExportPolicy

FORMAT_NAMES = ("openai", "openai-responses", "anthropic", "ollama", "gemini")


def called(session: Session, call: ToolCall, text: str) -> None:
    session.start(call).finish(CompleteOutput.success(call.tool_name, GenericOutput.of(text)))


@pytest.fixture
def recorded(store: Store) -> Store:
    """A conversation as a runtime records it that knows nothing of messages with calls."""
    with store.open_session(title="talk") as session:
        session.add_message("system", "be brief")
        session.add_message("user", "what is there?")
        called(session, ToolCall.of("ls", {"path": "."}, call_id="call_1"), "a")
        called(session, ToolCall.of("cat", {"path": "a"}, call_id="call_2"), "hello")
        session.add_message("assistant", "a file that says hello")
        session.add_message("critic", "too long")
        session.start(ToolCall.of("rm", {}, call_id="call_3"))
    return store


@pytest.mark.parametrize("name", FORMAT_NAMES)
def test_a_session_without_messages_that_ask_for_calls_can_be_sent(
    recorded: Store, name: str
) -> None:
    export = export_transcript(load_transcript(recorded.reader, "@last"), name)
    assert request_problems(name, export.request) == []
    kinds = {change.kind for change in export.report}
    assert "result_missing" in kinds
    assert "provider_data_dropped" in kinds  # that the critic was no user
    assert "hello" in json.dumps(export.request)
    text = "".join(write_export(export))
    assert json.loads(text) == export.request


def test_each_call_stands_alone_where_nobody_knows_what_was_asked_together(
    recorded: Store,
) -> None:
    conversation = conversation_of(load_transcript(recorded.reader, "@last"))
    assert [message.role for message in conversation.messages] == [
        "system",
        "user",
        *("assistant", "tool") * 2,
        "assistant",
        "user",
        "assistant",
    ]
    assert [len(one.calls) for one in conversation.messages] == [0, 0, 1, 0, 1, 0, 0, 0, 1]


def test_a_result_goes_to_the_call_of_its_message_by_id_where_no_message_is_named(
    store: Store,
) -> None:
    asked = [ToolCall.of("f", {"n": n}, call_id="call_0") for n in range(2)]
    with store.open_session() as session:
        for turn in range(2):
            # The same ids in each turn, as some servers give, and twice in one.
            session.record_message(
                Message(role="assistant", blocks=tuple(CallBlock(call=call) for call in asked))
            )
            for call in asked:
                called(session, call, f"{turn} {call.arguments_raw}")
            told = ResultBlock(call_id="call_0", content=(TextBlock(text="told twice"),))
            session.record_message(Message(role="tool", blocks=(told,)))
    conversation = conversation_of(load_transcript(store.reader, "@last"))
    assert [message.role for message in conversation.messages] == ["assistant", "tool"] * 2
    texts = [text_of(result) for one in conversation.messages for result in one.results]
    assert texts == ['0 {"n":0}\n', '0 {"n":1}\n', '1 {"n":0}\n', '1 {"n":1}\n']
    export = export_transcript(load_transcript(store.reader, "@last"), "anthropic")
    assert request_problems("anthropic", export.request) == []
    assert len(export.report.of_kind("id_renamed")) == 3


def test_a_result_without_any_id_goes_to_the_call_that_is_spelled_alike(store: Store) -> None:
    asked = [ToolCall.of("f", {"n": n}) for n in (1, 2, 2)]
    with store.open_session() as session:
        session.record_message(
            Message(role="assistant", blocks=tuple(CallBlock(call=call) for call in asked))
        )
        for call in (asked[1], asked[0], asked[2], ToolCall.of("f", {"n": 3})):
            called(session, call, f"of {call.arguments_raw}")
    conversation = conversation_of(load_transcript(store.reader, "@last"))
    assert [len(one.calls) for one in conversation.messages] == [3, 0, 1, 0]
    results = {
        one.key: text_of(one) for message in conversation.messages for one in message.results
    }
    told = [
        (block.call.arguments_raw, results[block.key])
        for message in conversation.messages
        for block in message.blocks
        if isinstance(block, CallBlock)
    ]
    assert told == [(raw, f"of {raw}\n") for raw in ('{"n":1}', '{"n":2}', '{"n":2}', '{"n":3}')]


def text_of(result: ResultBlock) -> str:
    return "".join(block.text for block in result.content if isinstance(block, TextBlock))


def test_a_recorded_result_of_a_call_that_nobody_ran_here_counts(store: Store) -> None:
    call = ToolCall.of("f", {}, call_id="x")
    result = ResultBlock(call_id="x", content=(TextBlock(text="from elsewhere"),))
    with store.open_session() as session:
        session.record_message(Message(role="assistant", blocks=(CallBlock(call=call),)))
        session.record_message(Message(role="tool", blocks=(result,)))
    export = export_transcript(load_transcript(store.reader, "@last"), "openai")
    assert export.request["messages"] == [
        {
            "role": "assistant",
            "content": None,
            "tool_calls": [
                {"id": "x", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            ],
        },
        {"role": "tool", "tool_call_id": "x", "content": "from elsewhere"},
    ]


def test_a_recorded_result_counts_where_the_invocation_has_none(store: Store) -> None:
    call = ToolCall.of("f", {}, call_id="x")
    result = ResultBlock(call_id="x", content=(TextBlock(text="said by the message"),))
    with store.open_session() as session:
        session.record_message(Message(role="assistant", blocks=(CallBlock(call=call),)))
        session.start(call)
        session.record_message(Message(role="tool", blocks=(result,)))
    transcript = load_transcript(store.reader, "@last")
    assert [text_of(one) for one in _results(transcript)] == ["said by the message"]
    export = export_transcript(transcript, "anthropic")
    assert not export.report.of_kind("result_missing")
    assert "said by the message" in json.dumps(export.request)


def _results(transcript: Transcript) -> list[ResultBlock]:
    messages = conversation_of(transcript).messages
    return [result for message in messages for result in message.results]


def test_what_is_not_known_is_marked_and_not_made_up(recorded: Store) -> None:
    transcript = load_transcript(recorded.reader, "@last")
    marked = export_transcript(transcript, "openai", ExportPolicy(unanswered="unknown"))
    assert "[unknown: what the model was shown" in json.dumps(marked.request)
    assert "[no result recorded" not in json.dumps(marked.request)
    dropped = export_transcript(transcript, "openai", ExportPolicy(unanswered="drop"))
    assert "call_3" not in json.dumps(dropped.request)


def test_a_session_ends_where_it_is_told_to(recorded: Store) -> None:
    transcript = load_transcript(recorded.reader, "@last")
    for name in ("#3", str(recorded.reader.invocation(f"{transcript.session.id}#3").summary.id)):
        assert len(until(transcript, name).entries) == 4
    first = transcript.entries[0]
    assert until(transcript, str(getattr(first, "id"))[-12:]).entries == (first,)  # noqa: B009  of a message
    for name in ("#99", "zz", "abc", "ffffffff-"):
        with pytest.raises(NotFoundError):
            until(transcript, name)
    with pytest.raises(AmbiguousNameError):
        until(transcript, str(transcript.session.id)[:4])


def test_an_export_can_be_made_to_fit(store: Store) -> None:
    with store.open_session() as session:
        for _ in range(3):
            run_command(session, b"line\n" * 3_000)
    transcript = load_transcript(store.reader, "@last")
    writer = provider_writer("openai", ExportPolicy(ids="synthesise"))
    size = len("".join(writer(transcript)))
    fitted = fit(transcript, size // 8, writer)
    assert fitted.token_count < size // 4
    document: dict[str, Any] = json.loads("".join(writer(fitted.transcript)))
    assert request_problems("openai", document) == []


def test_payloads_are_printed_byte_for_byte(store: Store) -> None:
    with store.open_session() as session:
        session.add_message("user", "no payload")
        session.record_message(Message.of("assistant", "a"), payload=b'{"a" : 1}\n')
        session.record_message(Message.of("assistant", "b"), payload=b"\xff\0")
    transcript = load_transcript(store.reader, "@last", payloads=True)
    first, second = [json.loads(line) for line in write_payloads(transcript)]
    assert (first["seq"], first["payload"]) == (1, '{"a" : 1}\n')
    assert (second["role"], second["payload_base64"]) == ("assistant", "/wA=")
    assert list(write_payloads(load_transcript(store.reader, "@last"))) == []


def test_formats_for_people_show_a_message_with_calls_by_its_text(store: Store) -> None:
    call = CallBlock(call=ToolCall.of("f", {}, call_id="x"))
    with store.open_session() as session:
        blocks = (TextBlock(text="I look"), call)
        session.record_message(Message(role="assistant", blocks=blocks))
    text = "".join(FORMATS["text"](load_transcript(store.reader, "@last")))
    assert "  I look\n" in text
