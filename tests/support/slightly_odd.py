"""Conversations that any provider could have had, except for one or two oddities.

The handling of an oddity is visible only if everything else is in order: with many oddities, the
report of an export always names some of them.
"""

import base64

from hypothesis import strategies as st
from pydantic import JsonValue
from tests.support.conversations import conversations, json_objects, json_values, spoken_texts

from tooltrail.records import (
    CallBlock,
    ContentBlock,
    Conversation,
    MediaBlock,
    Message,
    MessageBlock,
    Origin,
    ProviderBlock,
    ReasoningBlock,
    ResourceBlock,
    ResultBlock,
    TextBlock,
)
from tooltrail.records.blocks import Extras, MediaKind

_MEDIA_TYPES = {
    "image": ["image/png", "image/jpeg", "image/bmp"],
    "audio": ["audio/wav", "audio/mpeg", "audio/ogg"],
    "document": ["application/pdf", "text/plain", "application/zip"],
}
_BASE64 = st.sampled_from(
    [base64.b64encode(data).decode() for data in (b"\x89PNG\r\n\x1a\n", b"%PDF-1.7\n", b"words")]
)
_extras: st.SearchStrategy[Extras] = st.one_of(
    st.builds(dict[str, JsonValue]),
    st.dictionaries(st.sampled_from(["a", "type", "id"]), json_values, max_size=2),
)
texts = st.builds(
    TextBlock,
    text=spoken_texts | st.sampled_from(["", " ", "\n"]),
    is_refusal=st.booleans(),
    extras=_extras,
)


@st.composite
def media(draw: st.DrawFn) -> MediaBlock:
    kinds: list[MediaKind] = ["image", "audio", "document"]
    kind = draw(st.sampled_from(kinds))
    data, uri = draw(
        st.sampled_from([(True, None), (False, "https://example.org/x"), (False, "file:f_1")])
    )
    return MediaBlock(
        kind=kind,
        media_type=draw(st.none() | st.sampled_from(_MEDIA_TYPES[kind])),
        data=draw(_BASE64) if data else None,
        uri=uri,
        name=draw(st.none() | st.just("a.bin")),
        extras=draw(_extras),
    )


resources = st.builds(
    ResourceBlock,
    uri=st.just("file:///x"),
    media_type=st.none() | st.just("text/plain"),
    text=st.none() | spoken_texts,
    name=st.none() | st.just("x"),
    extras=_extras,
)
_spoken: st.SearchStrategy[MessageBlock] = st.one_of(
    texts,
    media(),
    resources,
    st.builds(ReasoningBlock, text=spoken_texts, extras=_extras),
    st.builds(ProviderBlock, native=json_objects),
)
_content: st.SearchStrategy[ContentBlock] = st.one_of(
    texts, media(), resources, st.builds(ProviderBlock, native=json_objects)
)
_statuses = st.sampled_from(
    ["ok", "error", "timeout", "cancelled", "interrupted", "denied", "unknown"]
)


@st.composite
def _odd_result(draw: st.DrawFn, result: ResultBlock) -> ResultBlock:
    member, values = draw(
        st.sampled_from(
            [
                ("status", _statuses),
                ("content", st.lists(_content, max_size=2).map(tuple)),
                ("extras", _extras),
                ("structured", json_values),
            ]
        )
    )
    update = {member: draw(values)}
    if member == "structured":
        update["has_structured"] = True
        if draw(st.booleans()):
            update["content"] = ()
    return result.model_copy(update=update)


@st.composite
def _odd_call(draw: st.DrawFn, block: CallBlock) -> CallBlock:
    member, values = draw(
        st.sampled_from(
            [
                ("arguments_raw", st.sampled_from(["", "[1]", "{", "null", '{"a":1,"a":2}'])),
                ("namespace", st.just("files")),
                ("kind", st.sampled_from(["custom", "builtin", "mcp"])),
                ("extras", _extras),
                ("call_id", st.sampled_from([None, "a/b", "x" * 70])),
                ("tool_name", st.sampled_from(["read file", "x" * 200, "1st", "a.b"])),
            ]
        )
    )
    return block.model_copy(update={"call": block.call.model_copy(update={member: draw(values)})})


@st.composite
def _odd_message(draw: st.DrawFn, message: Message) -> Message:
    blocks = list(message.blocks)
    place = draw(st.integers(0, max(len(blocks) - 1, 0)))
    chosen = blocks[place] if blocks else None
    if isinstance(chosen, ResultBlock) and draw(st.booleans()):
        blocks[place] = draw(_odd_result(chosen))
    elif isinstance(chosen, CallBlock) and draw(st.booleans()):
        blocks[place] = draw(_odd_call(chosen))
    else:
        blocks.insert(draw(st.integers(0, len(blocks))), draw(_spoken))
    return message.model_copy(update={"blocks": tuple(blocks)})


@st.composite
def slightly_odd(draw: st.DrawFn, wire_format: str) -> Conversation:
    """A conversation with one or two odd messages, from this provider or without an origin."""
    conversation = draw(conversations())
    messages = list(conversation.messages)
    for _ in range(draw(st.integers(1, 2))):
        place = draw(st.integers(0, len(messages) - 1))
        messages[place] = draw(_odd_message(messages[place]))
        if messages[place].role == "assistant" and draw(st.booleans()):
            origin = Origin(wire_format=wire_format, extras=draw(_extras))
            messages[place] = messages[place].model_copy(update={"origin": origin})
    return Conversation.of(messages)
