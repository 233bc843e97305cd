"""Messages for Anthropic: what has a place goes there, and what has none is in the report."""

from typing import Any

import pytest
from tests.support.cases import each_case
from tests.support.wire.choices import written_choice
from tests.support.wire.fake_provider import request_problems

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
    ResultBlock,
    TextBlock,
    ToolCall,
)
from tooltrail.wire import DEFAULT_EXPORT_POLICY, Export, ToolChoice, wire_format

ANTHROPIC = wire_format("anthropic")
OURS = Origin(wire_format="anthropic")
THEIRS = Origin(wire_format="x")
CACHED: dict[str, Any] = {"cache_control": {"type": "ephemeral"}}
PNG = MediaBlock(kind="image", media_type="image/png", data="aGk=")
IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "aGk="}}
THOUGHT: dict[str, Any] = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
HIDDEN: dict[str, Any] = {"type": "redacted_thinking", "data": "eHh4"}
SEARCHED: dict[str, Any] = {
    "type": "search_result",
    "source": "https://x",
    "title": "t",
    "content": [{"type": "text", "text": "found"}],
}


def write(*messages: Message) -> Export:
    return ANTHROPIC.write_history(Conversation.of(messages), DEFAULT_EXPORT_POLICY)


def user(*blocks: MessageBlock, origin: Origin | None = None) -> Message:
    return Message(role="user", blocks=blocks, origin=origin)


def assistant(*blocks: MessageBlock, origin: Origin | None = OURS) -> Message:
    return Message(role="assistant", blocks=blocks, origin=origin)


def changes(export: Export) -> list[tuple[str, str]]:
    return [(change.kind, change.detail) for change in export.report]


def last(*messages: Message) -> tuple[Any, list[tuple[str, str]]]:
    """The content of the last message, and the changes."""
    export = write(*messages)
    told: Any = export.request["messages"]
    return told[-1]["content"], changes(export)


GO = Message.of("user", "go")
DONE = ResultBlock(call_id="a", content=(TextBlock(text="1"),))


def asked(call: ToolCall, *, origin: Origin | None = None) -> tuple[Any, list[tuple[str, str]]]:
    """What is told of one call, and the changes."""
    export = write(
        GO, assistant(CallBlock(call=call), origin=origin), Message(role="tool", blocks=(DONE,))
    )
    told: Any = export.request["messages"]
    (block,) = told[1]["content"]
    return block, changes(export)


def answered(
    *content: ContentBlock, origin: Origin | None = None, **members: Any
) -> tuple[Any, list[tuple[str, str]]]:
    """What is told of one result beside its id, and the changes."""
    call = CallBlock(call=ToolCall(tool_name="f", call_id="a"))
    result = ResultBlock(call_id="a", content=content, **members)
    told, report = last(
        GO, assistant(call, origin=None), Message(role="tool", blocks=(result,), origin=origin)
    )
    (block,) = told
    assert (block.pop("type"), block.pop("tool_use_id")) == ("tool_result", "a")
    return block, report


def test_the_words_of_a_refusal_are_told_to_be_text() -> None:
    refusal = TextBlock(text="no", is_refusal=True)
    report = [("block_described", "the words of a refusal are text here")]
    assert last(user(refusal)) == ("no", report)
    assert answered(refusal) == ({"content": "no"}, report)
    assert answered(refusal, PNG)[1] == report


def test_two_messages_of_the_system_are_one_and_told() -> None:
    export = write(Message.of("system", "a"), Message.of("system", "b"), GO)
    assert export.request["system"] == [
        {"type": "text", "text": "a"},
        {"type": "text", "text": "b"},
    ]
    assert changes(export) == [("messages_merged", "merged with the previous message")]


def test_what_was_said_of_a_message_or_is_null_has_no_place() -> None:
    origin = Origin(wire_format="anthropic", extras={"container": {"id": "c"}})
    text = TextBlock(text="a", extras={"type": 5, "x": None, "citations": []})
    told, report = last(GO, assistant(text, origin=origin))
    assert told == [{"type": "text", "text": "a", "citations": []}]
    assert report == [("provider_data_dropped", "container"), ("provider_data_dropped", "type, x")]


