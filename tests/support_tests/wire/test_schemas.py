"""Validation by the official clients' types: what it lets pass, and each way round it closed."""

import sys
from typing import Any

import pytest
from pydantic import TypeAdapter
from tests.support.wire.schemas import TARGETS, problems

SCHEMA: Any = {
    "type": "object",
    "properties": {"city": {"type": "string", "minLength": 1}, "properties": {"type": "object"}},
    "required": ["city"],
    "additionalProperties": False,
}
"""Of arguments, with a property that is named as a keyword is."""

CHAT_CALL: Any = {"id": "call_a", "type": "function", "function": {"name": "f", "arguments": "{}"}}
PNG: Any = {"type": "base64", "media_type": "image/png", "data": "iVBOR"}
META_2026: Any = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"com.example/more": {}},
    "traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
}


def tool_result(**members: object) -> Any:
    result = {"type": "tool_result", "tool_use_id": "toolu_1", **members}
    return {"role": "user", "content": [result]}


def tool_use(**members: object) -> Any:
    return {"role": "assistant", "content": [{"type": "tool_use", "id": "toolu_1", **members}]}


def function_response(**members: object) -> Any:
    return {"role": "user", "parts": [{"functionResponse": {"name": "f", **members}}]}


ACCEPTED: list[tuple[str, Any]] = [
    ("openai.message", {"role": "assistant", "content": None, "tool_calls": [CHAT_CALL]}),
    (
        "openai.message",
        {
            "role": "assistant",
            "tool_calls": [{"id": "c", "type": "custom", "custom": {"name": "s", "input": "x"}}],
        },
    ),
    ("openai.message", {"role": "tool", "tool_call_id": "c", "content": "18 C"}),
    (
        "openai.message",
        {"role": "tool", "tool_call_id": "c", "content": [{"type": "text", "text": "1"}]},
    ),
    ("openai.message", {"role": "function", "name": "f", "content": "18 C"}),
    ("openai.tool", {"type": "function", "function": {"name": "f", "parameters": SCHEMA}}),
    ("openai.tool", {"type": "custom", "custom": {"name": "s", "format": {"type": "text"}}}),
    ("openai.tool_choice", "required"),
    ("openai.tool_choice", {"type": "function", "function": {"name": "f"}}),
    (
        "openai.tool_choice",
        {
            "type": "allowed_tools",
            "allowed_tools": {
                "mode": "required",
                "tools": [{"type": "function", "function": {"name": "f"}}],
            },
        },
    ),
    (
        "openai.response_format",
        {"type": "json_schema", "json_schema": {"name": "response", "schema": SCHEMA}},
    ),
    (
        "openai.request",
        {
            "model": "m",
            "messages": [
                {"role": "user", "content": "x"},
                {"role": "assistant", "tool_calls": [CHAT_CALL]},
            ],
            "tools": [{"type": "function", "function": {"name": "f"}}],
            "response_format": {"type": "json_object"},
        },
    ),
    (
        "openai-responses.item",
        {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"},
    ),
    (
        "openai-responses.item",
        {"type": "function_call_output", "call_id": "c", "output": "18 C"},
    ),
    (
        "openai-responses.item",
        {
            "type": "function_call_output",
            "call_id": "c",
            "output": [
                {"type": "input_text", "text": "see"},
                {"type": "input_image", "image_url": "data:image/png;base64,x", "detail": "auto"},
                {"type": "input_file", "filename": "a.pdf", "file_data": "data:;base64,x"},
            ],
        },
    ),
    ("openai-responses.item", {"type": "custom_tool_call_output", "call_id": "c", "output": "1"}),
    (
        "openai-responses.item",
        {
            "type": "shell_call_output",
            "call_id": "c",
            "max_output_length": 4096,
            "output": [
                {"stdout": "a", "stderr": "", "outcome": {"type": "exit", "exit_code": 0}},
                {"stdout": "", "stderr": "", "outcome": {"type": "timeout"}},
            ],
        },
    ),
    (
        "openai-responses.item",
        {
            "type": "apply_patch_call",
            "call_id": "c",
            "status": "completed",
            "operation": {"type": "delete_file", "path": "a.py"},
        },
    ),
    ("openai-responses.item", {"type": "local_shell_call_output", "id": "c", "output": "{}"}),
    (
        "openai-responses.tool",
        {"type": "function", "name": "f", "parameters": SCHEMA, "strict": False},
    ),
    ("openai-responses.tool_choice", {"type": "function", "name": "f"}),
    (
        "openai-responses.text",
        {"format": {"type": "json_schema", "name": "response", "schema": SCHEMA}},
    ),
    (
        "openai-responses.request",
        {
            "model": "m",
            "input": [{"type": "function_call_output", "call_id": "c", "output": []}],
            "tools": [{"type": "function", "name": "f", "parameters": None, "strict": None}],
        },
    ),
    ("anthropic.message", tool_use(name="f", input={"city": "Paris"})),
    ("anthropic.message", tool_result(content="18 C")),
    ("anthropic.message", tool_result()),
    (
        "anthropic.message",
        tool_result(
            content=[
                {"type": "text", "text": "18 C"},
                {"type": "image", "source": PNG},
                {
                    "type": "search_result",
                    "source": "https://x",
                    "title": "t",
                    "content": [{"type": "text", "text": "s"}],
                },
                {"type": "tool_reference", "tool_name": "lookup"},
            ]
        ),
    ),
    ("anthropic.message", {"role": "system", "content": "x"}),
    ("anthropic.tool", {"name": "f", "input_schema": SCHEMA}),
    ("anthropic.tool_choice", {"type": "tool", "name": "f", "disable_parallel_tool_use": True}),
    ("anthropic.output_config", {"format": {"type": "json_schema", "schema": SCHEMA}}),
    (
        "anthropic.request",
        {"model": "m", "max_tokens": 1, "messages": [tool_use(name="f", input={})]},
    ),
    (
        "gemini.content",
        {
            "role": "model",
            "parts": [
                {
                    "functionCall": {"id": "a", "name": "f", "args": {"city": "Paris"}},
                    "thoughtSignature": "AQL_c2ln",
                },
                {"function_call": {"name": "now"}},
            ],
        },
    ),
    (
        "gemini.content",
        function_response(
            response={"output": "18 C"},
            parts=[{"inline_data": {"mime_type": "image/png", "data": "iVBOR+/="}}],
        ),
    ),
    (
        "gemini.tool",
        {"functionDeclarations": [{"name": "f", "parametersJsonSchema": SCHEMA}, {"name": "now"}]},
    ),
    ("gemini.tool", {"functionDeclarations": [{"name": "f", "parameters_json_schema": SCHEMA}]}),
    (
        "gemini.tool_config",
        {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["f"]}},
    ),
    (
        "gemini.generation_config",
        {"responseMimeType": "application/json", "responseJsonSchema": SCHEMA},
    ),
    (
        "gemini.config",
        {
            "tools": [{"functionDeclarations": [{"name": "f"}]}],
            "toolConfig": {"functionCallingConfig": {"mode": "AUTO"}},
        },
    ),
    (
        "ollama.message",
        {
            "role": "assistant",
            "content": "",
            "thinking": "so",
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"index": 0, "name": "f", "arguments": {"city": "Paris"}},
                }
            ],
        },
    ),
    (
        "ollama.message",
        {
            "role": "tool",
            "tool_name": "f",
            "tool_call_id": "call_1",
            "content": "18 C",
            "images": ["iVBOR"],
        },
    ),
    ("ollama.tool", {"type": "function", "function": {"name": "f", "parameters": SCHEMA}}),
    (
        "ollama.request",
        {
            "model": "m",
            "stream": False,
            "think": "max",
            "format": SCHEMA,
            "options": {"temperature": 0},
            "messages": [{"role": "tool", "content": "", "tool_call_id": "call_1"}],
            "tools": [{"type": "function", "function": {"name": "f", "parameters": SCHEMA}}],
        },
    ),
    (
        "mcp-2025.request",
        {
            "jsonrpc": "2.0",
            "id": 7,
            "method": "tools/call",
            "params": {"name": "f", "arguments": {"a": 1}, "_meta": {"progressToken": "p"}},
        },
    ),
    (
        "mcp-2025.result",
        {"content": [], "isError": True, "structuredContent": {"t": 18}, "_meta": {"x/y": 1}},
    ),
    ("mcp-2025.tool", {"name": "f", "inputSchema": SCHEMA, "annotations": {"title": "t"}}),
    (
        "mcp-2026.request",
        {
            "jsonrpc": "2.0",
            "id": "a",
            "method": "tools/call",
            "params": {"name": "f", "_meta": META_2026},
        },
    ),
    (
        "mcp-2026.result",
        {
            "resultType": "complete",
            "structuredContent": [1],
            "content": [
                {"type": "text", "text": "x"},
                {"type": "image", "data": "iVBOR", "mimeType": "image/png"},
                {"type": "audio", "data": "UklGR", "mimeType": "audio/wav"},
                {"type": "resource_link", "uri": "file:///log", "name": "log", "size": 5},
                {"type": "resource", "resource": {"uri": "file:///b", "blob": "AAEC"}},
            ],
        },
    ),
    ("mcp-2026.tool", {"name": "f", "inputSchema": SCHEMA, "outputSchema": {"type": "array"}}),
]

