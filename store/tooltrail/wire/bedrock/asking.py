"""The tools of a request to Converse and the choice among them."""

from collections.abc import Iterable

from tooltrail.records import ToolDefinition
from tooltrail.wire._tools import free_text_schema, read_function, write_head
from tooltrail.wire._writing import Writing
from tooltrail.wire.exports import ToolChoice
from tooltrail.wire.members import JsonObject, object_in, objects_in, others

NAME = "bedrock"
_SPEC = frozenset({"name", "description", "inputSchema", "strict"})
_SYSTEM = "systemTool"
_BARE: JsonObject = {"type": "object"}


def write_tools(writing: Writing, tools: Iterable[ToolDefinition]) -> JsonObject:
    """Write `{"toolConfig": {"tools": […]}}`; without parameters, the schema is an empty object."""
    written = writing.tools(tools, _write_tool)
    return {"toolConfig": written} if written else {}


def _write_tool(writing: Writing, tool: ToolDefinition, where: str) -> JsonObject:
    extras = writing.tool_extras(tool, where)
    if _SYSTEM in extras:
        return extras
    spec = {**extras, **write_head(writing, tool, where)}
    if spec.get("description") == "":
        writing.note("schema_reduced", where, "dropped: an empty description")
        del spec["description"]
    is_text = tool.kind == "custom"
    schema = free_text_schema(writing, "input", where) if is_text else tool.parameters or {}
    spec["inputSchema"] = {"json": {**_BARE, **schema}}
    return {"toolSpec": spec if tool.strict is None else {**spec, "strict": tool.strict}}


def read_tools(request: JsonObject) -> tuple[ToolDefinition, ...]:
    """Read the tools of a request, without cache points; Amazon's own tools are in `extras`."""
    natives = objects_in(object_in(request.get("toolConfig")).get("tools"))
    return tuple(_read_tool(one) for one in natives if "toolSpec" in one or _SYSTEM in one)


def _read_tool(native: JsonObject) -> ToolDefinition:
    if _SYSTEM in native:
        return ToolDefinition(name=_SYSTEM, wire_format=NAME, extras=native)
    spec = object_in(native["toolSpec"])
    schema = object_in(spec.get("inputSchema")).get("json")
    return read_function(spec, None if schema == _BARE else schema, others(spec, _SPEC), NAME)


def write_choice(writing: Writing, choice: ToolChoice) -> JsonObject:
    """Write `{"toolConfig": {"toolChoice": …}}`; it can force one tool or any, not forbid calls."""
    forced = writing.forced(choice)
    if choice.mode == "none":
        # The server requires the tools if the history has calls, so they stay on offer.
        writing.note_choice("none: the model may call a tool")
        return {}
    native: JsonObject = {"auto" if choice.mode == "auto" else "any": {}}
    if forced:
        native = {"tool": {"name": forced}}
    return {"toolConfig": {"toolChoice": native}}
