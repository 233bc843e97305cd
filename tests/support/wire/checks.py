"""What the types of a format do not tell: pairs, order, names, characters, and nothing empty.

Each function takes a history as it would be sent and gives the rules that it breaks, each one a
sentence. The rules are those that providers' servers were seen to enforce.
"""

# JSON of others, looked at as it is.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any

_ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_OPENAI_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
_ANTHROPIC_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_GEMINI_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}")
_ARGUMENTS = re.compile(r"/messages/\d+/tool_calls/\d+/function/arguments|/input/\d+/arguments")
_UNSENDABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\ud800-\udfff]")

History = Sequence[Mapping[str, Any]]


def history_problems(wire_format: str, request: Mapping[str, Any]) -> list[str]:
    """The rules that the history of a request breaks."""
    member, check = _CHECKS[wire_format]
    return [*_characters(request), *check(request[member])]


def _characters(value: Any, where: str = "") -> Iterator[str]:
    if isinstance(value, str):
        if _UNSENDABLE.search(value):
            yield f"{where} has a character that cannot be sent"
        yield from _escaped(value, where)
    elif isinstance(value, float):
        if not math.isfinite(value):
            yield f"{where} is no number of JSON"
    elif isinstance(value, Mapping):
        yield from _member_characters(value, where)
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _characters(item, f"{where}/{number}")
    elif not isinstance(value, int | None):
        yield f"{where} is {type(value).__name__}, which is no type of JSON"


def _member_characters(value: Mapping[str, Any], where: str) -> Iterator[str]:
    for key, member in value.items():
        if _UNSENDABLE.search(key):
            yield f"{where} has a key that cannot be sent"
        yield from _characters(member, f"{where}/{key}")


def _escaped(text: str, where: str) -> Iterator[str]:
    """Of a text that is JSON itself, what its escapes spell."""
    if not _ARGUMENTS.fullmatch(where):
        return
    try:
        yield from _characters(json.loads(text), f"{where} (decoded)")
    except ValueError:
        return


def _chat(messages: History) -> Iterator[str]:
    open_ids: list[str] = []
    seen: Counter[str] = Counter()
    for number, message in enumerate(messages):
        where = f"messages[{number}]"
        if message["role"] == "tool":
            yield from _chat_result(message, open_ids, where)
            continue
        if open_ids:
            yield f"{where} comes before the results of {open_ids}"
        open_ids = []
        for call in message.get("tool_calls") or ():
            told = call.get("function") or call["custom"]
            open_ids.append(call["id"])
            yield from _call(call["id"], told["name"], where, _OPENAI_NAME, 40)
            seen[call["id"]] += 1
        if message["role"] == "assistant" and not any(
            message.get(member) for member in ("content", "refusal", "tool_calls")
        ):
            yield f"{where} says nothing"
    if open_ids:
        yield f"no results of {open_ids}"
    yield from _repeated(seen)


def _chat_result(message: Mapping[str, Any], open_ids: list[str], where: str) -> Iterator[str]:
    if message["tool_call_id"] not in open_ids:
        yield f"{where} answers no call of the assistant's message before"
    else:
        open_ids.remove(message["tool_call_id"])
    if not isinstance(message["content"], str) or not message["content"]:
        yield f"{where} is no text, or empty"


def _call(
    call_id: str, name: str, where: str, legal_name: re.Pattern[str], id_length: int
) -> Iterator[str]:
    if not call_id or len(call_id) > id_length:
        yield f"{where}: the id {call_id!r} is empty or too long"
    if not legal_name.fullmatch(name):
        yield f"{where}: the name {name!r} is not legal"


def _repeated(seen: Counter[str]) -> Iterator[str]:
    for call_id, count in seen.items():
        if count > 1:
            yield f"the id {call_id!r} stands {count} times"


_PAIRS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "computer_call": "computer_call_output",
}


def _responses(items: History | str) -> Iterator[str]:
    if isinstance(items, str):
        return
    calls: list[tuple[str, str]] = []
    outputs: list[tuple[str, str]] = []
    is_answering = False
    for number, item in enumerate(items):
        where, kind = f"input[{number}]", item.get("type", "message")
        if kind in _PAIRS:
            calls.append((_PAIRS[kind], item["call_id"]))
            name = item.get("name", "x")
            yield from _call(item["call_id"], name, where, _OPENAI_NAME, 64)
            if is_answering and len(outputs) < len(calls) - 1:
                yield f"{where} comes before the outputs of an earlier batch"
            is_answering = False
        elif kind in _PAIRS.values():
            pair = (kind, item.get("call_id") or item.get("id") or "")
            if pair not in calls:
                yield f"{where} answers no call before it"
            outputs.append(pair)
            is_answering = True
        elif len(outputs) < len(calls) and item.get("role") in {"user", "system", "developer"}:
            yield f"{where} comes before the outputs of all calls"
    yield from _repeated(Counter(call_id for _, call_id in calls))
    if Counter(calls) != Counter(outputs):
        yield "not every call has exactly one output"


