"""Redacting: the same bytes whatever the pieces, nothing sent too early, rules of the user."""

import json
import os
import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.redaction.samples import ALL

from tooltrail.records.errors import InvalidRecordError
from tooltrail.redaction import (
    RuleSet,
    StreamRedactor,
    default_rules,
    redact,
    redact_json,
    redactions,
)
from tooltrail.redaction.redactor import ReplacedSecret

MARK = "[REDACTED:own]"
TEXTS = st.one_of(
    st.binary(max_size=40),
    st.sampled_from([b"eyJ", b"://", b"ghp_", b"sk-", b"-----BEGIN ", b"\n", b"uthorization: "]),
    st.sampled_from([f"{a}{b}{c}".encode() for a, b, c in ALL.values()]),
    st.sampled_from([b.encode() for _, b, _ in ALL.values()]),
)


@st.composite
def streams(draw: st.DrawFn) -> list[bytes]:
    """The pieces of one stream."""
    data = b"".join(draw(st.lists(TEXTS, max_size=6)))
    cuts = sorted(draw(st.lists(st.integers(0, len(data)), max_size=8)))
    return [data[begin:end] for begin, end in pairwise([0, *cuts, len(data)])]


@given(streams())
def test_the_pieces_of_a_stream_make_no_difference(pieces: list[bytes]) -> None:
    redactor = StreamRedactor(default_rules())
    sent, secrets = b"", list[ReplacedSecret]()
    for piece in pieces:
        sent += redactor.feed(piece)
        secrets += redactor.secrets
    sent += redactor.finish()
    secrets += redactor.secrets
    data = b"".join(pieces)
    clean, found = redact(data, default_rules())
    assert (sent, [(one.rule, one.offset) for one in secrets]) == (clean, [*found])
    assert redactor.redactions("stdout") == redactions("stdout", found)
    for one in reversed(secrets):
        mark = sent[one.offset : one.offset + one.size]
        data = data[: one.start] + mark + data[one.end :]
    assert data == sent


@given(streams())
def test_everything_but_the_secrets_is_sent_in_order(pieces: list[bytes]) -> None:
    data, found = redact(b"".join(pieces), default_rules())
    for rule, offset in found:
        assert data[offset:].startswith(b"[REDACTED:%b]" % rule.encode())
    kept = re.split(rb"\[REDACTED:[a-z0-9-]+\]", data)
    at = 0
    for part in kept:  # what is left is in the original, in order
        at = b"".join(pieces).index(part, at) + len(part)


@pytest.mark.parametrize("rule", sorted(ALL))
def test_redacting_again_changes_nothing(rule: str) -> None:
    data, _ = redact("".join(ALL[rule]).encode(), default_rules())
    assert redact(data, default_rules()) == (data, ())


@pytest.mark.parametrize("rule", sorted(ALL))
def test_a_secret_that_comes_byte_by_byte_is_found(rule: str) -> None:
    before, secret, after = ALL[rule]
    redactor = StreamRedactor(default_rules())
    data = f"{before}{secret}{after}".encode()
    sent = b"".join(redactor.feed(data[n : n + 1]) for n in range(len(data))) + redactor.finish()
    assert sent.decode() == f"{before}[REDACTED:{rule}]{after}"


def test_a_complete_line_is_sent_at_once() -> None:
    redactor = StreamRedactor(default_rules())
    assert redactor.feed(b"step 1 of 9\n") == b"step 1 of 9\n"
    assert redactor.feed(b"see https://example.com/a\n") == b"see https://example.com/a\n"


def test_bytes_wait_only_while_they_may_belong_to_a_secret() -> None:
    redactor = StreamRedactor(default_rules())
    assert redactor.feed(b"x" * 10_000)[:9_000] == b"x" * 9_000
    redactor.feed(b"\n")
    assert redactor.feed(b"AKIA") == b""
    assert redactor.feed(b" is a prefix\n") == b"AKIA is a prefix\n"


