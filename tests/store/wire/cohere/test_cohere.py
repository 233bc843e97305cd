"""What is peculiar to Cohere's chat: plans, documents, citations, and the events of its streams."""

import re
from typing import Any

import pytest
from tests.support.cases import each_case
from tests.support.wire import recorded
from tests.support.wire.fake_provider import request_problems
from tests.support.wire.streams import Event, read_events, told

from tooltrail.records import Conversation, Message, ReasoningBlock, TextBlock, ToolDefinition
from tooltrail.wire import FORMAT_MODULES, JsonObject, wire_format

FORMAT = wire_format("cohere")

CALLS: list[dict[str, Any]] = [
    {"id": "f_1", "type": "function", "function": {"name": "f", "arguments": '{"a": 1}'}},
    {"id": "g_2", "type": "function", "function": {"name": "g", "arguments": ""}},
]
CITED = {"start": 0, "end": 2, "text": "so", "sources": [{"type": "tool", "id": "f_1:0"}]}
SAID: dict[str, Any] = {
    "role": "assistant",
    "tool_plan": "I will ask.",
    "content": [{"type": "thinking", "thinking": "hm"}, {"type": "text", "text": "so it is"}],
    "tool_calls": CALLS,
    "citations": [CITED],
}
START: Event = {"type": "message-start", "id": "c", "delta": {"message": {"role": "assistant"}}}
END: Event = {"type": "message-end", "delta": {"finish_reason": "TOOL_CALL"}}


def event(kind: str, index: int | None = None, **message: Any) -> Event:
    place = {} if index is None else {"index": index}
    return {"type": kind, **place, "delta": {"message": message}}


def began(call: dict[str, Any], index: int | None) -> Event:
    function = {"name": call["function"]["name"], "arguments": ""}
    return event("tool-call-start", index, tool_calls={**call, "function": function})


def more(arguments: str, index: int | None) -> Event:
    return event("tool-call-delta", index, tool_calls={"function": {"arguments": arguments}})


def test_a_stream_is_the_answer_that_comes_in_one_piece() -> None:
    streamed = read_events(
        "cohere",
        {**START, "delta": {"message": {"role": "assistant", "content": [], "tool_calls": []}}},
        *(event("tool-plan-delta", tool_plan=piece) for piece in ("I will", " ask.")),
        event("content-start", 0, content={"type": "thinking", "thinking": ""}),
        event("content-delta", 0, content={"thinking": "hm"}),
        {"type": "content-end", "index": 0},
        event("content-start", 1, content={"type": "text", "text": "so"}),
        event("content-delta", 1, content={"text": " it is"}),
        event("citation-start", 0, citations=CITED),
        {"type": "citation-end", "index": 0},
        {"type": "debug", "prompt": "…"},
        began(CALLS[0], 0),
        more('{"a"', 0),
        began(CALLS[1], 1),
        more(": 1}", 0),
        {"type": "tool-call-end", "index": 0},
        {"type": "tool-call-end", "index": 1},
        END,
    )
    whole = FORMAT.read_response({"id": "c", "finish_reason": "TOOL_CALL", "message": SAID})
    assert streamed == whole
    assert (whole.unread, whole.message.text) == ((), "so it is")
    assert [told(call) for call in whole.calls] == [("f", "f_1", '{"a": 1}'), ("g", "g_2", "")]
    assert [one.text for one in whole.message.blocks if isinstance(one, ReasoningBlock)] == [
        "I will ask.",
        "hm",
    ]


def test_other_calls_at_one_index_are_other_calls() -> None:
    for place in (0, None):
        events = [began(CALLS[0], place), more("{}", place), began(CALLS[1], place)]
        calls = read_events("cohere", START, *events, END).calls
        assert [told(call) for call in calls] == [("f", "f_1", "{}"), ("g", "g_2", "")]


@pytest.mark.parametrize("native", [None, [], "x", {"function": {"arguments": 1}}])
def test_no_call_runs_where_a_piece_of_one_cannot_be_read(native: Any) -> None:
    odd = event("tool-call-delta", 0, tool_calls=native)
    response = read_events("cohere", START, began(CALLS[0], 0), odd, more("{}", 0), END)
    assert response.unread or response.calls[0].parse_error
    assert not response.calls[0].is_executable


