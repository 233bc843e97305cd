"""What a Chat Completions request asks for besides its messages: tools, choice, shape."""

from collections.abc import Iterable
from typing import Any

from pydantic import JsonValue

from tooltrail.records import ToolDefinition
from tooltrail.wire._writing import Writing
from tooltrail.wire.members import JsonObject, object_in, objects_in, others, text_in
from tooltrail.wire.openai_chat.limits import NAME
from tooltrail.wire.requests import StructuredFormat, ToolChoice

_FUNCTION = frozenset({"name", "description", "parameters", "strict"})
_CUSTOM = frozenset({"name", "description", "format"})


def write_tools(writing: Writing, tools: Iterable[ToolDefinition]) -> JsonObject:
    """`{"tools": […]}`. `strict` is sent where a definition says so, and left out elsewhere."""
    return writing.tools(tools, _write_tool)


def _write_tool(writing: Writing, tool: ToolDefinition, where: str) -> JsonObject:
    members = {**writing.tool_extras(tool, where), "name": writing.names.of(tool.name, where)}
    if tool.description is not None:
        members["description"] = tool.description
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
    """A grammar as it is spelled here, also where Responses spelled it, one level flatter."""
    match grammar:
        case {"type": "grammar", "syntax": syntax, "definition": definition, **rest} if not rest:
            return {"type": "grammar", "grammar": {"syntax": syntax, "definition": definition}}
        case _:
            return grammar


def read_tools(request: JsonObject) -> tuple[ToolDefinition, ...]:
    """The tools of a request, those of the older member `functions` among them."""
    natives = objects_in(request.get("tools"))
    natives.extend({"function": members} for members in objects_in(request.get("functions")))
    return tuple(map(_read_tool, natives))


def _read_tool(native: JsonObject) -> ToolDefinition:
    custom = native.get("custom")
    if isinstance(custom, dict):
        return ToolDefinition(
            name=text_in(custom.get("name")) or "",
            description=text_in(custom.get("description")),
            kind="custom",
            grammar=custom.get("format"),
            **_extras(custom, _CUSTOM),
        )
    members = object_in(native.get("function"))
    parameters, strict = members.get("parameters"), members.get("strict")
    return ToolDefinition(
        name=text_in(members.get("name")) or "",
        description=text_in(members.get("description")),
        parameters=parameters if isinstance(parameters, dict) else None,
        strict=strict if isinstance(strict, bool) else None,
        **_extras(members, _FUNCTION),
    )


def _extras(members: JsonObject, known: frozenset[str]) -> dict[str, Any]:
    extras = others(members, known)
    return {"wire_format": NAME, "extras": extras} if extras else {}


def write_choice(writing: Writing, choice: ToolChoice) -> JsonObject:
    """`tool_choice`, and `parallel_tool_calls` where the choice says something of it."""
    request: JsonObject = {"tool_choice": choice.mode}
    named: list[JsonValue] = []
    for name in choice.names:
        kind = "custom" if name in choice.custom_names else "function"
        named.append({"type": kind, kind: {"name": writing.names.of(name, "tool_choice")}})
    if choice.mode == "tool" and not named:
        writing.note("choice_not_enforced", "tool_choice", "no tool is named; any may be called")
        request["tool_choice"] = "required"
    elif choice.mode == "tool" and len(named) == 1:
        request["tool_choice"] = named[0]
    elif named and choice.mode != "none":
        mode = "auto" if choice.mode == "auto" else "required"
        allowed: JsonObject = {"mode": mode, "tools": named}
        request["tool_choice"] = {"type": "allowed_tools", "allowed_tools": allowed}
    if choice.parallel is not None:
        request["parallel_tool_calls"] = choice.parallel
    return request


def write_structured(writing: Writing, wanted: StructuredFormat) -> JsonObject:
    """`{"response_format": …}`."""
    if wanted.schema is None:
        return {"response_format": {"type": "json_object"}}
    schema: JsonObject = {"name": writing.names.of(wanted.name, "response_format")}
    if wanted.description is not None:
        schema["description"] = wanted.description
    schema["schema"] = wanted.schema
    if wanted.strict is not None:
        schema["strict"] = wanted.strict
    return {"response_format": {"type": "json_schema", "json_schema": schema}}
