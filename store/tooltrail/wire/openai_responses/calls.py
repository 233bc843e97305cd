"""Reads calls in the items of an answer: those for the caller and those that the provider runs.

Arguments of functions and custom tools are sent as text. A provider-defined tool has an object
(`action`, `operation`) instead, whose JSON is the text of the arguments.
"""

from collections.abc import Mapping

from pydantic import JsonValue

from tooltrail.records import CallFlag, CallKind, ToolCall
from tooltrail.wire.members import (
    JsonObject,
    object_in,
    objects_in,
    others,
    raw_arguments,
    text_in,
)

BUILTINS: Mapping[str, str] = {
    "local_shell_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
    "computer_call": "action",
    "tool_search_call": "arguments",
}
"""The items for provider-defined tools that the caller runs, and the member with the action."""

ACTIONS = "actions"
"""The member of newer computer calls with a list of actions; the arguments are an object of it."""

_KINDS: Mapping[str, CallKind] = {"function_call": "function", "custom_tool_call": "custom"}
_MEMBERS: Mapping[str, str] = {
    "function_call": "arguments",
    "custom_tool_call": "input",
    "mcp_call": "arguments",
    "web_search_call": "action",
    "x_search_call": "arguments",
    "file_search_call": "queries",
    "code_interpreter_call": "code",
    "image_generation_call": "revised_prompt",
    "program": "code",
    **BUILTINS,
}
"""The types of items that are calls, and the member that holds the arguments."""

HOSTED = _MEMBERS.keys() - BUILTINS.keys() - _KINDS.keys()
"""The types of calls that the provider always runs itself. It refuses one without an id."""


def type_of(item: JsonObject) -> str:
    """The type of an item; only messages may omit it."""
    kind = item.get("type")
    return kind if isinstance(kind, str) else "message" if "role" in item else ""


def is_for_caller(item: JsonObject, hosted: frozenset[str] = frozenset()) -> bool:
    """Whether the caller must run the call in this item.

    The caller does not run a call whose output is in the same answer; `hosted` contains its id.
    """
    kind = type_of(item)
    if kind == "tool_search_call":
        return item.get("execution") == "client"
    if kind == "shell_call":
        environment = object_in(item.get("environment")).get("type")
        return environment != "container_reference" and text_in(item.get("call_id")) not in hosted
    return kind in _KINDS or kind in BUILTINS


def hosted_shells(items: JsonValue, *, in_answer: bool) -> frozenset[str]:
    """The ids of shell calls that ran in a container of the provider.

    In an answer an output, too, identifies such a call: only the provider adds outputs to answers.
    """
    ran = (
        item.get("call_id")
        for item in objects_in(items)
        if (in_answer and item.get("type") == "shell_call_output")
        or (item.get("type") == "shell_call" and not is_for_caller(item))
    )
    return frozenset(filter(None, map(text_in, ran)))


def read_call(item: JsonObject, flags: tuple[CallFlag, ...] = ()) -> ToolCall:
    """Read the call in an item for which `is_for_caller` is true; `flags` are added to it."""
    kind = type_of(item)
    member, is_builtin = _MEMBERS[kind], kind in BUILTINS
    value = item.get(member)
    if is_builtin and value is None and item.get(ACTIONS) is not None:
        member, value = ACTIONS, {ACTIONS: item[ACTIONS]}
    # Without an action, the call must not run.
    is_cut = not _has_ended(item) or (is_builtin and value is None)
    if is_cut and "incomplete" not in flags:
        flags = (*flags, "incomplete")
    if not is_builtin and not isinstance(value, str | None):
        flags = (*flags, "arguments_were_object")
    named = () if is_builtin else ("name", "namespace")
    return ToolCall(
        tool_name=kind.removesuffix("_call") if is_builtin else text_in(item.get("name")) or "",
        arguments_raw=raw_arguments(value),
        call_id=text_in(item.get("call_id")),
        kind=_KINDS.get(kind, "builtin"),
        namespace=None if is_builtin else text_in(item.get("namespace")),
        flags=flags,
        extras=other_members(item, member, *named),
    )


def _has_ended(item: JsonObject) -> bool:
    status = item.get("status")
    # A call made by a program is in progress until the caller has answered it.
    is_awaited = status == "in_progress" and object_in(item.get("caller")).get("type") == "program"
    return status in (None, "completed") or is_awaited


def other_members(item: JsonObject, *known: str) -> JsonObject:
    """The other members of an item, without the status `completed`."""
    extras = others(item, frozenset({"type", "call_id", *known}))
    if extras.get("status") == "completed":
        del extras["status"]
    return extras


def read_hosted_call(item: JsonObject, position: int) -> ToolCall | None:
    """Read the call of a tool that the provider ran itself; None if the item is not a call."""
    kind = type_of(item)
    if kind not in _MEMBERS:
        return None
    return ToolCall(
        tool_name=text_in(item.get("name")) or kind.removesuffix("_call"),
        arguments_raw=_hosted_arguments(item, _MEMBERS[kind]),
        call_id=text_in(item.get("call_id")) or text_in(item.get("id")),
        kind="mcp" if kind == "mcp_call" else "builtin",
        namespace=text_in(item.get("server_label")),
        position=position,
        by_provider=True,
    )


def _hosted_arguments(item: JsonObject, member: str) -> str:
    # Some servers send `arguments` as text where the format has another member.
    if isinstance(text := item.get("arguments"), str):
        return text
    value = item.get(member)
    if value is None:
        return "{}"
    return raw_arguments(value if isinstance(value, dict) else {member: value})