REFUSED: list[tuple[str, Any, str]] = [
    (
        "openai.message",
        {
            "role": "assistant",
            "tool_calls": [
                {"id": "c", "type": "function", "function": {"name": "f", "arguments": {}}}
            ],
        },
        "tool_calls/0/function/arguments: {} is not of type 'string'",
    ),
    (
        "openai.message",
        {
            "role": "tool",
            "tool_call_id": "c",
            "content": [{"type": "image_url", "image_url": {"url": "data:,"}}],
        },
        "content/0",
    ),
    ("openai.message", {"role": "tool", "tool_call_id": "c", "content": "", "name": "f"}, "'name'"),
    ("openai.message", {"role": "nonsense", "content": "x"}, "nonsense"),
    (
        "openai.response_format",
        {"type": "json_schema", "name": "response", "schema": SCHEMA},
        "json_schema",
    ),
    (
        "openai.request",
        {
            "model": "m",
            "messages": [{"role": "user", "content": "x"}],
            "response_format": {"type": "json_schema", "name": "r", "schema": SCHEMA},
        },
        "response_format",
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
        "openai-responses.text",
        {"format": {"type": "json_schema", "json_schema": {"name": "r", "schema": SCHEMA}}},
        "format",
    ),
    ("anthropic.message", tool_use(name="f", input="{}"), "content/0/input"),
    (
        "anthropic.message",
        tool_result(content=[{"type": "image", "source": {**PNG, "media_type": "image/bmp"}}]),
        "media_type: 'image/bmp'",
    ),
    ("anthropic.message", tool_result(is_eror=True), "content/0: Additional properties"),
    ("anthropic.message", {"role": "tool", "content": "x"}, "'role': 'tool'"),
    ("anthropic.tool", {"name": "f", "parameters": SCHEMA}, "'input_schema' is a required"),
    ("gemini.content", {"role": "model", "parts": [{"functionCal": {"name": "f"}}]}, "functionCal"),
    (
        "gemini.content",
        {"role": "model", "parts": [{"functionCall": {"name": "f", "args": "{}"}}]},
        "args",
    ),
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
    ("gemini.tool", {"functionDeclarations": [{"description": "d"}]}, "'name' is a required"),
    ("gemini.config", {"toolConfg": {}}, "toolConfg: Extra inputs are not permitted"),
    (
        "ollama.message",
        {
            "role": "assistant",
            "tool_calls": [{"function": {"name": "f", "arguments": '{"city": "Paris"}'}}],
        },
        "tool_calls/0/function/arguments",
    ),
    ("ollama.message", {"content": "x"}, "'role' is a required property"),
    ("ollama.message", {"role": "user", "content": "x", "id": "call_1"}, "'id'"),
    ("ollama.message", {"role": "user", "images": [{"value": "iVBOR"}]}, "images/0"),
    (
        "ollama.tool",
        {"id": "call_1", "type": "function", "function": {"name": "f"}},
        "'id' was unexpected",
    ),
    ("ollama.tool", {"type": "function", "function": {"nam": "f"}}, "'nam' was unexpected"),
    (
        "ollama.request",
        {"model": "m", "messages": [{"role": "tool", "is_error": True}]},
        "messages/0: Additional properties are not allowed ('is_error' was unexpected)",
    ),
    ("mcp-2025.result", {"isError": False}, "'content' is a required property"),
    (
        "mcp-2025.result",
        {"content": [{"type": "video", "data": "x", "mimeType": "video/mp4"}]},
        "content/0",
    ),
    ("mcp-2025.result", {"content": [], "structuredContent": [1]}, "structuredContent"),
    ("mcp-2025.result", {"content": [], "is_error": True}, "'is_error' was unexpected"),
    ("mcp-2025.tool", {"name": "f", "inputSchema": SCHEMA, "descripton": "d"}, "'descripton'"),
    ("mcp-2026.result", {"content": []}, "'resultType' is a required property"),
    (
        "mcp-2026.request",
        {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "f", "_meta": {"progressToken": 1}},
        },
        "params/_meta: 'io.modelcontextprotocol/",
    ),
]


