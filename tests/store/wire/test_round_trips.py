"""Reading back what was written gives the same conversation, but for what the format loses.

What that is stands here as a function for each format, which changes a conversation by the row of
the format in the table of docs/wire.md.
"""

import json
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import each_case
from tests.support.conversations import conversations
from tests.support.nasty_messages import tangled_conversations
from tests.support.wire.fake_provider import request_problems

from tooltrail.records import (
    CallBlock,
    Conversation,
    Message,
    MessageBlock,
    ResultBlock,
    TextBlock,
    ToolCall,
)
from tooltrail.wire import DEFAULT_EXPORT_POLICY, ExportPolicy, ExportRefusedError, wire_format

FORMATS = ("openai", "openai-responses", "anthropic", "bedrock", "gemini", "ollama", "cohere")


def changed(change: Callable[[MessageBlock], MessageBlock]) -> Callable[[Message], Message]:
    def apply(message: Message) -> Message:
        return message.model_copy(update={"blocks": tuple(map(change, message.blocks))})

    return apply


def by_prefix(block: MessageBlock) -> MessageBlock:
    """No name of the tool in a result, no flag: a failure begins with a word, success is unsaid."""
    if not isinstance(block, ResultBlock):
        return block
    text = "".join(one.text for one in block.content if isinstance(one, TextBlock))
    if block.is_error and not text.startswith("ERROR: "):
        text = f"ERROR: {text}"
    status = "error" if text.startswith("ERROR: ") else "unknown"
    content = (TextBlock(text=text),)
    return block.model_copy(
        update={"tool_name": None, "namespace": None, "status": status, "content": content}
    )


def by_prefix_with_name(block: MessageBlock) -> MessageBlock:
    if not isinstance(block, ResultBlock):
        return block
    return by_prefix(block).model_copy(update={"tool_name": block.tool_name})


def with_spelled_numbers(call: ToolCall) -> ToolCall:
    """The arguments as JSON without white space: their order is kept, their spelling is not."""
    raw = json.dumps(call.arguments, ensure_ascii=False, separators=(",", ":"))
    return call.model_copy(update={"arguments_raw": raw})


def by_flag(block: MessageBlock) -> MessageBlock:
    if isinstance(block, CallBlock):
        return block.model_copy(update={"call": with_spelled_numbers(block.call)})
    if isinstance(block, ResultBlock):
        return block.model_copy(update={"tool_name": None, "namespace": None})
    return block


def by_key(block: MessageBlock) -> MessageBlock:
    return block if isinstance(block, ResultBlock) else by_flag(block)


def for_ollama(block: MessageBlock) -> MessageBlock:
    return by_prefix_with_name(block) if isinstance(block, ResultBlock) else by_flag(block)


LOSSES: dict[str, Callable[[MessageBlock], MessageBlock]] = {
    "openai": by_prefix,
    "openai-responses": by_prefix,
    "anthropic": by_flag,
    "bedrock": by_flag,
    "gemini": by_key,
    "ollama": for_ollama,
    "cohere": by_prefix,
}


def merged(messages: list[Message]) -> list[Message]:
    """Messages of the assistant that follow each other as one, where a format has only turns."""
    out: list[Message] = []
    for message in messages:
        if out and message.role == out[-1].role == "assistant":
            blocks = (*out[-1].blocks, *message.blocks)
            out[-1] = out[-1].model_copy(update={"blocks": blocks})
        else:
            out.append(message)
    return out


