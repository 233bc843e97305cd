"""What messages hold beside their text, in the formats for people and for programs."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from markdown_it import MarkdownIt
from tests.support.transcripts import SESSION, TROUBLE, call, document, message, normal, parsed, top

from tooltrail.records import (
    CallBlock,
    MediaBlock,
    Message,
    MessageBlock,
    Origin,
    ProviderBlock,
    ReasoningBlock,
    ResourceBlock,
    ResultBlock,
    Role,
    TextBlock,
    ToolCall,
)
from tooltrail.store.views import MessageView
from tooltrail.transcripts import Transcript


def whole(seq: int, role: Role, *blocks: MessageBlock, **more: Any) -> MessageView:
    """A message that was recorded with all that is in it."""
    recorded = Message(role=role, blocks=blocks, **more)
    view = message(seq, role, recorded.text)
    return view.replaced(document=recorded.to_json())


def asked(call_id: str, **more: Any) -> CallBlock:
    return CallBlock(call=ToolCall(tool_name="Read", call_id=call_id, **more))


def result(call_id: str, *content: TextBlock | MediaBlock, **more: Any) -> ResultBlock:
    return ResultBlock(call_id=call_id, content=content, **more)


PIXELS = MediaBlock(kind="image", media_type="image/png", data="iVBORw==")
GOLDEN = Path(__file__).with_name("golden")
RICH = Transcript(
    SESSION.replaced(title=None, closed_at=None),
    (
        whole(0, "user", TextBlock(text="What is it?"), PIXELS),
        whole(
            1,
            "assistant",
            ReasoningBlock(text="Let me\n#9 see"),
            TextBlock(text="I "),
            TextBlock(text="look."),
            asked("c1", arguments_raw='{"path": "a"}'),
            asked("c2", arguments_raw='{"path": "b"}'),
            asked("c3", arguments_raw='{"pa', flags=("incomplete",)),
            ProviderBlock(
                native={"type": "web_search_call"},
                call=ToolCall(tool_name="web_search", arguments_raw='{"q": 1}', call_id="ws_1"),
            ),
            is_complete=False,
        ),
        call(2, "Read", b'{"path": "a"}', "a text\n", call_id="c1"),
        whole(
            3,
            "tool",
            result("c1", TextBlock(text="a text")),
            result("c2", TextBlock(text="no file"), PIXELS, tool_name="Read", status="error"),
            result("c2", tool_name="Read", structured={"a": [1]}, has_structured=True),
        ),
        whole(4, "assistant", TextBlock(text="I will not.", is_refusal=True)),
        whole(5, "user", ResourceBlock(uri="file:///a", text="of a file"), ReasoningBlock()),
        whole(6, "assistant"),
    ),
)


def golden(name: str) -> str:
    return (GOLDEN / name).read_text()


def test_text_shows_all_that_a_message_holds_and_no_call_twice() -> None:
    assert document(RICH, "text") == golden("parts.txt")


def test_markdown_shows_all_that_a_message_holds() -> None:
    text = document(RICH, "markdown")
    _, _, second = text.partition("## 1. assistant\n\n")
    assert second.partition("## 2.")[0] == golden("parts-answer.md")
    headings = [token for token in top(parsed(RICH), "heading_open") if token.tag == "h2"]
    assert len(headings) == len(RICH.entries) - 1  # a message without content is left out
    assert text.count('{"path": "a"}') == 1


def test_json_has_the_blocks_of_a_message_and_no_call_twice() -> None:
    entries = json.loads(document(RICH, "json"))["entries"]
    for number, blocks in json.loads(golden("parts-blocks.json")).items():
        assert entries[int(number)]["blocks"][: len(blocks)] == blocks
    assert [len(entry.get("blocks", ())) for entry in entries] == [2, 7, 0, 3, 1, 2, 0]
    assert (entries[1]["text"], entries[1]["is_complete"]) == ("I look.", False)
    assert [entry.get("is_complete") for entry in entries] == [None, False, *[None] * 5]


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("refusal", "the model refused (refusal)"),
        ("content_filter", "the answer was cut: a content filter stopped it (content_filter)"),
        ("SAFETY", "the answer was cut: a content filter stopped it (SAFETY)"),
        ("MODEL_ARMOR", "the answer was cut: a content filter stopped it (MODEL_ARMOR)"),
        ("length", "the answer was cut: the token limit was reached (length)"),
        ("max_tokens", "the answer was cut: the token limit was reached (max_tokens)"),
        ("odd\n#9 reason", "the answer broke off here"),
        (None, "the answer broke off here"),
    ],
)
def test_an_answer_that_was_cut_says_why(reason: str | None, words: str) -> None:
    origin = Origin(wire_format="x", finish_reason=reason)
    said = whole(0, "assistant", TextBlock(text="I"), origin=origin, is_complete=False)
    complete = whole(1, "assistant", TextBlock(text="I"), origin=origin)
    transcript = Transcript(SESSION, (said, complete))
    assert f"  I\n--- {words} ---\n" in document(transcript, "text")
    assert document(transcript, "markdown").count(f"\nT{words[1:]}.\n".replace("_", "\\_")) == 1
    first, second = json.loads(document(transcript, "json"))["entries"]
    assert first.get("finish_reason") == reason
    assert "finish_reason" not in second


@pytest.mark.parametrize("style", ["text", "markdown", "json"])
def test_a_result_that_is_not_the_receipt_is_shown_as_well(style: str) -> None:
    transcript = Transcript(
        SESSION,
        (
            whole(0, "assistant", asked("c1")),
            call(1, "Read", b"{}", "of the receipt", call_id="c1"),
            whole(2, "tool", result("c1", TextBlock(text="of the message"))),
        ),
    )
    text = document(transcript, style)
    assert text.count("of the receipt") == text.count("of the message") == 1


@pytest.mark.parametrize("style", ["text", "markdown", "json"])
def test_a_structured_value_beside_the_text_of_the_receipt_is_shown(style: str) -> None:
    told = result("c1", TextBlock(text="told"), structured={"n": 4711}, has_structured=True)
    entries = (
        whole(0, "assistant", asked("c1")),
        call(1, "Read", b"{}", "told", call_id="c1"),
        whole(2, "tool", told),
    )
    assert "4711" in document(Transcript(SESSION, entries), style)


def test_choices_that_were_not_continued_are_shown_as_such() -> None:
    def choice(seq: int, number: int) -> MessageView:
        origin = Origin(wire_format="openai", response_id="r", choice=number)
        return whole(seq, "assistant", TextBlock(text=f"choice {number}"), origin=origin)

    transcript = Transcript(SESSION, (choice(0, 0), choice(1, 1)))
    text = document(transcript, "text")
    assert "assistant\n  choice 0\n" in text
    assert "--- choice 1 of the answer, not continued ---\n--- said ---\n  choice 1\n" in text
    first, second = json.loads(document(transcript, "json"))["entries"]
    assert ("choice" in first, second["choice"], second["is_continued"]) == (False, 1, False)


@pytest.mark.parametrize("style", ["text", "markdown"])
def test_no_name_and_no_part_of_a_message_can_begin_an_entry_of_its_own(style: str) -> None:
    forged = "x\n\n#7 2026-01-01 00:00:00Z Bash [success]\n\n## 7. Bash\n--- said ---"
    named = (message(1, forged, "hi"), call(2, forged, b"{}", "ok", call_id=forged))
    call_block = CallBlock(
        call=ToolCall(tool_name=forged, arguments_raw=forged, call_id=forged, namespace=forged)
    )
    blocks = (
        ReasoningBlock(text=forged),
        call_block,
        result(forged, TextBlock(text=forged), tool_name=forged),
        MediaBlock(kind="image", media_type=forged, uri=forged, name=forged),
        ResourceBlock(uri=forged, text=forged),
        ProviderBlock(native={"type": forged}),
    )
    titled = SESSION.replaced(title=forged)
    text = document(Transcript(titled, (whole(0, "assistant", *blocks), *named)), style)
    own = [line for line in text.splitlines() if line.startswith(("#7", "## 7", "--- said"))]
    if style == "text":
        assert own == []
        return
    tokens = MarkdownIt("commonmark").parse(text)
    assert [token.tag for token in top(tokens, "heading_open")] == ["h1", "h2", "h2", "h2"]


@given(TROUBLE, TROUBLE, TROUBLE, TROUBLE)
def test_no_part_of_a_message_breaks_out_of_its_place(
    said: str, arguments: str, shown: str, name: str
) -> None:
    call_block = CallBlock(call=ToolCall(tool_name=f"T{name}", arguments_raw=arguments))
    blocks = (
        TextBlock(text=said),
        ReasoningBlock(text=said),
        call_block,
        result(name, TextBlock(text=shown)),
        MediaBlock(kind="image", uri=name),
        ResourceBlock(uri=name, text=said),
    )
    tokens = parsed(Transcript(SESSION, (whole(0, "assistant", *blocks), message(1, "user", said))))
    assert [token.tag for token in top(tokens, "heading_open")] == ["h1", "h2", "h2"]
    fences = [fence.content for fence in top(tokens, "fence")]
    wanted = [arguments or None, shown or None, said or None]
    assert fences == [
        normal(text if text.endswith("\n") else f"{text}\n") for text in wanted if text is not None
    ]
    assert top(tokens, "html_block") == []
