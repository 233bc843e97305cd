"""The rules of Anthropic Messages for a history."""

# Untyped JSON of other programs.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

from tests.support.wire.sendable import JsonObject, name_problems, repeated

NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")

_THINKING = {"thinking", "redacted_thinking"}


def anthropic_rules(messages: Sequence[JsonObject]) -> Iterator[str]:
    """All results come first in the message after the calls; ids are unique, no text is empty."""
    asked: list[Any] = []
    ids: list[Any] = []
    for number, message in enumerate(messages):
        where, blocks = f"messages[{number}]", _blocks(message)
        yield from _answers(blocks, asked, where)
        asked = [block.get("id") for block in blocks if block.get("type") == "tool_use"]
        ids += asked
        if not blocks:
            yield f"{where} has no content"
        for block in blocks:
            yield from _block(block, message.get("role"), where)
        kinds = [block.get("type") for block in blocks]
        if _THINKING.intersection(kinds) and kinds[0] not in _THINKING:
            yield f"{where} does not begin with what was thought"
    if asked:
        yield f"there are no results of {asked}"
    yield from _roles(messages)
    yield from repeated(ids, "id")


def _blocks(message: JsonObject) -> list[Any]:
    content = message.get("content") or []
    return [{"type": "text", "text": content}] if isinstance(content, str) else list(content)


def _answers(blocks: list[Any], asked: list[Any], where: str) -> Iterator[str]:
    results = [block for block in blocks if block.get("type") == "tool_result"]
    if [block.get("tool_use_id") for block in results] != asked:
        yield f"{where} does not answer {asked}, in this order"
    if blocks[: len(results)] != results:
        yield f"{where} has something before its results"


def _roles(messages: Sequence[JsonObject]) -> Iterator[str]:
    """Roles alternate: the server joins messages of one role, which misplaces results and calls."""
    roles = [message.get("role") for message in messages]
    told = [role for role in roles if role != "system"]
    if told and told[0] != "user":
        yield f"the roles do not begin with the user: {roles}"
    if any(one == other for one, other in pairwise(told)):
        yield f"the roles do not take turns: {roles}"


def _block(block: JsonObject, role: Any, where: str) -> Iterator[str]:
    kind = block.get("type", "")
    if kind == "text" and not str(block.get("text")).strip():
        yield f"{where} has an empty text block"
    # As of version 2026-10-21: the model's messages have citations, but no documents.
    if (role == "assistant" and kind == "document") or (role == "user" and block.get("citations")):
        yield f"{where} has a {kind} block of the other role"
    if kind.endswith("tool_use"):
        yield from _call(block, role, where)
    elif kind == "tool_result":
        yield from _result(block, role, where)


def _call(block: JsonObject, role: Any, where: str) -> Iterator[str]:
    if role != "assistant":
        yield f"{where} has a call, and is not of the assistant"
    if not ID.fullmatch(str(block.get("id"))):
        yield f"{where}: the id {block.get('id')!r} is not legal"
    yield from name_problems(block.get("name"), NAME, where)


def _result(block: JsonObject, role: Any, where: str) -> Iterator[str]:
    if role != "user":
        yield f"{where} has a result, and is not of the user"
    content = block.get("content")
    parts: list[Any] = content if isinstance(content, list) else []
    kinds = sorted({part.get("type") for part in parts} - {"text"})
    if block.get("is_error") and kinds:
        yield f"{where}: a failure has {kinds}, not text alone"
    for part in parts:
        yield from _block(part, None, where)
