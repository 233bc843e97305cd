"""Documents of the web: where they came from, without secrets, and their text."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError
from tests.records.support import artifact_path, check_golden, omitted, run, run_result, whole
from tests.support.cases import each_case
from tests.support.policies import policy_with

from tooltrail.records import CompleteOutput, StreamRecord, WebFetchOutput, digest_of
from tooltrail.records.families.web import without_userinfo

SMALL = policy_with(web_fetch={"preview_chars": 1000})
LINES = b"".join(b"line %04d\n" % n for n in range(200))
MOST = 2**63 - 1


def fetch(text: bytes | StreamRecord = b"", **fields: Any) -> WebFetchOutput:
    url = fields.pop("url", "https://example.org/")
    usual = {
        "url": url,
        "final_url": url,
        "status": 200,
        "content_type": "text/html; charset=utf-8",
        "bytes_read": 12_345,
        "sha256": digest_of(b"body"),
        "fetched_at": datetime(2026, 4, 23, 10, 0, tzinfo=UTC),
        "text": text if isinstance(text, StreamRecord) else whole(text, "text"),
    }
    return WebFetchOutput.model_validate(usual | fields)


def test_the_receipt_is_worded_as_in_the_golden_file() -> None:
    check_golden(
        ("web_fetch", 2),
        web_fetch_page=fetch(b"# Example\n\nHello.\n"),
        web_fetch_redirected=fetch(
            b"not found\n",
            url="http://example.org",
            final_url="https://example.org/en",
            status=404,
            content_type="text/plain",
            bytes_read=10,
        ),
        web_fetch_bare=fetch(status=204, content_type="", bytes_read=0),
        web_fetch_json=fetch(
            b'{"a":[1,2]}',
            url="https://api.example.org/v1",
            content_type="application/json",
            bytes_read=11,
        ),
        web_fetch_cut=(fetch(LINES), SMALL),
    )


def test_addresses_that_differ_only_where_they_are_cut_are_a_redirection() -> None:
    asked = "https://example.org/" + "a" * 800
    output = fetch(b"", url=asked + "1", final_url=asked + "2")
    assert run_result(output)["redirected"] is True
    assert "\nRedirected to: https://example.org/aaa" in run(output)[1].text
    same = fetch(b"", url=asked, final_url=asked)
    assert run_result(same)["redirected"] is False
    assert "Redirected" not in run(same)[1].text


def test_the_summary_says_how_the_server_answered() -> None:
    assert fetch(status=404).summary() == "status 404 from https://example.org/"


def test_the_canonical_result_has_every_field_of_the_specification() -> None:
    assert run_result(fetch(b"text")) == {
        "url": "https://example.org/",
        "final_url": "https://example.org/",
        "redirected": False,
        "status": 200,
        "content_type": "text/html; charset=utf-8",
        "bytes_read": 12_345,
        "sha256": digest_of(b"body"),
        "fetched_at": "2026-04-23T10:00:00Z",
        "text_preview": "text",
        "text_truncated": False,
        "truncated": False,
    }
    data = b"x" * 30_000
    long = run_result(fetch(data))
    assert (long["text_artifact"], long["text_truncated"], long["truncated"]) == (0, True, True)
    assert long["artifacts"] == [{"path": artifact_path(whole(data))}]
    small = run_result(fetch(b""))
    assert small["text_preview"] is None
    assert not {"text_encoding", "text_artifact", "artifacts"} & small.keys()


@pytest.mark.parametrize(
    ("given_at", "spelled"),
    [
        ("2026-04-23T12:00:00+02:00", "2026-04-23T10:00:00Z"),
        ("2026-04-23T10:00:00.250Z", "2026-04-23T10:00:00.250000Z"),
        ("0001-01-01T00:00:00Z", "0001-01-01T00:00:00Z"),
    ],
)
def test_the_time_is_spelled_in_utc(given_at: str, spelled: str) -> None:
    output = fetch(fetched_at=given_at)
    assert run_result(output)["fetched_at"] == spelled
    assert f'"fetched_at":"{spelled}"'.encode() in CompleteOutput.success("t", output).to_json()


@each_case(
    "fields",
    [
        {"fetched_at": "2026-04-23T10:00:00"},
        {"status": 99},
        {"status": 600},
        {"bytes_read": -1},
        {"bytes_read": MOST + 1},
        {"sha256": "0" * 64},
    ],
)
def test_a_fetch_that_cannot_be_is_refused(fields: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        fetch(**fields)


@each_case(
    ("url", "kept"),
    [
        ("https://example.org/a?b=c@d#e@f", "https://example.org/a?b=c@d#e@f"),
        ("https://example.org/@user/b", "https://example.org/@user/b"),
        ("https://example.org?q=a@b", "https://example.org?q=a@b"),
        ("https://example.org#a@b", "https://example.org#a@b"),
        ("https://user:SECRET@example.org/a", "https://example.org/a"),
        ("https://SECRET@example.org", "https://example.org"),
        ("https://user:SEC@RET@example.org:8080/", "https://example.org:8080/"),
        ("HTTPS://user:SECRET@example.org", "HTTPS://example.org"),
        ("//user:SECRET@example.org/a", "//example.org/a"),
        ("user:SECRET@example.org/a", "user:example.org/a"),
        ("1user:SECRET@example.org/a", "example.org/a"),
        ("https:user:SECRET@example.org", "https:example.org"),
        ("https:\\\\user:SECRET@example.org", "https:\\\\example.org"),
        ("https:///user:SECRET@example.org", "https:///example.org"),
        ("https://user:SEC\\RET@example.org", "https://example.org"),
        ("https://user:SEC\ud800RET@example.org", "https://example.org"),
        (" \x00https://user:SECRET@example.org\n", "https://example.org"),
        ("ht\ntps:/\t/user:SECRET\r@example.org", "https://example.org"),
        ("x:y@//user:SECRET@example.org", "x:example.org"),
        ("@https://user:SECRET@example.org", "example.org"),
        ("", ""),
    ],
)
def test_a_password_in_an_address_gets_into_no_record(url: str, kept: str) -> None:
    output = fetch(url=url)
    assert (output.url, output.final_url) == (kept, kept)
    assert "SECRET" not in CompleteOutput.success("t", output).to_json().decode()
    assert "SECRET" not in output.summary()
    result = run_result(output)
    assert (result["url"], result["final_url"]) == (kept, kept)


@given(
    st.text(st.sampled_from("a:@/\\?#1\n ."), max_size=30)
    | st.text(st.characters(), max_size=10).map(lambda text: f"https://{text}@{text}")
)
def test_an_address_without_its_password_has_nothing_more_to_lose(url: str) -> None:
    bare = without_userinfo(url)
    assert without_userinfo(bare) == bare


@pytest.mark.parametrize(
    "url", ["a:@//" * 100_000, "/" * 500_000, " " * 500_000 + "x", "@" * 10**6]
)
def test_a_giant_address_is_read_once(url: str) -> None:
    assert len(fetch(url=url).url) <= len(url)
    assert len(run(fetch(url=url))[1].text) <= 22_000


def test_long_labels_are_cut_and_counted() -> None:
    output = fetch(url="u" * 701, final_url="f" * 702, content_type="c" * 122)
    projection, _ = run(output)
    result = run_result(output)
    assert result["url"] == "u" * 699 + "\u2026"
    assert result["truncated"] is True
    assert omitted(projection.omissions, "url", "chars") == 2
    assert omitted(projection.omissions, "final_url", "chars") == 3
    assert omitted(projection.omissions, "content_type", "chars") == 3


def test_whole_json_from_a_long_address_is_not_called_incomplete() -> None:
    output = fetch(b'{"a":1}', url="https://example.org/" + "a" * 900)
    assert run(output)[1].text.endswith('bytes)\n\n{\n  "a": 1\n}\n')
    result = run_result(output)
    assert (result["truncated"], result["text_truncated"]) == (True, False)
