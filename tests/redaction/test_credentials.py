"""The built-in rules: every credential format is found wherever it stands, and nothing else is."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from tests.redaction.samples import ALL, SECRETS

from tooltrail.redaction import default_rules, redact, redact_json

CORPUS = Path(__file__).parents[3] / "shared" / "corpus"

RULES = sorted(ALL)


def test_there_is_a_sample_for_every_rule() -> None:
    assert sorted(rule.name for rule in default_rules().rules) == RULES


@pytest.mark.parametrize("rule", RULES)
def test_a_secret_is_replaced_and_the_text_around_it_stays(rule: str) -> None:
    before, secret, after = ALL[rule]
    found = redact(f"{before}{secret}{after}".encode(), default_rules())
    assert found.data.decode() == f"{before}[REDACTED:{rule}]{after}"
    assert [(one.rule, one.offset) for one in found.found] == [(rule, len(before))]


def nested(value: object, depth: int) -> bytes:
    """The JSON of a value, as a text in JSON, and so on."""
    for _ in range(depth):
        value = json.dumps(value)
    return str(value).encode()


def innermost(data: bytes, depth: int) -> object:
    """The value of which `nested` made the data."""
    value: object = data.decode()
    for _ in range(depth):
        value = json.loads(str(value))
    return value


@pytest.mark.parametrize("depth", [1, 2, 3, 4])
@pytest.mark.parametrize("rule", RULES)
def test_a_secret_in_json_is_replaced_and_the_json_stays_valid(rule: str, depth: int) -> None:
    before, secret, after = ALL[rule]
    data = nested({"command": f"{before}{secret}{after}", "n": 1}, depth)
    found = redact(data, default_rules())
    expected = {"command": f"{before}[REDACTED:{rule}]{after}", "n": 1}
    assert innermost(found.data, depth) == expected


@pytest.mark.parametrize("depth", [1, 2, 3])
def test_a_key_whose_lines_are_texts_is_replaced(depth: int) -> None:
    data = nested({"source": ALL["private-key"][1].splitlines(), "n": 1}, depth)
    found = redact_json(data, default_rules())
    assert innermost(found.data, depth) == {"source": ["[REDACTED:private-key]"], "n": 1}


@pytest.mark.parametrize("rule", sorted(SECRETS))
@pytest.mark.parametrize(
    "around",
    [
        *("x={};", "https://h.example/?t={}&u=1", "'{}'", "{}\n", "({})"),
        *(r"a\n{}\n", r"\u003d{}", "t%3D{}", "t%3d{}", "t=3D{}", r"\x22{}", r"\0{}", r"\v{}"),
        *("\x1b[1m{}\x1b[0m", "\x1b[01;31m\x1b[K{}\x1b[m", "\x1b[1;1H{}", "\x1b(B{}"),
    ],
)
def test_a_secret_is_found_beside_anything_but_a_letter(rule: str, around: str) -> None:
    found = redact(around.format(SECRETS[rule]).encode(), default_rules())
    assert found.data.decode() == around.format(f"[REDACTED:{rule}]")


@pytest.mark.parametrize("rule", sorted(SECRETS))
def test_a_longer_word_that_contains_a_token_is_not_a_secret(rule: str) -> None:
    text = f"x{SECRETS[rule]}".encode()
    assert redact(text, default_rules()).data == text


@pytest.mark.parametrize("name", ["n", "aVeryLongNameOfAMember"])
@pytest.mark.parametrize("lines", [2, 3, 4])
def test_json_with_a_key_that_was_cut_stays_json(name: str, lines: int) -> None:
    _, secret, _ = ALL["private-key"]
    cut = "\n".join(secret.splitlines()[:lines])
    found = redact_json(json.dumps([cut, {"text": f"a\n{cut}", name: 1}]).encode(), default_rules())
    replaced = "[REDACTED:private-key]"
    assert json.loads(found.data) == [replaced, {"text": f"a\n{replaced}", name: 1}]
    places = [match.start() for match in re.finditer(re.escape(replaced).encode(), found.data)]
    assert [one.offset for one in found.found] == places


@pytest.mark.parametrize("filler", [" ", '", "', "\\n", ","])
def test_a_key_without_its_end_before_much_white_space_takes_no_time(filler: str) -> None:
    # Without the possessive repeats of the rule, this takes hours.
    before, key, _ = ALL["private-key"]
    rest = filler * 100_000 + "!"
    clean = redact(f"{before}{key[:120]}{rest}".encode(), default_rules()).data.decode()
    assert clean == f"{before}[REDACTED:private-key]{rest}"


def test_a_private_key_without_its_end_is_replaced() -> None:
    _, key, _ = ALL["private-key"]
    head = key[: key.index("\n", 100)]
    assert redact(f"{head}\n".encode(), default_rules()).data.startswith(b"[REDACTED:private-key]")
    assert head.splitlines()[1].encode() not in redact(head.encode(), default_rules()).data


@pytest.mark.parametrize(
    "text",
    [
        "sha256:" + "0f" * 32,
        "commit 9fceb02d0ae598e95dc970b74767f19372d61af8",
        "018f4e2a-7c11-7a3b-9c1d-2b1f0e3d4c5b",
        '"input_tokens": 123456789012, "cache_read_input_tokens": 987654321098',
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk",
        "https://example.com:8080/a@b",
        "git clone ssh://git@example.com/x.git",
        "Authorization: Bearer $TOKEN",
        "postgresql://app:${PASSWORD}@db/app",
        "-----BEGIN CERTIFICATE-----\n" + "A1b2" * 16 + "\n-----END CERTIFICATE-----",
        "see the key-value store, sk-learn, and xoxo",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert redact(text.encode(), default_rules()).data == text.encode()


@pytest.mark.skipif(not CORPUS.is_dir(), reason="the shared corpus is not beside the repository")
def test_real_sessions_have_next_to_no_false_positives() -> None:
    files = [path for path in CORPUS.rglob("*") if path.is_file()]
    found = Counter(
        one.rule for path in files for one in redact(path.read_bytes(), default_rules()).found
    )
    # These files were cleaned before they were published, and hold some 6,000 outputs of tools.
    assert found.total() < 6, found
