"""A result whose call is not there is told, and its content goes on."""

import json
from typing import Any

from tests.support.cases import each_case

from tooltrail.records import CallBlock, Conversation, Message, ResultBlock, TextBlock, ToolCall
from tooltrail.wire import FORMAT_MODULES, wire_format


def result(call_id: str, text: str) -> ResultBlock:
    return ResultBlock(call_id=call_id, tool_name="read", content=(TextBlock(text=text),))


CONVERSATION = Conversation.of(
    [
        Message.of("user", "go"),
        Message(role="tool", blocks=(result("before", "one"),)),
        Message(role="assistant", blocks=(CallBlock(call=ToolCall(tool_name="f", call_id="a")),)),
        Message(role="tool", blocks=(result("a", "two"), result("other", "three"))),
        Message(role="user", blocks=(result("amid", "four"), TextBlock(text="hi"))),
    ]
)


@each_case("name", FORMAT_MODULES)
def test_every_orphan_is_told_and_what_it_says_is_sent(name: str) -> None:
    export = wire_format(name).write_history(CONVERSATION)
    assert [change.where for change in export.report.of_kind("result_orphaned")] == [
        "messages[1].results[0]",
        "messages[3].results[1]",
        "messages[4].results[0]",
    ]
    sent = json.dumps(export.request)
    for text in ("one", "two", "three", "four"):
        assert sent.count(text) == 1


def test_an_orphan_of_mcp_is_a_response_and_comes_back_as_a_result() -> None:
    known = wire_format("mcp")
    export = known.write_history(CONVERSATION)
    messages: Any = export.request["messages"]
    ids = [one["id"] for one in messages if "method" not in one]
    assert len(set(ids)) == len(ids)
    read = known.read_history(export.request)
    said = [
        block.text
        for message in read.messages
        for one in message.results
        for block in one.content
        if isinstance(block, TextBlock)
    ]
    assert said == ["one", "two", "three", "four"]
    assert known.write_history(read).request == export.request
    as_chat = wire_format("openai").write_history(read)
    assert len(as_chat.report.of_kind("result_orphaned")) == 3
