"""Calls are taken out of what an assistant says; what only looks like one stays text."""

import pytest
from hypothesis import given
from tests.store.wire.text_fallback.test_families import SPELLINGS
from tests.store.wire.text_fallback.test_markup import any_texts
from tests.support.cases import each_case

from tooltrail.records import TextBlock
from tooltrail.wire.text_fallback import FAMILIES, TextCall, read_calls

families = pytest.mark.parametrize("family", sorted(FAMILIES))
CALL = TextCall("now", None, '{"zone":"UTC"}')


def spelled(family: str) -> str:
    return FAMILIES[family].write_calls([CALL])


@families
def test_the_text_around_calls_is_what_was_said(family: str) -> None:
    read = read_calls(f"Let me look.\n\n{spelled(family)}\n\nOne moment.", family)
    assert [type(one).__name__ for one in read.blocks] == ["TextBlock", "CallBlock", "TextBlock"]
    assert read.text == "Let me look.\n\nOne moment."
    (call,) = read.calls
    assert (call.tool_name, call.arguments, call.flags) == ("now", {"zone": "UTC"}, ())
    assert call.is_executable
    assert read.unread == ()


@families
@pytest.mark.parametrize(
    ("before", "after"),
    [("", ""), ("Hm.\n", ""), ("Hm.\n\n", "\n"), ("  ", "\n\nDone."), ("\n\n", "")],
)
def test_blank_lines_beside_a_call_belong_to_it(family: str, before: str, after: str) -> None:
    read = read_calls(f"{before}{spelled(family)}{after}", family)
    assert len(read.calls) == 1
    assert read.text == f"{before}{after}".strip()


@families
def test_a_text_without_calls_is_itself(family: str) -> None:
    for text in ("", "hello", "a <b> c", "\n\n", "[1]", "```\ncode\n```"):
        read = read_calls(text, family)
        assert read.text == text
        assert (read.calls, read.unread) == ((), ())


@families
@pytest.mark.parametrize("fence", ["```", "```json", "~~~~", "  ```"])
def test_a_call_in_a_code_block_is_an_example(family: str, fence: str) -> None:
    mark = fence.strip().removesuffix("json")
    text = f"Like this:\n{fence}\n{spelled(family)}\n{mark}\nSee?"
    read = read_calls(text, family)
    assert read.calls == ()
    assert read.text == text
    # Behind the block there are calls again, and in one without an end there are none.
    assert len(read_calls(f"{text}\n{spelled(family)}", family).calls) == 1
    assert read_calls(f"{fence}\n{spelled(family)}", family).calls == ()


@families
@pytest.mark.parametrize("before", ["> ", "`", "Write ", "- "])
def test_a_call_inside_of_a_line_is_a_quotation(family: str, before: str) -> None:
    text = f"{before}{spelled(family)}"
    read = read_calls(text, family)
    assert read.calls == ()
    assert read.text == text


@families
def test_a_call_that_is_cut_off_is_never_to_be_run(family: str) -> None:
    whole = spelled(family)
    # The last tag of Claude's is the stop sequence, so a call is whole before it.
    needed = whole.index("</invoke>") + 9 if family == "anthropic-xml" else len(whole)
    for end in range(needed):
        for call in read_calls(f"Hm.\n\n{whole[:end]}", family).calls:
            assert not call.is_executable
            assert "incomplete" in call.flags
    (call,) = read_calls(whole[:needed], family).calls
    assert call.is_executable
    assert read_calls(whole, family).calls[0].is_executable


@families
@given(any_texts)
def test_any_text_is_read_without_an_error_and_loses_nothing_in_silence(
    family: str, text: str
) -> None:
    read = read_calls(text, family)
    for call in read.calls:
        assert call.is_executable or "incomplete" in call.flags or call.parse_error
    if not read.calls and not any(mark in text for mark in ("\\", "```", "~~~")):
        assert read.text == text
    assert sum("incomplete" in call.flags for call in read.calls) <= len(read.unread)


