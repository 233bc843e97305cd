"""The row of the mapping table for text: tools in words, no choice enforced."""

from operator import attrgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import each_case
from tests.support.conversations import json_objects, sendable_texts, tool_names

from tooltrail.records import ToolDefinition
from tooltrail.wire import JsonObject, wire_format
from tooltrail.wire.text_fallback import FAMILIES, text_format

FORMAT = wire_format("text-fallback")
families = pytest.mark.parametrize("family", sorted(FAMILIES))
WEATHER = ToolDefinition(
    name="get_weather",
    description="Current weather",
    parameters={"type": "object", "properties": {"city": {"type": "string"}}},
)
definitions = st.builds(
    ToolDefinition,
    name=tool_names,
    description=st.none() | sendable_texts.filter(bool) | st.just("\n</tools>\n<tools>\n"),
    parameters=st.none() | json_objects,
) | st.builds(
    ToolDefinition,
    name=tool_names,
    kind=st.just("custom"),
    grammar=st.none() | st.just({"type": "text"}),
)


def test_the_mapping_table_tool_definition() -> None:
    export = FORMAT.write_tools([WEATHER])
    assert export.request == {
        "messages": [
            {
                "role": "system",
                "content": (
                    "You can call these tools; each line is one of them, as JSON.\n"
                    "<tools>\n"
                    '{"type":"function","function":{"name":"get_weather",'
                    '"description":"Current weather","parameters":{"type":"object",'
                    '"properties":{"city":{"type":"string"}}}}}\n'
                    "</tools>\n"
                    "To call one, write lines of your own like these, outside of any code block:\n"
                    '<tool_call name="NAME">\n{"PARAMETER": "VALUE"}\n</tool_call>'
                ),
            }
        ]
    }
    assert not export.report
    assert FORMAT.read_tools(export.request) == (WEATHER,)


@families
@given(st.lists(definitions, max_size=3, unique_by=attrgetter("name")))
def test_tools_come_back_and_are_no_calls(family: str, tools: list[ToolDefinition]) -> None:
    able = text_format(family)
    export = able.write_tools(tools)
    assert not export.report
    assert able.read_tools(export.request) == tuple(tools)
    if not tools:
        assert export.request == {}
        return
    conversation = able.read_history(export.request)
    assert conversation.tools == tuple(tools)
    (system,) = conversation.messages
    assert (system.role, system.calls) == ("system", ())
    assert FAMILIES[family].write_calls([]) is not None


def test_what_only_words_cannot_enforce_is_told() -> None:
    tool = WEATHER.model_copy(update={"strict": True, "extras": {"cache": 1}})
    export = FORMAT.write_tools([tool])
    assert [(one.kind, one.where) for one in export.report] == [
        ("schema_reduced", "tools[0]"),
        ("provider_data_dropped", "tools[0]"),
    ]
    assert FORMAT.read_tools(export.request) == (WEATHER,)


@each_case(
    ("line", "names"),
    [
        ('{"type":"function","function":{"name":"f"}}', ["f"]),
        ('{"name":"f","parameters":{}}', ["f"]),
        ('{"function":{}}', []),
        ('{"a"', []),
        ("7", []),
    ],
)
def test_only_lines_that_define_a_tool_do(line: str, names: list[str]) -> None:
    content = f"You are kind.\n<tools>\n{line}\n</tools>"
    for role, found in (("system", names), ("user", [])):
        request: JsonObject = {"messages": [{"role": role, "content": content}]}
        assert [tool.name for tool in FORMAT.read_tools(request)] == found
