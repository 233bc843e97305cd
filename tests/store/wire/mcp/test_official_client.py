"""The official client, over HTTP on loopback, takes what is written and sends what is read."""

import asyncio
from typing import Any

import pytest
from tests.support.wire.fake_mcp_server import FakeMcpServer, fake_mcp_server

from tooltrail.records import ResultBlock, TextBlock, ToolCall, ToolDefinition
from tooltrail.wire.mcp import FORMAT, read_call, read_result, write_call, write_result
from tooltrail.wire.members import object_in

ADD = ToolDefinition(
    name="add",
    description="Adds.",
    parameters={"type": "object", "properties": {"a": {"type": "integer"}}},
)
CALLS = [
    ToolCall(tool_name="add", arguments_raw='{"a":1}'),
    ToolCall(tool_name="add", arguments_raw='{"a":"\\u00e4\\n","b":[null,1.5]}'),
    ToolCall(tool_name="add", arguments_raw="{}"),
    ToolCall(tool_name="add", arguments_raw='{"a":2}'),
]
RESULTS = [
    ResultBlock(tool_name="add", content=(TextBlock(text="1"), TextBlock(text="and\nmore é"))),
    ResultBlock(tool_name="add", status="error", content=(TextBlock(text="boom"),)),
    ResultBlock(tool_name="add"),
    ResultBlock(
        tool_name="add",
        content=(TextBlock(text='{"sum":3}'),),
        structured={"sum": 3},
        has_structured=True,
    ),
]


def as_json(value: Any) -> Any:
    return value.model_dump(mode="json", by_alias=True, exclude_unset=True)


async def talk(server: FakeMcpServer) -> tuple[Any, list[Any]]:
    """What the client was told of the tools, and of each call."""
    client = pytest.importorskip("mcp.client")
    async with client.Client(server.url) as connected:
        listed = as_json(await connected.list_tools())
        results: list[Any] = []
        for number, call in enumerate(CALLS):
            params: Any = object_in(write_call(call, number).request["params"])
            results.append(as_json(await connected.call_tool(params["name"], params["arguments"])))
        return listed, results


def test_what_is_written_is_taken_and_what_is_sent_is_read() -> None:
    pytest.importorskip("mcp.client")
    tools: Any = FORMAT.write_tools([ADD]).request["tools"]
    written = [write_result(result) for result in RESULTS]
    assert not any(export.report for export in written)
    with fake_mcp_server(tools, [export.request for export in written]) as server:
        listed, results = asyncio.run(talk(server))
    assert server.refused == []
    assert FORMAT.read_tools(listed) == (ADD,)
    for call, request in zip(CALLS, server.calls, strict=True):
        sent = read_call(request)
        assert (sent.tool_name, sent.arguments) == (call.tool_name, call.arguments)
    for result, native in zip(RESULTS, results, strict=True):
        told = read_result(native)
        assert (told.status, told.content) == (result.status, result.content)
        assert (told.has_structured, told.structured) == (result.has_structured, result.structured)
