"""What a Responses request asks for besides its input: tools, choice, shape."""

from collections.abc import Iterable
from typing import Any

from pydantic import JsonValue

from tooltrail.records import ToolDefinition
from tooltrail.wire._writing import Writing
from tooltrail.wire.exports import DEFAULT_EXPORT_POLICY, Export
from tooltrail.wire.members import JsonObject, object_in, objects_in, others, text_in
from tooltrail.wire.openai_responses.limits import CAPABILITIES, NAME
from tooltrail.wire.requests import SCHEMA_NAME, StructuredFormat, ToolChoice

_FUNCTION = frozenset({"type", "name", "description", "parameters", "strict"})
_CUSTOM = frozenset({"type", "name", "description", "format"})


def _writing() -> Writing:
    return Writing(NAME, CAPABILITIES, DEFAULT_EXPORT_POLICY)


def write_tools(tools: Iterable[ToolDefinition]) -> Export:
    """`{"tools": […]}`; `parameters` and `strict` are required, so an unsaid one is null."""
    writing = _writing()
    natives: list[JsonValue] = [
        _write_tool(writing, tool, f"tools[{position}]") for position, tool in enumerate(tools)
    ]
    return writing.export({"tools": natives} if natives else {})


def _write_tool(writing: Writing, tool: ToolDefinition, where: str) -> JsonObject:
    native = writing.tool_extras(tool, where)
    if native.get("type"):
        # A tool that the provider brings.
        return native
    native.update({"type": tool.kind, "name": writing.names.of(tool.name, where)})
    if tool.description is not None:
        native["description"] = tool.description
    if tool.kind == "custom":
        if tool.grammar is not None:
            native["format"] = _flat(tool.grammar)
        return native
    return {**native, "parameters": tool.parameters, "strict": tool.strict}


def _flat(grammar: JsonValue) -> JsonValue:
    """A grammar without the level that Chat Completions puts around it."""
    told = object_in(grammar)
    return {"type": "grammar", **object_in(told["grammar"])} if "grammar" in told else grammar


def read_tools(request: JsonObject) -> tuple[ToolDefinition, ...]:
    """The tools of a request; one that the provider brings has all of it in `extras`."""
    return tuple(_read_tool(native) for native in objects_in(request.get("tools")))


def _read_tool(native: JsonObject) -> ToolDefinition:
    name, description = text_in(native.get("name")) or "", text_in(native.get("description"))
    match native.get("type"):
        case "custom":
            grammar = native.get("format")
            return ToolDefinition(
                name=name,
                description=description,
                kind="custom",
                grammar=grammar,
                **_extras(native, _CUSTOM),
            )
        case "function":
            parameters, strict = native.get("parameters"), native.get("strict")
            return ToolDefinition(
                name=name,
                description=description,
                parameters=parameters if isinstance(parameters, dict) else None,
                strict=strict if isinstance(strict, bool) else None,
                **_extras(native, _FUNCTION),
            )
        case kind:
            return ToolDefinition(name=name or str(kind), **_extras(native, frozenset()))


def _extras(native: JsonObject, known: frozenset[str]) -> dict[str, Any]:
    extras = others(native, known)
    return {"wire_format": NAME, "extras": extras} if extras else {}


def write_choice(choice: ToolChoice) -> Export:
    """`tool_choice`, and `parallel_tool_calls` where the choice says something of it."""
    writing = _writing()
    request: JsonObject = {"tool_choice": choice.mode}
    if choice.mode == "tool":
        named: list[JsonValue] = [
            {"type": "function", "name": writing.names.of(name, "tool_choice")}
            for name in choice.names
        ]
        allowed: JsonObject = {"type": "allowed_tools", "mode": "required", "tools": named}
        request["tool_choice"] = named[0] if len(named) == 1 else allowed
    if choice.parallel is not None:
        request["parallel_tool_calls"] = choice.parallel
    return writing.export(request)


def read_choice(request: JsonObject) -> ToolChoice | None:
    """The choice that a request makes."""
    native, told = request.get("tool_choice"), request.get("parallel_tool_calls")
    parallel = told if isinstance(told, bool) else None
    match native:
        case "auto" | "none" | "required":
            return ToolChoice(native, parallel=parallel)
        case {"type": "allowed_tools", "tools": list(tools)}:
            names = tuple(_named(tool) for tool in objects_in(tools))
            return ToolChoice("tool", names, parallel=parallel)
        case dict():
            return ToolChoice("tool", (_named(native),), parallel=parallel)
        case _:
            return None if parallel is None else ToolChoice("auto", parallel=parallel)


def _named(native: JsonObject) -> str:
    return text_in(native.get("name")) or text_in(native.get("type")) or ""


def write_structured(wanted: StructuredFormat) -> Export:
    """`{"text": {"format": …}}`."""
    writing = _writing()
    if wanted.schema is None:
        return writing.export({"text": {"format": {"type": "json_object"}}})
    native: JsonObject = {
        "type": "json_schema",
        "name": writing.names.of(wanted.name, "text.format"),
        "schema": wanted.schema,
    }
    if wanted.description is not None:
        native["description"] = wanted.description
    if wanted.strict is not None:
        native["strict"] = wanted.strict
    return writing.export({"text": {"format": native}})


def read_structured(request: JsonObject) -> StructuredFormat | None:
    """The shape of the answer that a request asks for."""
    told = object_in(object_in(request.get("text")).get("format"))
    match told.get("type"):
        case "json_object":
            return StructuredFormat(None)
        case "json_schema":
            strict = told.get("strict")
            return StructuredFormat(
                object_in(told.get("schema")),
                name=text_in(told.get("name")) or SCHEMA_NAME,
                description=text_in(told.get("description")),
                strict=strict if isinstance(strict, bool) else None,
            )
        case _:
            return None
