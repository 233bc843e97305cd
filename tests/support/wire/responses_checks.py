"""The rules of Responses for a history."""

# Untyped JSON of other programs.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

import re
from collections.abc import Iterator, Sequence
from typing import Any

from tests.support.wire.sendable import JsonObject, escape_problems, name_problems, repeated

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")

_ID_LENGTH = 64

_OUTPUTS = {
    "function_call": "function_call_output",
    "custom_tool_call": "custom_tool_call_output",
    "local_shell_call": "local_shell_call_output",
    "shell_call": "shell_call_output",
    "apply_patch_call": "apply_patch_call_output",
    "computer_call": "computer_call_output",
    "tool_search_call": "tool_search_output",
    "mcp_approval_request": "mcp_approval_response",
}
"""Items that ask the caller for something, and the items that answer them."""

_PREFIXES = {
    "function_call": "fc",
    "custom_tool_call": "ctc",
    "local_shell_call": "lsh",
    "shell_call": "sh",
    "apply_patch_call": "apc",
    "computer_call": "cu",
    "reasoning": "rs",
}
"""Prefixes of item ids. The id of an item is not the id of the call, and may be omitted."""


def responses_rules(items: Sequence[JsonObject], *, continues: bool = False) -> Iterator[str]:
    """Every call has one output, after all calls of its batch and in their order.

    Args:
        items: the input.
        continues: whether the server has earlier items, which may include the calls.
    """
    pending: list[tuple[str, Any]] = []
    is_answering = False
    for number, item in enumerate(items):
        where, kind = f"input[{number}]", item.get("type") or "message"
        if _is_call(item):
            if is_answering:
                yield f"{where} comes before the outputs of the batch before it"
            pending.append((_OUTPUTS[kind], _call_id(item)))
            yield from _call(item, where)
        elif _is_output(item):
            yield from _output(item, pending, where, continues=continues)
            is_answering = bool(pending)
        elif pending and item.get("role") in {"user", "system", "developer"}:
            yield f"{where} comes before the outputs of {pending}"
    if pending:
        yield f"there are no outputs of {pending}"
    yield from repeated(map(_call_id, filter(_is_call, items)), "id")
    yield from repeated((item["id"] for item in items if _has_own_id(item)), "item's id")


def _is_call(item: JsonObject) -> bool:
    if item.get("type") == "tool_search_call":
        return item.get("execution") == "client"
    # The provider has the output of a shell in its own container.
    environment = item.get("environment") or {}
    return item.get("type") in _OUTPUTS and environment.get("type") != "container_reference"


def _is_output(item: JsonObject) -> bool:
    if item.get("type") == "tool_search_output":
        return item.get("execution") == "client"
    return item.get("type") in _OUTPUTS.values()


def _call_id(item: JsonObject) -> Any:
    """Outputs of the local shell and approvals have the id of the call under other names."""
    return item.get("call_id") or item.get("approval_request_id") or item.get("id")


def _has_own_id(item: JsonObject) -> bool:
    return bool(item.get("id")) and item.get("type") not in {
        "item_reference",
        "local_shell_call_output",
    }


def _call(item: JsonObject, where: str) -> Iterator[str]:
    call_id, kind = _call_id(item), item["type"]
    if not isinstance(call_id, str) or not 0 < len(call_id) <= _ID_LENGTH:
        yield f"{where}: the id {call_id!r} is empty or too long"
    if not str(item.get("id") or _PREFIXES.get(kind, "")).startswith(_PREFIXES.get(kind, "")):
        yield f"{where}: the item's id {item['id']!r} does not begin with {_PREFIXES[kind]!r}"
    if item.get("status") not in {None, "completed"}:
        yield f"{where} is a call that is not complete"
    if kind in {"function_call", "custom_tool_call"}:
        yield from name_problems(item.get("name"), NAME, where)
    yield from escape_problems(item.get("arguments"), f"{where}/arguments")


def _output(
    item: JsonObject, pending: list[tuple[str, Any]], where: str, *, continues: bool
) -> Iterator[str]:
    pair = (str(item["type"]), _call_id(item))
    if pair not in pending:
        if not continues:
            yield f"{where} answers no call before it"
        return
    if pair != pending[0]:
        yield f"{where} is not in the order of the calls"
    pending.remove(pair)
