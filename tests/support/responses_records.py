"""Whatever a record can hold, with what OpenAI Responses has a place for often among it."""

import json

from hypothesis import strategies as st
from pydantic import JsonValue
from tests.support.conversations import json_objects

from tooltrail.records import (
    CallBlock,
    Conversation,
    MediaBlock,
    Message,
    Origin,
    ProviderBlock,
    ReasoningBlock,
    ResourceBlock,
    ResultBlock,
    ResultStatus,
    TextBlock,
    ToolCall,
)
from tooltrail.wire import JsonObject

_CALL_EXTRAS: list[dict[str, JsonValue]] = [{}, {"id": "fc_1"}]
any_texts = st.text(max_size=12) | st.sampled_from(
    ["", "\0", "\ud800", "a\ud83d", "ERROR: x", "\x1b"]
)
any_ids = st.none() | st.sampled_from(["", "a", "a", "b/ü", "\0", "x" * 80]) | any_texts
any_arguments = st.sampled_from(
    [
        f'{{"n":{10**40}}}',
        "",
        " ",
        "{",
        "null",
        "[1]",
        '"x"',
        '{"a":1e400}',
        '{"a":1,"a":2}',
        '{"\\ud800":"\\u0000"}',
        "x" * 100_000,
    ]
) | json_objects.map(json.dumps)
any_media = st.builds(
    MediaBlock,
    kind=st.sampled_from(["image", "audio", "document"]),
    media_type=st.none() | st.sampled_from(["image/png", "application/pdf"]) | any_texts,
    data=st.none() | st.sampled_from(["aGk=", "", "no base64", "AAEC"]),
    uri=st.none() | st.sampled_from(["https://a/b", "file:x", "data:,x", "file:"]) | any_texts,
    name=st.none() | any_texts,
)
any_resources = st.builds(
    ResourceBlock, uri=any_texts, text=st.none() | any_texts, data=st.none() | any_texts
)
any_statuses: st.SearchStrategy[ResultStatus] = st.sampled_from(
    ["ok", "error", "timeout", "cancelled", "interrupted", "denied", "unknown"]
)
any_native: st.SearchStrategy[JsonValue] = st.sampled_from(
    [{"type": "compaction", "encrypted_content": "\0"}, ["\udc00"], None, "x", {"a": 1}]
)
foreign_extras: st.SearchStrategy[JsonObject] = st.sampled_from([{}, {"a": "\ud800"}])
any_text_blocks = st.builds(TextBlock, text=any_texts, is_refusal=st.booleans())
any_provider_blocks = st.builds(ProviderBlock, native=any_native)
any_content = st.lists(
    any_text_blocks | any_media | any_resources | any_provider_blocks, max_size=3
).map(tuple)
any_calls = st.builds(
    CallBlock,
    call=st.builds(
        ToolCall,
        tool_name=any_texts | st.sampled_from(["shell", "apply_patch", "computer", "tool_search"]),
        arguments_raw=any_arguments,
        call_id=any_ids,
        kind=st.sampled_from(["function", "custom", "mcp"]),
        namespace=st.none() | any_texts,
        flags=st.sampled_from([(), ("incomplete",), ("id_synthesised",)]),
        extras=st.sampled_from(_CALL_EXTRAS),
    ),
    key=st.none() | st.sampled_from(["k", "l"]),
)
any_results = st.builds(
    ResultBlock,
    call_id=any_ids,
    tool_name=st.none() | any_texts,
    status=any_statuses,
    content=any_content,
    structured=st.sampled_from([None, {"a": "\udfff"}, [1]]),
    has_structured=st.booleans(),
    key=st.none() | st.sampled_from(["k", "l"]),
)
any_thoughts = st.builds(
    ReasoningBlock,
    text=any_texts,
    extras=st.sampled_from([{}, {"signature": "x"}, {"id": "rs_1", "summary": []}]),
)
any_origins = st.none() | st.builds(
    Origin, wire_format=st.sampled_from(["openai-responses", "anthropic"])
)
any_said = st.builds(
    Message,
    role=st.sampled_from(["system", "developer", "user", "assistant"]),
    blocks=st.lists(
        any_text_blocks
        | any_media
        | any_resources
        | any_thoughts
        | any_calls
        | any_results
        | any_provider_blocks,
        max_size=5,
    ).map(tuple),
    origin=st.none() | st.builds(Origin, wire_format=st.just("anthropic")),
)
any_turns = st.builds(
    Message,
    role=st.just("assistant"),
    blocks=st.lists(any_text_blocks | any_media | any_thoughts | any_calls, max_size=5).map(tuple),
    origin=any_origins,
)
any_answers = st.builds(
    Message, role=st.just("tool"), blocks=st.lists(any_results, min_size=1, max_size=3).map(tuple)
)
any_conversations = st.lists(any_said | any_turns | any_answers, max_size=6).map(Conversation.of)
