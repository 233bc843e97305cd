"""The search family: lines, files or entries of a folder that a tool found."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from tooltrail.records.budgets import Budget
from tooltrail.records.cutting import Cutter
from tooltrail.records.envelope import CanonicalResult, FamilyOutput
from tooltrail.records.families._shared import (
    BoundedResult,
    bounded,
    receipt,
)
from tooltrail.records.family import Family, Renderer
from tooltrail.records.previews import Encoding
from tooltrail.records.readable_json import readable
from tooltrail.records.streams import StreamRecord

MatchCount = Annotated[int, Field(ge=0, le=2**63 - 1)]


class SearchBudget(Budget):
    """Bounds of the search family."""


class SearchOutput(FamilyOutput):
    """The complete result of a search.

    Attributes:
        match_count: what was found.
        returned: what the tool gave back of it; less when the tool has a limit of its own.
        matches: the text that it gave back; its role is `matches`.
    """

    match_count: MatchCount
    returned: MatchCount
    matches: StreamRecord

    @model_validator(mode="after")
    def _check_counts(self) -> Self:
        if self.returned > self.match_count:
            raise ValueError("more matches were returned than were found")
        return self

    def summary(self) -> str:
        """How much was found."""
        return _outcome(self.match_count, self.returned).lower()


class SearchResult(BoundedResult):
    """The canonical result of a search.

    `truncated` says that something of what the tool gave back is not shown. What the tool itself
    held back is the difference of both counts.
    """

    match_count: MatchCount
    returned: MatchCount
    matches_preview: str | None
    matches_encoding: Encoding | None = None
    matches_artifact: int | None = None


def project_search(result: SearchOutput, budget: SearchBudget, cutter: Cutter) -> SearchResult:
    """Bound the text of the matches."""
    matches = cutter.stream(result.matches, budget.preview_chars)
    return bounded(
        SearchResult,
        result,
        cutter,
        matches_preview=matches.text,
        matches_encoding=matches.encoding,
        matches_artifact=matches.artifact,
    )


def render_search(canonical: CanonicalResult, budget: SearchBudget) -> str:
    """How much was found, then what."""
    result = SearchResult.model_validate(canonical.result)
    (body,) = readable([(result.matches_preview or "", result.truncated)], budget.spare_chars)
    sections = [f"{_outcome(result.match_count, result.returned)}\n{body}"]
    return receipt(sections, result.artifacts, {result.matches_artifact: "matches"})


def _outcome(match_count: int, returned: int) -> str:
    if match_count == 0:
        return "No matches found"
    found = f"Found {match_count:,} {'match' if match_count == 1 else 'matches'}"
    return found if returned == match_count else f"{found}, {returned:,} returned"


FAMILY = Family(
    name="search",
    result_types=(SearchOutput,),
    projector=project_search,
    renderer=Renderer("search", 2, render_search),
    budget=SearchBudget(),
    tool_names=frozenset({"find", "find_file", "Glob", "glob", "grep", "Grep", "LS", "ls", "rg"}),
)
