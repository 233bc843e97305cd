"""What comes back of calls and results that were written for MCP.

The row of the loss table: all kinds of blocks, the structured value, the flag for errors, `_meta`
and annotations survive; ids of calls, batches, thoughts and what is said beside calls do not.
"""

import json
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st
from tests.store.wire.mcp.test_history import META
from tests.support.conversations import (
    conversations,
    json_objects,
    json_values,
    sendable_texts,
    spoken_texts,
    tool_names,
)
from tests.support.nasty_messages import tangled_conversations
from tests.support.wire.schemas import problems
from tests.support.wire.sendable import value_problems

from tooltrail.records import (
    CallBlock,
    ContentBlock,
    Conversation,
    MediaBlock,
    Message,
    Origin,
    ResourceBlock,
    ResultBlock,
    TextBlock,
    ToolCall,
    read_json,
)
from tooltrail.wire import DEFAULT_EXPORT_POLICY, Export, JsonObject
from tooltrail.wire.mcp import FORMAT
from tooltrail.wire.members import objects_in

OWN = Origin(wire_format="mcp")


def written(conversation: Conversation) -> Export:
    return FORMAT.write_history(conversation, DEFAULT_EXPORT_POLICY)


def respelled(raw: str) -> str:
    if not raw.strip():
        return ""
    return json.dumps(read_json(raw), ensure_ascii=False, separators=(",", ":"))


def expected(conversation: Conversation) -> Conversation:
    """Calls one by one, without ids and with what each request says of itself; and the results."""
    messages: list[Message] = []
    asked: list[ToolCall] = []
    number = 0
    for message in conversation.messages:
        asked = [*message.calls] or asked
        for call, result in zip(asked, message.results, strict=False):
            kept = ToolCall(
                tool_name=call.tool_name,
                arguments_raw=respelled(call.arguments_raw),
                kind="mcp",
                extras={"_meta": META, **call.extras},
            )
            status = "ok" if result.status == "unknown" else result.status
            answer = ResultBlock(
                status=status,
                content=result.content,
                structured=result.structured,
                has_structured=result.has_structured,
                extras=result.extras,
                key=f"mcp:{number}",
            )
            block = CallBlock(call=kept, key=f"mcp:{number}")
            messages.append(Message(role="assistant", blocks=(block,), origin=OWN))
            messages.append(Message(role="tool", blocks=(answer,), origin=OWN))
            number += 1
    return Conversation.of(messages)


noted: st.SearchStrategy[JsonObject] = st.sampled_from(
    [{}, {"annotations": {"priority": 0.5, "audience": ["user"]}}, {"_meta": {"a": [1, None]}}]
)
base64_texts = st.sampled_from(["", "AAEC", "iVBORw0KGgo="])
media_types = st.sampled_from(["image/png", "audio/wav", "x/y"])
own_blocks: st.SearchStrategy[ContentBlock] = st.one_of(
    st.builds(TextBlock, text=sendable_texts, extras=noted),
    st.builds(
        MediaBlock,
        kind=st.sampled_from(["image", "audio"]),
        media_type=media_types,
        data=base64_texts,
        extras=noted,
    ),
    st.builds(
        ResourceBlock, uri=spoken_texts, name=spoken_texts, media_type=media_types, extras=noted
    ),
    st.builds(ResourceBlock, uri=spoken_texts, text=sendable_texts, extras=noted),
    st.builds(ResourceBlock, uri=spoken_texts, data=base64_texts, media_type=media_types),
)


@st.composite
def own_results(draw: st.DrawFn) -> ResultBlock:
    has_structured = draw(st.booleans())
    return ResultBlock(
        status=draw(st.sampled_from(["ok", "error"])),
        content=tuple(draw(st.lists(own_blocks, max_size=4))),
        structured=draw(json_values) if has_structured else None,
        has_structured=has_structured,
        extras=draw(st.sampled_from([{}, {"_meta": {"traceparent": "00"}}])),
    )


@st.composite
def own_conversations(draw: st.DrawFn) -> Conversation:
    """Calls of an MCP server one by one, with all that the format keeps."""
    messages: list[Message] = []
    for result in draw(st.lists(own_results(), max_size=4)):
        call = ToolCall(
            tool_name=draw(tool_names),
            arguments_raw=draw(st.just("") | json_objects.map(json.dumps)),
            kind="mcp",
        )
        key = str(len(messages))
        messages.append(
            Message(role="assistant", blocks=(CallBlock(call=call, key=key),), origin=OWN)
        )
        answer = result.model_copy(update={"key": key})
        messages.append(Message(role="tool", blocks=(answer,), origin=OWN))
    return Conversation.of(messages)


def schema_problems(export: Export) -> Iterator[str]:
    """By the types of both revisions; `resultType` of a result is new in the newer one."""
    for message in objects_in(export.request["messages"]):
        yield from value_problems(message)
        if "method" in message:
            for revision in ("2025", "2026"):
                yield from problems(f"mcp-{revision}.request", message)
        elif "error" not in message:
            yield from problems("mcp-2026.result", message["result"])


@given(own_conversations())
def test_calls_and_results_come_back_as_they_were(conversation: Conversation) -> None:
    export = written(conversation)
    again = FORMAT.read_history(export.request)
    assert again == expected(conversation)
    assert not export.report
    assert list(schema_problems(export)) == []
    assert written(again).request == export.request
    assert FORMAT.read_history(written(again).request) == again


@given(conversations())
def test_any_conversation_comes_back_but_for_the_row_of_the_loss_table(
    conversation: Conversation,
) -> None:
    export = written(conversation)
    assert FORMAT.read_history(export.request) == expected(conversation)
    assert list(schema_problems(export)) == []
    lost = {change.kind for change in export.report}
    assert lost <= {"block_dropped", "id_dropped", "order_changed"}
    calls = sum(len(message.calls) for message in conversation.messages)
    assert len(export.report.of_kind("id_dropped")) == calls


@given(tangled_conversations)
def test_whatever_a_record_holds_becomes_messages_that_can_be_sent(
    conversation: Conversation,
) -> None:
    export = written(conversation)
    assert json.loads(json.dumps(export.request, allow_nan=False).encode()) == export.request
    assert list(value_problems(export.request)) == []
    assert list(schema_problems(export)) == []
    messages = objects_in(export.request["messages"])
    requests = [one["id"] for one in messages if "method" in one]
    responses = [one["id"] for one in messages if "method" not in one]
    assert len({*map(str, responses)}) == len(responses)
    assert [one for one in responses if one in requests] == requests
    assert len(set(map(repr, requests))) == len(requests)
