"""The calls in the message of a chat: `tool_calls`, each of a function or of a custom tool."""

from collections.abc import Iterable, Iterator

from tooltrail.records import CallBlock, CallFlag, ToolCall
from tooltrail.wire._chat.answers import NO_FLAGS, Flags, odd_calls
from tooltrail.wire._reading import RepeatedIds
from tooltrail.wire.members import (
    JsonObject,
    object_in,
    objects_in,
    others,
    raw_arguments,
    text_in,
)

CALL = frozenset({"id", "type", "function", "custom", "index"})
"""Members of a call that are read."""

_TOLD = {"function": frozenset({"name", "arguments"}), "custom": frozenset({"name", "input"})}


def unread_calls(native: JsonObject) -> Iterator[str]:
    """What of the calls of a message is not what it is to be, each one a sentence."""
    yield from odd_calls(native)
    for call in objects_in(native.get("tool_calls")):
        custom = call.get("custom")
        body = custom if isinstance(custom, dict) else call.get("function")
        if not isinstance(call.get("id"), str | None):
            yield "the id of a call is no text"
        if custom and call.get("function"):
            yield "a call is of a function and of a custom tool"
        if not isinstance(body, dict):
            yield "a call has nothing to call"
        elif not isinstance(body.get("name"), str | None):
            yield "the name of a call is no text"


def read_calls(natives: Iterable[JsonObject], flags: Flags = NO_FLAGS) -> Iterator[CallBlock]:
    """The blocks of the calls of one message, in their order."""
    repeated = RepeatedIds()
    for position, call in enumerate(natives):
        yield repeated.flagged(_read_call(call, position, flags.get(position, ())))


def _read_call(native: JsonObject, position: int, flags: tuple[CallFlag, ...]) -> ToolCall:
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
        position=position,
        flags=flags,
        extras=_call_extras(native, member, members),
    )


def _call_extras(native: JsonObject, member: str, members: JsonObject) -> JsonObject:
    extras = others(native, CALL)
    if besides := others(members, _TOLD[member]):
        extras[member] = besides
    call_id = native.get("id")
    # An id that is no text is none to any caller, and still what the provider said.
    return extras if isinstance(call_id, str | None) else {**extras, "id": call_id}
