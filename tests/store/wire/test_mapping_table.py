"""Seed 4's table: how each provider spells tools, calls, results, errors and choices.

Every cell is exact JSON, written and read back.
"""

from typing import Any

import pytest
from tests.support.agents.scenarios import example
from tests.support.agents.scripted_provider import FORMATS
from tests.support.cases import each_case
from tests.support.wire.choices import written_choice
from tests.support.wire.fake_provider import request_problems
from tests.support.wire.schemas import TARGETS, problems
from tests.support.wire.spelled_requests import PROVIDERS, QUESTION, spell_request

from tooltrail.agents import submission_tool
from tooltrail.records import (
    CallBlock,
    Conversation,
    Message,
    ResultBlock,
    TextBlock,
    ToolCall,
    ToolDefinition,
)
from tooltrail.wire import DEFAULT_EXPORT_POLICY, ToolChoice, wire_format

SCHEMA: Any = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = ToolDefinition(name="get_weather", description="Weather", parameters=SCHEMA)
FUNCTION = {"name": "get_weather", "description": "Weather", "parameters": SCHEMA}

TOOLS: dict[str, Any] = {
    # No `strict` is sent for a schema of the caller's, which may not fit what it asks for.
    "openai": [{"type": "function", "function": FUNCTION}],
    "openai-responses": [{"type": "function", **FUNCTION, "strict": None}],
    "anthropic": [{"name": "get_weather", "description": "Weather", "input_schema": SCHEMA}],
    "ollama": [{"type": "function", "function": FUNCTION}],
    "cohere": [{"type": "function", "function": FUNCTION}],
    "gemini": [
        {
            "functionDeclarations": [
                {"name": "get_weather", "description": "Weather", "parametersJsonSchema": SCHEMA}
            ]
        }
    ],
}


@each_case("name", TOOLS)
def test_a_tool_definition(name: str) -> None:
    known = wire_format(name)
    export = known.write_tools([TOOL])
    assert export.request == {"tools": TOOLS[name]}
    assert known.read_tools(export.request) == (TOOL,)
    assert export.report.changes == ()
    for tool in TOOLS[name]:
        assert problems(f"{name}.tool", tool) == []
    assert known.write_tools([]).request == {}
    assert known.read_tools({}) == ()


ARGS = {"city": "Paris"}
CALL = ToolCall(tool_name="get_weather", arguments_raw='{"city":"Paris"}', call_id="call_a")


@each_case("name", PROVIDERS)
@each_case(("text", "is_error"), [("18 C", False), ("no", True)])
def test_call_arguments_results_and_errors(name: str, text: str, *, is_error: bool) -> None:
    result = ResultBlock(
        call_id="call_a",
        tool_name="get_weather",
        status="error" if is_error else "ok",
        content=(TextBlock(text=text),),
    )
    asked = Message(role="assistant", blocks=(CallBlock(call=CALL),))
    messages = [Message.of("user", QUESTION), asked, Message(role="tool", blocks=(result,))]
    known = wire_format(name)
    request = known.write_history(Conversation.of(messages), DEFAULT_EXPORT_POLICY).request
    assert request == spell_request(name, [("call_a", ARGS)], [("call_a", text, is_error)])
    assert request_problems(name, request) == []
    again = known.read_history(request)
    (call,) = again.messages[1].calls
    assert (call.arguments, call.call_id, call.tool_name) == (ARGS, "call_a", "get_weather")
    (told,) = again.messages[2].results
    assert (told.call_id, told.is_error) == ("call_a", is_error)
    # Where there is no flag, what the model is shown says it.
    prefix = "ERROR: " if is_error and name not in ("anthropic", "bedrock", "gemini") else ""
    assert told.content == (TextBlock(text=prefix + text),)
    (items,) = request.values()
    assert isinstance(items, list)
    assert [known.is_result(one) for one in items if isinstance(one, dict)] == [False, False, True]


def among(*tools: dict[str, Any]) -> dict[str, Any]:
    """What OpenAI is told of a choice among some tools."""
    return {"mode": "required", "tools": [*tools]}


def converse(choice: str, **members: str) -> dict[str, Any]:
    return {"toolConfig": {"toolChoice": {choice: members}}}


