"""The tools of an OpenAI Responses request.

Tools are flat here. Outside of groups, they always have `parameters` and `strict`; if `strict` is
null, the provider decides. A tool that the provider defines has a type and no name. Its definition
keeps all members as extras.
"""

from collections.abc import Iterable, Iterator

from pydantic import JsonValue

from tooltrail.records import ToolDefinition
from tooltrail.wire._tools import read_openai_tool, write_head
from tooltrail.wire._writing import Writing
from tooltrail.wire.members import LAYOUT, JsonObject, objects_in, others, text_in

NAME = "openai-responses"
FROM_INSTRUCTIONS: JsonObject = {LAYOUT: "instructions"}
"""The extras of a system message that was not read from the input."""

_TYPE = frozenset({"type"})
_DESCRIBED = "The tools of {}."
_GROUP = "namespace_description"
"""The extra of a tool with the description of its group."""


def write_tools(writing: Writing, tools: Iterable[ToolDefinition]) -> JsonObject:
    """Write `{"tools": […]}`; the tools of a server form a group, a `namespace`."""
    natives: list[JsonValue] = []
    groups: dict[str, list[JsonValue]] = {}
    for where, tool in writing.offered(tools):
        extras, server = writing.tool_extras(tool, where), tool.namespace or ""
        about = extras.pop(_GROUP, None) or _DESCRIBED.format(server)
        native = _write_tool(writing, tool, extras, where)
        if not writing.is_namespace(server):
            natives.append(native)
            continue
        if server not in groups:
            members = groups[server] = []
            group: JsonObject = {"name": server, "description": about, "tools": members}
            natives.append({"type": "namespace", **group})
        # In a group, null members may be left out.
        groups[server].append(others(native, frozenset()))
    return {"tools": natives} if natives else {}


def _write_tool(
    writing: Writing, tool: ToolDefinition, extras: JsonObject, where: str
) -> JsonObject:
    if "type" in extras:
        return extras
    native: JsonObject = {"type": tool.kind, **write_head(writing, tool, where)}
    if tool.kind != "custom":
        native |= {"parameters": tool.parameters, "strict": tool.strict}
    elif tool.grammar is not None:
        native["format"] = _flat(tool.grammar)
    return {**native, **extras}


def _flat(grammar: JsonValue) -> JsonValue:
    """A grammar in the form of this format; one from Chat Completions is one level deeper."""
    match grammar:
        case {"type": "grammar", "grammar": dict(members)}:
            return {"type": "grammar", **members}
        case _:
            return grammar


def read_tools(request: JsonObject) -> Iterator[ToolDefinition]:
    """Read the tools of a request; the tools of a group belong to the server of that name.

    A provider-defined tool without a name is named after its server or its type.
    """
    for native in objects_in(request.get("tools")):
        group = native.get("name") if native.get("type") == "namespace" else None
        members = objects_in(native.get("tools"))
        if not isinstance(group, str) or not members:
            yield _read_tool(native)
            continue
        about = native.get("description")
        for tool in map(_read_tool, members):
            is_told = about not in (None, _DESCRIBED.format(group))
            extras = {**tool.extras, _GROUP: about} if is_told else tool.extras
            named = {"namespace": group, "extras": extras, "wire_format": NAME if extras else None}
            yield tool.model_copy(update=named)


def _read_tool(native: JsonObject) -> ToolDefinition:
    kind = native.get("type")
    if kind in ("custom", "function", None):
        return read_openai_tool(others(native, _TYPE), is_custom=kind == "custom", wire_format=NAME)
    name = text_in(native.get("name")) or text_in(native.get("server_label")) or str(kind)
    return ToolDefinition(name=name, wire_format=NAME, extras=native)
