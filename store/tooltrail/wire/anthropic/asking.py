"""The tools of a request to Anthropic and the choice among them."""

from collections.abc import Iterable

from tooltrail.records import ToolDefinition
from tooltrail.wire._tools import free_text_schema, read_function, write_head
from tooltrail.wire._writing import Writing
from tooltrail.wire.exports import ToolChoice
from tooltrail.wire.members import JsonObject, objects_in, others

NAME = "anthropic"
_TOOL = frozenset({"name", "description", "input_schema", "strict"})
_MODES = {"auto": "auto", "none": "none", "required": "any"}


def write_tools(writing: Writing, tools: Iterable[ToolDefinition]) -> JsonObject:
    """Write `{"tools": […]}`; a tool without parameters gets the schema of an empty object."""
    return writing.tools(tools, _write_tool)


def _write_tool(writing: Writing, tool: ToolDefinition, where: str) -> JsonObject:
    native = {**writing.tool_extras(tool, where), **write_head(writing, tool, where)}
    if native.get("type") not in (None, "custom"):
        # A tool that the provider defines has no schema here.
        return native
    if tool.kind == "custom":
        native["input_schema"] = free_text_schema(writing, "input", where)
    else:
        native["input_schema"] = {"type": "object", **(tool.parameters or {})}
    if tool.strict is not None:
        native["strict"] = tool.strict
    return native


def read_tools(request: JsonObject) -> tuple[ToolDefinition, ...]:
    """Read the tools of a request; `extras` keeps the members of a provider-defined tool."""
    return tuple(_read_tool(native) for native in objects_in(request.get("tools")))


def _read_tool(native: JsonObject) -> ToolDefinition:
    schema = native.get("input_schema")
    is_bare = schema == {"type": "object"}
    return read_function(native, None if is_bare else schema, others(native, _TOOL), NAME)


def write_choice(writing: Writing, choice: ToolChoice) -> JsonObject:
    """Write `{"tool_choice": …}`; if several tools are named, any tool may be called."""
    native: JsonObject = {"type": _MODES.get(choice.mode, "any")}
    if forced := writing.forced(choice, has_parallel=True):
        native = {"type": "tool", "name": forced}
    if choice.parallel is not None and choice.mode == "none":
        writing.note_choice("no word of calls in parallel, where none may be made")
    elif choice.parallel is not None:
        native["disable_parallel_tool_use"] = not choice.parallel
    return {"tool_choice": native}