def gemini(mode: str, **members: list[str]) -> dict[str, Any]:
    return {"toolConfig": {"functionCallingConfig": {"mode": mode, **members}}}


ONE, TWO = ToolChoice("tool", ("f",)), ToolChoice("tool", ("f", "g"))
CHAT_F, CHAT_G = ({"type": "function", "function": {"name": name}} for name in "fg")
FLAT_F, FLAT_G = ({"type": "function", "name": name} for name in "fg")
ONE_AT_A_TIME = ToolChoice("required", parallel=False)
CHOICES: list[tuple[str, ToolChoice, dict[str, Any]]] = [
    ("openai", ToolChoice("auto"), {"tool_choice": "auto"}),
    ("openai", ToolChoice("none"), {"tool_choice": "none"}),
    ("openai", ONE_AT_A_TIME, {"tool_choice": "required", "parallel_tool_calls": False}),
    ("openai", ONE, {"tool_choice": CHAT_F}),
    (
        "openai",
        TWO,
        {"tool_choice": {"type": "allowed_tools", "allowed_tools": among(CHAT_F, CHAT_G)}},
    ),
    ("cohere", ToolChoice("auto"), {}),
    ("cohere", ToolChoice("none"), {"tool_choice": "NONE"}),
    ("cohere", ToolChoice("required"), {"tool_choice": "REQUIRED"}),
    ("openai-responses", ToolChoice("auto"), {"tool_choice": "auto"}),
    ("openai-responses", ToolChoice("none"), {"tool_choice": "none"}),
    ("openai-responses", ToolChoice("required"), {"tool_choice": "required"}),
    (
        "openai-responses",
        ToolChoice("tool", ("f",), parallel=True),
        {"tool_choice": FLAT_F, "parallel_tool_calls": True},
    ),
    ("openai-responses", TWO, {"tool_choice": {"type": "allowed_tools", **among(FLAT_F, FLAT_G)}}),
    ("anthropic", ToolChoice("auto"), {"tool_choice": {"type": "auto"}}),
    ("anthropic", ToolChoice("none"), {"tool_choice": {"type": "none"}}),
    (
        "anthropic",
        ONE_AT_A_TIME,
        {"tool_choice": {"type": "any", "disable_parallel_tool_use": True}},
    ),
    ("anthropic", ONE, {"tool_choice": {"type": "tool", "name": "f"}}),
    ("bedrock", ToolChoice("auto"), converse("auto")),
    ("bedrock", ToolChoice("required"), converse("any")),
    ("bedrock", ONE, converse("tool", name="f")),
    ("gemini", ToolChoice("auto"), gemini("AUTO")),
    ("gemini", ToolChoice("none"), gemini("NONE")),
    ("gemini", ToolChoice("required"), gemini("ANY")),
    ("gemini", TWO, gemini("ANY", allowedFunctionNames=["f", "g"])),
]


TYPES = {
    "toolConfig": "tool_config",
    "generationConfig": "generation_config",
    "outputConfig": "OutputConfig",
}


def check_types(name: str, request_members: dict[str, Any]) -> None:
    """Check what the types of the official client say of some members of a request."""
    for member, value in request_members.items():
        target = f"{name}.{TYPES.get(member, member)}"
        if target in TARGETS:
            assert problems(target, value) == []


@each_case(("name", "choice", "request_members"), CHOICES)
def test_a_forced_choice(name: str, choice: ToolChoice, request_members: dict[str, Any]) -> None:
    known = wire_format(name)
    tools = (ToolDefinition(name="f"), ToolDefinition(name="g"))
    export = written_choice(known, choice, tools)
    assert export.request == request_members
    assert export.report.changes == ()
    check_types(name, request_members)


SEVERAL = "nothing keeps the model from calling several tools at once"
UNENFORCED: list[tuple[str, ToolChoice, dict[str, Any], str]] = [
    # Ollama has no member for it, and nothing stands in for one.
    ("ollama", ToolChoice("required"), {}, "required: the model may answer without a call"),
    ("ollama", ONE, {}, "tool f: the model may answer without a call"),
    ("ollama", ToolChoice("auto", parallel=False), {}, "the model may call several tools at once"),
    ("anthropic", TWO, {"tool_choice": {"type": "any"}}, "any tool may be called, not only f, g"),
    ("bedrock", ToolChoice("none"), {}, "none: the model may call a tool"),
    ("bedrock", ToolChoice("auto", parallel=False), converse("auto"), SEVERAL),
    ("cohere", ONE, {"tool_choice": "REQUIRED"}, "any tool may be called, not only f"),
    ("gemini", ONE_AT_A_TIME, gemini("ANY"), SEVERAL),
]


