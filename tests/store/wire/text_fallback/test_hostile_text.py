"""Texts that were made to take long.

One of this size is read in seconds where the time grows with its length, and in hours where it
grows with the square of it.
"""

import pytest

from tooltrail.records import ToolDefinition
from tooltrail.wire import JsonObject, wire_format
from tooltrail.wire.text_fallback import FAMILIES, read_calls

families = pytest.mark.parametrize("family", sorted(FAMILIES))
COUNT = 50_000
REPEATED = [
    *("<tool_call", "<tool_call>", "<tool_call>{", '<tool_call a="', '{"a":\n', "{\n", '{"a":x\n'),
    *("[TOOL_CALLS]", "<think>", "</think>", "```\n", "```\n</think>", "<function_calls>"),
    *("<function_calls><invoke>", "<tool_result>\n", " "),
]


@families
@pytest.mark.parametrize("part", REPEATED)
def test_a_text_with_a_mark_again_and_again_is_read_in_the_end(family: str, part: str) -> None:
    # Behind a letter it begins no line.
    read = read_calls("x" + part * COUNT, family)
    assert not any(call.is_executable for call in read.calls)


@pytest.mark.parametrize(
    ("family", "part"), [("hermes", "<tool_call>{</tool_call>\n"), ("tool_result", "<tool_call>\n")]
)
def test_calls_that_are_none_are_each_looked_at_once(family: str, part: str) -> None:
    read = read_calls(part * (COUNT // 10), family)
    assert not any(call.is_executable for call in read.calls)


@pytest.mark.parametrize("part", ["```a\n</think>\n", "~~~a\n```\n</think>\n", "`</think>\n"])
def test_the_end_of_a_code_block_is_looked_for_only_where_there_is_one(part: str) -> None:
    # Where each fence goes through the rest of the text this does not end before its time is over.
    assert read_calls(part * COUNT, "hermes").calls == ()


def test_a_code_block_ends_at_the_first_fence_of_its_kind_and_length() -> None:
    call = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
    ended = f"````a\n```\n{call}\n~~~~\n`````\n{call}\n```\n{call}\n```"
    assert [one.is_executable for one in read_calls(ended, "hermes").calls] == [True]
    assert read_calls(f"```\n````\n\n`````a\n{call}\n````", "hermes").calls == ()


def test_marks_inside_of_one_line_are_each_looked_at_once() -> None:
    read = read_calls("x" + "<tool_call>" * 1_000_000, "hermes")
    assert read.calls == ()


def test_tools_without_an_end_are_looked_for_once() -> None:
    hostile = "<tools>\n" * COUNT
    known = wire_format("text-fallback")
    told = known.write_tools([ToolDefinition(name="f")]).request["messages"]
    assert isinstance(told, list)
    request: JsonObject = {"messages": [*told, {"role": "system", "content": hostile}]}
    assert [tool.name for tool in known.read_tools(request)] == ["f"]


@pytest.mark.parametrize("levels", [260, 3_000, 100_000])
def test_deep_json_is_read_to_its_end(levels: int) -> None:
    deep = "[" * levels + "]" * levels
    calls = [f'{{"name": "now", "arguments": {{"a": {deep}}}}}', '{"name": "now", "arguments": {}}']
    text = "\n".join(f"<tool_call>\n{call}\n</tool_call>" for call in calls)
    assert [one.tool_name for one in read_calls(text, "hermes").calls] == ["now", "now"]
