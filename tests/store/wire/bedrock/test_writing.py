"""Requests to Converse: what its server would refuse is changed, and the report says how."""

from typing import Any

import pytest
from tests.support.cases import each_case
from tests.support.wire import recorded
from tests.support.wire.fake_provider import request_problems
from tests.support.wire.schemas import problems

from tooltrail.records import (
    CallBlock,
    Conversation,
    MediaBlock,
    Message,
    ReasoningBlock,
    ResultBlock,
    TextBlock,
    ToolCall,
    ToolDefinition,
)
from tooltrail.wire import Export, wire_format

KNOWN = wire_format("bedrock")
PDF = MediaBlock(kind="document", media_type="application/pdf", data="aGVsbG8=", name="a b")
PNG = MediaBlock(kind="image", media_type="image/png", data="aGVsbG8=")
SOUND = MediaBlock(kind="audio", media_type="audio/wav", data="aGVsbG8=")


def exported(*messages: Message) -> Export:
    export = KNOWN.write_history(Conversation.of(messages))
    assert request_problems("bedrock", export.request) == []
    return export


def answered(**members: Any) -> Export:
    call = CallBlock(call=ToolCall.of("x", {}, call_id="c1"))
    result = ResultBlock(call_id="c1", tool_name="x", **members)
    said = Message(role="assistant", blocks=(call,))
    return exported(Message.of("user", "go"), said, Message(role="tool", blocks=(result,)))


def result_in(export: Export) -> Any:
    messages: Any = export.request["messages"]
    return messages[2]["content"][0]["toolResult"]


@pytest.mark.skipif(not recorded.exchanges(), reason="the corpus is not there")
def test_recorded_requests_come_back_to_the_letter() -> None:
    requests = [one.request for one in recorded.of_format("bedrock") if one.request]
    assert len(requests) == 17
    for request in requests:
        conversation = KNOWN.read_history(request)
        export = KNOWN.write_history(conversation)
        said = {name: request[name] for name in ("system", "messages") if request[name]}
        assert (export.request, export.report.changes) == (said, ())
        offered: Any = KNOWN.write_tools(conversation.tools).request["toolConfig"]
        tools = request["toolConfig"]["tools"]
        assert offered["tools"] == [tool for tool in tools if "cachePoint" not in tool]


def test_documents_have_legal_names_that_differ_and_a_text_beside_them() -> None:
    unnamed = PDF.model_copy(update={"name": None})
    odd = PDF.model_copy(update={"name": "ü/a..b"})
    asked = Message(role="user", blocks=(unnamed, odd, PDF, unnamed, PNG))
    export = exported(asked)
    request: Any = export.request
    parts: list[dict[str, Any]] = request["messages"][0]["content"]
    names = [part["document"]["name"] for part in parts if "document" in part]
    assert names == ["document", "-a-b", "a b", "document 4"]
    assert [list(part) for part in parts[-2:]] == [["image"], ["text"]]
    assert {change.kind for change in export.report} == {"block_described", "message_added"}
    assert exported(Message(role="user", blocks=(PDF, TextBlock(text="a")))).report.changes == ()


def test_a_document_that_gets_another_name_keeps_its_own_in_the_record() -> None:
    source = {"s3Location": {"uri": "s3://bucket/a.pdf"}}
    block = {"document": {"name": "a", "format": "pdf", "source": source}}
    request: Any = {"messages": [{"role": "user", "content": [block, block, {"text": "x"}]}]}
    conversation = KNOWN.read_history(request)
    before = conversation.model_dump_json()
    messages: Any = KNOWN.write_history(conversation).request["messages"]
    names = [part["document"]["name"] for part in messages[0]["content"][:2]]
    assert names == ["a", "a 2"]
    assert conversation.model_dump_json() == before


@each_case(
    ("members", "content", "kinds"),
    [
        ({"content": (TextBlock(text="a"), PNG)}, ["text", "image"], []),
        ({"content": (PDF,)}, ["document"], []),
        ({"content": (SOUND,)}, ["text"], ["block_described"]),
        ({"content": (PNG,), "status": "error"}, ["text"], ["block_described"]),
        ({"content": ()}, ["text"], ["output_empty"]),
        ({"content": (TextBlock(text=" "),)}, ["text"], ["block_dropped", "output_empty"]),
        ({"structured": {"a": [1]}, "has_structured": True}, ["json"], []),
        ({"structured": [1], "has_structured": True}, ["text"], ["structured_as_text"]),
        (
            {"structured": {}, "has_structured": True, "content": (TextBlock(text="a"),)},
            ["text"],
            ["structured_dropped"],
        ),
    ],
)
def test_a_result_has_what_the_server_takes(
    members: dict[str, Any], content: list[str], kinds: list[str]
) -> None:
    export = answered(**members)
    assert [name for part in result_in(export)["content"] for name in part] == content
    assert [change.kind for change in export.report] == kinds


