"""Messages and blocks: what they say, and that their canonical JSON gives them back."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue
from tests.support.cases import each_case
from tests.support.conversations import batches, call_ids, conversations
from tests.support.nasty_messages import MESSAGE_ID, messages

from tooltrail.records import (
    CallBlock,
    Conversation,
    InvalidRecordError,
    MediaBlock,
    Message,
    ProviderBlock,
    ResourceBlock,
    ResultBlock,
    TextBlock,
    ToolCall,
    ToolDefinition,
)


@given(messages)
def test_any_message_is_read_back_from_its_canonical_json(message: Message) -> None:
    data = message.to_json()
    again = Message.from_json(data)
    assert again == message
    assert again.to_json() == data
    assert Message.from_json(data.decode()) == message


@given(conversations())
def test_a_conversation_is_read_back_from_a_plain_dump(conversation: Conversation) -> None:
    dumped = json.loads(json.dumps(conversation.model_dump(mode="json")))
    assert Conversation.model_validate(dumped) == conversation


def test_canonical_json_leaves_out_what_has_its_default() -> None:
    call = ToolCall(tool_name="now", message_id=MESSAGE_ID)
    message = Message(role="assistant", blocks=(TextBlock(text=""), CallBlock(call=call)))
    assert json.loads(message.to_json()) == {
        "role": "assistant",
        "blocks": [
            {"type": "text", "text": ""},
            {"type": "tool_call", "call": {"tool_name": "now", "message_id": str(MESSAGE_ID)}},
        ],
    }
    assert Message.from_json(message.to_json()).calls[0].message_id == MESSAGE_ID


@pytest.mark.parametrize(
    ("old", "message"),
    [
        ('{"role":"user"}', Message(role="user")),
        ('{"role":"user","blocks":[{"type":"text","text":"hello"}]}', Message.of("user", "hello")),
        (
            '{"role":"tool","blocks":[{"type":"tool_result","call_id":"a"}]}',
            Message(role="tool", blocks=(ResultBlock(call_id="a"),)),
        ),
        (
            '{"role":"assistant","blocks":[{"type":"tool_call","call":{"tool_name":"now"}}]}',
            Message(role="assistant", blocks=(CallBlock(call=ToolCall(tool_name="now")),)),
        ),
    ],
)
def test_a_message_without_the_newer_members_is_read(old: str, message: Message) -> None:
    assert Message.from_json(old) == message


@each_case(
    "data",
    [
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\xff",
        b'{"role":"nobody"}',
        b'{"role":"user","role":"user"}',
        b'{"role":"user","colour":1}',
        b'{"role":"user","blocks":[{"type":"smell"}]}',
        b'{"role":"user","blocks":[{"text":"x"}]}',
        b'{"role":"user","blocks":[{"type":"text"}]}',
        b"[" * 100_000,
    ],
)
def test_what_is_no_message_is_refused(data: bytes) -> None:
    with pytest.raises(InvalidRecordError, match="not a Message"):
        Message.from_json(data)


def test_a_refusal_repeats_nothing_of_what_was_said() -> None:
    with pytest.raises(InvalidRecordError) as refused:
        Message.from_json('{"role":"user","blocks":[{"type":"text","text":["hunter2"]}]}')
    assert "hunter2" not in str(refused.value)


@given(st.data())
def test_a_message_tells_its_text_calls_and_results(data: st.DataObject) -> None:
    asked, told = data.draw(batches(call_ids))
    assert asked.calls == tuple(one.call for one in asked.blocks if isinstance(one, CallBlock))
    assert asked.text == "".join(one.text for one in asked.blocks if isinstance(one, TextBlock))
    assert told.results == told.blocks
    assert (asked.results, told.calls, told.text) == ((), (), "")


def test_calls_of_the_provider_are_kept_apart_from_those_to_run() -> None:
    own = ToolCall(tool_name="search", by_provider=True)
    to_run = ToolCall(tool_name="now")
    message = Message(
        role="assistant",
        blocks=(
            TextBlock(text="one "),
            ProviderBlock(native={"type": "search"}, call=own),
            ProviderBlock(native=None),
            CallBlock(call=to_run),
            TextBlock(text="two"),
        ),
    )
    assert message.text == "one two"
    assert message.calls == (to_run,)
    assert message.provider_calls == (own,)


def test_bytes_are_not_shown_where_a_block_is() -> None:
    assert "AAAA" not in repr(MediaBlock(kind="image", data="AAAA"))
    assert "AAAA" not in repr(ResourceBlock(uri="file:///a", data="AAAA"))


@pytest.mark.parametrize(
    ("members", "is_link"),
    [({}, True), ({"text": ""}, False), ({"data": ""}, False), ({"name": "a"}, True)],
)
def test_a_resource_without_content_is_a_link(members: dict[str, Any], is_link: bool) -> None:
    assert ResourceBlock(uri="file:///a", **members).is_link is is_link


@each_case(
    ("status", "is_error"),
    [
        ("ok", False),
        ("unknown", False),
        ("error", True),
        ("timeout", True),
        ("cancelled", True),
        ("interrupted", True),
        ("denied", True),
    ],
)
def test_every_status_but_ok_and_unknown_is_a_failure(status: Any, is_error: bool) -> None:
    assert ResultBlock(status=status).is_error is is_error


def test_a_definition_of_a_tool_comes_back_from_its_json() -> None:
    parameters: dict[str, JsonValue] = {"type": "object", "properties": {}}
    for tool in (
        ToolDefinition(name="add", description="Adds two numbers. \ud800", parameters=parameters),
        ToolDefinition(name="Bash", parameters=parameters, strict=True),
        ToolDefinition(name="sql", kind="custom", grammar={"syntax": "lark"}, extras={"a": 1}),
    ):
        assert ToolDefinition.from_json(tool.to_json()) == tool
    with pytest.raises(InvalidRecordError, match="not a ToolDefinition"):
        ToolDefinition.from_json('{"name":1}')
