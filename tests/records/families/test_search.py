"""Searches: how much was found, and what."""

import pytest
from pydantic import ValidationError
from tests.records.support import (
    MARKER,
    artifact_path,
    check_golden,
    number,
    omitted,
    run,
    run_result,
    whole,
)
from tests.support.cases import each_case
from tests.support.policies import policy_with

from tooltrail.records import SearchOutput, StreamRecord

SMALL = policy_with(search={"preview_chars": 1000})
LINES = b"".join(b"line %04d\n" % n for n in range(200))
MOST = 2**63 - 1


def search(matches: bytes | StreamRecord, found: int, returned: int | None = None) -> SearchOutput:
    return SearchOutput(
        match_count=found,
        returned=found if returned is None else returned,
        matches=matches if isinstance(matches, StreamRecord) else whole(matches, "matches"),
    )


def test_the_receipt_is_worded_as_in_the_golden_file() -> None:
    check_golden(
        ("search", 2),
        search_found=search(b"src/a.py:1:import os\nsrc/b.py:7:import os\n", 2),
        search_one=search(b"src/a.py", 1),
        search_limited=search(b"src/a.py\nsrc/b.py\n", 1200, 2),
        search_none=search(b"", 0),
        search_json=search(b'{"file":"a.py","line":1}', 1),
        search_cut=(search(LINES, 200), SMALL),
    )


@each_case(
    ("found", "returned", "summary"),
    [
        (0, 0, "no matches found"),
        (1, 1, "found 1 match"),
        (12, 12, "found 12 matches"),
        (120, 50, "found 120 matches, 50 returned"),
        (1, 0, "found 1 match, 0 returned"),
    ],
)
def test_the_summary_says_how_much_was_found(found: int, returned: int, summary: str) -> None:
    assert search(b"", found, returned).summary() == summary


def test_the_canonical_result_of_few_matches_has_no_spare_field() -> None:
    assert run_result(search(b"a.py\n", 3, 1)) == {
        "match_count": 3,
        "returned": 1,
        "matches_preview": "a.py\n",
        "truncated": False,
    }
    assert run_result(search(b"", 0))["matches_preview"] is None


@pytest.mark.parametrize(("found", "returned"), [(-1, 0), (0, -1), (MOST + 1, 1)])
def test_counts_that_cannot_be_are_refused(found: int, returned: int) -> None:
    with pytest.raises(ValidationError):
        search(b"", found, returned)


def test_long_matches_are_cut_published_and_counted() -> None:
    data = b"src/name.py:12: match\n" * 2000
    projection, receipt = run(search(data, 2000))
    result = run_result(search(data, 2000))
    match = MARKER.search(result["matches_preview"])
    assert match is not None
    assert 19_000 < len(result["matches_preview"]) <= 20_000
    assert result["truncated"] is True
    assert result["artifacts"] == [{"path": artifact_path(whole(data))}]
    assert result["matches_artifact"] == 0
    assert omitted(projection.omissions, "matches", "bytes") == number(match["bytes"])
    assert receipt.text.endswith(f"\nArtifacts:\n{artifact_path(whole(data))} (matches)\n")


def test_what_the_tool_itself_held_back_is_no_omission() -> None:
    assert run(search(b"a\n", 120, 1))[0].omissions == ()
