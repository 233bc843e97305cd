"""The search family: lines, files or folder entries that a tool found."""

from tooltrail.records.budgets import Budget
from tooltrail.records.cutting import Cutter
from tooltrail.records.envelope import CanonicalResult, FamilyOutput
from tooltrail.records.families._shared import Json, Number, body_of, bounded, json_of, receipt
from tooltrail.records.family import Family
from tooltrail.records.streams import StreamRecord


class SearchOutput(FamilyOutput):
    """The complete result of a search.

    Attributes:
        match_count: number of matches found.
        returned: number of matches that the tool returned; less if the tool has its own limit.
        matches: the text that the tool returned.
    """

    match_count: Number
    returned: Number
    matches: StreamRecord

    def summary(self) -> str:
        """The number of matches."""
        return _outcome(self.match_count, self.returned).lower()


def project_search(result: SearchOutput, budget: Budget, cutter: Cutter) -> Json:
    """Bound the text of the matches. The difference of both counts is what the tool held back."""
    matches = cutter.stream(result.matches, budget.preview_chars).named("matches")
    del matches["matches_truncated"]  # nothing else is cut
    return bounded(result, cutter, {"matches_preview"}, **matches)


def render_search(canonical: CanonicalResult, budget: Budget) -> str:
    """Render the number of matches, then the matches."""
    result = json_of(canonical)
    body = "".join(body_of(result, "matches", budget.spare_chars))
    return receipt([f"{_outcome(result['match_count'], result['returned'])}\n{body}"], result)


def _outcome(match_count: int, returned: int) -> str:
    if match_count == 0:
        return "No matches found"
    found = f"Found {match_count:,} {'match' if match_count == 1 else 'matches'}"
    return found if returned == match_count else f"{found}, {returned:,} returned"


FAMILY = Family(
    name="search",
    result_types=(SearchOutput,),
    projector=project_search,
    render=render_search,
    tool_names=frozenset({"find", "find_file", "Glob", "glob", "grep", "Grep", "LS", "ls", "rg"}),
    version=2,
)
