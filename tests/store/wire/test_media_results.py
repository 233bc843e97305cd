"""Results with an image beside their text: what of them is not told is reported."""

from typing import Any

import pytest

from tooltrail.records import (
    CallBlock,
    Conversation,
    MediaBlock,
    Message,
    ResultBlock,
    TextBlock,
    ToolCall,
)
from tooltrail.wire import DEFAULT_EXPORT_POLICY, ExportPolicy, ExportRefusedError, wire_format

IMAGE = MediaBlock(kind="image", media_type="image/png", data="aGVsbG8=")
STRICT = ExportPolicy(strict=True)


def conversation(*content: Any, status: Any = "ok") -> Conversation:
    call = ToolCall.of("x", {}, call_id="c1")
    result = ResultBlock(call_id="c1", tool_name="x", status=status, content=content)
    return Conversation.of(
        [
            Message.of("user", "go"),
            Message(role="assistant", blocks=(CallBlock(call=call),)),
            Message(role="tool", blocks=(result,)),
        ]
    )


def test_an_unknown_end_and_a_text_without_a_word_are_told_by_anthropic() -> None:
    known = wire_format("anthropic")
    odd = conversation(IMAGE, TextBlock(text=" \n "), status="unknown")
    report = known.write_history(odd, DEFAULT_EXPORT_POLICY).report
    assert [change.detail for change in report.of_kind("status_flattened")] == [
        "unknown is a success here"
    ]
    assert [change.detail for change in report.of_kind("block_dropped")] == [
        "[text without a word]"
    ]
    with pytest.raises(ExportRefusedError):
        known.write_history(odd, STRICT)
    known.write_history(conversation(TextBlock(text="seen"), IMAGE), STRICT)


def test_a_success_that_reads_as_a_failure_is_told_by_responses() -> None:
    known = wire_format("openai-responses")
    odd = conversation(TextBlock(text="ERROR: no"), IMAGE)
    assert known.write_history(odd, DEFAULT_EXPORT_POLICY).report.of_kind("error_as_prefix")
    with pytest.raises(ExportRefusedError):
        known.write_history(odd, STRICT)
    known.write_history(conversation(TextBlock(text="seen"), IMAGE), STRICT)