def test_how_a_call_came_out_is_said_only_where_it_is_known() -> None:
    content = (TextBlock(text="a"),)
    assert result_in(answered(content=content, status="ok"))["status"] == "success"
    assert result_in(answered(content=content, status="denied"))["status"] == "error"
    assert "status" not in result_in(answered(content=content, status="unknown"))


def test_ids_of_other_providers_are_as_the_server_takes_them() -> None:
    for call_id, is_kept in (("functions.Bash:0", True), ("a/b", False), ("x" * 65, False)):
        call = CallBlock(call=ToolCall.of("x", {}, call_id=call_id))
        said = Message(role="assistant", blocks=(call,))
        result = ResultBlock(call_id=call_id, content=(TextBlock(text="1"),))
        export = exported(said, Message(role="tool", blocks=(result,)))
        assert bool(export.report.of_kind("id_renamed")) != is_kept


def test_thoughts_go_back_to_bedrock_alone() -> None:
    thought: dict[str, Any] = {"reasoningText": {"text": "hm", "signature": "x"}}
    content = [{"reasoningContent": thought}, {"text": "a"}]
    answer: Any = {"output": {"message": {"role": "assistant", "content": content}}}
    message = KNOWN.read_response({**answer, "stopReason": "end_turn"}).message
    assert isinstance(message.blocks[0], ReasoningBlock)
    asked = Conversation.of([Message.of("user", "go"), message])
    messages: Any = KNOWN.write_history(asked).request["messages"]
    assert messages[1]["content"] == content
    other = wire_format("anthropic").write_history(asked)
    assert [change.kind for change in other.report] == ["block_dropped"]


def test_a_text_with_citations_is_a_text_to_all() -> None:
    cited = {"content": [{"text": "Green."}, {"text": " Blue."}], "citations": [{"title": "a"}]}
    answer: Any = {"output": {"message": {"content": [{"citationsContent": cited}]}}}
    message = KNOWN.read_response(answer).message
    assert message.text == "Green. Blue."
    export = KNOWN.write_history(Conversation.of([Message.of("user", "go"), message]))
    assert [change.detail for change in export.report] == ["citationsContent"]


def test_objects_beside_a_text_of_a_result_are_read_as_json_and_reported_as_text() -> None:
    content = [{"text": "a"}, {"json": {"b": [1]}}]
    block = {"toolResult": {"toolUseId": "c", "content": content, "status": "success"}}
    request: Any = {"messages": [{"role": "user", "content": [block]}]}
    conversation = KNOWN.read_history(request)
    (message,) = conversation.messages
    json = TextBlock(text='{"b":[1]}', extras={"json": {"b": [1]}})
    assert message.results[0].content == (TextBlock(text="a"), json)
    assert KNOWN.write_history(conversation).report


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        ({"message": "no", "__type": "ThrottlingException"}, "ThrottlingException"),
        ({"message": "no"}, None),
        ({"error": {"message": "no", "code": 500}}, "500"),
    ],
)
def test_an_error_in_the_place_of_an_answer_is_a_failure(
    error: dict[str, Any], kind: str | None
) -> None:
    response = KNOWN.read_response(error)
    assert response.failure is not None
    assert (response.failure.message, response.failure.kind) == ("no", kind)
    assert response.messages == ()


SCHEMA: Any = {"type": "object", "properties": {"city": {"type": "string"}}}


def test_tools_stand_beside_the_choice_among_them() -> None:
    tool = ToolDefinition(name="f", description="F", parameters=SCHEMA, strict=True)
    spec = {"name": "f", "description": "F", "inputSchema": {"json": SCHEMA}, "strict": True}
    request: Any = KNOWN.write_tools([tool, ToolDefinition(name="g", description="")]).request
    bare = {"name": "g", "inputSchema": {"json": {"type": "object"}}}
    assert request == {"toolConfig": {"tools": [{"toolSpec": spec}, {"toolSpec": bare}]}}
    assert problems("bedrock.ToolConfiguration", request["toolConfig"]) == []
    assert KNOWN.read_tools(request) == (tool, ToolDefinition(name="g"))
