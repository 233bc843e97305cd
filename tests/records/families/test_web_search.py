"""Searches of the web: the pages that were named, bounded and each on lines of its own."""

from datetime import UTC, datetime
from typing import Any

import pytest
from pydantic import ValidationError
from tests.records.hidden import hidden_of
from tests.records.support import check_golden, omitted, run, run_result, surfaces
from tests.support.policies import policy_with

from tooltrail.records import CompleteOutput, WebSearchHit, WebSearchOutput

ONE = policy_with(web_search={"preview_chars": 1000, "max_items": 1})
LEDGER = WebSearchHit(
    title="A ledger", url="https://a.example/ledger", snippet="How to write a ledger."
)
OTHER = WebSearchHit(title="", url="https://b.example/", snippet=" ")


def search(*hits: WebSearchHit, **fields: Any) -> WebSearchOutput:
    usual = {
        "query": "rust ledger",
        "provider": "example",
        "fetched_at": datetime(2026, 4, 23, 10, 0, tzinfo=UTC),
        "results": hits,
    }
    return WebSearchOutput.model_validate(usual | fields)


def test_the_receipt_is_worded_as_in_the_golden_file() -> None:
    check_golden(
        ("web_search", 1),
        web_search_found=search(
            LEDGER,
            OTHER,
            WebSearchHit(
                title="Third\n", url="https://c.example/", snippet="Two lines\n\n  in one."
            ),
        ),
        web_search_none=search(),
        web_search_one=search(LEDGER),
        web_search_hidden=(search(LEDGER, OTHER, OTHER), ONE),
        web_search_one_hidden=(search(LEDGER, OTHER), ONE),
    )


@pytest.mark.parametrize(
    ("count", "summary"),
    [
        (0, 'No results found for "Rust ledger"'),
        (1, 'Found 1 result for "Rust ledger"'),
        (1200, 'Found 1,200 results for "Rust ledger"'),
    ],
)
def test_the_summary_says_how_much_was_found_for_what(count: int, summary: str) -> None:
    assert search(*[LEDGER] * count, query="Rust\nledger").summary() == summary


def test_the_canonical_result_has_every_field_of_the_specification() -> None:
    assert run_result(search(LEDGER, WebSearchHit(title="B", url="https://b.example/"))) == {
        "query": "rust ledger",
        "provider": "example",
        "results": [
            {
                "title": "A ledger",
                "url": "https://a.example/ledger",
                "snippet": "How to write a ledger.",
            },
            {"title": "B", "url": "https://b.example/"},
        ],
        "result_count": 2,
        "fetched_at": "2026-04-23T10:00:00Z",
        "truncated": False,
    }


def test_results_beyond_the_budget_are_counted_and_listed() -> None:
    complete = CompleteOutput.success("WebSearch", search(OTHER, OTHER, LEDGER))
    projection, _, publisher = surfaces(complete, "web_search", ONE)
    result = run_result(search(OTHER, OTHER, LEDGER), ONE)
    assert [role for role, _ in projection.artifacts] == ["hidden"]
    assert hidden_of(result, publisher) == [
        {
            "field": "results",
            "n": 1,
            "value": {"title": "", "url": "https://b.example/", "snippet": " "},
        },
        {
            "field": "results",
            "n": 2,
            "value": {
                "title": "A ledger",
                "url": "https://a.example/ledger",
                "snippet": "How to write a ledger.",
            },
        },
    ]
    assert (len(result["results"]), result["result_count"], result["truncated"]) == (1, 3, True)
    assert omitted(projection.omissions, "results", "items") == 2


def test_long_labels_are_cut_and_counted() -> None:
    hit = WebSearchHit(title="t" * 241, url="https://" + "u" * 700, snippet="s" * 704)
    output = search(OTHER, hit, query="q" * 702, provider="p" * 243)
    projection, _ = run(output)
    result = run_result(output)
    assert result["truncated"] is True
    assert result["results"][1]["title"] == "t" * 239 + "\u2026"
    missing = {o.field: o.before - o.after for o in projection.omissions}
    assert missing == {
        "query": 3,
        "provider": 4,
        "results[1].title": 2,
        "results[1].url": 9,
        "results[1].snippet": 5,
    }


def test_snippets_share_the_room_of_the_previews() -> None:
    policy = policy_with(web_search={"preview_chars": 1000, "max_items": 4})
    long = WebSearchHit(title="t", url="u", snippet="s" * 900)
    short = WebSearchHit(title="t", url="u", snippet="s" * 100)
    results = run_result(search(long, short, long, long), policy)["results"]
    assert [len(hit["snippet"]) for hit in results] == [300, 100, 300, 300]


def test_a_password_in_an_address_gets_into_no_record() -> None:
    output = search(WebSearchHit(title="t", url="https://user:SECRET@example.org/"))
    assert b"SECRET" not in CompleteOutput.success("WebSearch", output).to_json()
    assert run_result(output)["results"][0]["url"] == "https://example.org/"


def test_a_time_without_a_zone_is_refused() -> None:
    with pytest.raises(ValidationError):
        search(fetched_at="2026-04-23T10:00:00")
