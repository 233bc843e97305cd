"""Messages with any content that a record allows, even if no provider could send it."""

from uuid import UUID

from hypothesis import strategies as st
from pydantic import JsonValue

from tooltrail.records import (
    CallBlock,
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
    ToolCall,
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
few_ids = st.sampled_from(["", "a", "b", "call_1", "x" * 70, "a/b", "\ud800", "\0"])
few_calls = st.builds(
    ToolCall,
    tool_name=st.sampled_from(["now", "read file", "a___b", "", "x" * 200, "shell", "apply_patch"]),
    arguments_raw=st.sampled_from(["", "{}", '{"a":1}', "{", "null", "[1]", '{"a":"\\ud800"}']),
    call_id=st.none() | few_ids,
    flags=st.sampled_from([(), ("incomplete",), ("id_synthesised",)]),
    kind=st.sampled_from(["function", "custom", "mcp"]),
)
few_results = st.builds(
    ResultBlock,
    call_id=st.none() | few_ids,
    tool_name=st.sampled_from([None, "now", "read file"]),
    status=st.sampled_from(["ok", "error", "timeout", "unknown"]),
    content=st.lists(texts | media, max_size=2).map(tuple),
    structured=st.just({"a": 1}),
    has_structured=st.booleans(),
)
tangled_blocks: st.SearchStrategy[MessageBlock] = st.one_of(
    texts, blocks, st.builds(CallBlock, call=few_calls), few_results
)
tangled_messages = st.builds(
    Message,
    role=st.sampled_from(["system", "developer", "user", "assistant", "assistant", "tool"]),
    blocks=st.lists(tangled_blocks, max_size=4).map(tuple),
    origin=st.none() | origins,
)
tangled_conversations = st.builds(
    Conversation, messages=st.lists(tangled_messages, max_size=6).map(tuple)
)
"""Calls and results that are missing, repeated or mismatched, among other messages."""