@pytest.mark.parametrize("name", FORMATS)
@given(conversation=conversations())
def test_reading_what_was_written_gives_the_same_up_to_the_table_of_losses(
    name: str, conversation: Conversation
) -> None:
    known = wire_format(name)
    export = known.write_history(conversation, DEFAULT_EXPORT_POLICY)
    expected = merged([changed(LOSSES[name])(one) for one in conversation.messages])
    again = known.read_history(export.request)
    assert numbered(merged(list(again.messages))) == numbered(expected)
    assert request_problems(name, export.request) == []
    allowed = {"error_as_prefix"} if LOSSES[name] not in (by_flag, by_key) else set[str]()
    assert {change.kind for change in export.report} <= allowed | {"messages_merged"}
    second = known.write_history(again, DEFAULT_EXPORT_POLICY)
    assert (second.request, list(second.report)) == (export.request, [])
    strict = ExportPolicy(strict=True)
    if not export.report:
        assert known.write_history(conversation, strict).request == export.request
        return
    with pytest.raises(ExportRefusedError) as refused:
        known.write_history(conversation, strict)
    assert refused.value.report.changes == export.report.changes
    assert export.report.changes[0].kind in str(refused.value)


def numbered(messages: list[Message]) -> list[Message]:
    """Calls counted anew, and without the marks of an answer."""
    out: list[Message] = []
    for message in messages:
        blocks: list[MessageBlock] = []
        position = 0
        for block in message.blocks:
            if isinstance(block, CallBlock):
                call = block.call.model_copy(update={"position": position})
                blocks.append(block.model_copy(update={"call": call}))
                position += 1
            else:
                blocks.append(block)
        out.append(message.model_copy(update={"blocks": tuple(blocks), "origin": None}))
    return out


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("policy", [DEFAULT_EXPORT_POLICY, ExportPolicy(ids="synthesise")])
@given(conversation=tangled_conversations)
def test_whatever_a_record_holds_becomes_a_history_that_can_be_sent(
    name: str, policy: ExportPolicy, conversation: Conversation
) -> None:
    known = wire_format(name)
    # What one provider said for itself is not ours to check.
    foreign = ExportPolicy(ids=policy.ids, replay_provider_data=False)
    export = known.write_history(conversation, foreign)
    assert request_problems(name, export.request) == []
    assert known.write_history(conversation, foreign).request == export.request
    known.read_history(export.request)


@each_case("name", FORMATS)
def test_many_calls_with_one_id_are_told_apart(name: str) -> None:
    messages: list[Message] = []
    for number in range(1_000):
        # One id for all of them, as some servers give.
        call = ToolCall(tool_name="f", arguments_raw="{}", call_id="call_0")
        messages.append(Message(role="assistant", blocks=(CallBlock(call=call),)))
        content = (TextBlock(text=str(number)),)
        result = ResultBlock(call_id="call_0", content=content)
        messages.append(Message(role="tool", blocks=(result,)))
    known = wire_format(name)
    export = known.write_history(Conversation.of(messages), DEFAULT_EXPORT_POLICY)
    again = known.read_history(export.request)
    told = [one.text for message in again.messages for one in texts_of(message)]
    assert told == [str(number) for number in range(1_000)]


def texts_of(message: Message) -> list[TextBlock]:
    return [
        one for result in message.results for one in result.content if isinstance(one, TextBlock)
    ]


def _of(words: str) -> st.SearchStrategy[str]:
    return st.sampled_from(words.split())


anything: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            _of(
                "role content messages input contents parts type text id call_id name function "
                "tool_calls functionCall args delta choices index message candidates item output "
                "content_block error tools tool_choice source data "
                "toolUse toolResult toolUseId json contentBlockIndex start "
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)
objects = st.dictionaries(
    _of(
        "messages input contents choices message candidates content output error type "
        "delta item index content_block response tools tool_choice toolConfig text "
        "response_format output_config generationConfig system promptFeedback "
        "contentBlockStart contentBlockDelta messageStart messageStop "
    ),
    anything,
    max_size=4,
)


@pytest.mark.parametrize("name", FORMATS)
@given(events=st.lists(objects, min_size=1, max_size=5))
def test_readers_and_assemblers_take_any_json(name: str, events: list[dict[str, Any]]) -> None:
    known = wire_format(name)
    assembler = known.new_assembler()
    for event in events:
        known.read_response(event)
        known.read_tools(event)
        assembler.feed(event)
    response = known.finished(assembler.finish(), None, frozenset())
    assert response.messages or response.failure or response.unread
