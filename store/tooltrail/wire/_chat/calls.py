"""The calls in the messages of a chat, and the results in messages of role `tool`."""

from collections.abc import Callable, Iterable, Iterator

from pydantic import JsonValue

from tooltrail.records import CallBlock, CallFlag, ResultBlock, ToolCall
from tooltrail.wire._chat.answers import (
    NO_FLAGS,
    ODD_CALL,
    ODD_CALLS,
    Flags,
    is_odd_call,
    odd_texts,
)
from tooltrail.wire._chat.parts import Part, is_part, read_part
from tooltrail.wire._reading import numbered, result_of_text
from tooltrail.wire._steps import Answered
from tooltrail.wire._writing import Writing
from tooltrail.wire.members import (
    JsonObject,
    are_objects,
    items_of,
    object_in,
    objects_in,
    others,
    raw_arguments,
    text_in,
)

CALL = frozenset({"id", "type", "function", "custom", "index"})
"""Members of a call that are read."""

_TEXTS = ("tool_call_id", "name")
_BODY_MEMBERS = {
    "function": frozenset({"name", "arguments"}),
    "custom": frozenset({"name", "input"}),
}


def unread_in(native: JsonObject) -> Iterator[str]:
    """One sentence for each malformed part of a message with content and calls."""
    content = native.get("content")
    if not isinstance(content, str | list | None) and not is_part(content):
        yield "content of the message is not a string"
    if not are_objects(native.get("tool_calls")):
        yield ODD_CALLS
    calls = objects_in(native.get("tool_calls"))
    if any(is_odd_call(one) or not (one.get("function") or one.get("custom")) for one in calls):
        yield ODD_CALL


def read_calls(natives: Iterable[JsonObject], flags: Flags = NO_FLAGS) -> Iterator[CallBlock]:
    """Read the calls of one message as blocks, in their order."""
    calls = (_read_call(call, flags.get(n, ())) for n, call in enumerate(natives))
    return numbered(CallBlock(call=call) for call in calls)


def _read_call(native: JsonObject, flags: tuple[CallFlag, ...]) -> ToolCall:
    is_custom = isinstance(native.get("custom"), dict)
    member = "custom" if is_custom else "function"
    members = object_in(native.get(member))
    arguments = members.get("input" if is_custom else "arguments")
    if not isinstance(arguments, str | None):
        flags = (*flags, "arguments_were_object")
    return ToolCall(
        tool_name=text_in(members.get("name")) or "",
        arguments_raw=raw_arguments(arguments),
        call_id=text_in(native.get("id")),
        kind="custom" if is_custom else "function",
        flags=flags,
        extras=_call_extras(native, member, members),
    )


def _call_extras(native: JsonObject, member: str, members: JsonObject) -> JsonObject:
    extras = others(native, CALL)
    if besides := others(members, _BODY_MEMBERS[member]):
        extras[member] = besides
    # An id that is not a text cannot be used as an id, but is kept as the provider's data.
    return extras | odd_texts(native, ["id"])


def write_call(
    writing: Writing, answered: Answered, arguments: str, *, is_custom: bool = False
) -> JsonObject:
    """Write a call of any kind as a function call, or as one of a custom tool; others reported."""
    if answered.call.kind in {"builtin", "mcp"}:
        note = f"a {answered.call.kind} call is a function call here"
        writing.note("provider_data_dropped", answered.where, note)
    kind, member = ("custom", "input") if is_custom else ("function", "arguments")
    body: JsonObject = {"name": answered.wire_name, member: arguments}
    return {"id": answered.wire_id, "type": kind, kind: body}


def read_result(
    native: JsonObject, known: frozenset[str], read: Callable[[JsonValue], Part] = read_part
) -> ResultBlock:
    """Read the result in a message; members other than those `known` to the format are extras."""
    content = native.get("content")
    call_id, name = (native.get(one) if one in known else None for one in _TEXTS)
    extras = others(native, known) | odd_texts(native, known.intersection(_TEXTS))
    is_value = not isinstance(content, str | list | None) and not is_part(content)
    blocks = () if is_value else tuple(map(read, items_of(content)))
    value: JsonValue = content if is_value else None
    return result_of_text(text_in(call_id), text_in(name), blocks).model_copy(
        update={"structured": value, "has_structured": is_value, "extras": extras}
    )
