"""A session in providers' formats: with messages as they were recorded, and without."""

import json
from typing import Any

import pytest
from tests.support.recording import run_command, say
from tests.support.wire.fake_provider import request_problems

from tooltrail.journal.answers import record_response
from tooltrail.journal.session import Session
from tooltrail.records import (
    AmbiguousNameError,
    CallBlock,
    CompleteOutput,
    GenericOutput,
    Message,
    NotFoundError,
    Origin,
    ResultBlock,
    TextBlock,
    ToolCall,
    ToolDefinition,
)
from tooltrail.store import Store
from tooltrail.transcripts import (
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
from tooltrail.wire import Change, ExportPolicy, ExportRefusedError

FORMAT_NAMES = ("openai", "openai-responses", "anthropic", "bedrock", "ollama", "gemini", "cohere")


def called(session: Session, call: ToolCall, text: str) -> None:
    session.start(call).finish(CompleteOutput.success(call.tool_name, GenericOutput.of(text)))


def ask(session: Session, *calls: ToolCall) -> None:
    """Let a message ask for calls."""
    session.message(Message(role="assistant", blocks=tuple(CallBlock(call=one) for one in calls)))


def told(text: str, **names: Any) -> ResultBlock:
    return ResultBlock(content=(TextBlock(text=text),), **names)


def tell(session: Session, *results: ResultBlock) -> None:
    """Let a message tell results."""
    session.message(Message(role="tool", blocks=results))


def last(store: Store) -> Transcript:
    return load_transcript(store.reader, "@last")


def text_of(result: ResultBlock) -> str:
    return "".join(block.text for block in result.content if isinstance(block, TextBlock))


def results_of(transcript: Transcript) -> list[str]:
    messages = conversation_of(transcript).messages
    return [text_of(result) for message in messages for result in message.results]


@pytest.fixture
def recorded(store: Store) -> Store:
    """A conversation as a runtime records it that knows nothing of messages with calls."""
    with store.open_session(title="talk") as session:
        say(session, "system", "be brief")
        say(session, "user", "what is there?")
        called(session, ToolCall.of("ls", {"path": "."}, call_id="call_1"), "a")
        called(session, ToolCall.of("cat", {"path": "a"}, call_id="call_2"), "hello")
        say(session, "assistant", "a file that says hello")
        say(session, "critic", "too long")
        session.start(ToolCall.of("rm", {}, call_id="call_3"))
    return store


@pytest.mark.parametrize("name", FORMAT_NAMES)
def test_a_session_without_messages_that_ask_for_calls_can_be_sent(
    recorded: Store, name: str
) -> None:
    export = export_transcript(last(recorded), name)
    assert request_problems(name, export.request) == []
    kinds = {change.kind for change in export.report}
    assert "result_missing" in kinds
    assert "provider_data_dropped" in kinds  # that the critic was no user
    assert "hello" in json.dumps(export.request)
    text = "".join(write_export(export))
    assert json.loads(text) == export.request


def test_each_call_stands_alone_where_nobody_knows_what_was_asked_together(recorded: Store) -> None:
    conversation = conversation_of(last(recorded))
    roles = ["system", "user", *("assistant", "tool") * 2, "assistant", "user", "assistant"]
    assert [message.role for message in conversation.messages] == roles
    assert [len(one.calls) for one in conversation.messages] == [0, 0, 1, 0, 1, 0, 0, 0, 1]


def test_a_result_goes_to_the_call_of_its_message_by_id_where_no_message_is_named(
    store: Store,
) -> None:
    asked = [ToolCall.of("f", {"n": n}, call_id="call_0") for n in range(2)]
    with store.open_session() as session:
        for turn in range(2):
            ask(session, *asked)  # with the same ids in each turn, as some servers give them
            for call in asked:
                called(session, call, f"{turn} {call.arguments_raw}")
            tell(session, told("told twice", call_id="call_0"))
    conversation = conversation_of(last(store))
    assert [message.role for message in conversation.messages] == ["assistant", "tool"] * 2
    assert results_of(last(store)) == ['0 {"n":0}\n', '0 {"n":1}\n', '1 {"n":0}\n', '1 {"n":1}\n']
    export = export_transcript(last(store), "anthropic")
    assert request_problems("anthropic", export.request) == []
    assert len(export.report.of_kind("id_renamed")) == 3


def test_a_result_without_any_id_goes_to_the_call_that_is_spelled_alike(store: Store) -> None:
    asked = [ToolCall.of("f", {"n": n}) for n in (1, 2, 2)]
    with store.open_session() as session:
        ask(session, *asked)
        for call in (asked[1], asked[0], asked[2], ToolCall.of("f", {"n": 3})):
            called(session, call, f"of {call.arguments_raw}")
    conversation = conversation_of(last(store))
    messages = conversation.messages
    assert [len(one.calls) for one in messages] == [3, 0, 1, 0]
    results = {one.key: text_of(one) for message in messages for one in message.results}
    said = [
        (block.call.arguments_raw, results[block.key])
        for message in messages
        for block in message.blocks
        if isinstance(block, CallBlock)
    ]
    assert said == [(raw, f"of {raw}\n") for raw in ('{"n":1}', '{"n":2}', '{"n":2}', '{"n":3}')]


def test_a_recorded_result_of_a_call_that_nobody_ran_here_counts(store: Store) -> None:
    with store.open_session() as session:
        ask(session, ToolCall.of("f", {}, call_id="x"))
        tell(session, told("from elsewhere", call_id="x"))
    export = export_transcript(last(store), "openai")
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
    with store.open_session() as session:
        ask(session, call)
        session.start(call)
        tell(session, told("said by the message", call_id="x"))
    assert results_of(last(store)) == ["said by the message"]
    export = export_transcript(last(store), "anthropic")
    assert not export.report.of_kind("result_missing")
    assert "said by the message" in json.dumps(export.request)


def test_what_is_not_known_is_marked_and_not_made_up(recorded: Store) -> None:
    transcript = last(recorded)
    marked = export_transcript(transcript, "openai", ExportPolicy(unanswered="unknown"))
    assert "[unknown: what the model was shown" in json.dumps(marked.request)
    assert "[no result recorded" not in json.dumps(marked.request)
    dropped = export_transcript(transcript, "openai", ExportPolicy(unanswered="drop"))
    assert "call_3" not in json.dumps(dropped.request)


def test_a_session_ends_where_it_is_told_to(recorded: Store) -> None:
    transcript = last(recorded)
    for name in ("#4", str(recorded.reader.invocation(f"{transcript.session.id}#4").summary.id)):
        assert len(until(transcript, name).entries) == 4
    first = transcript.entries[0]
    assert until(transcript, str(getattr(first, "id"))[-12:]).entries == (first,)  # noqa: B009  of a message
    for name in ("#99", "zz", "abc", "ffffffff-"):
        with pytest.raises(NotFoundError):
            until(transcript, name)
    with pytest.raises(AmbiguousNameError):
        until(transcript, str(transcript.session.id)[:4])


def test_payloads_are_printed_byte_for_byte(store: Store) -> None:
    with store.open_session() as session:
        say(session, "user", "no payload")
        session.message(Message.of("assistant", "a"), payload=b'{"a" : 1}\n')
        session.message(Message.of("assistant", "b"), payload=b"\xff\0")
    transcript = load_transcript(store.reader, "@last", payloads=True)
    first, second = [json.loads(line) for line in write_payloads(transcript)]
    assert (first["seq"], first["payload"]) == (2, '{"a" : 1}\n')
    assert (second["role"], second["payload_base64"]) == ("assistant", "/wA=")
    assert list(write_payloads(last(store))) == []


def test_a_compacted_result_is_in_the_report_and_refused_by_a_strict_export(store: Store) -> None:
    with store.open_session() as session:
        for number in range(3):
            call = ToolCall.of("Bash", {}, call_id=f"call_{number}")
            run_command(session, b"line\n" * 3_000, call=call)
    transcript = last(store)
    strict = ExportPolicy(strict=True)
    whole = export_transcript(transcript, "openai", strict)
    writer = provider_writer("openai")
    fitted = fit(transcript, len("".join(writer(transcript))) // 10, writer).transcript
    assert len(fitted.compacted) == 2
    export = export_transcript(fitted, "openai")
    assert list(export.report) == [
        Change("result_compacted", f"messages[{place}].results[0]", COMPACTED) for place in (1, 3)
    ]
    assert export.request["messages"] != whole.request["messages"]
    with pytest.raises(ExportRefusedError, match="and 1 more") as refused:
        export_transcript(fitted, "openai", strict)
    assert list(refused.value.report) == list(export.report)


COMPACTED = "replaced by the receipt of the compacted result"


def test_changes_of_the_transcript_come_before_those_of_the_format(store: Store) -> None:
    with store.open_session() as session:
        run_command(session, b"line\n" * 3_000)
    transcript = last(store)
    fitted = fit(transcript, 1, provider_writer("openai")).transcript
    kinds = [change.kind for change in export_transcript(fitted, "openai").report]
    assert kinds[0] == "result_compacted"
    assert "batch_as_text" in kinds


def asking(
    call_id: str, name: str = "f", arguments: str = "{}", index: int = 0, text: str | None = None
) -> dict[str, Any]:
    """A choice of an answer, with a call."""
    call = {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}
    message = {"role": "assistant", "content": text, "tool_calls": [call]}
    return {"index": index, "finish_reason": "tool_calls", "message": message}


def choices(*texts: str, response_id: str = "r1") -> dict[str, Any]:
    """An answer with so many choices, each with a call."""
    asked = [asking(f"call_{text}", index=index, text=text) for index, text in enumerate(texts)]
    return {"id": response_id, "model": "m", "choices": asked}


def texts_of(transcript: Transcript) -> list[str]:
    return [message.text for message in conversation_of(transcript).messages if message.text]


def test_of_several_choices_the_one_that_was_continued_is_told(store: Store) -> None:
    with store.open_session() as session:
        say(session, "user", "go")
        answer = record_response(session, "openai", choices("a", "b", "c"))
        second = answer.response.messages[1].calls[0]
        call = second.model_copy(update={"message_id": answer.message_ids[1]})
        called(session, call, "done")
        say(session, "user", "again")
        # No id of the answer, and nothing was run: the first one.
        record_response(session, "openai", choices("d", "e", response_id=""))
    transcript = last(store)
    assert texts_of(transcript) == ["go", "b", "again", "d"]
    export = export_transcript(transcript, "openai")
    assert export.report.of_kind("alternative_dropped") == [
        Change("alternative_dropped", "#2", "choice 0 was not continued"),
        Change("alternative_dropped", "#4", "choice 2 was not continued"),
        Change("alternative_dropped", "#8", "choice 1 was not continued"),
    ]
    assert [one.get("tool_call_id") for one in tool_messages(export.request)] == [
        "call_b",
        "call_d",
    ]
    with pytest.raises(ExportRefusedError):
        export_transcript(transcript, "openai", ExportPolicy(strict=True))
    # Before anything was run, the one up to which it is told is as good as any.
    assert texts_of(until(transcript, "#4")) == ["go", "c"]
    assert texts_of(until(transcript, "#3")) == ["go", "b"]
    assert texts_of(until(transcript, "#2")) == ["go", "a"]


def tool_messages(request: dict[str, Any]) -> list[dict[str, Any]]:
    return [one for one in request["messages"] if one["role"] == "tool"]


def answer_of(text: str, choice: int, response_id: str | None = "r") -> Message:
    origin = Origin(wire_format="openai", response_id=response_id, choice=choice)
    call = CallBlock(call=ToolCall.of("f", {}, call_id=f"call_{text}"))
    return Message(role="assistant", blocks=(TextBlock(text=text), call), origin=origin)


def ran(transcript: Transcript) -> list[tuple[str, str]]:
    """The tool of each call, and what came of it, in order."""
    out: list[tuple[str, str]] = []
    for message in conversation_of(transcript).messages:
        out += [(call.tool_name, call.arguments_raw) for call in message.calls]
        out += [("result", text_of(result).strip()) for result in message.results]
    return out


def test_a_call_of_another_choice_is_not_taken_for_the_one_with_its_id(store: Store) -> None:
    both = [asking("call_0", "rm", '{"path":"/"}'), asking("call_0", "ls", '{"path":"/tmp"}', 1)]
    with store.open_session() as session:
        answer = record_response(session, "openai", {"id": "r", "choices": both})
        # As a runtime starts it that knows nothing of messages.
        call = answer.response.messages[1].calls[0].model_copy(update={"message_id": None})
        called(session, call, "listing")
    transcript = last(store)
    assert ran(transcript) == [("ls", '{"path":"/tmp"}'), ("result", "listing")]
    left = export_transcript(transcript, "openai").report.of_kind("alternative_dropped")
    assert [change.detail for change in left] == ["choice 0 was not continued"]


def test_a_call_that_was_run_twice_is_not_taken_for_an_earlier_one_with_its_id(
    store: Store,
) -> None:
    with store.open_session() as session:
        for number in range(2):
            payload = {"id": f"r{number}", "choices": [asking("call_0", "f", f'{{"k":{number}}}')]}
            record_response(session, "openai", payload)
        for text in ("first", "again"):
            called(session, ToolCall.of("f", {"k": 1}, call_id="call_0"), text)
    transcript = last(store)
    assert ran(transcript) == [
        ("f", '{"k":0}'),
        ("f", '{"k":1}'),
        ("result", "first"),
        ("f", '{"k":1}'),
        ("result", "again"),
    ]


def test_a_call_whose_arguments_were_spelled_anew_is_the_one_with_its_id(store: Store) -> None:
    with store.open_session() as session:
        payload = {"id": "r", "choices": [asking("a", "f", '{ "k" : 0 }')]}
        record_response(session, "openai", payload)
        called(session, ToolCall.of("f", {"k": 0}, call_id="a"), "done")
    assert ran(last(store)) == [("f", '{ "k" : 0 }'), ("result", "done")]


def test_calls_of_every_choice_have_ids_and_know_their_message(store: Store) -> None:
    parts = [{"functionCall": {"name": "get", "args": {"k": n}}} for n in range(2)]
    candidates = [
        {"index": n, "content": {"role": "model", "parts": [part]}, "finishReason": "STOP"}
        for n, part in enumerate(parts)
    ]
    with store.open_session() as session:
        answer = record_response(session, "gemini", {"candidates": candidates})
        (call,) = answer.response.messages[1].calls
        assert (call.message_id, bool(call.call_id)) == (answer.message_ids[1], True)
        called(session, call, "one")
    assert ran(last(store)) == [("get", '{"k":1}'), ("result", "one")]


def test_a_choice_whose_result_a_message_tells_was_continued(store: Store) -> None:
    with store.open_session() as session:
        for text, choice in (("a", 0), ("b", 1)):
            session.message(answer_of(text, choice))
        tell(session, told("done", call_id="call_b"))
    transcript = last(store)
    assert texts_of(transcript) == ["b"]
    export = export_transcript(transcript, "openai")
    assert [change.kind for change in export.report] == ["alternative_dropped"]


def test_every_choice_that_was_run_is_told(store: Store) -> None:
    with store.open_session() as session:
        answer = record_response(session, "openai", choices("a", "b", "c"))
        pairs = zip(answer.response.messages, answer.message_ids, strict=True)
        for message, message_id in list(pairs)[:2]:
            called(session, message.calls[0].model_copy(update={"message_id": message_id}), "x")
    assert texts_of(last(store)) == ["a", "b"]


def test_answers_to_several_requests_are_no_alternatives(store: Store) -> None:
    with store.open_session() as session:
        session.message(answer_of("a", 0))
        session.message(answer_of("b", 0))  # parts of one answer, as logs have them
        session.message(answer_of("c", 1, "other"))
        session.message(answer_of("d", 2, None))
        session.message(answer_of("e", 3, None))
        say(session, "user", "f")
        session.message(answer_of("g", 4, None))
    transcript = last(store)
    assert texts_of(transcript) == list("abcdefg")


@pytest.mark.parametrize("name", [None, "f"])
def test_a_recorded_result_without_an_id_is_told_once(store: Store, name: str | None) -> None:
    parts = [{"functionCall": {"name": "f", "args": {"n": n}}} for n in range(2)]
    generated = {"candidates": [{"content": {"role": "model", "parts": parts}}]}
    with store.open_session() as session:
        for call in record_response(session, "gemini", generated).calls:
            called(session, call, f"result {call.position}")
        tell(session, *(told(f"result {n}", tool_name=name) for n in range(2)))
    assert results_of(last(store)) == ["result 0\n", "result 1\n"]
    for style in ("gemini", "ollama"):
        export = export_transcript(last(store), style)
        assert json.dumps(export.request).count("result 1") == 1
        assert not export.report.of_kind("result_orphaned")
        assert not export.report.of_kind("result_repeated")


def test_a_recorded_result_without_an_id_is_of_a_call_with_one_if_all_have_ids(
    store: Store,
) -> None:
    asked = [ToolCall.of("f", {"n": n}, call_id=f"x{n}") for n in range(2)]
    with store.open_session() as session:
        ask(session, *asked)
        for number, call in enumerate(asked):
            called(session, call, f"result {number}")
        tell(session, told("result 0"), told("result 1"))
    export = export_transcript(last(store), "ollama")
    assert json.dumps(export.request).count("result 1") == 1
    assert not export.report.of_kind("result_repeated")


@pytest.mark.parametrize("is_asked", [True, False])
def test_a_result_that_was_written_down_before_its_call_was_run_is_told_once(
    store: Store, is_asked: bool
) -> None:
    call = ToolCall.of("f", {}, call_id="x")
    with store.open_session() as session:
        if is_asked:
            ask(session, call)
        tell(session, told("done", call_id="x"))
        called(session, call, "done")
    transcript = last(store)
    assert [one.role for one in conversation_of(transcript).messages] == ["assistant", "tool"]
    export = export_transcript(transcript, "openai", ExportPolicy(strict=True))
    assert json.dumps(export.request).count("done") == 1


@pytest.mark.parametrize("is_asked", [True, False])
@pytest.mark.parametrize("style", FORMAT_NAMES)
def test_calls_of_two_servers_with_one_id_keep_their_own_results(
    store: Store, style: str, *, is_asked: bool
) -> None:
    servers = ("disk", "net")
    calls = [ToolCall(tool_name="read", namespace=one, call_id="x") for one in servers]
    with store.open_session() as session:
        session.offer_tools([ToolDefinition(name="read", namespace=one) for one in servers])
        if is_asked:
            ask(session, *calls)
        for call in reversed(calls):
            called(session, call, f"of the {call.namespace}")
    transcript = last(store)
    messages = conversation_of(transcript).messages
    asked = {
        block.key: block.call
        for message in messages
        for block in message.blocks
        if isinstance(block, CallBlock)
    }
    assert sorted(call.namespace or "" for call in asked.values()) == ["disk", "net"]
    for result in [one for message in messages for one in message.results]:
        call = asked[result.key]
        assert (result.namespace, result.tool_name) == (call.namespace, "read")
        assert text_of(result) == f"of the {call.namespace}\n"
    export = export_transcript(transcript, style)
    assert "___disk" not in json.dumps(export.request)
    assert not export.report.of_kind("result_orphaned")


def test_the_result_of_a_server_goes_to_the_call_of_that_server(store: Store) -> None:
    servers = ("disk", "net")
    with store.open_session() as session:
        for server in servers:
            called(session, ToolCall(tool_name="read", namespace=server), f"of the {server}")
        tell(session, *(told(f"of the {n}\n", tool_name="read", namespace=n) for n in servers))
    assert results_of(last(store)) == ["of the disk\n", "of the net\n"]
    export = export_transcript(last(store), "ollama")
    assert not export.report.of_kind("result_repeated")


@pytest.mark.parametrize(
    "other",
    [
        told("other words", call_id="x"),
        told("done\n", call_id="x", structured={"n": 42}, has_structured=True),
    ],
)
def test_a_recorded_result_that_is_not_the_receipt_is_in_the_report(
    store: Store, other: ResultBlock
) -> None:
    call = ToolCall.of("f", {}, call_id="x")
    with store.open_session() as session:
        ask(session, call)
        called(session, call, "done")
        tell(session, other)
    export = export_transcript(last(store), "openai")
    assert list(export.report) == [Change("result_repeated", "#3", "replaced by the receipt of #2")]