def test_what_of_media_has_no_place_is_told() -> None:
    named = PNG.model_copy(update={"name": "a.png", "uri": "https://x/y"})
    assert last(user(named)) == ([IMAGE], [("block_described", "of image: no name, uri here")])
    url = MediaBlock(kind="image", media_type="image/bmp", uri="https://x/y")
    assert last(user(url)) == (
        [{"type": "image", "source": {"type": "url", "url": "https://x/y"}}],
        [("block_described", "of image: no media_type here")],
    )
    titled = MediaBlock(
        kind="document", media_type="application/pdf", data="JVBE", name="a.pdf", extras=CACHED
    )
    native = {
        "type": "document",
        "source": {"type": "base64", "media_type": "application/pdf", "data": "JVBE"},
        "title": "a.pdf",
    }
    assert last(user(titled, origin=OURS)) == ([native | CACHED], [])
    assert last(user(titled)) == ([native], [("provider_data_dropped", "cache_control")])


@pytest.mark.parametrize("uri", ["file:f_1", "s3://b/x", "file:///etc/passwd", "ftp://x/y"])
def test_only_who_knows_a_place_is_told_of_it(uri: str) -> None:
    media = MediaBlock(kind="document", uri=uri)
    described = f"[document of unknown type, {uri}]"
    assert last(user(media)) == (described, [("block_described", described)])
    assert answered(media) == ({"content": described}, [("block_described", described)])
    own = {"type": "document", "source": {"type": "file", "file_id": "f_1"}}
    is_own = uri == "file:f_1"
    assert last(user(media, origin=OURS))[0] == ([own] if is_own else described)
    assert answered(media, origin=OURS)[0] == {"content": [own] if is_own else described}


def test_thoughts_go_back_to_anthropic_and_to_nobody_else() -> None:
    blocks = (
        ReasoningBlock(text="hm", extras=THOUGHT),
        ReasoningBlock(extras=HIDDEN),
        TextBlock(text="so"),
    )
    said = {"type": "text", "text": "so"}
    assert last(GO, assistant(*blocks)) == ([THOUGHT, HIDDEN, said], [])
    told, report = last(GO, assistant(*blocks, origin=THEIRS))
    assert told == "so"
    assert [kind for kind, _ in report] == ["block_dropped", "block_dropped"]


def test_thoughts_stand_in_front_of_a_turn_or_not_at_all() -> None:
    foreign = assistant(TextBlock(text="first"), origin=THEIRS)
    own = assistant(ReasoningBlock(text="hm", extras=THOUGHT), TextBlock(text="so"))
    first, so = {"type": "text", "text": "first"}, {"type": "text", "text": "so"}
    merged = ("messages_merged", "merged with the previous message")
    export = write(GO, foreign, own)
    assert export.request["messages"] == [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [first, so]},
    ]
    assert changes(export) == [
        merged,
        ("block_dropped", "reasoning inside a message that begins with other content"),
    ]
    assert request_problems("anthropic", export.request) == []
    assert last(GO, own, foreign) == ([THOUGHT, so, first], [merged])
    assert last(GO, own, own) == ([THOUGHT, so, THOUGHT, so], [merged])


@each_case(
    "native", ["x", 5, None, {}, {"a": 1}, {"type": "tool_use", "id": "a"}, {"type": "tool_result"}]
)
def test_what_can_be_no_block_is_dropped(native: Any) -> None:
    export = write(user(TextBlock(text="a"), ProviderBlock(native=native), origin=OURS))
    assert export.request["messages"] == [{"role": "user", "content": "a"}]
    assert [kind for kind, _ in changes(export)] == ["provider_data_dropped"]


