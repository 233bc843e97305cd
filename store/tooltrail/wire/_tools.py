"""Tool definitions and tool choices, as far as several formats share them."""

from pydantic import JsonValue

from tooltrail.records import ToolDefinition
from tooltrail.wire._writing import Writing
from tooltrail.wire.exports import ToolChoice
from tooltrail.wire.members import JsonObject, others, text_in

_FUNCTION = frozenset({"name", "description", "parameters", "strict"})
_CUSTOM = frozenset({"name", "description", "format"})


def read_function(
    members: JsonObject, parameters: JsonValue, extras: JsonObject, wire_format: str | None = None
) -> ToolDefinition:
    """Read a tool that is called with JSON; `strict` is read unless it is among the extras."""
    description, strict = members.get("description"), members.get("strict")
    return ToolDefinition(
        name=text_in(members.get("name")) or "",
        description=description if isinstance(description, str) else None,
        parameters=parameters if isinstance(parameters, dict) else None,
        strict=strict if isinstance(strict, bool) and "strict" not in extras else None,
        wire_format=wire_format if extras else None,
        extras=extras,
    )


def read_openai_tool(
    members: JsonObject, *, is_custom: bool, wire_format: str | None = None
) -> ToolDefinition:
    """Read a tool in the form of OpenAI's formats and of the formats derived from them."""
    if not is_custom:
        extras = others(members, _FUNCTION)
        return read_function(members, members.get("parameters"), extras, wire_format)
    custom = read_function(members, None, others(members, _CUSTOM), wire_format)
    return custom.model_copy(update={"kind": "custom", "grammar": members.get("format")})


def write_head(writing: Writing, tool: ToolDefinition, where: str) -> JsonObject:
    """Write the name and the description of a tool."""
    head: JsonObject = {"name": writing.tool_name(tool, where)}
    return head if tool.description is None else {**head, "description": tool.description}


def free_text_schema(writing: Writing, member: str, where: str) -> JsonObject:
    """The parameters of a free-text tool in a format without them: the text is one member."""
    writing.note("schema_reduced", where, f"the free text, of any grammar, is in {member!r}")
    return {"type": "object", "properties": {member: {"type": "string"}}, "required": [member]}


def write_openai_choice(writing: Writing, choice: ToolChoice, *, is_flat: bool) -> JsonObject:
    """Write `tool_choice`, and `parallel_tool_calls` if the choice sets it.

    A choice of mode `auto` with names lets the model call these tools, or none. With `is_flat`,
    tools and `allowed_tools` have their members beside `type`, not nested.
    """
    named: list[JsonValue] = []
    for name, is_custom in writing.chosen(choice):
        kind = "custom" if is_custom else "function"
        member: JsonObject = {"name": name}
        named.append({"type": kind, **(member if is_flat else {kind: member})})
    native: JsonValue = choice.mode
    if choice.mode == "tool" and len(named) == 1:
        native = named[0]
    elif named and choice.mode != "none":
        mode = "auto" if choice.mode == "auto" else "required"
        among: JsonObject = {"mode": mode, "tools": named}
        native = {"type": "allowed_tools", **(among if is_flat else {"allowed_tools": among})}
    request: JsonObject = {"tool_choice": native}
    if choice.parallel is not None:
        request["parallel_tool_calls"] = choice.parallel
    return request
