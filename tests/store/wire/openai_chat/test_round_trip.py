"""What comes back of a conversation that was written for Chat Completions.

The row of the loss table: ids, names, the text of arguments and batches survive; the error flag,
media in results, structured values and the order of text and calls do not.
"""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from tests.support.conversations import ids_used_once, json_objects, spoken_texts, tool_names

from tooltrail.records import (
    CallBlock,
    Conversation,
    MediaBlock,
    Message,
    MessageBlock,
    Origin,
    ProviderBlock,
    ReasoningBlock,
    ResultBlock,
    TextBlock,
    ToolCall,
)
from tooltrail.wire import DEFAULT_EXPORT_POLICY, ExportPolicy, JsonObject
from tooltrail.wire.members import spelled
from tooltrail.wire.openai_chat import FORMAT

PREFIX = "ERROR: "
OWN = Origin(wire_format="openai")
texts = st.builds(TextBlock, text=spoken_texts)
images = st.sampled_from(
    [
        MediaBlock(kind="image", media_type="image/png", data="aGk="),
        MediaBlock(kind="image", uri="https://example.org/a.png"),
        MediaBlock(kind="image", uri="https://a/b", extras={"image_url": {"detail": "low"}}),
    ]
)
sounds = st.builds(
    MediaBlock,
    kind=st.just("audio"),
    media_type=st.sampled_from(["audio/wav", "audio/mpeg"]),
    data=st.sampled_from(["aGk=", "AAEC", "AAECAwQF"]),
)
files = st.sampled_from(
    [
        MediaBlock(kind="document", media_type="application/pdf", data="aGk=", name="a.pdf"),
        MediaBlock(kind="document", uri="file:file-1"),
    ]
)
videos = spoken_texts.map(lambda url: ProviderBlock(native={"type": "video_url", "url": url}))
names: list[JsonObject] = [{}, {"name": "bob"}]


@st.composite
def users(draw: st.DrawFn) -> Message:
    blocks = draw(st.lists(texts | images | sounds | files | videos, min_size=1, max_size=3))
    origin = Origin(wire_format="openai", extras=draw(st.sampled_from(names)))
    return Message(role="user", blocks=tuple(blocks), origin=origin)


@st.composite
def turns(draw: st.DrawFn, ids: st.SearchStrategy[str]) -> list[Message]:
    """What was thought, said, refused and asked for, in the order in which it is written."""
    said: list[MessageBlock] = []
    for member in ("reasoning_content", "reasoning"):
        thoughts = st.builds(ReasoningBlock, text=spoken_texts, extras=st.just({"member": member}))
        said += draw(st.lists(thoughts, max_size=1))
    said += draw(st.lists(texts, max_size=1))
    refusals = st.builds(TextBlock, text=spoken_texts, is_refusal=st.just(value=True))
    said += draw(st.lists(refusals, max_size=1))
    results: list[ResultBlock] = []
    for position in range(draw(st.integers(1, 3))):
        is_custom = draw(st.booleans())
        call = ToolCall(
            tool_name=draw(tool_names),
            arguments_raw=draw(spoken_texts) if is_custom else spelled(draw(json_objects)),
            call_id=draw(ids),
            kind="custom" if is_custom else "function",
            position=position,
            extras=draw(st.sampled_from([{}, {"extra_content": {"signature": "x"}}])),
        )
        said.append(CallBlock(call=call))
        status = draw(st.sampled_from(["unknown", "error"]))
        text = draw(spoken_texts.filter(lambda one: not one.startswith(PREFIX)))
        results.append(
            ResultBlock.model_validate(
                {
                    "call_id": call.call_id,
                    "status": status,
                    "content": [TextBlock(text=PREFIX + text if status == "error" else text)],
                }
            )
        )
    return [
        Message(role="assistant", blocks=tuple(said), origin=OWN),
        Message(role="tool", blocks=tuple(results)),
    ]


@st.composite
def own_conversations(draw: st.DrawFn) -> Conversation:
    ids = ids_used_once()
    messages: list[Message] = []
    for _ in range(draw(st.integers(1, 3))):
        messages.append(draw(users()))
        messages += draw(turns(ids))
    return Conversation.of(messages)


def without_origins(conversation: Conversation) -> list[Message]:
    """The messages without what a request does not say of who answered, but with their extras."""
    return [
        message.model_copy(
            update={"origin": OWN.model_copy(update={"extras": message.origin.extras})}
            if message.origin is not None and message.origin.extras
            else {"origin": None}
        )
        for message in conversation.messages
    ]


@given(own_conversations())
def test_what_the_provider_said_itself_comes_back_to_it(conversation: Conversation) -> None:
    export = FORMAT.write_history(conversation, DEFAULT_EXPORT_POLICY)
    assert not export.report
    again = FORMAT.read_history(export.request)
    assert without_origins(again) == without_origins(conversation)
    assert FORMAT.write_history(again, DEFAULT_EXPORT_POLICY).request == export.request


def test_the_name_of_a_tool_message_goes_back_where_it_was_sent() -> None:
    calls = [
        {"id": name, "type": "function", "function": {"name": "add", "arguments": "{}"}}
        for name in ("a", "b", "c")
    ]
    messages: list[Any] = [
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
        {"role": "tool", "tool_call_id": "b", "content": "2", "name": "add"},
        {"role": "tool", "tool_call_id": "c", "content": "3", "name": "sum"},
    ]
    read = FORMAT.read_history({"messages": messages})
    export = FORMAT.write_history(read)
    assert export.request == {"messages": messages}
    assert not export.report
    elsewhere: Any = FORMAT.write_history(read, ExportPolicy(provider="groq")).request
    assert not any("name" in message for message in elsewhere["messages"])
