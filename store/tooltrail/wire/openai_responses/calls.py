"""Calls in the items of an answer, those for the caller and those that the provider runs itself.

Arguments of functions and custom tools are text on the wire. The tools that the provider made have
an object each (`action`, `operation`), whose JSON text is the arguments.
"""

from collections.abc import Mapping

from pydantic import JsonValue

from tooltrail.records import CallFlag, ToolCall
from tooltrail.wire.members import JsonObject, object_in, others, raw_arguments, text_in

BUILTIN_MEMBERS: Mapping[str, str] = {
    "local_shell_call": "action",
    "shell_call": "action",
    "apply_patch_call": "operation",
    "computer_call": "action",
    "tool_search_call": "arguments",
}
"""Items that the caller runs, and the member that says what to do."""

ACTIONS = "actions"
"""Newer computer calls have a list of actions; their arguments are an object with this member."""

_TEXTS: Mapping[str, str] = {"function_call": "arguments", "custom_tool_call": "input"}

_HOSTED: Mapping[str, tuple[str, ...]] = {
    "mcp_call": ("arguments",),
    "web_search_call": ("action",),
    "x_search_call": ("arguments",),
    "file_search_call": ("queries",),
    "code_interpreter_call": ("code",),
    "image_generation_call": ("revised_prompt",),
    "program": ("code",),
    "shell_call": ("action",),
    "tool_search_call": ("arguments",),
}
"""Items of tools that the provider runs, and the members that the call was made with."""

_ENDED = (None, "completed")


def type_of(item: JsonObject) -> str:
    """The type of an item; only messages may leave it out."""
    kind = item.get("type")
    return kind if isinstance(kind, str) else "message" if "role" in item else ""


def is_for_caller(item: JsonObject, hosted: frozenset[str] = frozenset()) -> bool:
    """Whether the caller is to run what this item asks for.

    Args:
        item: of an answer or a request.
        hosted: ids of calls whose outputs the provider gave in the same answer.
    """
    kind = type_of(item)
    if kind == "tool_search_call":
        return item.get("execution") == "client"
    if kind == "shell_call":
        environment = object_in(item.get("environment")).get("type")
        return environment != "container_reference" and text_in(item.get("call_id")) not in hosted
    return kind in _TEXTS or kind in BUILTIN_MEMBERS


def hosted_shells(items: list[JsonValue], *, in_answer: bool) -> frozenset[str]:
    """Ids of the shell calls that ran in a container of the provider.

    In an answer their outputs tell it too: only the provider puts outputs there.
    """
    ids = set[str]()
    for item in items:
        members = object_in(item)
        is_output = in_answer and members.get("type") == "shell_call_output"
        is_call = members.get("type") == "shell_call" and not is_for_caller(members)
        if (is_output or is_call) and (call_id := text_in(members.get("call_id"))):
            ids.add(call_id)
    return frozenset(ids)


def read_call(item: JsonObject, position: int, flags: tuple[CallFlag, ...] = ()) -> ToolCall:
    """The call of an item that the caller runs.

    Args:
        item: for which `is_for_caller` holds.
        position: of the call among those of the answer.
        flags: what was odd about it on its way here.
    """
    kind = type_of(item)
    if not _has_ended(item) and "incomplete" not in flags:
        flags = (*flags, "incomplete")
    if kind in BUILTIN_MEMBERS:
        return _read_builtin(item, kind, position, flags)
    member = _TEXTS[kind]
    value = item.get(member)
    if value is not None and not isinstance(value, str):
        flags = (*flags, "arguments_were_object")
    return ToolCall(
        tool_name=text_in(item.get("name")) or "",
        arguments_raw=raw_arguments(value),
        call_id=text_in(item.get("call_id")),
        kind="custom" if kind == "custom_tool_call" else "function",
        namespace=text_in(item.get("namespace")),
        position=position,
        flags=flags,
        extras=other_members(item, "name", "namespace", member),
    )


def _has_ended(item: JsonObject) -> bool:
    status = item.get("status")
    # A call that a program makes is in progress until the caller has answered it.
    is_awaited = status == "in_progress" and object_in(item.get("caller")).get("type") == "program"
    return status in _ENDED or is_awaited


def _read_builtin(
    item: JsonObject, kind: str, position: int, flags: tuple[CallFlag, ...]
) -> ToolCall:
    member = BUILTIN_MEMBERS[kind]
    value = item.get(member)
    if value is None and item.get(ACTIONS) is not None:
        member, value = ACTIONS, {ACTIONS: item[ACTIONS]}
    if value is None and "incomplete" not in flags:
        # Nothing says what to do, so nothing is to be done.
        flags = (*flags, "incomplete")
    return ToolCall(
        tool_name=kind.removesuffix("_call"),
        arguments_raw=raw_arguments(value),
        call_id=text_in(item.get("call_id")),
        kind="builtin",
        position=position,
        flags=flags,
        extras=other_members(item, member),
    )


def other_members(item: JsonObject, *known: str) -> JsonObject:
    """What else the item says. That it is completed goes without saying."""
    extras = others(item, frozenset({"type", "call_id", *known}))
    if extras.get("status") == "completed":
        del extras["status"]
    return extras


def read_hosted_call(item: JsonObject, position: int) -> ToolCall | None:
    """The call of a tool that the provider ran itself; None for an item that is no call."""
    kind = type_of(item)
    if kind not in _HOSTED:
        return None
    return ToolCall(
        tool_name=text_in(item.get("name")) or kind.removesuffix("_call"),
        arguments_raw=_hosted_arguments(item, _HOSTED[kind]),
        call_id=text_in(item.get("call_id")) or text_in(item.get("id")),
        kind="mcp" if kind == "mcp_call" else "builtin",
        namespace=text_in(item.get("server_label")),
        position=position,
        by_provider=True,
    )


def _hosted_arguments(item: JsonObject, members: tuple[str, ...]) -> str:
    # Some servers give a text of arguments where the format has members of its own.
    text = item.get("arguments")
    if isinstance(text, str):
        return text
    written = {name: item[name] for name in members if item.get(name) is not None}
    values = list(written.values())
    is_object = len(values) == 1 and isinstance(values[0], dict)
    return raw_arguments(values[0] if is_object else written)