def _anthropic(messages: History) -> Iterator[str]:
    asked: list[str] = []
    seen: Counter[str] = Counter()
    for number, message in enumerate(messages):
        where = f"messages[{number}]"
        content = message["content"]
        blocks = [{"type": "text", "text": content}] if isinstance(content, str) else content
        if not blocks:
            yield f"{where} has no content"
        results = [block for block in blocks if block["type"] == "tool_result"]
        if [block["tool_use_id"] for block in results] != asked:
            yield f"{where} does not answer {asked} in this order"
        if results and blocks[: len(results)] != results:
            yield f"{where} has something before its results"
        asked = []
        for block in blocks:
            yield from _anthropic_block(block, where)
            if block["type"] == "tool_use":
                asked.append(block["id"])
                seen[block["id"]] += 1
                if not _ID.fullmatch(block["id"]):
                    yield f"{where}: the id {block['id']!r} is not legal"
    if asked:
        yield f"no results of {asked}"
    roles = [message["role"] for message in messages]
    if (roles and roles[0] != "user") or any(one == other for one, other in pairwise(roles)):
        yield f"the roles do not begin with the user and take turns: {roles}"
    yield from _repeated(seen)


def _anthropic_block(block: Mapping[str, Any], where: str) -> Iterator[str]:
    if block["type"] == "text" and not block["text"].strip():
        yield f"{where} has an empty text block"
    if block["type"] == "tool_use" and not _ANTHROPIC_NAME.fullmatch(block["name"]):
        yield f"{where}: the name {block['name']!r} is not legal"
    if block["type"] == "tool_result" and isinstance(block.get("content"), list):
        kinds = {part["type"] for part in block["content"]}
        if block.get("is_error") and kinds - {"text"}:
            yield f"{where}: a failure has {sorted(kinds)}, not text alone"
        for part in block["content"]:
            yield from _anthropic_block(part, where)


def _gemini(contents: History) -> Iterator[str]:
    asked: list[Mapping[str, Any]] = []
    for number, content in enumerate(contents):
        where = f"contents[{number}]"
        parts = content["parts"]
        if not parts:
            yield f"{where} has no parts"
        answers = [part["functionResponse"] for part in parts if "functionResponse" in part]
        pairs = [(one["name"], one.get("id")) for one in asked]
        if [(one["name"], one.get("id")) for one in answers] != pairs:
            yield f"{where} does not answer {pairs} in this order"
        for answer in answers:
            if not isinstance(answer["response"], dict):
                yield f"{where}: a response is no object"
        asked = [part["functionCall"] for part in parts if "functionCall" in part]
        if asked and (number == 0 or contents[number - 1]["role"] != "user"):
            yield f"{where}: a turn with calls does not follow a user's"
        for call in asked:
            if not _GEMINI_NAME.fullmatch(call["name"]):
                yield f"{where}: the name {call['name']!r} is not legal"
    if asked:
        yield f"no responses to {asked}"


def _ollama(messages: History) -> Iterator[str]:
    open_calls: list[Mapping[str, Any]] = []
    for number, message in enumerate(messages):
        where = f"messages[{number}]"
        if message["role"] == "tool":
            if not open_calls:
                yield f"{where} answers no call"
                continue
            call = open_calls.pop(0)
            if message.get("tool_name", call["function"]["name"]) != call["function"]["name"]:
                yield f"{where} is not of the call in its order"
            if "id" in call and message.get("tool_call_id") != call["id"]:
                yield f"{where} has not the id of its call"
            if not isinstance(message.get("content"), str):
                yield f"{where} has no content"
            continue
        if open_calls:
            yield f"{where} comes before the results of {open_calls}"
        open_calls = list(message.get("tool_calls") or ())
    if open_calls:
        yield f"no results of {open_calls}"


_CHECKS: dict[str, tuple[str, Callable[[Any], Iterator[str]]]] = {
    "openai": ("messages", _chat),
    "openai-responses": ("input", _responses),
    "anthropic": ("messages", _anthropic),
    "gemini": ("contents", _gemini),
    "ollama": ("messages", _ollama),
}
