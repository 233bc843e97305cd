"""Whether JSON is what the official clients' own types allow: all of it, with no key beside them.

`TypeAdapter.validate_python` does not tell: lists of a `TypedDict` are looked at when they are
iterated over, and unknown keys pass. So the types are turned into JSON Schema, every object of it
is closed, and the JSON is validated by that, at once and whole.
"""

# JSON of others, looked at as it is.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

from collections.abc import Callable, Iterator
from functools import cache
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError
from pydantic import TypeAdapter


def _chat(name: str) -> Any:
    chat = pytest.importorskip("openai.types.chat")
    if name == "request":
        return chat.completion_create_params.CompletionCreateParamsNonStreaming
    return getattr(chat, name)


def _responses(name: str) -> Any:
    responses = pytest.importorskip("openai.types.responses")
    params = responses.response_create_params
    return getattr(responses, name, None) or getattr(params, name)


def _anthropic(name: str) -> Any:
    types = pytest.importorskip("anthropic.types")
    if name == "request":
        return types.message_create_params.MessageCreateParamsNonStreaming
    return getattr(types, name)


def _gemini(name: str) -> Any:
    return getattr(pytest.importorskip("google.genai.types"), name)


def _ollama(name: str) -> Any:
    return getattr(pytest.importorskip("ollama._types"), name)


def _mcp(module: str, name: str) -> Any:
    return getattr(pytest.importorskip(f"mcp_types.{module}"), name)


TARGETS: dict[str, Callable[[], Any]] = {
    "openai.message": lambda: _chat("ChatCompletionMessageParam"),
    "openai.tool": lambda: _chat("ChatCompletionToolUnionParam"),
    "openai.tool_choice": lambda: _chat("ChatCompletionToolChoiceOptionParam"),
    "openai.request": lambda: _chat("request"),
    "openai-responses.item": lambda: _responses("ResponseInputItemParam"),
    "openai-responses.tool": lambda: _responses("ToolParam"),
    "openai-responses.tool_choice": lambda: _responses("ToolChoice"),
    "openai-responses.text": lambda: _responses("ResponseTextConfigParam"),
    "openai-responses.request": lambda: _responses("ResponseCreateParamsNonStreaming"),
    "anthropic.message": lambda: _anthropic("MessageParam"),
    "anthropic.tool": lambda: _anthropic("ToolUnionParam"),
    "anthropic.tool_choice": lambda: _anthropic("ToolChoiceParam"),
    "anthropic.output_config": lambda: _anthropic("OutputConfigParam"),
    "anthropic.request": lambda: _anthropic("request"),
    "gemini.content": lambda: _gemini("Content"),
    "gemini.tool": lambda: _gemini("Tool"),
    "gemini.tool_config": lambda: _gemini("ToolConfig"),
    "gemini.generation_config": lambda: _gemini("GenerationConfig"),
    "ollama.message": lambda: _ollama("Message"),
    "ollama.tool": lambda: _ollama("Tool"),
    "mcp-2025.result": lambda: _mcp("_v2025_11_25", "CallToolResult"),
    "mcp-2025.request": lambda: _mcp("_v2025_11_25", "CallToolRequest"),
    "mcp-2025.tool": lambda: _mcp("_v2025_11_25", "Tool"),
    "mcp-2026.result": lambda: _mcp("_v2026_07_28", "CallToolResult"),
    "mcp-2026.request": lambda: _mcp("_v2026_07_28", "CallToolRequest"),
    "mcp-2026.tool": lambda: _mcp("_v2026_07_28", "Tool"),
}
"""What can be validated, and where its type is."""

_OPEN = frozenset({"ollama.tool", "mcp-2025.tool", "mcp-2026.tool"})
"""Targets of which parts are JSON Schemas, which the client keeps a few keywords of."""

_OLLAMA_SERVER = {
    "tool_call_id": {"type": "string"},
    "id": {"type": "string"},
    "index": {"type": "integer"},
}
"""What the server reads and the client of version 0.6.3 does not know."""


def problems(target: str, value: Any) -> list[str]:
    """What of a value its type does not allow, each one a sentence; none for a good one."""
    return [_told(error) for error in _validator(target).iter_errors(value)]


@cache
def _validator(target: str) -> Draft202012Validator:
    schema = TypeAdapter(TARGETS[target]()).json_schema(by_alias=True)
    if target not in _OPEN:
        _close(schema, with_server_keys=target.startswith("ollama"))
    return Draft202012Validator(schema)


def _close(schema: Any, *, with_server_keys: bool) -> None:
    if isinstance(schema, dict):
        if "properties" in schema and with_server_keys:
            schema["properties"] = {**_OLLAMA_SERVER, **schema["properties"]}
        if "properties" in schema and "additionalProperties" not in schema:
            schema["additionalProperties"] = False
        for member in schema.values():
            _close(member, with_server_keys=with_server_keys)
    elif isinstance(schema, list):
        for item in schema:
            _close(item, with_server_keys=with_server_keys)


def _told(error: ValidationError) -> str:
    deepest = max(_leaves(error), key=lambda one: len(one.absolute_path))
    where = "/".join(map(str, deepest.absolute_path))
    return f"{where}: {deepest.message[:300]}"


def _leaves(error: ValidationError) -> Iterator[ValidationError]:
    yield error
    for cause in error.context or ():
        yield from _leaves(cause)