def ended(**delta: Any) -> Event:
    return {"type": "message-end", "delta": delta}


@each_case(
    ("ends", "runs", "failure"),
    [
        ([END], [True, True], None),
        ([ended(finish_reason="MAX_TOKENS")], [True, False], None),
        ([ended(finish_reason="TIMEOUT")], [False, False], ""),
        ([ended(finish_reason="ERROR", error="it broke")], [False, False], "it broke"),
        ([END, {"message": "too many requests", "id": "e"}], [False, False], "too many requests"),
        ([], [False, False], None),
    ],
)
def test_calls_run_as_far_as_the_answer_came(
    ends: list[Event], runs: list[bool], failure: str | None
) -> None:
    begun = [began(CALLS[0], 0), more("{}", 0), began(CALLS[1], 1), more("{}", 1)]
    response = read_events("cohere", START, *begun, *ends)
    assert [call.is_executable for call in response.calls] == runs
    assert (response.failure and response.failure.message) == failure


def test_the_body_of_an_error_is_told_as_the_server_words_it() -> None:
    refused = FORMAT.read_response({"message": "invalid api token", "id": "e"})
    assert (refused.messages, refused.failure and refused.failure.message) == (
        (),
        "invalid api token",
    )


IMAGE = {"type": "image_url", "image_url": {"url": "https://example.org/a.png", "detail": "low"}}
DOCUMENTS: list[Any] = [
    {"type": "document", "document": {"data": '{"a": 1}', "id": "0"}},
    {"type": "document", "document": {"data": {"b": [1.50]}}},
    {"type": "text", "text": "and more"},
]
REQUEST: dict[str, Any] = {
    "messages": [
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": [{"type": "text", "text": "what is this?"}, IMAGE]},
        SAID,
        {"role": "tool", "tool_call_id": "f_1", "content": DOCUMENTS},
        {"role": "tool", "tool_call_id": "g_2", "content": "ERROR: no"},
        {"role": "assistant", "content": "so it is", "citations": [CITED]},
    ]
}


def test_a_request_comes_back_as_it_was() -> None:
    export = FORMAT.write_history(FORMAT.read_history(REQUEST))
    # No arguments are an empty object for every server.
    called = {**CALLS[1], "function": {"name": "g", "arguments": "{}"}}
    sent = [*REQUEST["messages"]]
    sent[2] = {**SAID, "tool_calls": [CALLS[0], called]}
    assert (export.request["messages"], export.report.changes) == (sent, ())
    assert request_problems("cohere", export.request) == []
    for exchange in recorded.of_format("cohere"):
        if exchange.request:
            again = FORMAT.write_history(FORMAT.read_history(exchange.request)).request
            assert again["messages"] == exchange.request["messages"]


def come_back(*messages: JsonObject) -> None:
    request: JsonObject = {"messages": [*messages]}
    export = FORMAT.write_history(FORMAT.read_history(request))
    assert (export.request, export.report.changes) == (request, ())


@pytest.mark.parametrize("said", [{"content": ""}, {"content": []}, {"tool_plan": ""}])
def test_an_empty_content_or_plan_beside_calls_comes_back(said: dict[str, Any]) -> None:
    come_back(
        {"role": "user", "content": "go"},
        {"role": "assistant", **said, "tool_calls": [CALLS[0]]},
        {"role": "tool", "tool_call_id": "f_1", "content": "so"},
    )


@each_case("asked", ["go", [{"type": "text", "text": "go"}]])
@each_case("said", ["ok", [{"type": "text", "text": "ok"}]])
@each_case("found", ["so", [{"type": "text", "text": "so"}], DOCUMENTS])
def test_a_text_and_a_list_with_one_text_come_back_as_what_they_were(
    asked: Any, said: Any, found: Any
) -> None:
    come_back(
        {"role": "user", "content": asked},
        {"role": "assistant", "tool_plan": "hm", "content": said, "tool_calls": [CALLS[0]]},
        {"role": "tool", "tool_call_id": "f_1", "content": found},
        {"role": "assistant", "content": said},
    )


