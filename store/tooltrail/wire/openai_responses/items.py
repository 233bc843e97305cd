"""The items of the Responses API that are calls of tools, and their outputs.

A call has two ids, which are not to be mixed up: `call_id` pairs it with its output, and `id` names
the item on the provider's side. Calls of the provider's own tools that the caller is to run (a
shell, a patch, a computer) have arguments of a schema that the provider made.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass

from tooltrail.records import ToolCall, canonical_json
from tooltrail.wire.members import JsonObject, object_in, others, text_in

_FUNCTION = frozenset({"type", "call_id", "name", "arguments", "namespace"})
_CUSTOM = frozenset({"type", "call_id", "name", "input", "namespace"})


@dataclass(frozen=True, slots=True)
class BuiltIn:
    """A tool of the provider's that the caller runs.

    Attributes:
        tool_name: by which its calls are recorded.
        arguments: the member of a call that has them.
        output: the type of the item with the output.
        call_id: the member of that item that names the call.
    """

    tool_name: str
    arguments: str
    output: str
    call_id: str = "call_id"


BUILT_IN: Mapping[str, BuiltIn] = {
    "local_shell_call": BuiltIn("local_shell", "action", "local_shell_call_output", "id"),
    "shell_call": BuiltIn("shell", "action", "shell_call_output"),
    "apply_patch_call": BuiltIn("apply_patch", "operation", "apply_patch_call_output"),
    "computer_call": BuiltIn("computer", "action", "computer_call_output"),
    "tool_search_call": BuiltIn("tool_search", "arguments", "tool_search_output"),
}
"""By the type of their calls."""

BY_PROVIDER: Mapping[str, str] = {
    "mcp_call": "mcp",
    "web_search_call": "web_search",
    "file_search_call": "file_search",
    "code_interpreter_call": "code_interpreter",
    "image_generation_call": "image_generation",
}
"""Calls of tools that the provider runs, and the names of these."""

OUTPUTS: Mapping[str, str] = {
    "function_call_output": "call_id",
    "custom_tool_call_output": "call_id",
    **{tool.output: tool.call_id for tool in BUILT_IN.values()},
}
"""Items with outputs, and the member that names the call."""

BUILT_IN_OUTPUTS = frozenset(tool.output for tool in BUILT_IN.values())

_CONTAINERS = {"container_reference", "container_auto", "container"}


def is_output(item: JsonObject) -> bool:
    """Whether an item is the output of a call that the caller ran."""
    kind = item.get("type")
    return kind in OUTPUTS and (kind != "tool_search_output" or item.get("execution") == "client")


def is_call(item: JsonObject) -> bool:
    """Whether an item is a call that the caller is to run."""
    kind = item.get("type")
    if kind == "shell_call":
        return object_in(item.get("environment")).get("type") not in _CONTAINERS
    if kind == "tool_search_call":
        return item.get("execution") == "client"
    return kind in BUILT_IN or kind in ("function_call", "custom_tool_call")


def read_call(item: JsonObject, position: int) -> ToolCall:
    """The call of an item that is one."""
    kind = str(item.get("type"))
    call_id, namespace = text_in(item.get("call_id")), text_in(item.get("namespace"))
    if kind in BUILT_IN:
        return _built_in(BUILT_IN[kind], kind, item, position)
    is_custom = kind == "custom_tool_call"
    told = item.get("input" if is_custom else "arguments")
    is_text = told is None or isinstance(told, str)
    raw = (
        told if isinstance(told, str) else "" if told is None else canonical_json.encode_text(told)
    )
    call = ToolCall(
        tool_name=text_in(item.get("name")) or "",
        arguments_raw=raw,
        call_id=call_id,
        kind="custom" if is_custom else "function",
        namespace=namespace,
        position=position,
        flags=() if is_text else ("arguments_were_object",),
        extras=others(item, _CUSTOM if is_custom else _FUNCTION),
    )
    return _flagged(call, item)


def read_provider_call(item: JsonObject) -> ToolCall | None:
    """The call in an item of a tool that the provider runs; None where it is none."""
    kind = str(item.get("type"))
    if kind not in BY_PROVIDER and kind not in BUILT_IN:
        return None
    is_mcp = kind == "mcp_call"
    tool_name = BUILT_IN[kind].tool_name if kind in BUILT_IN else BY_PROVIDER[kind]
    told = item.get("arguments", item.get("action"))
    return ToolCall(
        tool_name=(text_in(item.get("name")) if is_mcp else None) or tool_name,
        arguments_raw=told if isinstance(told, str) else _dumped(told or {}),
        call_id=text_in(item.get("call_id")) or text_in(item.get("id")),
        kind="mcp" if is_mcp else "builtin",
        namespace=text_in(item.get("server_label")),
        by_provider=True,
    )


def _built_in(tool: BuiltIn, kind: str, item: JsonObject, position: int) -> ToolCall:
    known = frozenset({"type", "call_id", tool.arguments})
    call = ToolCall(
        tool_name=tool.tool_name,
        arguments_raw=_dumped(item.get(tool.arguments, {})),
        call_id=text_in(item.get("call_id")) or text_in(item.get("id")),
        kind="builtin",
        position=position,
        extras={"type": kind, **others(item, known)},
    )
    return _flagged(call, item)


def _flagged(call: ToolCall, item: JsonObject) -> ToolCall:
    # A call of a running program is in progress in an answer that is complete.
    if item.get("status") != "incomplete":
        return call
    return call.model_copy(update={"flags": (*call.flags, "incomplete")})


def _dumped(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))
