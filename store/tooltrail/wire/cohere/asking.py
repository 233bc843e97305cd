"""The tools of a request to Cohere and the choice among them.

`strict_tools` applies to all tools at once, and no tool can be forced by name.
"""

from collections.abc import Iterable

from tooltrail.records import ToolDefinition
from tooltrail.wire._tools import free_text_schema, read_function, write_head
from tooltrail.wire._writing import Writing
from tooltrail.wire.exports import ToolChoice
from tooltrail.wire.members import JsonObject, object_in, objects_in, others

NAME = "cohere"
FREE_TEXT = "input"
"""The member of the arguments that holds the text of a free-text tool."""

_FUNCTION = frozenset({"name", "description", "parameters"})
_NO_PARAMETERS: JsonObject = {"type": "object", "properties": {}}
_MODES = {"none": "NONE", "required": "REQUIRED", "tool": "REQUIRED"}


def write_tools(writing: Writing, tools: Iterable[ToolDefinition]) -> JsonObject:
    """Write `{"tools": […]}`, and `strict_tools` if all tools have the same setting."""
    wanted = tuple(tools)
    request = writing.tools(wanted, _write_tool)
    strictness = {tool.strict for tool in wanted}
    if strictness in ({True}, {False}):
        return {**request, "strict_tools": True in strictness}
    if True in strictness:
        writing.note("schema_reduced", "tools", "strict: the server enforces all schemas or none")
    return request


def _write_tool(writing: Writing, tool: ToolDefinition, where: str) -> JsonObject:
    members = {**writing.tool_extras(tool, where), **write_head(writing, tool, where)}
    if tool.kind == "custom":
        members["parameters"] = free_text_schema(writing, FREE_TEXT, where)
    else:
        members["parameters"] = _NO_PARAMETERS if tool.parameters is None else tool.parameters
    return {"type": "function", "function": members}


def read_tools(request: JsonObject) -> tuple[ToolDefinition, ...]:
    """Read the tools of a request."""
    strict = request.get("strict_tools")
    update = {"strict": strict} if isinstance(strict, bool) else {}
    tools = map(_read_tool, objects_in(request.get("tools")))
    return tuple(tool.model_copy(update=update) for tool in tools)


def _read_tool(native: JsonObject) -> ToolDefinition:
    members = object_in(native.get("function"))
    schema, extras = members.get("parameters"), others(members, _FUNCTION)
    return read_function(members, None if schema == _NO_PARAMETERS else schema, extras, NAME)


def write_choice(writing: Writing, choice: ToolChoice) -> JsonObject:
    """Write `{"tool_choice": …}`; `{}` for mode `auto`, which has no value in this format."""
    if writing.forced(choice):
        writing.note_any(choice)
    mode = _MODES.get(choice.mode)
    return {} if mode is None else {"tool_choice": mode}
