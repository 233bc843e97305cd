"""What an OpenAI Responses request asks for besides its input: tools and a choice.

Tools are flat here, and `parameters` and `strict` always stand in them: null leaves `strict` to
the provider. Tools that the provider made have a type and no name of their own; they are kept
whole, as extras.
"""

from collections.abc import Iterable

from pydantic import JsonValue

from tooltrail.records import ToolDefinition
from tooltrail.wire._tools import read_openai_tool, write_head
from tooltrail.wire._writing import Writing
from tooltrail.wire.members import JsonObject, objects_in, others, text_in
from tooltrail.wire.openai_responses.parts import cleaned

_TYPE = frozenset({"type"})
_OWN_EXTRAS = frozenset({"allowed_callers", "async", "defer_loading", "output_schema"})
"""What else this format takes of a tool."""

_CALLERS = {"direct", "programmatic"}
_PROVIDED = frozenset(
    {
        "apply_patch",
        "code_interpreter",
        "computer",
        "computer_use_preview",
        "file_search",
        "image_generation",
        "local_shell",
        "mcp",
        "namespace",
        "programmatic_tool_calling",
        "shell",
        "tool_search",
        "web_search",
        "web_search_2025_08_26",
        "web_search_preview",
        "web_search_preview_2025_03_11",
    }
)
"""Types of tools that the provider made, and of groups of tools."""


def write_tools(writing: Writing, tools: Iterable[ToolDefinition]) -> JsonObject:
    """`{"tools": […]}`, the tools of a server together in a namespace."""
    natives: list[JsonValue] = []
    groups: dict[str, list[JsonValue]] = {}
    for where, tool in writing.offered(tools):
        native = _write_tool(writing, tool, where)
        server = tool.namespace or ""
        if not writing.is_namespace(server):
            natives.append(native)
        elif server in groups:
            groups[server].append(native)
        else:
            groups[server] = [native]
            natives.append(
                {
                    "type": "namespace",
                    "name": server,
                    "description": f"The tools of {server}.",
                    "tools": groups[server],
                }
            )
    return {"tools": natives} if natives else {}


def _write_tool(writing: Writing, tool: ToolDefinition, where: str) -> JsonObject:
    if text_in(tool.extras.get("type")) in _PROVIDED:
        return cleaned(writing, tool.extras, where)
    native: JsonObject = {"type": tool.kind, **write_head(writing, tool, where)}
    if tool.kind == "custom":
        if tool.grammar is not None:
            native["format"] = _flat(writing.clean.value(tool.grammar, where))
    else:
        parameters = tool.parameters
        native["parameters"] = None if parameters is None else cleaned(writing, parameters, where)
        native["strict"] = tool.strict
    native.update(_extras(writing, tool, where))
    return native


def _flat(grammar: JsonValue) -> JsonValue:
    """A grammar as it is spelled here, also where Chat Completions spelled it, one level deeper."""
    match grammar:
        case {"type": "grammar", "grammar": dict(members)}:
            return {"type": "grammar", **members}
        case _:
            return grammar


def _extras(writing: Writing, tool: ToolDefinition, where: str) -> JsonObject:
    own = {name: value for name, value in tool.extras.items() if _is_own(name, value)}
    writing.note_dropped(tool.extras.keys() - own.keys(), where)
    return cleaned(writing, own, where)


def _is_own(name: str, value: JsonValue) -> bool:
    # Other providers have members of the same names, and other values in them.
    if name == "allowed_callers":
        return isinstance(value, list) and all(caller in _CALLERS for caller in value)
    if name == "output_schema":
        return isinstance(value, dict)
    return name in _OWN_EXTRAS and isinstance(value, bool)


def read_tools(request: JsonObject) -> tuple[ToolDefinition, ...]:
    """The tools of a request; one that the provider made is named by its type or its server."""
    return tuple(map(_read_tool, objects_in(request.get("tools"))))


def _read_tool(native: JsonObject) -> ToolDefinition:
    kind = native.get("type")
    if kind in ("custom", "function", None):
        return read_openai_tool(others(native, _TYPE), is_custom=kind == "custom")
    name = text_in(native.get("name")) or text_in(native.get("server_label")) or str(kind)
    return ToolDefinition(name=name, extras=native)
