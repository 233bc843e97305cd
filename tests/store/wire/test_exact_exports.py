"""An export without a word in its report is exact: reading it gives the same conversation.

What no report names stands in docs/wire.md, and here as `_Normal`: how arguments are spelled where
a format has them as values, whether a success is said to be one, which tool a result is of, and
where one turn of the assistant ends and its next begins.
"""

import json
from dataclasses import dataclass

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.slightly_odd import slightly_odd

from tooltrail.records import (
    CallBlock,
    Conversation,
    Message,
    MessageBlock,
    Origin,
    ResultBlock,
    TextBlock,
    ToolCall,
)
from tooltrail.wire import DEFAULT_EXPORT_POLICY, wire_format


@dataclass(frozen=True)
class _Normal:
    """A conversation as it is told by a format, but for what nobody needs to be told of.

    Attributes:
        has_flag: whether the format says that a call came out well.
        is_value: whether it has arguments as values.
    """

    has_flag: bool
    is_value: bool

    def of(self, conversation: Conversation) -> list[Message]:
        out: list[Message] = []
        for message in conversation.messages:
            told = self._message(message)
            if not told.blocks and told.origin is None:
                continue
            if out and told.role == out[-1].role and told.role in ("assistant", "tool"):
                blocks = (*out[-1].blocks, *told.blocks)
                out[-1] = out[-1].model_copy(
                    update={"blocks": blocks, "origin": out[-1].origin or told.origin}
                )
            else:
                out.append(told)
        return out

    def _message(self, message: Message) -> Message:
        blocks = tuple(self._block(block) for block in message.blocks if not _is_empty(block))
        extras = message.origin.extras if message.origin else {}
        origin = Origin(wire_format="any", extras=extras) if extras else None
        return Message(role=message.role, blocks=blocks, origin=origin)

    def _block(self, block: MessageBlock) -> MessageBlock:
        if isinstance(block, CallBlock):
            return CallBlock(call=self._call(block.call), extras=block.extras)
        if isinstance(block, ResultBlock):
            return self._result(block)
        return block

    def _call(self, call: ToolCall) -> ToolCall:
        raw = call.arguments_raw
        if self.is_value and call.parse_error is None:
            raw = json.dumps(call.arguments, sort_keys=True)
        elif not raw.strip():
            raw = "{}"
        return call.model_copy(
            update={"arguments_raw": raw, "position": 0, "flags": (), "message_id": None}
        )

    def _result(self, result: ResultBlock) -> ResultBlock:
        status = result.status
        if not self.has_flag and status == "ok":
            status = "unknown"
        content = tuple(block for block in result.content if not _is_empty(block))
        update = {
            "status": status,
            "tool_name": None,
            "namespace": None,
            "key": None,
            "content": content,
        }
        return result.model_copy(update=update)


def _is_empty(block: MessageBlock) -> bool:
    return isinstance(block, TextBlock) and not block.text and not block.extras


NORMAL = {
    "openai": _Normal(has_flag=False, is_value=False),
    "openai-responses": _Normal(has_flag=False, is_value=False),
    "anthropic": _Normal(has_flag=True, is_value=True),
    "bedrock": _Normal(has_flag=True, is_value=True),
    "gemini": _Normal(has_flag=True, is_value=True),
    "ollama": _Normal(has_flag=False, is_value=True),
    "cohere": _Normal(has_flag=False, is_value=False),
    # The attribute `status` says how a call came out.
    "text-fallback": _Normal(has_flag=True, is_value=False),
}


@pytest.mark.parametrize("name", NORMAL)
@given(data=st.data())
def test_what_the_report_does_not_name_comes_back(name: str, data: st.DataObject) -> None:
    known = wire_format(name)
    conversation = data.draw(slightly_odd(name))
    export = known.write_history(conversation, DEFAULT_EXPORT_POLICY)
    if export.report:
        return
    again = known.read_history(export.request)
    assert NORMAL[name].of(again) == NORMAL[name].of(conversation)


def test_that_two_texts_are_one_is_told_by_the_format_of_text() -> None:
    blocks = (TextBlock(text="a"), TextBlock(text="b"))
    messages = [Message(role="user", blocks=blocks), Message(role="assistant", blocks=blocks)]
    export = wire_format("text-fallback").write_history(Conversation.of(messages))
    assert export.request["messages"] == [
        {"role": "user", "content": "a\nb"},
        {"role": "assistant", "content": "a\nb"},
    ]
    assert [(one.kind, one.where) for one in export.report] == [
        ("messages_merged", "messages[0]"),
        ("messages_merged", "messages[1]"),
    ]


def test_what_cannot_go_back_beside_a_message_is_named() -> None:
    origin = Origin(wire_format="text-fallback", extras={"a": None, "role": "x", "b": 1})
    message = Message.of("user", "go").model_copy(update={"origin": origin})
    export = wire_format("text-fallback").write_history(Conversation.of([message]))
    assert export.request == {"messages": [{"role": "user", "content": "go", "b": 1}]}
    assert [change.detail for change in export.report] == ["a, role"]


def test_what_cannot_go_back_beside_content_of_mcp_is_named() -> None:
    origin = Origin(wire_format="mcp")
    call = CallBlock(call=ToolCall(tool_name="f", kind="mcp"), key="k")
    text = TextBlock(text="ok", extras={"a": None, "type": "x", "b": 1})
    result = ResultBlock(content=(text,), status="ok", key="k")
    said = Message(role="assistant", blocks=(call,), origin=origin)
    answer = Message(role="tool", blocks=(result,), origin=origin)
    export = wire_format("mcp").write_history(Conversation.of([said, answer]))
    assert '{"type": "text", "text": "ok", "b": 1}' in json.dumps(export.request)
    assert [change.detail for change in export.report] == ["a, type"]
