"""What no provider can carry is replaced and counted, and everything else stays as it is."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import JsonValue
from tests.support.cases import each_case
from tests.support.conversations import json_values

from tooltrail.wire._clean_text import CleanText, compact, sendable
from tooltrail.wire.exports import ExportReport

UNSENDABLE = {"\0", *map(chr, range(0xD800, 0xE000))}
TERMINAL = "".join(map(chr, [*range(1, 32), 0x7F, *range(0x80, 0xA0)]))
any_texts = st.text(st.characters() | st.sampled_from("\0\x1b\x7f\ud800\udfff\n"), max_size=30)


def made() -> tuple[CleanText, ExportReport]:
    report = ExportReport()
    return CleanText(report), report


@given(any_texts)
def test_each_character_that_cannot_be_sent_becomes_one_that_can(text: str) -> None:
    clean, report = made()
    expected = "".join("\ufffd" if char in UNSENDABLE else char for char in text)
    assert clean.text(text, "here") == expected
    assert sendable(text) == expected
    count = sum(char in UNSENDABLE for char in text)
    assert bool(report) is bool(count)
    for change in report:
        assert (change.kind, change.where) == ("text_replaced", "here")
        assert change.detail.startswith(f"{count:,} character")


@given(json_values, st.sampled_from([None, 1]), st.booleans())
def test_json_that_can_be_sent_keeps_its_spelling(
    value: JsonValue, indent: int | None, is_ascii: bool
) -> None:
    text = json.dumps(value, indent=indent, ensure_ascii=is_ascii)
    clean, report = made()
    assert clean.json_text(text, "here") == text
    assert not report


@each_case(
    ("text", "expected"),
    [
        (r'{"a": "\ud800"}', r'{"a": "\ufffd"}'),
        (r'{"a": "x\uDFFFy"}', r'{"a": "x\ufffdy"}'),
        (r'["\ude00\ud83d"]', r'["\ufffd\ufffd"]'),
        (r'["\ud83d\ud83d\ude00"]', r'["\ufffd\ud83d\ude00"]'),
        (r'["\u0000\u001F\u007F\u007f"]', r'["\ufffd\u001F\u007F\u007f"]'),
        (r'{"\u0000": 1.50, "b":  2}', r'{"\ufffd": 1.50, "b":  2}'),
        (r'["\\\ud800"]', r'["\\\ufffd"]'),
        # What a strict reader refuses, a server's reader may take.
        (r'{"a":1,"a":"\ud800"}', r'{"a":1,"a":"\ufffd"}'),
        (r'{"a":1e400,"b":"\ud800"}', r'{"a":1e400,"b":"\ufffd"}'),
    ],
)
def test_escapes_that_spell_what_cannot_be_sent_are_replaced(text: str, expected: str) -> None:
    clean, report = made()
    assert clean.json_text(text, "here") == expected
    assert [change.kind for change in report] == ["text_replaced"]


@each_case(
    "text",
    [
        r'["\t\n\r\u0009\u000a\u000D\u001b\u0007\b\f\u007F"]',
        json.dumps(TERMINAL),
        r'["\ud83d\ude00"]',
        r'["\\ud800 \\u0000"]',
        r'{"path": "C:\\\\u0000"}',
        r'print("\ud800"',
        r'{"a": "\ud800',
    ],
)
def test_escapes_that_spell_nothing_bad_stay(text: str) -> None:
    clean, report = made()
    assert clean.json_text(text, "here") == text
    assert not report


@given(st.recursive(any_texts, lambda inner: st.lists(inner) | st.dictionaries(any_texts, inner)))
def test_what_a_server_reads_has_nothing_that_cannot_be_sent(value: JsonValue) -> None:
    clean, _ = made()
    for is_ascii in (True, False):
        spelled = clean.json_text(json.dumps(value, ensure_ascii=is_ascii), "here")
        spelled.encode()
        if is_ascii:
            json.dumps(json.loads(spelled), ensure_ascii=False).encode()
    compact(clean.value(value, "here")).encode()


def test_what_a_terminal_takes_as_an_order_is_sent_as_it_is() -> None:
    clean, report = made()
    assert sendable(TERMINAL) == clean.text(TERMINAL, "here") == TERMINAL
    assert clean.value({TERMINAL: [TERMINAL]}, "here") == {TERMINAL: [TERMINAL]}
    assert not report


def test_keys_that_differ_in_what_cannot_be_sent_stay_different() -> None:
    clean, report = made()
    keys = ("\ud800", "\ud801", "\ufffd")
    assert clean.value({key: n for n, key in enumerate(keys, 1)}, "here") == {
        "\ufffd": 1,
        "\ufffd\ufffd": 2,
        "\ufffd\ufffd\ufffd": 3,
    }
    assert report


@pytest.mark.parametrize(
    ("number", "spelled"),
    [(float("nan"), "NaN"), (float("inf"), "Infinity"), (float("-inf"), "-Infinity")],
)
def test_numbers_that_json_does_not_have_become_text_and_are_told(
    number: float, spelled: str
) -> None:
    clean, report = made()
    assert clean.value([number, 1.5], "here") == [spelled, 1.5]
    assert [(one.kind, one.where) for one in report] == [("text_replaced", "here")]
    assert spelled in report.changes[0].detail


def test_keys_that_differ_in_what_cannot_be_sent_stay_two() -> None:
    report = ExportReport()
    raw = r'{"\ud800": 1, "\ud801": [2, "\ud802"]}'
    assert CleanText(report).json_text(raw, "x") == '{"\ufffd":1,"\ufffd\ufffd":[2,"\ufffd"]}'
    assert [change.detail for change in report] == ["3 characters that cannot be sent"]
