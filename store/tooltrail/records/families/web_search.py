"""The web search family: pages that a search engine found for a query."""

from collections.abc import Iterator, Sequence
from typing import ClassVar

from tooltrail.records._model import Sentence
from tooltrail.records.budgets import Budget, ItemCount, ReceiptChars, fair_shares
from tooltrail.records.cutting import Cutter
from tooltrail.records.envelope import CanonicalResult, FamilyOutput
from tooltrail.records.families._shared import (
    NAME_CHARS,
    SENTENCE_CHARS,
    Json,
    SparseRecord,
    bound_texts,
    bounded,
    hidden_lines,
    json_of,
    one_line,
)
from tooltrail.records.families._web import Moment, Url
from tooltrail.records.family import Family


class WebSearchBudget(Budget):
    """Bounds of the web search family: `max_items` pages, their snippets in one preview budget."""

    item_chars: ClassVar[int] = 980
    """Room for a title, an address, and the prefixes of their lines and of the snippet's line."""

    receipt_chars: ReceiptChars = 42_000
    max_items: ItemCount = 20


class WebSearchHit(SparseRecord):
    """A page that was found.

    Attributes:
        title: title of the page; may be empty.
        url: address of the page, without any name and password.
        snippet: the engine's excerpt from the page.
    """

    title: Sentence
    url: Url
    snippet: Sentence | None = None


class WebSearchOutput(FamilyOutput):
    """The complete result of a web search.

    Attributes:
        query: the search query.
        provider: the search engine.
        results: the pages, in the engine's order.
        fetched_at: time of the request.
    """

    query: Sentence
    provider: Sentence
    results: tuple[WebSearchHit, ...] = ()
    fetched_at: Moment

    def summary(self) -> str:
        """The number of results, and the query."""
        return _outcome(len(self.results), self.query)


def project_web_search(result: WebSearchOutput, budget: WebSearchBudget, cutter: Cutter) -> Json:
    """Bound the list, and every text about a page. `result_count` counts all pages."""
    named = bound_texts(result, "", {"query": SENTENCE_CHARS, "provider": NAME_CHARS}, cutter)
    hits = cutter.items("results", result.results, budget.max_items)
    results, count = [*_project_hits(hits, budget, cutter)], len(result.results)
    return bounded(named, cutter, results=results, result_count=count)


def render_web_search(canonical: CanonicalResult, _budget: WebSearchBudget) -> str:
    """Render the number of results, then each page with its address."""
    result = json_of(canonical)
    lines = [_outcome(result["result_count"], result["query"])]
    for n, hit in enumerate(result["results"], 1):
        lines += [f"{n}. {one_line(hit['title']) or '(untitled)'}", f"   {one_line(hit['url'])}"]
        snippet = one_line(hit.get("snippet", ""))
        lines += [f"   {snippet}"] if snippet else []
    lines += hidden_lines(result, result["result_count"] - len(result["results"]), "result")
    return "\n".join(lines) + "\n"


def _outcome(count: int, query: str) -> str:
    if count == 0:
        return f'No results found for "{one_line(query)}"'
    noun = "result" if count == 1 else "results"
    return f'Found {count:,} {noun} for "{one_line(query)}"'


def _project_hits(
    hits: Sequence[WebSearchHit], budget: WebSearchBudget, cutter: Cutter
) -> Iterator[WebSearchHit]:
    needs = [min(len(hit.snippet or ""), SENTENCE_CHARS) for hit in hits]
    shares = fair_shares(needs, budget.preview_chars)
    for n, (hit, share) in enumerate(zip(hits, shares, strict=True)):
        limits = {"title": NAME_CHARS, "url": SENTENCE_CHARS, "snippet": share}
        yield bound_texts(hit, f"results[{n}]", limits, cutter)


FAMILY = Family(
    name="web_search",
    result_types=(WebSearchOutput,),
    projector=project_web_search,
    render=render_web_search,
    budget=WebSearchBudget(),
    tool_names=frozenset({"WebSearch", "web_search"}),
)
