"""Validation by the official clients' types: each way round it is closed.

That it lets pass what a type allows is seen wherever an export is checked by it.
"""

from typing import Any

import pytest
from pydantic import TypeAdapter
from tests.support.wire.schemas import TARGETS, problems

SCHEMA: Any = {"type": "object", "properties": {"city": {"type": "string"}}}
CHAT_CALL: Any = {"id": "call_a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
BAD_CALL: Any = {"id": "c", "type": "function", "function": {"name": 1}}
BMP: Any = {"type": "base64", "media_type": "image/bmp", "data": "iVBOR"}


def tool_result(**members: object) -> Any:
    result = {"type": "tool_result", "tool_use_id": "toolu_1", **members}
    return {"role": "user", "content": [result]}


def function_response(**members: object) -> Any:
    return {"role": "user", "parts": [{"functionResponse": {"name": "f", **members}}]}


REFUSED: list[tuple[str, Any, str]] = [
    ("openai.message", {"role": "tool", "tool_call_id": "c", "content": "", "name": "f"}, "'name'"),
    ("openai.message", {"role": "nonsense", "content": "x"}, "nonsense"),
    (
        "openai.response_format",
        {"type": "json_schema", "name": "response", "schema": SCHEMA},
        "json_schema",
    ),
    (
        "openai-responses.item",
        {"type": "function_call_output", "call_id": "c", "output": "", "is_error": True},
        "'is_error'",
    ),
    (
        "openai-responses.tool",
        {"type": "function", "name": "f", "parameters": SCHEMA},
        "'strict' is a required property",
    ),
    (
        "anthropic.message",
        tool_result(content=[{"type": "image", "source": BMP}]),
        "media_type: 'image/bmp'",
    ),
    ("anthropic.message", tool_result(is_eror=True), "content/0: Additional properties"),
    ("anthropic.tool", {"name": "f", "parameters": SCHEMA}, "'input_schema' is a required"),
    ("bedrock.Message", {"role": "user", "content": [{"text": "x", "json": {}}]}, "content/0"),
    ("bedrock.Message", {"role": "user", "content": [{"txt": "x"}]}, "'txt' was unexpected"),
    (
        "bedrock.ToolConfiguration",
        {"tools": [{"toolSpec": {"name": "a b", "inputSchema": {"json": SCHEMA}}}]},
        "name: 'a b' does not match",
    ),
    ("bedrock.ToolConfiguration", {"tools": [{"toolSpec": {"name": "f"}}]}, "'inputSchema' is a"),
    ("gemini.content", {"role": "model", "parts": [{"functionCal": {"name": "f"}}]}, "functionCal"),
    ("gemini.content", {"role": "model", "parts": [{"functionCall": {}}]}, "'name' is a required"),
    ("gemini.content", function_response(response="18 C"), "functionResponse/response"),
    (
        "gemini.content",
        function_response(response={}, parts=[{"inlineData": {"data": "no base64!"}}]),
        "no base64!",
    ),
    (
        "gemini.tool",
        {
            "functionDeclarations": [
                {"name": "f", "parameters": {"type": "OBJECT"}, "parametersJsonSchema": SCHEMA}
            ]
        },
        "functionDeclarations/0",
    ),
    (
        "ollama.message",
        {
            "role": "assistant",
            "tool_calls": [{"function": {"name": "f", "arguments": '{"city": "Paris"}'}}],
        },
        "tool_calls/0/function/arguments",
    ),
    ("ollama.message", {"role": "user", "content": "x", "id": "call_1"}, "'id'"),
    (
        "ollama.tool",
        {"id": "call_1", "type": "function", "function": {"name": "f"}},
        "'id' was unexpected",
    ),
    ("mcp-2025.result", {"content": [], "structuredContent": [1]}, "structuredContent"),
    ("mcp-2025.tool", {"name": "f", "inputSchema": SCHEMA, "descripton": "d"}, "'descripton'"),
    ("mcp-2026.result", {"content": []}, "'resultType' is a required property"),
]


@pytest.mark.parametrize(("target", "value", "told"), REFUSED)
def test_what_a_type_does_not_allow_is_told(target: str, value: Any, told: str) -> None:
    found = problems(target, value)
    assert any(told in problem for problem in found), found


def test_no_target_takes_anything() -> None:
    assert all(problems(target, {"nonsense": [1]}) for target in TARGETS)


@pytest.mark.parametrize(
    ("members", "told"),
    [
        ({"tool_calls": [BAD_CALL]}, "tool_calls/0/function"),
        ({"content": "x", "tool_cals": [CHAT_CALL]}, "'tool_cals' was unexpected"),
    ],
)
def test_what_pydantic_passes_over_is_told(members: dict[str, Any], told: str) -> None:
    message = {"role": "assistant", **members}
    TypeAdapter(TARGETS["openai.message"]()).validate_python(message)
    assert told in problems("openai.message", message)[0]
