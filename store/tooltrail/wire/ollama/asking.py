"""The tools of a request to Ollama; the format has no tool choice."""

from collections.abc import Iterable, Iterator

from pydantic import JsonValue

from tooltrail.records import ToolDefinition
from tooltrail.wire._tools import free_text_schema, read_function, write_head
from tooltrail.wire._writing import Writing
from tooltrail.wire.members import JsonObject, list_in, object_in, objects_in, others

NAME = "ollama"
_FUNCTION = frozenset({"name", "description", "parameters"})
_SHOWN_PATHS = 20

_ROOT = frozenset({"type", "$defs", "items", "required", "properties"})
_PROPERTY = frozenset({"anyOf", "type", "items", "description", "enum", "properties", "required"})
"""The members of a schema and of a property that the server keeps; it drops all others before the
model sees the tool (`ToolFunctionParameters` and `ToolProperty` of its api/types.go)."""


def write_tools(writing: Writing, tools: Iterable[ToolDefinition]) -> JsonObject:
    """Write `{"tools": […]}` with unchanged schemas; parts that the server drops are reported."""
    return writing.tools(tools, _write_tool)


def _write_tool(writing: Writing, tool: ToolDefinition, where: str) -> JsonObject:
    members = write_head(writing, tool, where)
    if tool.kind == "custom":
        members["parameters"] = free_text_schema(writing, "arguments", where)
    elif tool.parameters is not None:
        members["parameters"] = writing.clean.value(tool.parameters, where)
        if paths := [*_dropped_paths(tool.parameters, _ROOT, "")]:
            shown, more = ", ".join(paths[:_SHOWN_PATHS]), len(paths) - _SHOWN_PATHS
            note = f"dropped: {shown}" + (f" and {more:,} more" if more > 0 else "")
            writing.note("schema_reduced", where, note)
    if tool.strict:
        writing.note("schema_reduced", where, "strict: the server enforces no schema of a tool")
    writing.note_dropped(tool.extras, where)
    return {"type": "function", "function": members}


def _dropped_paths(schema: JsonValue, kept: frozenset[str], path: str) -> Iterator[str]:
    """The members that the server drops, as paths from the root of the schema."""
    if not isinstance(schema, dict):
        yield path.removesuffix("/")
        return
    yield from (f"{path}{name}" for name in schema if name not in kept)
    for name, member in object_in(schema.get("properties")).items():
        yield from _dropped_paths(member, _PROPERTY, f"{path}properties/{name}/")
    if "anyOf" in kept:
        for number, member in enumerate(list_in(schema.get("anyOf"))):
            yield from _dropped_paths(member, _PROPERTY, f"{path}anyOf/{number}/")


def read_tools(request: JsonObject) -> tuple[ToolDefinition, ...]:
    """Read the tools of a request."""
    return tuple(map(_read_tool, objects_in(request.get("tools"))))


def _read_tool(native: JsonObject) -> ToolDefinition:
    members = object_in(native.get("function"))
    return read_function(members, members.get("parameters"), others(members, _FUNCTION))
