"""The rules of Chat Completions and of compatible servers for a history."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from tests.support.wire.sendable import JsonObject, escape_problems, name_problems, repeated

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")

_ID_LENGTH = 40
"""Most characters of an id: older models reject more, newer models reject more than 64."""


def chat_rules(
    messages: Sequence[JsonObject], *, id_length: int = _ID_LENGTH, takes_parts: bool = False
) -> Iterator[str]:
    """Every call is answered next, in order and by text, and every id is unique.

    Args:
        messages: messages of a request.
        id_length: most characters of an id.
        takes_parts: whether a result may be a list of parts.
    """
    pending: list[Any] = []
    seen: list[Any] = []
    for number, message in enumerate(messages):
        where = f"messages[{number}]"
        if message.get("role") in {"tool", "function"}:
            yield from _result(message, pending, where)
            if not takes_parts and not isinstance(message.get("content"), str):
                yield f"{where} is not a string"
            continue
        if pending:
            yield f"{where} comes before the results of {pending}"
        pending = []
        for call in message.get("tool_calls") or ():
            pending.append(call.get("id"))
            yield from _named(call.get("function") or call.get("custom") or {}, where)
            call_id = call.get("id")
            if not isinstance(call_id, str) or not 0 < len(call_id) <= id_length:
                yield f"{where}: the id {call_id!r} is empty or too long"
        seen += pending
        if legacy := message.get("function_call"):
            pending.append(legacy.get("name"))
            yield from _named(legacy, where)
        yield from _empty(message, where)
    if pending:
        yield f"there are no results of {pending}"
    yield from repeated(seen, "id")


def _named(told: JsonObject, where: str) -> Iterator[str]:
    yield from name_problems(told.get("name"), NAME, where)
    yield from escape_problems(told.get("arguments"), f"{where}/arguments")


def _result(message: JsonObject, pending: list[Any], where: str) -> Iterator[str]:
    """Compatible servers split a list of texts and lose the id; many reject an empty result."""
    asked = message.get("tool_call_id" if message["role"] == "tool" else "name")
    if asked not in pending:
        yield f"{where} answers no call of the assistant's message before"
    else:
        if asked != pending[0]:
            yield f"{where} is not in the order of the calls"
        pending.remove(asked)
    if not message.get("content"):
        yield f"{where} is empty"


def _empty(message: JsonObject, where: str) -> Iterator[str]:
    said = ("content", "refusal", "audio", "tool_calls", "function_call")
    if message.get("role") == "assistant" and not any(message.get(member) for member in said):
        yield f"{where} says nothing"
    elif message.get("content") == []:
        yield f"{where} has no content"
