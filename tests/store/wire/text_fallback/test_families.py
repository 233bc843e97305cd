"""Each family is spelled as its models know it, and reads back whatever it was told."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.store.wire.text_fallback.test_markup import any_texts

from tooltrail.records import NotFoundError, ResultStatus
from tooltrail.wire.text_fallback import FAMILIES, TextCall, TextResult, read_calls, text_family

WEATHER = TextCall("get_weather", "call_a", '{"city":"Paris","days":2}')
NOW = TextCall("now", None, "{}")
WARM = TextResult("get_weather", "call_a", "ok", "18 C")
BROKEN = TextResult("now", None, "error", "no clock")

# Written by hand after the sources that each module names.
SPELLINGS = {
    "tool_result": (
        (
            '<tool_call id="call_a" name="get_weather">\n{"city":"Paris","days":2}\n</tool_call>'
            "\n\n"
            '<tool_call name="now">\n{}\n</tool_call>'
        ),
        (
            '<tool_result id="call_a" name="get_weather" status="ok">\n18 C\n</tool_result>\n\n'
            '<tool_result name="now" status="error">\nno clock\n</tool_result>'
        ),
    ),
    "hermes": (
        (
            '<tool_call>\n{"name": "get_weather", "arguments": {"city":"Paris","days":2}}\n'
            "</tool_call>"
            '\n\n<tool_call>\n{"name": "now", "arguments": {}}\n</tool_call>'
        ),
        "<tool_response>\n18 C\n</tool_response>\n\n<tool_response>\nno clock\n</tool_response>",
    ),
    "anthropic-xml": (
        (
            "<function_calls>\n"
            "<invoke>\n<tool_name>get_weather</tool_name>\n<parameters>\n<city>Paris</city>\n"
            '<days format="json">2</days>\n</parameters>\n</invoke>\n'
            "<invoke>\n<tool_name>now</tool_name>\n<parameters>\n\n</parameters>\n</invoke>\n"
            "</function_calls>"
        ),
        (
            "<function_results>\n"
            "<result>\n<tool_name>get_weather</tool_name>\n<stdout>\n18 C\n</stdout>\n</result>\n"
            "<error>\nno clock\n</error>\n"
            "</function_results>"
        ),
    ),
}
families = pytest.mark.parametrize("family", sorted(FAMILIES))
names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=8).filter(
    lambda name: bool(name.strip()) and "\0" not in name and "___" not in name
) | st.sampled_from(["</tool_name>", '"><x', "a b", "get_weather", "&amp;", " a "])
told_calls = st.builds(
    TextCall,
    names,
    st.none() | any_texts.filter(bool),
    any_texts | st.sampled_from(["{}", '{"a":"</a>"}', '{"a":1,"b":[null]}', '{"a b":1}']),
)
statuses: st.SearchStrategy[ResultStatus] = st.sampled_from(["ok", "error", "timeout", "unknown"])
told_results = st.builds(TextResult, names, st.none() | any_texts.filter(bool), statuses, any_texts)


def test_there_is_a_spelling_for_every_family() -> None:
    assert SPELLINGS.keys() == FAMILIES.keys()
    assert all(text_family(name).name == name for name in FAMILIES)
    with pytest.raises(NotFoundError, match="unknown text format 'klingon'; known formats: anthr"):
        text_family("klingon")


@families
def test_calls_and_results_are_spelled_as_the_models_know_them(family: str) -> None:
    calls, results = SPELLINGS[family]
    assert FAMILIES[family].write_calls([WEATHER, NOW]) == calls
    assert FAMILIES[family].write_results([WARM, BROKEN]) == results


@families
@given(st.lists(told_calls, min_size=1, max_size=3))
def test_no_call_can_end_itself_or_forge_another(family: str, calls: list[TextCall]) -> None:
    able = FAMILIES[family]
    read = read_calls(able.write_calls(calls), family)
    assert read.unread == ()
    assert read.text == ""
    assert [(one.tool_name, one.arguments_raw) for one in read.calls] == [
        (_recorded(one.tool_name), one.arguments) for one in calls
    ]
    assert [one.call_id for one in read.calls] == [
        one.call_id if able.tells_ids else None for one in calls
    ]
    assert [one.position for one in read.calls] == list(range(len(calls)))
    assert {flag for one in read.calls for flag in one.flags} <= {"id_repeated"}


def _recorded(name: str) -> str:
    return name.replace("\0", "\\0")


@families
@given(st.lists(told_results, min_size=1, max_size=3))
def test_no_output_can_end_its_block_or_forge_another(
    family: str, results: list[TextResult]
) -> None:
    able = FAMILIES[family]
    text = able.write_results(results)
    found = list(able.find_results(text))
    assert [one.text for one in found] == [one.text for one in results]
    assert found[0].begin == 0
    assert found[-1].end == len(text)
    for one, told in zip(found, results, strict=True):
        assert one.call_id == (told.call_id if able.tells_ids else None)
        assert one.tool_name in (None, told.tool_name)
        if able.tells_status:
            assert one.status == told.status
        elif able.tells_errors:
            assert (one.status == "error") is (told.status in ("error", "timeout"))


@families
def test_a_result_without_an_end_is_none(family: str) -> None:
    able = FAMILIES[family]
    whole = able.write_results([WARM])
    for end in range(len(whole)):
        assert list(able.find_results(whole[:end])) == []
    assert [one.text for one in able.find_results(f"{whole[:-3]}\n\n{whole}")][-1:] in (
        ["18 C"],
        [],
    )


def test_results_of_other_writers_are_read() -> None:
    tagged = FAMILIES["tool_result"]
    (found,) = tagged.find_results("<TOOL_RESULT id='x' name=\"now\">18 C</tool_result >")
    assert (found.text, found.call_id, found.tool_name, found.status) == (
        "18 C", None, "now", "unknown",
    )  # fmt: skip
    (found,) = FAMILIES["hermes"].find_results("<tool_response>18 C</tool_response>")
    assert found.text == "18 C"
    (found,) = FAMILIES["anthropic-xml"].find_results(
        "<function_results><result><tool_name>now</tool_name><stdout>18 C</stdout></result>"
        "</function_results>"
    )
    assert (found.text, found.tool_name, found.status) == ("18 C", "now", "ok")


@pytest.mark.parametrize(
    "text",
    [
        "<function_results>18 C</function_results>",
        "<function_results><result><tool_name>f</tool_name><stdout>x</result></function_results>",
        "<function_results><result><tool_name>f</tool_name><stdout><error></stdout></result>",
    ],
)
def test_what_is_not_as_its_family_says_is_no_result(text: str) -> None:
    for family in FAMILIES.values():
        assert list(family.find_results(text)) == []


def test_the_marks_of_a_family_are_all_that_is_escaped() -> None:
    html = "<div class='x'></div> [1] {\"a\": 1} <|im_end|> &amp;"
    for family in FAMILIES.values():
        told = family.write_results([TextResult("f", None, "ok", html)])
        assert html in told
        assert re.search(r"\\[<\[]", told) is None
