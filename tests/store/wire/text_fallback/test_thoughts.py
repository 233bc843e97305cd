"""What models think in their text is reasoning, and no call that they rehearse there is one."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.store.wire.text_fallback.test_markup import any_texts
from tests.support.cases import each_case

from tooltrail.records import (
    CallBlock,
    Conversation,
    Message,
    MessageBlock,
    ReasoningBlock,
    ResultBlock,
    TextBlock,
    ToolCall,
)
from tooltrail.wire import DEFAULT_EXPORT_POLICY
from tooltrail.wire.text_fallback import FAMILIES, TextCall, read_calls, text_format

families = pytest.mark.parametrize("family", sorted(FAMILIES))
THOUGHTS = ["<think>", "</think>", "<thinking>", "<\\think>", "<Think>", "a", "\n", "```\n", "<"]
with_thoughts = st.lists(st.sampled_from(THOUGHTS), max_size=8).map("".join) | any_texts


def spelled(family: str, name: str) -> str:
    return FAMILIES[family].write_calls([TextCall(name, None, '{"zone":"UTC"}')])


@families
@pytest.mark.parametrize(("begin", "end"), [("<think>", "</think>"), ("<thinking>", "</Thinking>")])
def test_a_call_that_is_only_rehearsed_is_no_call(family: str, begin: str, end: str) -> None:
    thought = f"I might call this:\n{spelled(family, 'rm')}\nNo."
    said = f"{begin}\n{thought}\n{end}\n\nLet me look.\n\n{spelled(family, 'now')}"
    read = read_calls(said, family)
    assert read.blocks[:2] == (ReasoningBlock(text=thought), TextBlock(text="Let me look."))
    (call,) = read.calls
    assert (call.tool_name, call.is_executable, call.position) == ("now", True, 0)
    assert (read.text, read.unread) == ("Let me look.", ())
    # The template of Qwen 3 has the first tag in the prompt.
    assert read_calls(said.removeprefix(begin), family) == read


@families
def test_nothing_of_thoughts_without_an_end_is_a_call(family: str) -> None:
    said = f"Hm.\n\n<think>\nFirst\n{spelled(family, 'rm')}"
    read = read_calls(said, family)
    assert read.blocks == (
        TextBlock(text="Hm."),
        ReasoningBlock(text=f"First\n{spelled(family, 'rm')}"),
    )
    assert read.unread == ("what was thought has no end; there may be calls in it",)
    response = text_format(family).read_response({"content": f"{spelled(family, 'now')}\n\n{said}"})
    assert [call.is_executable for call in response.calls] == [False]


@families
def test_a_code_block_in_thoughts_ends_with_them(family: str) -> None:
    thought = f"{spelled(family, 'rm')}\n```\n{spelled(family, 'rm')}"
    read = read_calls(f"{thought}\n</think>\n\n{spelled(family, 'now')}", family)
    assert [call.tool_name for call in read.calls] == ["now"]
    assert read.blocks[0] == ReasoningBlock(text=thought)
    assert read.unread == ()


CALL = '<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'


@each_case(
    "said",
    [
        f"{CALL}\nDone; the tag `</think>` ends thoughts.",
        f"I never use `<think>` tags.\n{CALL}",
        f"I never use <think> tags.\n{CALL}",
        f"Write `<think>`, then `</think>`.\n{CALL}\n``</thinking>`` ends it.",
        f"{CALL}\n```\n</think>\n```",
    ],
)
def test_calls_beside_texts_about_tags_are_calls(said: str) -> None:
    read = read_calls(said, "hermes")
    assert [call.tool_name for call in read.calls] == ["now"]
    assert read.unread == ()
    assert not any(isinstance(block, ReasoningBlock) for block in read.blocks)


@each_case(
    ("said", "thought"),
    [
        (f"Hm.\n{CALL}\n</think>\n\nNo.", f"Hm.\n{CALL}"),
        (f"{CALL}\nBetter not.</think>\n\nNo.", f"{CALL}\nBetter not."),
        (f"Is it `</think>`?\n{CALL}\n</think>\n\nNo.", f"Is it `</think>`?\n{CALL}"),
        (f"<think>Is it `</think>`?\n{CALL}\n</think>\n\nNo.", f"Is it `</think>`?\n{CALL}"),
        (f"Well <think>hm\n{CALL}\n</think>\n\nNo.", f"Well <think>hm\n{CALL}"),
        ("<tool_call>\n{\n</tool_call>\n</think>\n\nNo.", "<tool_call>\n{\n</tool_call>"),
    ],
)
def test_calls_that_were_thought_keep_no_other_from_running(said: str, thought: str) -> None:
    read = read_calls(f"{said}\n\n{CALL}", "hermes")
    assert read.blocks[:2] == (ReasoningBlock(text=thought), TextBlock(text="No."))
    assert [call.is_executable for call in read.calls] == [True]
    assert read.unread == ()


def test_tags_in_arguments_mean_nothing() -> None:
    call = '{"name": "write", "arguments": {"text": "<think></think>"}}'
    said = f"<tool_call>\n{call}\n</tool_call>"
    read = read_calls(f"{said}\n\n{said}", "hermes")
    assert [one.arguments for one in read.calls] == [{"text": "<think></think>"}] * 2


@families
@given(with_thoughts, with_thoughts)
def test_texts_about_thoughts_are_sent_as_texts(family: str, before: str, after: str) -> None:
    call = CallBlock(call=ToolCall(tool_name="now", arguments_raw="{}"))
    blocks: tuple[MessageBlock, ...] = (TextBlock(text=before), call, TextBlock(text=after))
    known = text_format(family)
    export = known.write_history(
        Conversation.of(
            [
                Message(role="assistant", blocks=blocks),
                Message(role="tool", blocks=(ResultBlock(content=(TextBlock(text="x"),)),)),
            ]
        ),
        DEFAULT_EXPORT_POLICY,
    )
    again = known.read_history(export.request).messages[0]
    assert len(again.calls) == 1
    assert not any(isinstance(block, ReasoningBlock) for block in again.blocks)
