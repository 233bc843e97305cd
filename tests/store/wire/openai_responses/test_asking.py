"""What a Responses request asks for: the rows of the mapping table, exactly and in both ways."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from tests.support.wire.schemas import problems

from tooltrail.records import (
    CallBlock,
    Conversation,
    Message,
    ResultBlock,
    TextBlock,
    ToolCall,
    ToolDefinition,
)
from tooltrail.wire import DEFAULT_EXPORT_POLICY, Export, JsonObject, StructuredFormat, ToolChoice
from tooltrail.wire.openai_responses import FORMAT

SCHEMA: JsonObject = {"type": "object", "properties": {"city": {"type": "string"}}}
CALL = ToolCall(tool_name="get_weather", arguments_raw='{"city": "Paris"}', call_id="call_a")


def batch(result: ResultBlock) -> Conversation:
    return Conversation.of(
        [
            Message(role="assistant", blocks=(CallBlock(call=CALL),)),
            Message(role="tool", blocks=(result,)),
        ]
    )


def ended(status: str, text: str) -> ResultBlock:
    content = (TextBlock(text=text),)
    return ResultBlock.model_validate({"call_id": "call_a", "status": status, "content": content})


CALL_ITEM: JsonObject = {
    "type": "function_call",
    "call_id": "call_a",
    "name": "get_weather",
    "arguments": '{"city": "Paris"}',
}


def named(*names: str) -> list[JsonObject]:
    return [{"type": "function", "name": name} for name in names]


TABLE = [
    (
        "tool definition",
        "tools",
        (ToolDefinition(name="get_weather", description="Current weather", parameters=SCHEMA),),
        {
            "tools": [
                {
                    "type": "function",
                    "name": "get_weather",
                    "description": "Current weather",
                    "parameters": SCHEMA,
                    "strict": None,
                }
            ]
        },
    ),
    (
        "call arguments and result",
        "history",
        batch(ended("unknown", "18 C")),
        {
            "input": [
                CALL_ITEM,
                {"type": "function_call_output", "call_id": "call_a", "output": "18 C"},
            ]
        },
    ),
    (
        "error",
        "history",
        batch(ended("error", "ERROR: no such city")),
        {
            "input": [
                CALL_ITEM,
                {
                    "type": "function_call_output",
                    "call_id": "call_a",
                    "output": "ERROR: no such city",
                },
            ]
        },
    ),
    ("choice: auto", "choice", ToolChoice("auto"), {"tool_choice": "auto"}),
    ("choice: none", "choice", ToolChoice("none"), {"tool_choice": "none"}),
    ("choice: required", "choice", ToolChoice("required"), {"tool_choice": "required"}),
    ("choice: one", "choice", ToolChoice("tool", ("f",)), {"tool_choice": named("f")[0]}),
    (
        "choice: several",
        "choice",
        ToolChoice("tool", ("f", "g")),
        {"tool_choice": {"type": "allowed_tools", "mode": "required", "tools": named("f", "g")}},
    ),
    (
        "choice: some or none",
        "choice",
        ToolChoice("auto", ("f", "g")),
        {"tool_choice": {"type": "allowed_tools", "mode": "auto", "tools": named("f", "g")}},
    ),
    (
        "choice: not in parallel",
        "choice",
        ToolChoice("auto", parallel=False),
        {"tool_choice": "auto", "parallel_tool_calls": False},
    ),
    (
        "structured output",
        "structured",
        StructuredFormat(SCHEMA),
        {"text": {"format": {"type": "json_schema", "name": "response", "schema": SCHEMA}}},
    ),
    (
        "structured output: strict",
        "structured",
        StructuredFormat(SCHEMA, name="weather", description="d", strict=True),
        {
            "text": {
                "format": {
                    "type": "json_schema",
                    "name": "weather",
                    "description": "d",
                    "schema": SCHEMA,
                    "strict": True,
                }
            }
        },
    ),
    (
        "structured output: any JSON",
        "structured",
        StructuredFormat(None),
        {"text": {"format": {"type": "json_object"}}},
    ),
]

WAYS: dict[str, tuple[Callable[[Any], Export], Callable[[JsonObject], object] | None]] = {
    "tools": (FORMAT.write_tools, FORMAT.read_tools),
    "choice": (FORMAT.write_choice, None),
    "structured": (FORMAT.write_structured, None),
    "history": (lambda one: FORMAT.write_history(one, DEFAULT_EXPORT_POLICY), FORMAT.read_history),
}
TYPES = {"tools": "tool", "choice": "tool_choice", "structured": "text", "history": "item"}


@pytest.mark.parametrize(
    ("kind", "canonical", "native"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE]
)
def test_the_mapping_table(kind: str, canonical: object, native: JsonObject) -> None:
    write, read = WAYS[kind]
    export = write(canonical)
    assert export.request == native
    assert not export.report
    assert read is None or read(native) == canonical
    member = next(iter(native.values()))
    for one in member if isinstance(member, list) else [member]:
        assert problems(f"openai-responses.{TYPES[kind]}", one) == []


def test_an_error_gets_the_prefix() -> None:
    export = FORMAT.write_history(batch(ended("error", "no such city")), DEFAULT_EXPORT_POLICY)
    (_, output) = export.request["input"] if isinstance(export.request["input"], list) else []
    assert isinstance(output, dict)
    assert output["output"] == "ERROR: no such city"
    assert [change.kind for change in export.report] == ["error_as_prefix"]


TOOLS: list[JsonObject] = [
    {"type": "function", "name": "f", "parameters": None, "strict": False, "description": ""},
    {
        "type": "function",
        "name": "g",
        "parameters": SCHEMA,
        "strict": True,
        "defer_loading": True,
        "allowed_callers": ["direct", "programmatic"],
        "output_schema": {"type": "string"},
        "async": True,
    },
    {"type": "custom", "name": "sql"},
    {
        "type": "custom",
        "name": "date",
        "description": "A date",
        "format": {"type": "grammar", "syntax": "regex", "definition": "^\\d+$"},
    },
    {"type": "local_shell"},
    {"type": "shell", "environment": {"type": "local"}},
    {"type": "apply_patch"},
    {"type": "tool_search"},
    {"type": "programmatic_tool_calling"},
    {
        "type": "mcp",
        "server_label": "deepwiki",
        "server_url": "https://x",
        "require_approval": "never",
    },
    {"type": "web_search"},
    {
        "type": "namespace",
        "name": "crm",
        "description": "CRM tools",
        "tools": [{"type": "function", "name": "lookup", "parameters": {"type": "object"}}],
    },
]


@pytest.mark.parametrize("native", TOOLS, ids=lambda one: f"{one['type']} {one.get('name', '')}")
def test_every_kind_of_tool_comes_back_as_it_was(native: JsonObject) -> None:
    request: JsonObject = {"tools": [native]}
    tools = FORMAT.read_tools(request)
    export = FORMAT.write_tools(tools)
    assert export.request == request
    assert not export.report
    assert problems("openai-responses.tool", native) == []


def test_tools_that_the_provider_made_are_named_by_their_type_or_server() -> None:
    request: JsonObject = {"tools": [*TOOLS[4:]]}
    assert [tool.name for tool in FORMAT.read_tools(request)] == [
        "local_shell",
        "shell",
        "apply_patch",
        "tool_search",
        "programmatic_tool_calling",
        "deepwiki",
        "web_search",
        "crm",
    ]


def test_what_another_provider_was_told_of_a_tool_is_reported() -> None:
    extras: JsonObject = {
        "cache_control": {"type": "ephemeral"},
        "allowed_callers": ["code_execution_20250825"],
        "output_schema": None,
        "defer_loading": True,
    }
    export = FORMAT.write_tools([ToolDefinition(name="f", parameters=SCHEMA, extras=extras)])
    assert export.request["tools"] == [
        {
            "type": "function",
            "name": "f",
            "parameters": SCHEMA,
            "strict": None,
            "defer_loading": True,
        }
    ]
    (change,) = export.report
    assert change.kind == "provider_data_dropped"
    assert change.detail == "allowed_callers, cache_control, output_schema"
    foreign = ToolDefinition(name="web", extras={"type": "web_search_20250305"})
    assert FORMAT.write_tools([foreign]).report


def test_a_grammar_of_chat_completions_is_spelled_flat() -> None:
    grammar = {"type": "grammar", "grammar": {"syntax": "regex", "definition": "a"}}
    tool = ToolDefinition.model_validate({"name": "t", "kind": "custom", "grammar": grammar})
    assert FORMAT.write_tools([tool]).request["tools"] == [
        {
            "type": "custom",
            "name": "t",
            "format": {"type": "grammar", "syntax": "regex", "definition": "a"},
        }
    ]


def test_illegal_names_are_the_same_in_tools_choice_calls_and_shapes() -> None:
    name = "weather.get/ü"
    tools = FORMAT.write_tools([ToolDefinition(name=name)])
    choice = FORMAT.write_choice(ToolChoice("tool", (name,)))
    shape = FORMAT.write_structured(StructuredFormat({}, name=name))
    call = CALL.model_copy(update={"tool_name": name})
    history = FORMAT.write_history(
        Conversation.of([Message(role="assistant", blocks=(CallBlock(call=call),))]),
        DEFAULT_EXPORT_POLICY,
    )
    wire_name = tools.names[name]
    assert wire_name.isascii()
    for export in (tools, choice, shape, history):
        assert export.names == {name: wire_name}
        assert wire_name in json.dumps(export.request)
        assert export.report.of_kind("name_renamed")


def test_a_choice_of_no_tool_at_all_is_any_tool_and_reported() -> None:
    export = FORMAT.write_choice(ToolChoice("tool"))
    assert export.request == {"tool_choice": "required"}
    assert export.report.of_kind("choice_not_enforced")
    assert FORMAT.write_choice(ToolChoice("none", ("f",))).request == {"tool_choice": "none"}


def test_no_tools_are_no_member() -> None:
    assert FORMAT.write_tools([]).request == {}
    assert FORMAT.read_tools({}) == ()


def test_texts_of_tools_and_shapes_can_be_sent() -> None:
    schema: JsonObject = {"description": "\ud800"}
    tool = ToolDefinition(name="f", description="\0", parameters=schema)
    for export in (
        FORMAT.write_tools([tool]),
        FORMAT.write_structured(StructuredFormat(schema, description="\udfff")),
    ):
        assert json.dumps(export.request, ensure_ascii=False).encode()
        assert "\\u0000" not in json.dumps(export.request)
        assert export.report.of_kind("text_replaced")
