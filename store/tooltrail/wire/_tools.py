"""Definitions of tools, read from what formats have alike."""

from pydantic import JsonValue

from tooltrail.records import ToolDefinition
from tooltrail.wire.members import JsonObject, others, text_in

_FUNCTION = frozenset({"name", "description", "parameters", "strict"})
_CUSTOM = frozenset({"name", "description", "format"})


def read_function(
    members: JsonObject, parameters: JsonValue, extras: JsonObject, wire_format: str | None = None
) -> ToolDefinition:
    """A tool that is called with JSON; `strict` is what it says unless that is among the extras."""
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
    """A tool as OpenAI's formats have it, and those that take after them."""
    if not is_custom:
        extras = others(members, _FUNCTION)
        return read_function(members, members.get("parameters"), extras, wire_format)
    custom = read_function(members, None, others(members, _CUSTOM), wire_format)
    return custom.model_copy(update={"kind": "custom", "grammar": members.get("format")})