@pytest.mark.parametrize(("target", "value"), ACCEPTED)
def test_what_a_type_allows_passes(target: str, value: Any) -> None:
    assert problems(target, value) == []


@pytest.mark.parametrize(("target", "value", "told"), REFUSED)
def test_what_a_type_does_not_allow_is_told(target: str, value: Any, told: str) -> None:
    found = problems(target, value)
    assert any(told in problem for problem in found), found


def test_every_target_has_something_that_passes_and_no_target_takes_anything() -> None:
    assert {target for target, _ in ACCEPTED} == set(TARGETS)
    assert all(problems(target, {"nonsense": [1]}) for target in TARGETS)


BAD_ITEM = {
    "role": "assistant",
    "tool_calls": [{"id": "c", "type": "function", "function": {"name": 1}}],
}
MISSPELT = {"role": "assistant", "content": "x", "tool_cals": [CHAT_CALL]}


def chat_message() -> TypeAdapter[Any]:
    return TypeAdapter(TARGETS["openai.message"]())


def test_a_bad_item_of_a_list_that_pydantic_looks_at_late_is_told() -> None:
    chat_message().validate_python(BAD_ITEM)
    assert problems("openai.message", BAD_ITEM)


def test_a_bad_item_that_pydantic_leaves_away_when_it_dumps_is_told() -> None:
    adapter = chat_message()
    dumped = adapter.dump_json(adapter.validate_python(BAD_ITEM), warnings=False)
    assert b'"tool_calls":[]' in dumped
    assert problems("openai.message", BAD_ITEM)


