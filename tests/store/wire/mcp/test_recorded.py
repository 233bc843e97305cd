"""Recorded sessions of MCP, and the official client and server."""

import asyncio
import json
from collections import defaultdict
from typing import Any

import pytest
from tests.store.wire.mcp.test_history import META
from tests.support.wire.recorded import Exchange, of_format
from tests.support.wire.schemas import problems

from tooltrail.records import Conversation, ResultBlock, TextBlock, ToolCall
from tooltrail.wire import DEFAULT_EXPORT_POLICY, Response, read_stream
from tooltrail.wire.mcp import FORMAT, read_call, read_result, write_call, write_result
from tooltrail.wire.members import object_in, objects_in


def recorded() -> list[Exchange]:
    return of_format("mcp")


needs_corpus = pytest.mark.skipif(not recorded(), reason="the corpus is not there")


def read(exchange: Exchange) -> Response:
    return read_stream(FORMAT, [exchange.response])


def is_call(exchange: Exchange) -> bool:
    return bool(exchange.request["method"] == "tools/call")


@needs_corpus
def test_every_recorded_call_has_its_result() -> None:
    calls = [exchange for exchange in recorded() if is_call(exchange)]
    assert len(calls) == 6
    for exchange in calls:
        call = read_call(exchange.request)
        assert call.tool_name == exchange.request["params"]["name"]
        assert call.arguments == exchange.request["params"]["arguments"]
        response = read(exchange)
        assert response.unread == ()
        (result,) = response.message.results
        (native,) = [one["result"] for one in exchange.events() if "result" in one]
        assert result.status == ("error" if native["isError"] else "ok")
        texts = [block.text for block in result.content if isinstance(block, TextBlock)]
        assert texts == [one["text"] for one in native["content"]]
        assert result.has_structured == ("structuredContent" in native)
        assert result.structured == native.get("structuredContent")


def in_the_newer_revision(request: Any) -> Any:
    params = request["params"]
    return {**request, "params": {**params, "_meta": {**META, **params.get("_meta", {})}}}


@needs_corpus
def test_every_recorded_call_and_result_is_written_as_it_was_in_the_newer_revision() -> None:
    for exchange in filter(is_call, recorded()):
        export = write_call(read_call(exchange.request), exchange.request["id"], is_own=True)
        assert in_the_newer_revision(exchange.request) == export.request
        assert problems("mcp-2025.request", export.request) == []
        (native,) = [one["result"] for one in exchange.events() if "result" in one]
        written = write_result(read_result(native), is_own=True)
        assert written.request == {**native, "resultType": "complete"}
        assert problems("mcp-2026.result", written.request) == []
        assert not export.report
        assert not written.report


@needs_corpus
def test_what_is_no_call_has_no_result_and_says_so() -> None:
    others = [exchange for exchange in recorded() if not is_call(exchange)]
    assert others
    for exchange in others:
        response = read(exchange)
        assert response.message.results == ()
        assert response.unread == ("the response is no answer to a call of a tool",)


def results_of(conversation: Conversation) -> list[ResultBlock]:
    return [result for message in conversation.messages for result in message.results]


@needs_corpus
def test_every_recorded_session_is_read_and_written_again() -> None:
    sessions: defaultdict[str, list[Any]] = defaultdict(list)
    for exchange in recorded():
        answers = [one for one in exchange.events() if "method" not in one]
        sessions[exchange.path] += [exchange.request, *answers]
    calls = 0
    for messages in sessions.values():
        conversation = FORMAT.read_history({"messages": messages})
        assert conversation.tools
        assert conversation.tools == FORMAT.read_tools({"messages": messages})
        kept = [one for one in messages if one.get("method") == "tools/call"]
        export = FORMAT.write_history(conversation, DEFAULT_EXPORT_POLICY)
        written = objects_in(export.request["messages"])
        assert [one for one in written if "method" in one] == [
            {**in_the_newer_revision(one), "id": number} for number, one in enumerate(kept, start=1)
        ]
        again = FORMAT.read_history(export.request)
        assert FORMAT.write_history(again, DEFAULT_EXPORT_POLICY).request == export.request
        assert results_of(again) == results_of(conversation)
        calls += len(kept)
        tools = FORMAT.write_tools(conversation.tools)
        assert not tools.report
        for tool in objects_in(tools.request["tools"]):
            assert problems("mcp-2025.tool", tool) == []
    assert calls == 6


def test_the_official_server_takes_a_call_and_its_result_is_read_and_written() -> None:
    client = pytest.importorskip("mcp.client")
    server = pytest.importorskip("mcp.server.mcpserver")

    def add(a: int, b: int) -> int:
        return a + b

    def fail() -> str:
        raise ValueError("boom")

    async def talk(calls: list[ToolCall]) -> tuple[Any, list[Any]]:
        own = server.MCPServer("t")
        own.tool()(add)
        own.tool()(fail)
        async with client.Client(own) as connected:
            listed = (await connected.list_tools()).model_dump(
                mode="json", by_alias=True, exclude_unset=True
            )
            results: list[Any] = []
            for number, call in enumerate(calls):
                params = object_in(write_call(call, number).request["params"])
                result = await connected.call_tool(params["name"], params["arguments"])
                results.append(result.model_dump(mode="json", by_alias=True, exclude_unset=True))
            return listed, results

    calls = [
        ToolCall(tool_name="add", arguments_raw='{"a":2,"b":3}'),
        ToolCall(tool_name="fail", arguments_raw="{}"),
    ]
    listed, natives = asyncio.run(talk(calls))
    tools = FORMAT.read_tools(listed)
    assert [tool.name for tool in tools] == ["add", "fail"]
    assert FORMAT.write_tools(tools).request["tools"] == listed["tools"]
    added, failed = (read_result(json.loads(json.dumps(native))) for native in natives)
    assert (added.status, added.structured) == ("ok", {"result": 5})
    assert added.content == (TextBlock(text="5"),)
    assert failed.status == "error"
    types = pytest.importorskip("mcp_types")
    for result in (added, failed, ResultBlock(structured=[1], has_structured=True)):
        told = types.CallToolResult.model_validate(write_result(result).request)
        assert told.is_error is result.is_error
        assert told.structured_content == result.structured