MALFORMED = [
    ("tool_result", "<tool_call>\n{}\n</tool_call>", "(unnamed)", "{}"),
    ("tool_result", '<tool_call id="a" name=now>\n{}\n</tool_call>', "(unnamed)", "{}"),
    ("tool_result", '<tool_call name="now">\n{}', "now", "{}"),
    ("hermes", '<tool_call>\n{"name": "now"}\n</tool_call>', "(unnamed)", '{"name": "now"}'),
    ("hermes", "<tool_call>\nnow()\n</tool_call>", "(unnamed)", "now()"),
    (
        "hermes",
        '<tool_call>\n{"name": 7, "arguments": {}}\n</tool_call>',
        "(unnamed)",
        '{"name": 7, "arguments": {}}',
    ),
    (
        "hermes",
        '<tool_call>\n{"name": "now", "arguments": {"a": 1}, "name": "rm"}\n</tool_call>',
        "(unnamed)",
        '{"name": "now", "arguments": {"a": 1}, "name": "rm"}',
    ),
    (
        "hermes",
        '<tool_call>\n{"name": "now", "arguments": {"a": 1]}\n</tool_call>',
        "(unnamed)",
        '{"name": "now", "arguments": {"a": 1]}',
    ),
    ("anthropic-xml", "<function_calls>\nnow()\n</function_calls>", "(unnamed)", "now()"),
    (
        "anthropic-xml",
        (
            "<function_calls><invoke><tool_name></tool_name><parameters><a>1</a></parameters></invoke>"
            "</function_calls>"
        ),
        "(unnamed)",
        '{"a":"1"}',
    ),
    (
        "anthropic-xml",
        (
            "<function_calls><invoke><tool_name>now</tool_name><parameters><a>1</a><a>2</a>"
            "</parameters></invoke></function_calls>"
        ),
        "now",
        "<a>1</a><a>2</a>",
    ),
]


@each_case(("family", "text", "name", "arguments"), MALFORMED)
def test_a_call_that_is_not_as_its_family_says_is_flagged_and_kept_whole(
    family: str, text: str, name: str, arguments: str
) -> None:
    read = read_calls(text, family)
    (call,) = read.calls
    assert (call.tool_name, call.arguments_raw) == (name, arguments)
    assert "incomplete" in call.flags
    assert not call.is_executable
    assert read.unread
    assert read.unread[0].startswith("call 0 is not as it should be: ")


@pytest.mark.parametrize("arguments", ['{"a": }', '{"a" 1}', '{"a":1,"a":2}', "[1,]"])
def test_arguments_that_are_no_json_are_kept_with_the_name_and_not_run(arguments: str) -> None:
    body = f'{{"name": "now", "arguments": {arguments}}}'
    (call,) = read_calls(f"<tool_call>\n{body}\n</tool_call>", "hermes").calls
    assert (call.tool_name, call.arguments_raw) == ("now", arguments)
    assert call.parse_error is not None
    assert not call.is_executable


@pytest.mark.parametrize(
    "arguments", ['{ "b":1.50,\n "a":[2]}', '{"a": "</tool_call>"}', "7", '{"\\u0062": "}"}']
)
def test_arguments_keep_the_spelling_of_the_model(arguments: str) -> None:
    told = f'<tool_call>\n{{ "arguments" :{arguments} , "name":"now"}}</tool_call>\n\nSo.'
    read = read_calls(told, "hermes")
    assert [(one.tool_name, one.arguments_raw) for one in read.calls] == [("now", arguments)]
    assert read.text == "So."
    told = f'<tool_call name="now">\n{arguments}\n</tool_call>\n\nSo.'
    read = read_calls(told, "tool_result")
    assert [(one.tool_name, one.arguments_raw) for one in read.calls] == [("now", arguments)]
    assert read.text == "So."


@pytest.mark.parametrize(
    ("family", "begin", "end"),
    [
        ("hermes", '<tool_call>\n{"name": "write", "arguments": {"text": "', '"}}\n</tool_call>'),
        (
            "anthropic-xml",
            "<function_calls>\n<invoke>\n<tool_name>write</tool_name>\n<parameters>\n<text>",
            "</text>\n</parameters>\n</invoke>\n</function_calls>",
        ),
    ],
)
def test_a_call_that_is_quoted_in_the_arguments_of_another_is_not_run(
    family: str, begin: str, end: str
) -> None:
    # The line ends in the text are not escaped, as models forget it.
    read = read_calls(f"{begin}\n{spelled(family)}\n{end}", family)
    assert read.calls
    assert not any(call.is_executable for call in read.calls)
    assert read.unread


def test_calls_of_other_writers_are_read() -> None:
    (call,) = read_calls(
        "<function_calls><invoke><tool_name>get_weather</tool_name><parameters>"
        "<city>San Francisco</city><days>2</days></parameters></invoke></function_calls>",
        "anthropic-xml",
    ).calls
    assert call.arguments == {"city": "San Francisco", "days": "2"}
    (call,) = read_calls('<TOOL_CALL name="f" >{}</Tool_Call >').calls
    assert (call.tool_name, call.arguments_raw) == ("f", "{}")


def test_names_are_split_and_free_text_is_told_apart() -> None:
    calls = [TextCall("files___read", None, "{}"), TextCall("sql", None, "SELECT 1", "custom")]
    one, two = read_calls(FAMILIES["tool_result"].write_calls(calls)).calls
    assert (one.namespace, one.tool_name) == ("files", "read")
    assert (two.kind, two.arguments) == ("custom", "SELECT 1")


@families
def test_calls_of_another_family_are_text(family: str) -> None:
    for other, (calls, _results) in SPELLINGS.items():
        read = read_calls(calls, family)
        if other != family and {other, family} != {"tool_result", "hermes"}:
            assert read.blocks == (TextBlock(text=calls),)