def test_a_misspelt_key_that_pydantic_passes_over_is_told() -> None:
    chat_message().validate_python(MISSPELT)
    assert "'tool_cals' was unexpected" in problems("openai.message", MISSPELT)[0]


@pytest.mark.parametrize(
    ("target", "value", "told"),
    [
        (
            "openai-responses.item",
            {"type": "function_call_output", "call_id": "c", "output": 18},
            "output: 18 is not",
        ),
        (
            "anthropic.message",
            tool_result(content=[{"type": "text", "text": 18}]),
            "content/0/content/0/text: 18 is not of type 'string'",
        ),
        (
            "openai-responses.item",
            {"type": "shell_call_output", "call_id": "c", "output": [{"stdout": "", "stderr": ""}]},
            "output/0: 'outcome' is a required property",
        ),
    ],
)
def test_of_a_union_only_the_member_that_was_meant_is_told(
    target: str, value: Any, told: str
) -> None:
    (problem,) = problems(target, value)
    assert problem.startswith(told)


@pytest.mark.parametrize(
    ("target", "module"),
    [
        ("openai.message", "openai.types.chat"),
        ("openai-responses.item", "openai.types.responses"),
        ("anthropic.message", "anthropic.types"),
        ("gemini.content", "google.genai.types"),
        ("ollama.message", "ollama._types"),
        ("mcp-2026.result", "mcp_types._v2026_07_28"),
    ],
)
def test_where_a_client_is_absent_the_test_is_skipped_and_told_why(
    target: str, module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(pytest.skip.Exception, match=module):
        TARGETS[target]()
