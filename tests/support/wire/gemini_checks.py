"""The rules of Gemini's generateContent for a history. Each key may be spelled in two ways."""

import re
from collections.abc import Iterator, Sequence
from typing import Any

from tests.support.wire.schema_amendments import snake
from tests.support.wire.sendable import JsonObject, name_problems

NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")

_DATA = (
    *("text", "functionCall", "functionResponse", "inlineData", "fileData", "executableCode"),
    *("codeExecutionResult", "toolCall", "toolResponse"),
)
"""Kinds of parts. A part has exactly one of these members."""


def member(value: JsonObject, key: str) -> Any:
    """The value of a key, in either spelling."""
    return value.get(key, value.get(snake(key)))


def gemini_rules(contents: Sequence[JsonObject]) -> Iterator[str]:
    """All responses of a turn are in the next content: one for each call, in the same order."""
    asked: list[Any] = []
    role_before: Any = None
    for number, content in enumerate(contents):
        where, role = f"contents[{number}]", content.get("role")
        parts: list[Any] = content.get("parts") or []
        if not parts:
            yield f"{where} has no parts"
        pairs = [(one.get("name"), one.get("id")) for one in asked]
        given = _members(parts, "functionResponse")
        if [(one.get("name"), one.get("id")) for one in given] != pairs:
            yield f"{where} does not answer {pairs}, in this order"
        asked = _members(parts, "functionCall")
        if asked and role_before not in {"user", "function"}:
            yield f"{where}: a turn with calls does not follow a user's"
        if (asked and role != "model") or (given and role == "model"):
            yield f"{where} is not of the role of its parts"
        for part in parts:
            yield from _part(part, where)
        role_before = role
    if asked:
        yield f"there are no responses to {[one.get('name') for one in asked]}"


def _members(parts: list[Any], key: str) -> list[Any]:
    return [member(part, key) for part in parts if member(part, key) is not None]


def _part(part: JsonObject, where: str) -> Iterator[str]:
    data = [key for key in _DATA if member(part, key) is not None]
    if len(data) != 1:
        yield f"{where} has a part with {data or 'nothing'}, not one thing"
    for call in _members([part], "functionCall"):
        yield from name_problems(call.get("name"), NAME, where)
    for response in _members([part], "functionResponse"):
        if not isinstance(response.get("response"), dict):
            yield f"{where}: a response is not an object"
