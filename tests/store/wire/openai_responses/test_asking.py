"""What a Responses request asks for beyond the rows of the mapping table."""

import json

from tests.support.cases import each_case
from tests.support.wire.schemas import problems

from tooltrail.records import ToolDefinition
from tooltrail.wire import JsonObject
from tooltrail.wire.openai_responses import FORMAT

SCHEMA: JsonObject = {"type": "object", "properties": {"city": {"type": "string"}}}


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


@each_case("native", TOOLS)
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
        *("local_shell", "shell", "apply_patch", "tool_search", "programmatic_tool_calling"),
        *("deepwiki", "web_search", "lookup"),
    ]


def test_what_another_provider_was_told_of_a_tool_is_reported() -> None:
    extras: JsonObject = {"cache_control": {"type": "ephemeral"}, "defer_loading": True}
    tool = ToolDefinition(
        name="f", parameters=SCHEMA, wire_format="anthropic", extras={**extras, "type": "web_2025"}
    )
    native = {"type": "function", "name": "f", "parameters": SCHEMA, "strict": None}
    export = FORMAT.write_tools([tool])
    assert export.request["tools"] == [native]
    (change,) = export.report
    assert change.kind == "provider_data_dropped"
    assert change.detail == "cache_control, defer_loading, type"
    own = tool.model_copy(update={"wire_format": "openai-responses", "extras": extras})
    assert FORMAT.write_tools([own]).request["tools"] == [{**native, **extras}]


def test_texts_of_tools_can_be_sent() -> None:
    schema: JsonObject = {"description": "\ud800"}
    export = FORMAT.write_tools([ToolDefinition(name="f", description="\0", parameters=schema)])
    assert json.dumps(export.request, ensure_ascii=False).encode()
    assert "\\u0000" not in json.dumps(export.request)
    assert export.report.of_kind("text_replaced")