@each_case(("name", "choice", "request_members", "told"), UNENFORCED)
def test_a_choice_that_cannot_be_enforced_is_told(
    name: str, choice: ToolChoice, request_members: dict[str, Any], told: str
) -> None:
    export = written_choice(wire_format(name), choice)
    assert export.request == request_members
    assert [(one.kind, one.detail) for one in export.report] == [("choice_not_enforced", told)]


def test_ollama_leaves_the_choice_to_the_model_without_a_word() -> None:
    export = written_choice(wire_format("ollama"), ToolChoice("auto"))
    assert (export.request, export.report.changes) == ({}, ())


@each_case("name", FORMATS)
def test_the_schema_of_a_result_stands_in_the_tool_that_submits_it_and_nowhere_else(
    name: str,
) -> None:
    known, tool = wire_format(name), submission_tool(example("reviewer"), name)
    assert tool is not None
    request = known.write_tools([tool], ToolChoice("tool", (tool.name,))).request
    assert "tools" in request
    # No response_format, output_config, text, format or generationConfig.
    assert request.keys() <= {"tools", "tool_choice", "toolConfig"}
    (offered,) = known.read_tools(request)
    assert (offered.name, offered.parameters) == ("submit_result", tool.parameters)
    assert not offered.strict


def test_a_tool_of_free_text() -> None:
    grammar: Any = {"type": "grammar", "grammar": {"syntax": "regex", "definition": "a+"}}
    tool = ToolDefinition(name="sql", description="d", kind="custom", grammar=grammar)
    chat = wire_format("openai").write_tools([tool]).request
    assert wire_format("openai").read_tools(chat) == (tool,)
    flat = wire_format("openai-responses").write_tools([tool]).request["tools"]
    assert flat == [
        {
            "type": "custom",
            "name": "sql",
            "description": "d",
            "format": {"type": "grammar", "syntax": "regex", "definition": "a+"},
        }
    ]
    for name in ("anthropic", "bedrock", "gemini", "cohere"):
        export = wire_format(name).write_tools([tool])
        assert export.report.of_kind("schema_reduced")
        (read,) = wire_format(name).read_tools(export.request)
        assert read.parameters is not None
        assert read.parameters["required"] == ["input"]


PROVIDED: list[tuple[str, list[Any]]] = [
    ("anthropic", [{"type": "web_search_20250305", "name": "web_search", "max_uses": 5}]),
    ("openai-responses", [{"type": "web_search"}, {"type": "mcp", "server_label": "x"}]),
    ("bedrock", [{"systemTool": {"name": "nova_grounding"}}]),
    ("gemini", [{"googleSearch": {}}, {"codeExecution": {}}]),
]


@pytest.mark.parametrize(("name", "tools"), PROVIDED)
def test_a_tool_that_the_provider_brings_goes_back_to_it_alone(name: str, tools: list[Any]) -> None:
    known = wire_format(name)
    request: Any = {"toolConfig": {"tools": tools}} if name == "bedrock" else {"tools": tools}
    definitions = known.read_tools(request)
    assert known.write_tools(definitions).request == request
    other = wire_format("openai").write_tools(definitions)
    assert len(other.report.of_kind("provider_data_dropped")) == len(tools)


def test_gemini_s_older_schemas_go_back_as_they_came_and_are_told_to_others() -> None:
    declaration = {"name": "f", "parameters": {"type": "OBJECT", "required": ["a"]}}
    request: Any = {"tools": [{"function_declarations": [declaration]}]}
    definitions = wire_format("gemini").read_tools(request)
    written = wire_format("gemini").write_tools(definitions).request
    assert written == {"tools": [{"functionDeclarations": [declaration]}]}
    assert definitions[0].parameters == {"type": "object", "required": ["a"]}
