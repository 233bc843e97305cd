"""The tools of a request to Gemini and the choice among them."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from pydantic import JsonValue

from tooltrail.records import ToolDefinition
from tooltrail.wire._tools import free_text_schema, read_function, write_head
from tooltrail.wire._writing import Writing
from tooltrail.wire.exports import ToolChoice
from tooltrail.wire.gemini.parts import camel
from tooltrail.wire.members import JsonObject, objects_in, others

NAME = "gemini"
_DECLARATION = frozenset({"name", "description", "parametersJsonSchema"})
_MODES = {"auto": "AUTO", "none": "NONE", "required": "ANY", "tool": "ANY"}


def write_tools(writing: Writing, tools: Iterable[ToolDefinition]) -> JsonObject:
    """Write `{"tools": [{"functionDeclarations": […]}]}`; missing parameters get no schema."""
    declarations: list[JsonValue] = []
    provided: list[JsonValue] = []
    for where, tool in writing.offered(tools):
        native = _write_tool(writing, tool, where)
        (declarations if "name" in native else provided).append(native)
    ours: list[JsonValue] = [{"functionDeclarations": declarations}] if declarations else []
    return {"tools": [*ours, *provided]} if ours or provided else {}


def _write_tool(writing: Writing, tool: ToolDefinition, where: str) -> JsonObject:
    extras = writing.tool_extras(tool, where)
    if tool.name in extras:
        # A tool that the provider defines is written beside the declarations.
        return extras
    native: JsonObject = {**extras, **write_head(writing, tool, where)}
    if tool.kind == "custom":
        native["parametersJsonSchema"] = free_text_schema(writing, "input", where)
    elif tool.parameters is not None and "parameters" not in extras:
        native["parametersJsonSchema"] = tool.parameters
    return native


def read_tools(request: JsonObject) -> tuple[ToolDefinition, ...]:
    """Read the tools of a request; `extras` keeps the members of a provider-defined tool."""
    return tuple(
        definition
        for tool in objects_in(request.get("tools"))
        for definition in _read_tool(camel(tool))
    )


def _read_tool(tool: JsonObject) -> Iterator[ToolDefinition]:
    for declaration in objects_in(tool.get("functionDeclarations")):
        yield _read_declaration(camel(declaration))
    for name, value in tool.items():
        if name != "functionDeclarations":
            yield ToolDefinition(name=name, wire_format=NAME, extras={name: value})


def _read_declaration(native: JsonObject) -> ToolDefinition:
    schema, extras = native.get("parametersJsonSchema"), others(native, _DECLARATION)
    if schema is None and "parameters" in native:
        # The older form of a schema: Gemini gets it back unchanged, other formats get JSON Schema.
        schema = _json_schema(native["parameters"])
    return read_function(native, schema, extras, NAME)


def _json_schema(value: JsonValue) -> JsonValue:
    """Convert a schema in OpenAPI's form, with types in capitals, to JSON Schema."""
    if isinstance(value, list):
        return [_json_schema(item) for item in value]
    if not isinstance(value, dict):
        return value
    members = {name: _json_schema(member) for name, member in value.items()}
    if isinstance(kind := members.get("type"), str):
        members["type"] = kind.lower()
    return members


def write_choice(writing: Writing, choice: ToolChoice) -> JsonObject:
    """Write `{"toolConfig": {"functionCallingConfig": …}}`."""
    config: JsonObject = {"mode": _MODES[choice.mode]}
    if choice.mode == "tool":
        config["allowedFunctionNames"] = [name for name, _ in writing.chosen(choice)]
        choice = replace(choice, names=())
    writing.forced(choice)
    return {"toolConfig": {"functionCallingConfig": config}}
