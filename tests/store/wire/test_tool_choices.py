"""A choice among some tools is told as it is, or the report says that it is not."""

from typing import Any

import pytest

from tooltrail.records import ToolDefinition
from tooltrail.wire import FORMAT_MODULES, ToolChoice, wire_format

FREE = ToolChoice("auto", ("x", "y"))
CUSTOM = ToolChoice("tool", ("grep",), custom_names=frozenset({"grep"}))
BOTH = ToolChoice("tool", ("x", "grep"), custom_names=frozenset({"grep"}))


@pytest.mark.parametrize("name", ["openai", "openai-responses"])
@pytest.mark.parametrize("choice", [FREE, CUSTOM, BOTH, ToolChoice("tool", ("x",), False)])
def test_a_choice_among_tools_is_written_without_a_loss(name: str, choice: ToolChoice) -> None:
    assert not wire_format(name).write_choice(choice).report


def test_the_choices_of_chat_completions_are_as_its_server_takes_them() -> None:
    write = wire_format("openai").write_choice
    named: list[Any] = [
        {"type": "function", "function": {"name": "x"}},
        {"type": "custom", "custom": {"name": "grep"}},
    ]
    assert write(CUSTOM).request == {"tool_choice": named[1]}
    assert write(BOTH).request["tool_choice"] == {
        "type": "allowed_tools",
        "allowed_tools": {"mode": "required", "tools": named},
    }
    free: Any = write(FREE).request["tool_choice"]
    assert free["allowed_tools"]["mode"] == "auto"


def test_the_choices_of_responses_are_as_its_server_takes_them() -> None:
    write = wire_format("openai-responses").write_choice
    named: list[Any] = [{"type": "function", "name": "x"}, {"type": "custom", "name": "grep"}]
    assert write(CUSTOM).request == {"tool_choice": named[1]}
    among = {"type": "allowed_tools", "mode": "required", "tools": named}
    assert write(BOTH).request == {"tool_choice": among}
    free: Any = write(FREE).request["tool_choice"]
    assert free["mode"] == "auto"


@pytest.mark.parametrize("name", ["anthropic", "gemini", "ollama", "mcp", "text-fallback"])
@pytest.mark.parametrize("choice", [FREE, ToolChoice("required", ("x", "y"))])
def test_where_any_tool_may_be_called_it_is_told(name: str, choice: ToolChoice) -> None:
    report = wire_format(name).write_choice(choice).report
    assert "any tool may be called, not only x, y" in [
        change.detail for change in report.of_kind("choice_not_enforced")
    ]
    assert not wire_format(name).write_choice(ToolChoice("auto")).report


@pytest.mark.parametrize("name", ["openai", "openai-responses"])
def test_a_choice_of_no_tool_at_all_is_any(name: str) -> None:
    export = wire_format(name).write_choice(ToolChoice("tool"))
    assert export.request == {"tool_choice": "required"}
    assert export.report.of_kind("choice_not_enforced")


@pytest.mark.parametrize("name", FORMAT_MODULES)
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
