"""The tools of a Chat Completions request."""

from collections.abc import Iterable

from pydantic import JsonValue

from tooltrail.records import ToolDefinition
from tooltrail.wire._tools import read_openai_tool, write_head
from tooltrail.wire._writing import Writing
from tooltrail.wire.members import JsonObject, object_in, objects_in

NAME = "openai"


def write_tools(writing: Writing, tools: Iterable[ToolDefinition]) -> JsonObject:
    """Write `{"tools": […]}`; `strict` is sent only if a definition sets it."""
    return writing.tools(tools, _write_tool)


def _write_tool(writing: Writing, tool: ToolDefinition, where: str) -> JsonObject:
    members = {**writing.tool_extras(tool, where), **write_head(writing, tool, where)}
    if tool.kind == "custom":
        if tool.grammar is not None:
            members["format"] = _nested(tool.grammar)
        return {"type": "custom", "custom": members}
    if tool.parameters is not None:
        members["parameters"] = tool.parameters
    if tool.strict is not None:
        members["strict"] = tool.strict
    return {"type": "function", "function": members}


def _nested(grammar: JsonValue) -> JsonValue:
    """A grammar in the form of this format; one from Responses is one level flatter."""
    match grammar:
        case {"type": "grammar", "syntax": syntax, "definition": definition, **rest} if not rest:
            return {"type": "grammar", "grammar": {"syntax": syntax, "definition": definition}}
        case _:
            return grammar


def read_tools(request: JsonObject) -> tuple[ToolDefinition, ...]:
    """Read the tools of a request, including those in the deprecated `functions`."""
    natives = objects_in(request.get("tools"))
    natives.extend({"function": members} for members in objects_in(request.get("functions")))
    return tuple(map(_read_tool, natives))


def _read_tool(native: JsonObject) -> ToolDefinition:
    is_custom = isinstance(native.get("custom"), dict)
    members = object_in(native.get("custom" if is_custom else "function"))
    return read_openai_tool(members, is_custom=is_custom, wire_format=NAME)