def test_a_pattern_of_the_user_is_found_across_pieces() -> None:
    rules = RuleSet([]).extended(patterns={"ticket": r"TICKET-[0-9]{6}"})
    redactor = StreamRedactor(rules)
    sent = redactor.feed(b"a TICKET-12") + redactor.feed(b"3456 b") + redactor.finish()
    assert sent == b"a [REDACTED:ticket] b"


@pytest.mark.parametrize(
    ("pattern", "value", "expected"),
    [
        ('password": ?"[^"]+', {"password": "hunter2xyz"}, {"password": MARK}),
        ('"pin": ?[0-9]{8}', {"pin": 12345678, "n": 1}, {"pin": MARK, "n": 1}),
        ("[0-9]{8}", [12345678, "a 12345678"], [MARK, f"a {MARK}"]),
        (r"\bINT-[0-9]{8}\b", {"c": "a\nINT-12345678é\ud800"}, {"c": f"a\n{MARK}é\ud800"}),
        (
            r"\bINT-[0-9]{8}\b",
            {"raw": json.dumps({"c": "a\nINT-12345678"})},
            {"raw": json.dumps({"c": f"a\n{MARK}"})},
        ),
        (
            "password=.*",
            {"a": "password=abc\nls", "b": "x" * 5_000},
            {"a": f"{MARK}\nls", "b": "x" * 5_000},
        ),
        ('"[^"]+@corp"', ["me@corp", "you"], [MARK, "you"]),
        ("n[0-9]+", {"a": "line\n12"}, {"a": "line\n12"}),
        (
            "^s[0-9]+$",
            {"a": "s12", "s1": "a s12", "s": [12]},
            {"a": MARK, MARK: "a s12", "s": [12]},
        ),
    ],
)
def test_a_pattern_of_the_user_sees_json_and_its_texts(
    pattern: str, value: object, expected: object
) -> None:
    rules = default_rules().extended(patterns={"own": pattern})
    data, found = redact_json(json.dumps(value).encode(), rules)
    assert json.loads(data) == expected
    assert [data[one.offset :].startswith(MARK.encode()) for one in found] == [True] * len(found)
    assert len(found) == data.count(MARK.encode())


AWS = ALL["aws-secret-access-key"][1]
OWN = ["zzz[0-9]", "(?i)password=.*", "secret.*", "key|token", "[A-Z]{8,}", '"[^"]*"', ".+"]


@pytest.mark.parametrize("own", OWN)
@pytest.mark.parametrize(
    ("secret", "value"),
    [
        *((ALL[rule][1], ["a\nb", "".join(ALL[rule]), {"c": 1}]) for rule in sorted(ALL)),
        *((ALL[rule][1], json.dumps({"a": ["".join(ALL[rule])]})) for rule in sorted(ALL)),
        ("a1" * 12, {"password": "password=x", "Authorization": f"Bearer {'a1' * 12}"}),
        (AWS, ["password=x", "aws_secret_access_key", AWS]),
        (AWS, {"out": json.dumps(["secret", "aws_secret_access_key", AWS])}),
        ("a1" * 12, {"Authorization": f"Bearer {'a1' * 12} and {ALL['github-token'][1]}"}),
    ],
)
def test_a_pattern_of_the_user_hides_no_known_secret(own: str, secret: str, value: object) -> None:
    data, rules = json.dumps(value).encode(), default_rules()
    known = {one.rule for one in redact_json(data, rules).found}
    clean, found = redact_json(data, rules.extended(patterns={"own": own}))
    json.loads(clean)
    assert json.dumps(secret)[1:-1].encode() not in clean
    assert known
    assert {one.rule for one in found} >= known


def test_a_value_of_a_variable_is_found_beside_a_pattern() -> None:
    rules = default_rules().extended(patterns={"own": "INT-.*"}, values={"pin": "12345678"})
    clean, found = redact_json(b'{"x": "INT-1", "b": 12345678}', rules)
    assert json.loads(clean) == {"x": MARK, "b": "[REDACTED:pin]"}
    assert [one.rule for one in found] == ["own", "pin"]


