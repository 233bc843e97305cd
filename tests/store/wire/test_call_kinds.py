"""A call that is no function: what of it a format cannot say is in the report."""

import pytest
from tests.support.cases import each_case

from tooltrail.records import (
    CallBlock,
    CallKind,
    Conversation,
    Message,
    ResultBlock,
    TextBlock,
    ToolCall,
)
from tooltrail.wire import DEFAULT_EXPORT_POLICY, wire_format


def written(name: str, call: ToolCall) -> tuple[ToolCall, list[tuple[str, str]]]:
    """What is read of a call that was written, and the changes."""
    known = wire_format(name)
    result = ResultBlock(call_id=call.call_id, content=(TextBlock(text="1"),))
    asked = Message(role="assistant", blocks=(CallBlock(call=call),))
    messages = [Message.of("user", "go"), asked, Message(role="tool", blocks=(result,))]
    export = known.write_history(Conversation.of(messages), DEFAULT_EXPORT_POLICY)
    (again,) = known.read_history(export.request).messages[1].calls
    return again, [(change.kind, change.detail) for change in export.report]


@each_case("name", ["openai", "anthropic", "bedrock", "gemini", "ollama", "cohere"])
@each_case("kind", ["mcp", "builtin"])
def test_the_kind_of_a_call_is_told_to_be_unsaid(name: str, kind: CallKind) -> None:
    again, report = written(name, ToolCall(tool_name="f", call_id="a", kind=kind))
    assert (again.kind, again.tool_name) == ("function", "f")
    ((change, detail),) = report
    assert change == "provider_data_dropped"
    assert kind in detail


@pytest.mark.parametrize("name", ["anthropic", "bedrock", "gemini", "cohere"])
def test_free_text_is_where_the_tool_that_was_offered_has_it(name: str) -> None:
    call = ToolCall(tool_name="sql", kind="custom", arguments_raw="SELECT 1", call_id="a")
    again, report = written(name, call)
    assert again.arguments == {"input": "SELECT 1"}
    assert report == [("arguments_wrapped", "no object; in 'input'")]
