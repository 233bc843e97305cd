"""Tools in a request to Ollama, beyond the rows of the mapping table."""

from tooltrail.records import ToolDefinition
from tooltrail.wire import JsonObject
from tooltrail.wire.ollama import FORMAT

SCHEMA: JsonObject = {
    "type": "object",
    "required": ["city"],
    "properties": {"city": {"type": "string", "description": "where", "enum": ["Paris"]}},
}
TOOL = ToolDefinition(name="get_weather", description="The weather.", parameters=SCHEMA)


def test_members_that_the_server_drops_are_sent_and_told_by_their_paths() -> None:
    parameters: JsonObject = {
        "type": "object",
        "additionalProperties": False,
        "description": "dropped at the root, kept below",
        "$defs": {"any": {"minimum": 1}},
        "properties": {
            "n": {"type": "integer", "minimum": 1, "description": "kept"},
            "list": {"type": "array", "items": {"type": "string", "pattern": "kept as it is"}},
            "deep": {"type": "object", "properties": {"x": {"default": 1}}},
            "one": {"anyOf": [{"type": "string", "format": "date"}, {"type": "null"}]},
            "any": True,
            "ref": {"$ref": "#/$defs/any"},
        },
    }
    export = FORMAT.write_tools([TOOL.model_copy(update={"parameters": parameters})])
    (tool,) = FORMAT.read_tools(export.request)
    assert tool.parameters == parameters
    (change,) = export.report
    assert (change.kind, change.where) == ("schema_reduced", "tools[0]")
    assert change.detail.removeprefix("dropped: ").split(", ") == [
        "additionalProperties",
        "description",
        "properties/n/minimum",
        "properties/deep/properties/x/default",
        "properties/one/anyOf/0/format",
        "properties/any",
        "properties/ref/$ref",
    ]


def test_many_paths_are_counted() -> None:
    properties: JsonObject = {f"p{n}": {"minimum": n} for n in range(25)}
    tool = ToolDefinition(name="f", parameters={"type": "object", "properties": properties})
    (change,) = FORMAT.write_tools([tool]).report
    assert change.detail.endswith("properties/p19/minimum and 5 more")


def test_a_tool_of_free_text_takes_it_in_the_member_that_its_calls_have_it_in() -> None:
    tool = ToolDefinition(name="patch", kind="custom", grammar={"type": "text"}, strict=True)
    export = FORMAT.write_tools([tool.model_copy(update={"extras": {"defer": True}})])
    (native,) = FORMAT.read_tools(export.request)
    assert native.parameters is not None
    assert native.parameters["required"] == ["arguments"]
    assert [change.kind for change in export.report] == [
        "schema_reduced",
        "schema_reduced",
        "provider_data_dropped",
    ]


def test_an_empty_description_is_one() -> None:
    native: JsonObject = {"type": "function", "function": {"name": "f", "description": ""}}
    tools = FORMAT.read_tools({"tools": [native]})
    assert FORMAT.write_tools(tools).request == {"tools": [native]}


def test_what_else_is_said_of_a_tool_is_kept_in_its_extras() -> None:
    (tool,) = FORMAT.read_tools({"tools": [{"function": {"name": "f", "strict": True}}, "x"]})
    assert tool == ToolDefinition(name="f", extras={"strict": True})


def test_names_are_free_text_but_for_what_cannot_be_sent() -> None:
    names = ["mcp.server/tool ü\tx", "a\0b", "a" * 300]
    export = FORMAT.write_tools([ToolDefinition(name=name) for name in names])
    written = [tool.name for tool in FORMAT.read_tools(export.request)]
    assert written[0] == names[0]
    assert export.names == {names[1]: written[1], names[2]: written[2]}
    assert [change.kind for change in export.report] == ["name_renamed", "name_renamed"]