def test_a_value_that_is_a_number_in_json_is_replaced() -> None:
    rules = default_rules().extended(values={"own": "12345678"})
    assert redact_json(b'{"pin": 12345678}', rules).data == b'{"pin": "[REDACTED:own]"}'


def test_a_match_behind_its_text_hides_no_secret_of_another_text() -> None:
    rules = default_rules().extended(patterns={"own": "password=.*"})
    value = {"a": "password=abc", "b": ALL["github-token"][1], "c": "d"}
    expected = {"a": MARK, "b": "[REDACTED:github-token]", "c": "d"}
    assert json.loads(redact_json(json.dumps(value).encode(), rules).data) == expected


def test_a_match_of_any_length_is_replaced_in_data_that_is_complete() -> None:
    rules = default_rules().extended(patterns={"own": "password=.*"})
    assert redact(b"a password=" + b"x" * 10_000, rules).data == f"a {MARK}".encode()


@pytest.mark.parametrize(
    "spelled",
    [
        *('p"a\nss wört', r"p\"a\nss wört", r"p\"a\nss w\u00f6rt"),
        *("p%22a%0Ass%20w%C3%B6rt", "p%22a%0Ass+w%C3%B6rt"),
    ],
)
def test_a_value_is_found_in_every_spelling(spelled: str) -> None:
    rules = RuleSet([]).extended(values={"db-password": 'p"a\nss wört'})
    data = f"x={spelled}&y".encode()
    assert redact(data, rules).data == b"x=[REDACTED:db-password]&y"


@pytest.mark.parametrize("is_ascii", [True, False])
def test_a_value_is_found_in_json_four_texts_deep(is_ascii: bool) -> None:
    rules, text = RuleSet([]).extended(values={"own": 'p"a\\ss wört'}), 'p"a\\ss wört'
    for _ in range(4):
        text = json.dumps({"a": text}, ensure_ascii=is_ascii)
        kept = redact(text.encode(), rules).data
        assert b"[REDACTED:own]" in kept
        assert b"ss w" not in kept


def test_a_variable_that_is_not_utf_8_is_found_by_its_bytes() -> None:
    rules = RuleSet([]).extended(values={"own": os.fsdecode(b"se\xffcret-1")})
    assert redact(b"x=se\xffcret-1 y", rules).data == f"x={MARK} y".encode()


@pytest.mark.parametrize(
    ("patterns", "values", "problem"),
    [
        ({"bad": "("}, {}, "redaction pattern bad is not valid"),
        ({"all": "x*"}, {}, "matches the empty text"),
        ({"No Name": "x"}, {}, "needs a name of lower-case letters"),
        (
            {},
            {"short": "1234567"},
            "the value of redaction rule short is shorter than 8 bytes, and would match parts of",
        ),
    ],
)
def test_a_rule_that_cannot_work_is_refused(
    patterns: dict[str, str], values: dict[str, str], problem: str
) -> None:
    with pytest.raises(InvalidRecordError, match=problem):
        default_rules().extended(patterns=patterns, values=values)


def test_a_secret_inside_a_secret_is_replaced_once() -> None:
    text = f"Authorization: Bearer {'a' * 20}.{ALL['jwt'][1]} x".encode()
    expected = b"Authorization: Bearer [REDACTED:authorization-header] x"
    assert redact(text, default_rules()).data == expected


def test_what_follows_a_complete_key_by_a_line_is_not_held_back() -> None:
    _, key, _ = ALL["private-key"]
    redactor = StreamRedactor(default_rules())
    line = b"a line of output, as a program prints it, with more than sixty-four bytes\n"
    sent = redactor.feed(f"{key}\n".encode()) + redactor.feed(line)
    assert sent == b"[REDACTED:private-key]\n" + line