def test_what_anthropic_said_of_a_call_goes_back_to_it_alone() -> None:
    call = ToolCall(
        tool_name="click", call_id="a", namespace="browser", extras={"caller": {"type": "direct"}}
    )
    native: dict[str, Any] = {"type": "tool_use", "id": "a", "name": "click", "input": {}}
    own = {**native, "toolset_name": "browser", "caller": {"type": "direct"}}
    assert asked(call, origin=OURS) == (own, [])
    assert asked(call) == (
        {**native, "name": "browser___click"},
        [
            ("name_renamed", "'click' of 'browser' is browser___click here"),
            ("provider_data_dropped", "caller"),
        ],
    )


def test_several_blocks_of_a_result_are_as_many() -> None:
    one, two = TextBlock(text="one"), TextBlock(text="two")
    native = [{"type": "text", "text": "one"}, {"type": "text", "text": "two"}]
    assert answered(one) == ({"content": "one"}, [])
    assert answered(one, two) == ({"content": native}, [])
    assert answered(one, two, status="error") == ({"content": native, "is_error": True}, [])
    assert answered(PNG, one) == ({"content": [IMAGE, native[0]]}, [])
    told, report = answered(one, PNG, status="error")
    assert told["is_error"] is True
    assert [block["type"] for block in told["content"]] == ["text", "text"]
    assert [kind for kind, _ in report] == ["block_described"]
    assert answered(one, two, status="denied")[1] == [
        ("status_flattened", "denied is an error here")
    ]


def test_what_anthropic_was_told_of_a_result_goes_back_to_it_alone() -> None:
    text = TextBlock(text="a", extras=CACHED)
    found = ProviderBlock(native=SEARCHED)
    native = {"type": "text", "text": "a"}
    assert answered(text, found, extras=CACHED, origin=OURS) == (
        {"content": [native | CACHED, SEARCHED], **CACHED},
        [],
    )
    assert answered(text, origin=OURS) == ({"content": [native | CACHED]}, [])
    assert answered(found, origin=OURS) == ({"content": [SEARCHED]}, [])
    described = "[provider's search_result]"
    assert answered(text, found, extras=CACHED) == (
        {"content": [native, {"type": "text", "text": described}]},
        [("provider_data_dropped", "cache_control"), ("block_described", described)],
    )
    assert answered(found, origin=OURS, status="error") == (
        {"content": described, "is_error": True},
        [("block_described", described)],
    )


def test_what_anthropic_was_told_of_the_system_goes_back_to_it_alone() -> None:
    blocks = (TextBlock(text="a", extras=CACHED),)
    own = write(Message(role="system", blocks=blocks, origin=OURS), GO)
    assert own.request["system"] == [{"type": "text", "text": "a", **CACHED}]
    assert changes(own) == []
    foreign = write(Message(role="system", blocks=blocks), GO)
    assert foreign.request["system"] == "a"
    assert changes(foreign) == [("provider_data_dropped", "cache_control")]


def test_no_word_of_calls_in_parallel_goes_with_no_calls_at_all() -> None:
    export = written_choice(ANTHROPIC, ToolChoice("none", parallel=False))
    assert export.request["tool_choice"] == {"type": "none"}
    assert changes(export) == [
        ("choice_not_enforced", "no word of calls in parallel, where none may be made")
    ]
    assert changes(written_choice(ANTHROPIC, ToolChoice("none"))) == []


def test_of_several_results_the_last_one_says_whose_it_is() -> None:
    text = TextBlock(text="a", extras=CACHED)
    results = [ResultBlock(call_id="a", content=(text,)) for _ in range(2)]
    call = CallBlock(call=ToolCall(tool_name="f", call_id="a"))
    told, report = last(
        GO,
        assistant(call),
        Message(role="tool", blocks=(results[0],)),
        Message(role="tool", blocks=(results[1],), origin=OURS),
    )
    assert told[0]["content"] == [{"type": "text", "text": "a", **CACHED}]
    assert [kind for kind, _ in report] == ["result_repeated"]
