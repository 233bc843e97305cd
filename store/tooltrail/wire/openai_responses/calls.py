"""Calls in the items of an answer, those for the caller and those that the provider runs itself.

Arguments of functions and custom tools are text on the wire. The tools that the provider made have
an object each (`action`, `operation`), whose JSON text is the arguments.
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
"""Items of the provider's tools that the caller runs, and the member that says what to do."""

ACTIONS = "actions"
"""Newer computer calls have a list of actions; their arguments are an object with this member."""

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
"""Items that are calls, and the member that the call was made with."""


def type_of(item: JsonObject) -> str:
    """The type of an item; only messages may leave it out."""
    kind = item.get("type")
    return kind if isinstance(kind, str) else "message" if "role" in item else ""


def is_for_caller(item: JsonObject, hosted: frozenset[str] = frozenset()) -> bool:
    """Whether the caller is to run what this item asks for.

    It does not run a call whose output the provider gave in the same answer; `hosted` has its id.
    """
    kind = type_of(item)
    if kind == "tool_search_call":
        return item.get("execution") == "client"
    if kind == "shell_call":
        environment = object_in(item.get("environment")).get("type")
        return environment != "container_reference" and text_in(item.get("call_id")) not in hosted
    return kind in _KINDS or kind in BUILTINS


def hosted_shells(items: JsonValue, *, in_answer: bool) -> frozenset[str]:
    """Ids of the shell calls that ran in a container of the provider.

    In an answer their outputs tell it too: only the provider puts outputs there.
    """
    ran = (
        item.get("call_id")
        for item in objects_in(items)
        if (in_answer and item.get("type") == "shell_call_output")
        or (item.get("type") == "shell_call" and not is_for_caller(item))
    )
    return frozenset(filter(None, map(text_in, ran)))


def read_call(item: JsonObject, position: int, flags: tuple[CallFlag, ...] = ()) -> ToolCall:
    """The call of an item for which `is_for_caller` holds; `flags` say what was odd about it."""
    kind = type_of(item)
    member, is_builtin = _MEMBERS[kind], kind in BUILTINS
    value = item.get(member)
    if is_builtin and value is None and item.get(ACTIONS) is not None:
        member, value = ACTIONS, {ACTIONS: item[ACTIONS]}
    # Where nothing says what to do, nothing is to be done.
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
        position=position,
        flags=flags,
        extras=other_members(item, member, *named),
    )


def _has_ended(item: JsonObject) -> bool:
    status = item.get("status")
    # A call that a program makes is in progress until the caller has answered it.
    is_awaited = status == "in_progress" and object_in(item.get("caller")).get("type") == "program"
    return status in (None, "completed") or is_awaited


def other_members(item: JsonObject, *known: str) -> JsonObject:
    """What else the item says. That it is completed goes without saying."""
    extras = others(item, frozenset({"type", "call_id", *known}))
    if extras.get("status") == "completed":
        del extras["status"]
    return extras


def read_hosted_call(item: JsonObject, position: int) -> ToolCall | None:
    """The call of a tool that the provider ran itself; None for an item that is no call."""
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
    # Some servers give a text of arguments where the format has a member of its own.
    if isinstance(text := item.get("arguments"), str):
        return text
    value = item.get(member)
    if value is None:
        return "{}"
    return raw_arguments(value if isinstance(value, dict) else {member: value})
