"""Answers and requests of Anthropic that came whole: nothing odd is lost, nothing is guessed."""

from typing import Any

import pytest
from tests.support.cases import each_case

from tooltrail.records import (
    ContentBlock,
    Conversation,
    MediaBlock,
    Message,
    Origin,
    ProviderBlock,
    ReasoningBlock,
    ResultBlock,
    TextBlock,
)
from tooltrail.wire import Response, wire_format

ANTHROPIC = wire_format("anthropic")
OURS = Origin(wire_format="anthropic")
CALL: dict[str, Any] = {"type": "tool_use", "id": "a", "name": "f", "input": {}}


def answer(*content: Any, **members: Any) -> Response:
    return ANTHROPIC.read_response(
        {"type": "message", "role": "assistant", "content": list(content), **members}
    )


def history(*messages: Any, **members: Any) -> Conversation:
    return ANTHROPIC.read_history({"messages": list(messages), **members})


def result(**members: Any) -> tuple[ResultBlock, Origin | None]:
    """What is read of one result, and whose its message is."""
    block = {"type": "tool_result", "tool_use_id": "a", **members}
    (message,) = history({"role": "user", "content": [block]}).messages
    assert message.role == "tool"
    (read,) = message.results
    return read, message.origin


def test_two_calls_with_one_id_are_both_there_and_the_second_is_flagged() -> None:
    response = answer(CALL, CALL, CALL | {"id": "b"}, stop_reason="tool_use")
    assert [call.flags for call in response.calls] == [(), ("id_repeated",), ()]
    assert [call.position for call in response.calls] == [0, 1, 2]
    assert response.unread == ()


@each_case(
    ("block", "told_of"),
    [
        ({"type": "tool_use", "id": "b", "input": {}}, "a call has no name"),
        (CALL | {"name": ""}, "a call has no name"),
        (CALL | {"name": 7}, "a call has no name"),
        (CALL | {"input": [1]}, "the arguments of a call are not an object"),
        (CALL | {"input": False}, "the arguments of a call are not an object"),
        ("x", "a block of the content is not an object"),
        (None, "a block of the content is not an object"),
    ],
)
def test_what_is_no_call_or_no_block_is_told_and_no_call_is_run(block: Any, told_of: str) -> None:
    response = answer(CALL | {"id": "z"}, block, stop_reason="tool_use")
    assert response.unread == (told_of,)
    assert not any(call.is_executable for call in response.calls)


def test_thoughts_are_kept_whole_whether_they_can_be_read_or_not() -> None:
    thought: Any = {"type": "thinking", "thinking": "hm", "signature": "c2ln"}
    hidden: Any = {"type": "redacted_thinking", "data": "eHh4"}
    assert answer(thought, hidden).message.blocks == (
        ReasoningBlock(text="hm", extras=thought),
        ReasoningBlock(text="", extras=hidden),
    )


def test_an_error_beside_an_answer_is_a_failure_and_no_call_is_run() -> None:
    response = ANTHROPIC.read_response({"content": [CALL], "error": "boom"})
    assert response.failure is not None
    assert (response.failure.message, response.failure.kind) == ("boom", None)
    assert [call.is_executable for call in response.calls] == [False]


SEARCHED: dict[str, Any] = {"type": "search_result", "source": "https://x", "title": "t"}


@each_case(
    ("content", "expected"),
    [
        ("18 C", (TextBlock(text="18 C"),)),
        (["18 C"], (TextBlock(text="18 C"),)),
        ({"type": "text", "text": "18 C"}, (TextBlock(text="18 C"),)),
        ("", ()),
        ([], ()),
        (None, ()),
        (7, (ProviderBlock(native=7),)),
        ([None], (ProviderBlock(native=None),)),
        ([SEARCHED], (ProviderBlock(native=SEARCHED),)),
    ],
)
def test_nothing_of_a_result_is_lost(content: Any, expected: tuple[ContentBlock, ...]) -> None:
    assert result(content=content)[0].content == expected


def test_what_goes_back_to_anthropic_alone_says_whose_it_is() -> None:
    cached = {"type": "text", "text": "a", "cache_control": {"type": "ephemeral"}}
    extras: Any = {"cache_control": {"type": "ephemeral"}}
    assert result(content="a")[1] is None
    assert result(content=[SEARCHED])[1] == OURS
    assert result(content=[cached])[1] == OURS
    assert result(content="a", **extras) == (
        ResultBlock(call_id="a", content=(TextBlock(text="a"),), extras=extras),
        OURS,
    )
    (system,) = history(system=[cached]).messages
    assert system == Message(
        role="system", blocks=(TextBlock(text="a", extras=extras),), origin=OURS
    )
    (plain,) = history(system="a").messages
    assert plain == Message.of("system", "a")


def test_what_is_said_of_a_message_with_results_is_kept() -> None:
    block = {"type": "tool_result", "tool_use_id": "a", "content": "1"}
    messages = history({"role": "user", "content": [block, "go on"], "brandNew": 1}).messages
    origin = Origin(wire_format="anthropic", extras={"brandNew": 1})
    assert [(message.role, message.origin) for message in messages] == [
        ("tool", origin),
        ("user", origin),
    ]


@pytest.mark.parametrize("content", [["x"], "x", {"type": "text", "text": "x"}])
def test_a_text_by_itself_is_a_block(content: Any) -> None:
    assert history({"role": "user", "content": content}).messages == (Message.of("user", "x"),)


def test_media_have_their_place_their_bytes_and_their_title() -> None:
    def document(source: Any, **members: Any) -> Any:
        return {"type": "document", "source": source, **members}

    pdf = {"type": "base64", "media_type": "application/pdf", "data": "JVBE"}
    words = {"type": "text", "media_type": "text/plain", "data": "hi"}
    (message,) = history(
        {
            "role": "user",
            "content": [
                document(pdf, title="a.pdf", context="c"),
                document(words),
                document({"type": "url", "url": "https://x/y"}),
                document({"type": "file", "file_id": "f_1"}),
            ],
        }
    ).messages
    assert message.origin == OURS
    assert message.blocks == (
        MediaBlock(
            kind="document",
            media_type="application/pdf",
            data="JVBE",
            name="a.pdf",
            extras={"context": "c"},
        ),
        MediaBlock(kind="document", media_type="text/plain", data="aGk="),
        MediaBlock(kind="document", uri="https://x/y"),
        MediaBlock(kind="document", uri="file:f_1"),
    )
