"""The limits and the tools of an MCP server.

There is no tool choice, because MCP requests go to no model.
"""

import re
import sys
from collections.abc import Iterable

from tooltrail.records import ToolDefinition
from tooltrail.wire._tools import free_text_schema, read_function, write_head
from tooltrail.wire._writing import Writing
from tooltrail.wire.capabilities import Capabilities
from tooltrail.wire.members import JsonObject, list_in, object_in, objects_in, others

NAME = "mcp"

# All types of images and sound are allowed; each block names its type.
CAPABILITIES = Capabilities(
    needs_call_ids=False,
    call_id_length=sys.maxsize,
    call_id_scope="none",
    tool_name=re.compile(r"[A-Za-z0-9._-]{1,128}"),
    tool_name_length=128,
    arguments_are_text=False,
    takes_orphans=True,
    has_error_flag=True,
    result_media=frozenset({"image/*", "audio/*"}),
)
_TOOL = frozenset({"name", "description", "inputSchema"})


def write_tools(writing: Writing, tools: Iterable[ToolDefinition]) -> JsonObject:
    """Write `{"tools": […]}` in the form of a server's list."""
    return writing.tools(tools, _write_tool)


def _write_tool(writing: Writing, tool: ToolDefinition, where: str) -> JsonObject:
    native = {**writing.tool_extras(tool, where), **write_head(writing, tool, where)}
    native["inputSchema"] = _schema(writing, tool, where)
    if tool.strict:
        writing.note("schema_reduced", where, "strict: what is enforced is the server's affair")
    return native


def _schema(writing: Writing, tool: ToolDefinition, where: str) -> JsonObject:
    if tool.kind == "custom":
        return free_text_schema(writing, "arguments", where)
    if tool.parameters is None:
        # The member is required; this schema means that the tool has no parameters.
        return {"type": "object", "additionalProperties": False}
    if tool.parameters.get("type") != "object":
        writing.note("schema_reduced", where, "the type of the arguments is object here")
    return {**tool.parameters, "type": "object"}


def read_tools(request: JsonObject) -> tuple[ToolDefinition, ...]:
    """Read the tools in a server's list: a result, its response, or messages with responses."""
    if "messages" in request:
        messages = list_in(request["messages"])
        return tuple(tool for one in messages for tool in read_tools(object_in(one)))
    listed = object_in(request.get("result", request))
    return tuple(
        read_function(native, native.get("inputSchema"), others(native, _TOOL), NAME)
        for native in objects_in(listed.get("tools"))
    )
