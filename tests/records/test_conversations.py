"""Messages and blocks: what they say, and that their canonical JSON gives them back."""

import json
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue, ValidationError
from tests.support.conversations import batches, call_ids, conversations

from tooltrail.records import (
    CallBlock,
    Conversation,
    InvalidRecordError,
    MediaBlock,
    Message,
    MessageBlock,
    Origin,
    ProviderBlock,
    ReasoningBlock,
    ResourceBlock,
    ResultBlock,
    TextBlock,
    ToolCall,
    ToolDefinition,
)

MESSAGE_ID = UUID("01890a5d-ac96-774b-bcce-b302099a8057")

nasty_texts = st.text(st.characters(), max_size=8)
nasty_values: st.SearchStrategy[JsonValue] = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**30), 10**30) | nasty_texts,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(nasty_texts, inner, max_size=2),
    max_leaves=4,
)
nasty_extras = st.dictionaries(nasty_texts, nasty_values, max_size=2)
some_text = st.none() | nasty_texts
calls = st.builds(
    ToolCall,
    tool_name=nasty_texts,
    arguments_raw=nasty_texts,
    call_id=some_text,
    title=some_text,
    kind=st.sampled_from(["function", "custom", "builtin", "mcp"]),
    namespace=some_text,
    position=st.integers(0, 3),
    by_provider=st.booleans(),
    flags=st.lists(st.sampled_from(["incomplete", "id_repeated"]), max_size=2, unique=True).map(
        tuple
    ),
    extras=nasty_extras,
    message_id=st.none() | st.just(MESSAGE_ID),
)
texts = st.builds(TextBlock, text=nasty_texts, is_refusal=st.booleans(), extras=nasty_extras)
media = st.builds(
    MediaBlock,
    kind=st.sampled_from(["image", "audio", "document"]),
    media_type=some_text,
    data=some_text,
    uri=some_text,
    name=some_text,
)
resources = st.builds(ResourceBlock, uri=nasty_texts, text=some_text, data=some_text)
providers = st.builds(ProviderBlock, native=nasty_values, call=st.none() | calls)
results = st.builds(
    ResultBlock,
    call_id=some_text,
    tool_name=some_text,
    status=st.sampled_from(["ok", "error", "timeout", "unknown"]),
    content=st.lists(texts | media | resources | providers, max_size=2).map(tuple),
    structured=nasty_values,
    has_structured=st.booleans(),
    key=some_text,
    extras=nasty_extras,
)
blocks: st.SearchStrategy[MessageBlock] = st.one_of(
    texts,
    media,
    resources,
    providers,
    results,
    st.builds(ReasoningBlock, text=nasty_texts, extras=nasty_extras),
    st.builds(CallBlock, call=calls, key=some_text),
)
origins = st.builds(
    Origin,
    wire_format=nasty_texts,
    provider=some_text,
    model=some_text,
    finish_reason=some_text,
    choice=st.integers(0, 2),
    extras=nasty_extras,
)
messages = st.builds(
    Message,
    role=st.sampled_from(["system", "developer", "user", "assistant", "tool"]),
    blocks=st.lists(blocks, max_size=3).map(tuple),
    origin=st.none() | origins,
    is_complete=st.booleans(),
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
            {
                "type": "tool_call",
                "call": {"tool_name": "now", "message_id": str(MESSAGE_ID)},
            },
        ],
    }
    assert Message.from_json(message.to_json()).calls[0].message_id == MESSAGE_ID


@pytest.mark.parametrize(
    ("old", "message"),
    [
        ('{"role":"user"}', Message(role="user")),
        (
            '{"role":"user","blocks":[{"type":"text","text":"hello"}]}',
            Message.of("user", "hello"),
        ),
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


@pytest.mark.parametrize(
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
    with pytest.raises(InvalidRecordError, match="no message"):
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


def test_blocks_and_messages_do_not_change() -> None:
    message = Message.of("user", "hello")
    with pytest.raises(ValidationError):
        message.role = "system"  # type: ignore[misc]  # frozen
    with pytest.raises(ValidationError, match="extra"):
        TextBlock.model_validate({"text": "x", "colour": "red"})


def test_bytes_are_not_shown_where_a_block_is() -> None:
    assert "AAAA" not in repr(MediaBlock(kind="image", data="AAAA"))
    assert "AAAA" not in repr(ResourceBlock(uri="file:///a", data="AAAA"))


@pytest.mark.parametrize(
    ("members", "is_link"),
    [({}, True), ({"text": ""}, False), ({"data": ""}, False), ({"name": "a"}, True)],
)
def test_a_resource_without_content_is_a_link(members: dict[str, Any], is_link: bool) -> None:
    assert ResourceBlock(uri="file:///a", **members).is_link is is_link


@pytest.mark.parametrize(
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


def test_a_conversation_is_made_of_any_iterables() -> None:
    tool = ToolDefinition(name="now")
    conversation = Conversation.of(iter([Message.of("user", "hello")]), iter([tool]))
    assert conversation.messages == (Message.of("user", "hello"),)
    assert conversation.tools == (tool,)
    assert Conversation.of([]).tools == ()