def test_the_content_of_an_answer_goes_back_as_the_list_that_it_was() -> None:
    said: JsonObject = {"role": "assistant", "content": [{"type": "text", "text": "ok"}]}
    answer = FORMAT.read_response({"message": said, "finish_reason": "COMPLETE"}).message
    export = FORMAT.write_history(Conversation.of([answer]))
    assert (export.request["messages"], export.report.changes) == ([said], ())


def test_others_are_shown_the_data_of_documents() -> None:
    export = wire_format("openai").write_history(FORMAT.read_history(REQUEST))
    messages: Any = export.request["messages"]
    assert messages[3]["content"] == '{"a": 1}\n{"b":[1.5]}\nand more'
    dropped = {one.detail for one in export.report.of_kind("provider_data_dropped")}
    assert {"document", "citations"} <= dropped


@each_case("name", sorted({*FORMAT_MODULES} - {"cohere"}))
def test_the_form_of_a_content_is_no_loss_for_others(name: str) -> None:
    messages: list[Any] = [
        {"role": "assistant", "content": "", "tool_calls": [CALLS[0]]},
        {"role": "tool", "tool_call_id": "f_1", "content": [{"type": "text", "text": "so"}]},
    ]
    export = wire_format(name).write_history(FORMAT.read_history({"messages": messages}))
    assert export.report.of_kind("provider_data_dropped") == []


def test_a_document_that_says_something_else_by_now_is_a_text() -> None:
    read = FORMAT.read_history(REQUEST).messages
    (result, *rest) = read[3].results
    cut = TextBlock(text="cut", extras=result.content[1].extras)
    shorter = result.model_copy(update={"content": (cut, result.content[2])})
    failed = result.model_copy(update={"status": "timeout"})
    contents: list[Any] = []
    for other in (shorter, failed):
        message = read[3].model_copy(update={"blocks": (other, *rest)})
        export = FORMAT.write_history(Conversation.of([*read[:3], message]))
        assert "document" in [one.detail for one in export.report.of_kind("provider_data_dropped")]
        messages: Any = export.request["messages"]
        contents.append(messages[3]["content"])
    assert contents == [
        [{"type": "text", "text": "cut"}, {"type": "text", "text": "and more"}],
        'ERROR: {"a": 1}\n{"b":[1.5]}\nand more',
    ]


def test_names_have_neither_hyphens_nor_a_digit_in_front() -> None:
    names = ["read-file", "read--file", "read---file", "read_file", "1st", "x-" * 40]
    export = FORMAT.write_tools([ToolDefinition(name=name) for name in names])
    written = [tool.name for tool in FORMAT.read_tools(export.request)]
    assert len(set(written)) == len(names)
    assert all(re.fullmatch("[a-zA-Z_][a-zA-Z0-9_]{0,63}", name) for name in written)
    assert [name for name in written if "___" in name] == []
    assert set(export.names) == {*names} - {"read_file"}


@pytest.mark.parametrize(
    ("strict", "member"),
    [((True, True), True), ((False, False), False), ((None, None), None), ((True, None), None)],
)
def test_all_tools_are_strict_or_none(strict: tuple[Any, Any], member: bool | None) -> None:
    tools = [ToolDefinition(name=name, strict=one) for name, one in zip("fg", strict, strict=True)]
    export = FORMAT.write_tools(tools)
    assert export.request.get("strict_tools") == member
    read = [tool.strict for tool in FORMAT.read_tools(export.request)]
    assert (read == list(strict)) == (not export.report)


def test_a_message_in_which_nothing_is_said_is_left_out() -> None:
    thought = ReasoningBlock(text="hm")
    messages = [
        Message.of("developer", "be brief"),
        Message.of("user", ""),
        Message(role="assistant", blocks=(thought,)),
    ]
    export = FORMAT.write_history(Conversation.of(messages))
    assert export.request == {"messages": [{"role": "system", "content": "be brief"}]}
    empty = [change.where for change in export.report.of_kind("message_empty")]
    assert empty == ["messages[1]", "messages[2]"]
