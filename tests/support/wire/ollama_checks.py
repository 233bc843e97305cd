"""The rules of Ollama's chat for a history. Templates pair by order, newer servers by id."""

# Untyped JSON of other programs.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Iterator, Sequence
from typing import Any

from tests.support.wire.sendable import JsonObject


def ollama_rules(messages: Sequence[JsonObject]) -> Iterator[str]:
    """Every call is answered next and in order, with its id if it has one."""
    pending: list[Any] = []
    for number, message in enumerate(messages):
        where = f"messages[{number}]"
        if message.get("role") == "tool":
            yield from _result(message, pending, where)
            continue
        if pending:
            yield f"{where} comes before the results of {pending}"
        pending = list(message.get("tool_calls") or ())
        if any(not (call.get("function") or {}).get("name") for call in pending):
            yield f"{where} has a call without a name"
        said = ("content", "thinking", "images", "tool_calls")
        if message.get("role") == "assistant" and not any(message.get(member) for member in said):
            yield f"{where} says nothing"
    if pending:
        yield f"there are no results of {pending}"


def _result(message: JsonObject, pending: list[Any], where: str) -> Iterator[str]:
    if not isinstance(message.get("content"), str):
        yield f"{where} has no content"
    if not pending:
        yield f"{where} answers no call"
        return
    call = pending.pop(0)
    name = (call.get("function") or {}).get("name")
    if message.get("tool_name", name) != name:
        yield f"{where} is not of the call in its order"
    if call.get("id") and message.get("tool_call_id") != call["id"]:
        yield f"{where} has not the id of its call"
