"""A choice among some tools is told as it is, or the report says that it is not."""

from typing import Any

import pytest
from tests.support.cases import each_case
from tests.support.wire.choices import written_choice

from tooltrail.records import ToolDefinition
from tooltrail.wire import FORMAT_MODULES, Export, ToolChoice, wire_format

FREE = ToolChoice("auto", ("x", "y"))
CUSTOM = ToolChoice("tool", ("grep",))
BOTH = ToolChoice("tool", ("x", "grep"))
TOOLS = (
    ToolDefinition(name="x"),
    ToolDefinition(name="y"),
    ToolDefinition(name="grep", kind="custom"),
)


def write(name: str, choice: ToolChoice) -> Export:
    return written_choice(wire_format(name), choice, TOOLS)


@each_case("name", ["openai", "openai-responses"])
@each_case("choice", [FREE, CUSTOM, BOTH, ToolChoice("tool", ("x",), False)])
def test_a_choice_among_tools_is_written_without_a_loss(name: str, choice: ToolChoice) -> None:
    assert not write(name, choice).report


def test_the_choices_of_chat_completions_are_as_its_server_takes_them() -> None:
    chat = "openai"
    named: list[Any] = [
        {"type": "function", "function": {"name": "x"}},
        {"type": "custom", "custom": {"name": "grep"}},
    ]
    assert write(chat, CUSTOM).request == {"tool_choice": named[1]}
    assert write(chat, BOTH).request["tool_choice"] == {
        "type": "allowed_tools",
        "allowed_tools": {"mode": "required", "tools": named},
    }
    free: Any = write(chat, FREE).request["tool_choice"]
    assert free["allowed_tools"]["mode"] == "auto"


def test_the_choices_of_responses_are_as_its_server_takes_them() -> None:
    responses = "openai-responses"
    named: list[Any] = [{"type": "function", "name": "x"}, {"type": "custom", "name": "grep"}]
    assert write(responses, CUSTOM).request == {"tool_choice": named[1]}
    among = {"type": "allowed_tools", "mode": "required", "tools": named}
    assert write(responses, BOTH).request == {"tool_choice": among}
    free: Any = write(responses, FREE).request["tool_choice"]
    assert free["mode"] == "auto"


@each_case("name", ["anthropic", "bedrock", "gemini", "cohere", "ollama", "mcp", "text-fallback"])
@each_case("choice", [FREE, ToolChoice("required", ("x", "y"))])
def test_where_any_tool_may_be_called_it_is_told(name: str, choice: ToolChoice) -> None:
    named = written_choice(wire_format(name), choice, TOOLS[:2])
    assert "any tool may be called, not only x, y" in [
        change.detail for change in named.report.of_kind("choice_not_enforced")
    ]
    assert not written_choice(wire_format(name), ToolChoice("auto")).report


@each_case("name", FORMAT_MODULES)
def test_a_choice_of_no_tool_at_all_is_any_and_is_told(name: str) -> None:
    export = write(name, ToolChoice("tool"))
    assert export.request == write(name, ToolChoice("required")).request
    told = [change.detail for change in export.report.of_kind("choice_not_enforced")]
    assert "no tool is named; any may be called" in told


@pytest.mark.parametrize("name", ["ollama", "text-fallback", "mcp"])
def test_a_format_without_a_choice_offers_no_tools_where_none_is_to_be_called(name: str) -> None:
    known = wire_format(name)
    export = known.write_tools(TOOLS, ToolChoice("none"))
    assert (export.request, export.report.changes) == ({}, ())
    assert known.write_tools(TOOLS[:1], ToolChoice("auto")).request == (
        known.write_tools(TOOLS[:1]).request
    )


@each_case("name", FORMAT_MODULES)
def test_nothing_is_said_of_a_choice_where_no_tool_is_offered(name: str) -> None:
    known = wire_format(name)
    for choice in (ToolChoice("none"), ToolChoice("auto", parallel=False)):
        assert known.write_tools([], choice).request == {}
    forced = known.write_tools([], ToolChoice("required"))
    assert forced.request == {}
    assert [change.kind for change in forced.report] == ["choice_not_enforced"]


@each_case("name", FORMAT_MODULES)
def test_of_several_tools_of_one_name_the_last_is_told(name: str) -> None:
    known = wire_format(name)
    schema: Any = {"type": "object", "properties": {"a": {"type": "string"}}}
    first = ToolDefinition(name="x", description="first", parameters=schema)
    other = ToolDefinition(name="y", description="other", parameters=schema)
    last = first.model_copy(update={"description": "last"})
    export = known.write_tools([first, other, last])
    assert [change.where for change in export.report.of_kind("tool_repeated")] == ["tools[0]"]
    told = known.read_tools(export.request)
    assert [(tool.name, tool.description) for tool in told] == [("y", "other"), ("x", "last")]
    for same in ([other, last], [last, other, last]):
        assert not known.write_tools(same).report.of_kind("tool_repeated")
        assert len(known.read_tools(known.write_tools(same).request)) == 2
