"""MCP's `tools/call`: read in the revisions 2025-11-25 and 2026-07-28, written in the latter.

A `tools/call` is one request and one result, not a conversation. Clients, servers and proxies need
`read_call`, `read_result`, `write_call` and `write_result`. `FORMAT` represents complete sessions
as `{"messages": […]}`, the requests and responses of JSON-RPC in their order.
"""

from tooltrail.wire.formats import WireFormat
from tooltrail.wire.mcp import asking
from tooltrail.wire.mcp.calls import RequestId, read_call, write_call
from tooltrail.wire.mcp.history import read_history, write_history
from tooltrail.wire.mcp.results import read_result, write_result
from tooltrail.wire.mcp.streaming import McpAssembler, read_response

FORMAT = WireFormat(
    name=asking.NAME,
    capabilities=asking.CAPABILITIES,
    response_reader=read_response,
    new_assembler=McpAssembler,
    history_reader=read_history,
    history_writer=write_history,
    is_result=lambda message: "result" in message or "error" in message,
    tools_writer=asking.write_tools,
    tools_reader=asking.read_tools,
    choice_writer=None,
)

__all__ = [
    "FORMAT",
    "RequestId",
    "read_call",
    "read_result",
    "write_call",
    "write_result",
]
