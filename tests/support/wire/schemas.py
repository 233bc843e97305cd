"""Checks that JSON fits the types of the official clients completely, without unknown keys.

`TypeAdapter.validate_python` is not enough: it checks lists of a `TypedDict` only when they are
iterated over, and accepts unknown keys. So the types are converted to JSON Schema, all objects are
closed to unknown keys, and the complete JSON is validated by the schema. Additions of servers to
their client's types are in `tests.support.wire.schema_amendments`.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator
from functools import cache
from typing import Annotated, Any

import pytest
from jsonschema import Draft202012Validator, ValidationError
from pydantic import TypeAdapter, WithJsonSchema
from tests.support.wire import cohere_types
from tests.support.wire.aws_models import schema_of
from tests.support.wire.schema_amendments import amended


def _chat(name: str) -> Any:
    chat = pytest.importorskip("openai.types.chat")
    return getattr(chat, name, None) or getattr(chat.completion_create_params, name)


def _responses(name: str) -> Any:
    responses = pytest.importorskip("openai.types.responses")
    return getattr(responses, name, None) or getattr(responses.response_create_params, name)


def _anthropic(name: str) -> Any:
    types = pytest.importorskip("anthropic.types")
    return getattr(types, name, None) or getattr(types.message_create_params, name)


def _gemini(name: str) -> Any:
    return getattr(pytest.importorskip("google.genai.types"), name)


def _ollama(name: str) -> Any:
    return getattr(pytest.importorskip("ollama._types"), name)


def _cohere(name: str) -> Any:
    return Annotated[Any, WithJsonSchema(getattr(cohere_types, name))]


def _bedrock(name: str) -> Any:
    pytest.importorskip("botocore")
    return Annotated[Any, WithJsonSchema(schema_of("bedrock-runtime", name))]


def _mcp(revision: str, name: str) -> Any:
    return getattr(pytest.importorskip(f"mcp_types.{revision}"), name)


TARGETS: dict[str, Callable[[], Any]] = {
    "openai.message": lambda: _chat("ChatCompletionMessageParam"),
    "openai.tool": lambda: _chat("ChatCompletionToolUnionParam"),
    "openai.tool_choice": lambda: _chat("ChatCompletionToolChoiceOptionParam"),
    "openai.response_format": lambda: _chat("ResponseFormat"),
    "openai-responses.item": lambda: _responses("ResponseInputItemParam"),
    "openai-responses.tool": lambda: _responses("ToolParam"),
    "openai-responses.tool_choice": lambda: _responses("ToolChoice"),
    "openai-responses.text": lambda: _responses("ResponseTextConfigParam"),
    "anthropic.message": lambda: _anthropic("MessageParam"),
    "anthropic.tool": lambda: _anthropic("ToolUnionParam"),
    "anthropic.tool_choice": lambda: _anthropic("ToolChoiceParam"),
    "anthropic.output_config": lambda: _anthropic("OutputConfigParam"),
    "bedrock.Message": lambda: _bedrock("Message"),
    "bedrock.ToolConfiguration": lambda: _bedrock("ToolConfiguration"),
    "bedrock.OutputConfig": lambda: _bedrock("OutputConfig"),
    "gemini.content": lambda: _gemini("Content"),
    "gemini.tool": lambda: _gemini("Tool"),
    "gemini.tool_config": lambda: _gemini("ToolConfig"),
    "gemini.generation_config": lambda: _gemini("GenerationConfig"),
    "ollama.message": lambda: _ollama("Message"),
    "ollama.tool": lambda: _ollama("Tool"),
    "cohere.message": lambda: _cohere("MESSAGE"),
    "cohere.tool": lambda: _cohere("TOOL"),
    "cohere.tool_choice": lambda: _cohere("TOOL_CHOICE"),
    "cohere.response_format": lambda: _cohere("RESPONSE_FORMAT"),
    "mcp-2025.result": lambda: _mcp("_v2025_11_25", "CallToolResult"),
    "mcp-2025.request": lambda: _mcp("_v2025_11_25", "CallToolRequest"),
    "mcp-2025.tool": lambda: _mcp("_v2025_11_25", "Tool"),
    "mcp-2026.result": lambda: _mcp("_v2026_07_28", "CallToolResult"),
    "mcp-2026.request": lambda: _mcp("_v2026_07_28", "CallToolRequest"),
    "mcp-2026.tool": lambda: _mcp("_v2026_07_28", "Tool"),
}
"""Names of what can be validated, with the type. If a client is absent, the test is skipped."""


def problems(target: str, value: Any) -> list[str]:
    """Problems of a value by its type, each as a sentence; empty for a valid value.

    Raises:
        KeyError: the target is not in `TARGETS`.
    """
    errors: Iterator[ValidationError] = _validator(target).iter_errors(value)
    return [_told(error) for error in errors]


@cache
def _validator(target: str) -> Any:
    """A validator; its type is Any, since the stubs of jsonschema are incomplete."""
    schema = TypeAdapter(TARGETS[target]()).json_schema(by_alias=True)
    return Draft202012Validator(amended(target.partition(".")[0], schema))


def _told(error: ValidationError) -> str:
    meant = _meant(error)
    where = "/".join(map(str, meant.absolute_path))
    return f"{where}: {meant.message[:300]}"


def _meant(error: ValidationError) -> ValidationError:
    """The error of the intended member of a union, among the errors of all members."""
    if not error.context:
        return error
    members: dict[object, list[ValidationError]] = defaultdict(list)
    for cause in error.context:
        members[cause.schema_path[0]].append(cause)
    meant = [causes for causes in members.values() if not any(map(_is_other, causes))]
    if not meant:
        return error
    causes = min(meant, key=lambda causes: (len(causes), -max(map(_depth, causes))))
    return _meant(max(causes, key=_depth))


def _is_other(cause: ValidationError) -> bool:
    """Whether the value belongs to another member of the union: another kind, type or role."""
    if not cause.path:
        return cause.validator == "type"
    return cause.validator in {"const", "enum"} and list(cause.path) in (["type"], ["role"])


def _depth(cause: ValidationError) -> int:
    return len(cause.absolute_path)
