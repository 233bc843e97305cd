"""Definitions of tools over MCP, and what a request cannot ask for."""

from tests.support.cases import each_case
from tests.support.wire.choices import written_choice
from tests.support.wire.schemas import problems

from tooltrail.records import ToolDefinition
from tooltrail.wire import JsonObject, ToolChoice
from tooltrail.wire.mcp import FORMAT

SCHEMA: JsonObject = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
NATIVE: JsonObject = {
    "name": "get_weather",
    "description": "The weather.",
    "inputSchema": SCHEMA,
    "title": "Weather",
    "outputSchema": {"type": "object"},
    "annotations": {"readOnlyHint": True},
    "icons": [],
    "_meta": {},
}
TOOL = ToolDefinition(
    name="get_weather",
    description="The weather.",
    parameters=SCHEMA,
    wire_format="mcp",
    extras={
        "title": "Weather",
        "outputSchema": {"type": "object"},
        "annotations": {"readOnlyHint": True},
        "icons": [],
        "_meta": {},
    },
)


def test_the_mapping_table_tool_definition() -> None:
    export = FORMAT.write_tools([TOOL])
    assert export.request == {"tools": [NATIVE]}
    assert not export.report
    assert FORMAT.read_tools({"tools": [NATIVE]}) == (TOOL,)


def test_tools_are_found_in_a_response_and_among_messages() -> None:
    response: JsonObject = {"jsonrpc": "2.0", "id": 1, "result": {"tools": [NATIVE]}}
    assert FORMAT.read_tools(response) == (TOOL,)
    messages: JsonObject = {"messages": [{"method": "x"}, response, response]}
    assert FORMAT.read_tools(messages) == (TOOL, TOOL)


def test_a_schema_is_there_and_of_an_object() -> None:
    tools = [
        ToolDefinition(name="now"),
        ToolDefinition(name="untyped", parameters={"properties": {}}),
        ToolDefinition(name="patch", kind="custom", grammar="x", strict=True),
        ToolDefinition(name="foreign", extras={"cache_control": {}, "title": 7}, parameters=SCHEMA),
    ]
    export = FORMAT.write_tools(tools)
    natives = export.request["tools"]
    assert isinstance(natives, list)
    for native in natives:
        assert problems("mcp-2025.tool", native) == []
        assert problems("mcp-2026.tool", native) == []
    now, untyped, patch, foreign = FORMAT.read_tools(export.request)
    assert now.parameters == {"type": "object", "additionalProperties": False}
    assert untyped.parameters == {"properties": {}, "type": "object"}
    assert patch.parameters is not None
    assert patch.parameters["required"] == ["arguments"]
    assert foreign == ToolDefinition(name="foreign", parameters=SCHEMA)
    assert [(change.kind, change.where) for change in export.report] == [
        ("schema_reduced", "tools[1]"),
        ("schema_reduced", "tools[2]"),
        ("schema_reduced", "tools[2]"),
        ("provider_data_dropped", "tools[3]"),
    ]


def test_names_are_those_that_the_protocol_advises() -> None:
    export = FORMAT.write_tools([ToolDefinition(name="a.b-C_1"), ToolDefinition(name="my tool")])
    first, second = FORMAT.read_tools(export.request)
    assert first.name == "a.b-C_1"
    assert export.names == {"my tool": second.name}
    assert FORMAT.write_tools([]).request == {}


@each_case(
    ("choice", "is_told"),
    [
        (ToolChoice("auto"), False),
        (ToolChoice("auto", parallel=True), False),
        (ToolChoice("none"), False),
        (ToolChoice("required"), True),
        (ToolChoice("tool", ("f",)), True),
        (ToolChoice("tool", ("f", "g")), True),
        (ToolChoice("auto", parallel=False), True),
    ],
)
def test_the_mapping_table_forced_choice_is_not_enforced(
    choice: ToolChoice, *, is_told: bool
) -> None:
    export = written_choice(FORMAT, choice)
    assert export.request == {}
    kinds = [change.kind for change in export.report]
    assert kinds == (["choice_not_enforced"] if is_told else [])
