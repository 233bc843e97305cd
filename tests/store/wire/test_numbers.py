"""Numbers that are another one once they are read, and all others."""

import json
from decimal import Decimal

from hypothesis import given
from hypothesis import strategies as st
from tests.support.cases import each_case

from tooltrail.records import CallBlock, Conversation, Message, ResultBlock, ToolCall
from tooltrail.wire import DEFAULT_EXPORT_POLICY, wire_format
from tooltrail.wire._clean_text import rounded_numbers


@each_case(
    ("text", "rounded"),
    [
        ('{"a":0.12345678901234567890123}', ["0.12345678901234567890123"]),
        ('{"a":1e-400,"b":[2e-401]}', ["1e-400", "2e-401"]),
        ('{"a":123456789.123456789123}', ["123456789.123456789123"]),
        (f"1e-{'9' * 30}", [f"1e-{'9' * 30}"]),
        ('{"a":0.1,"b":1E2,"c":1.0,"d":-0.0,"e":1.50}', []),
        ('{"a":1.7976931348623157e+308,"b":5e-324}', []),
        (f'{{"a":{10**40},"b":"0.12345678901234567890123"}}', []),
    ],
)
def test_what_is_rounded_is_named(text: str, rounded: list[str]) -> None:
    assert rounded_numbers(text) == rounded


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_no_double_is_rounded(value: float) -> None:
    assert rounded_numbers(json.dumps([value])) == []


@given(st.decimals(allow_nan=False, allow_infinity=False, min_value=-(10**300), max_value=10**300))
def test_what_is_not_named_is_exact(value: Decimal) -> None:
    text = str(value)
    if "." in text or "E" in text:
        exact = Decimal(repr(float(text))) == value
        assert (rounded_numbers(text) == []) == exact


@each_case("name", ["anthropic", "bedrock", "gemini", "ollama", "mcp"])
def test_formats_without_text_for_arguments_say_so(name: str) -> None:
    raw = '{"a":0.12345678901234567890123}'
    call = CallBlock(call=ToolCall(tool_name="f", call_id="a", arguments_raw=raw))
    answer = ResultBlock(call_id="a")
    asked = Message(role="assistant", blocks=(call,))
    conversation = Conversation.of([asked, Message(role="tool", blocks=(answer,))])
    export = wire_format(name).write_history(conversation, DEFAULT_EXPORT_POLICY)
    assert len(export.report.of_kind("number_rounded")) == 1
    exact = wire_format("openai").write_history(conversation, DEFAULT_EXPORT_POLICY)
    assert not exact.report.of_kind("number_rounded")
