"""The web families: pages that a search engine found, and a web document that was fetched.

A response with status 404 is a success of the tool: the tool did fetch it. If the host is
unreachable, the call is an error.
"""

import re
from datetime import datetime
from typing import Annotated, ClassVar

from pydantic import AfterValidator, AwareDatetime, BeforeValidator, Field, PlainSerializer

from tooltrail.records._model import DigestField, Sentence
from tooltrail.records.budgets import Budget, ItemCount, ReceiptChars, fair_shares
from tooltrail.records.cutting import Cutter
from tooltrail.records.envelope import CanonicalResult, FamilyOutput
from tooltrail.records.families._shared import (
    NAME_CHARS,
    SENTENCE_CHARS,
    Json,
    Number,
    SparseRecord,
    body_of,
    bound_texts,
    bounded,
    hidden_lines,
    json_of,
    one_line,
    receipt,
)
from tooltrail.records.family import Family
from tooltrail.records.streams import StreamRecord
from tooltrail.records.times import in_utc

CONTENT_TYPE_CHARS = 120
"""Longest media type, with its parameters, that a result includes."""

_BLANKS = "".join(map(chr, range(0x21)))
_IGNORED = str.maketrans("", "", "\t\n\r")

_SCHEME = r"(?:[a-z][a-z0-9+.-]*:)?[/\\]*+"
r"""The part before a name and password; browsers also accept `https:u:p@h` and `http:\\u:p@h`."""

_START = re.compile(rf"({_SCHEME})(?:[\x00-\x20]*+{_SCHEME}[^/?#]*@)*+", re.IGNORECASE)
"""The scheme, and everything after it up to the last `@` before the host."""


def without_userinfo(url: str) -> str:
    """An address without the name and password that may precede its host.

    Leading and trailing blanks, and all tabs and newlines, which a browser ignores (WHATWG URL,
    section 4.4), are removed first.
    """
    bare = url.strip(_BLANKS).translate(_IGNORED)
    return _START.sub(r"\1", bare, count=1).lstrip(_BLANKS)


def spell_moment(moment: datetime) -> str:
    """A time in UTC, spelled as in JSON."""
    return moment.isoformat().removesuffix("+00:00") + "Z"


def _bare_url(value: object) -> object:
    # This runs before surrogates are escaped: that would put a backslash into a password.
    return without_userinfo(value) if isinstance(value, str) else value


Url = Annotated[Sentence, BeforeValidator(_bare_url)]
"""An address; its name and password are removed, since they must not be recorded."""

Moment = Annotated[AwareDatetime, AfterValidator(in_utc), PlainSerializer(spell_moment)]
"""A time in UTC, in JSON as ISO 8601 with a `Z`."""


class WebSearchBudget(Budget):
    """Bounds of the web search family: `max_items` pages, their snippets in one preview budget."""

    item_chars: ClassVar[int] = 980
    """Room for a title, an address, and the prefixes of their lines and of the snippet's line."""

    receipt_chars: ReceiptChars = 42_000
    max_items: ItemCount = 20


class WebSearchHit(SparseRecord):
    """A page that was found. The title may be empty; the snippet is the engine's excerpt."""

    title: Sentence
    url: Url
    snippet: Sentence | None = None


class WebSearchOutput(FamilyOutput):
    """The complete result of a web search: the pages, in the order of the search engine."""

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
    needs = [min(len(hit.snippet or ""), SENTENCE_CHARS) for hit in hits]
    results: list[WebSearchHit] = []
    for n, share in enumerate(fair_shares(needs, budget.preview_chars)):
        limits = {"title": NAME_CHARS, "url": SENTENCE_CHARS, "snippet": share}
        results.append(bound_texts(hits[n], f"results[{n}]", limits, cutter))
    return bounded(named, cutter, results=results, result_count=len(result.results))


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


class WebFetchOutput(FamilyOutput):
    """A fetched web document.

    Attributes:
        final_url: the address after all redirects.
        bytes_read: size of the document in bytes, before its conversion to text.
        sha256: the digest of those bytes, spelled `sha256:<hex>`.
        text: the document as text; its role is `text`.
    """

    url: Url
    final_url: Url
    status: Annotated[int, Field(ge=100, le=599)]
    content_type: Sentence
    bytes_read: Number
    sha256: DigestField
    fetched_at: Moment
    text: StreamRecord

    def summary(self) -> str:
        """The HTTP status and the requested address."""
        return f"status {self.status} from {one_line(self.url)}"


def project_web_fetch(result: WebFetchOutput, budget: Budget, cutter: Cutter) -> Json:
    """Bound the text and the addresses.

    `redirected` is true if the complete addresses differ, even if the shown parts are equal.
    """
    text = cutter.stream(result.text, budget.preview_chars).named("text")
    limits = {
        "url": SENTENCE_CHARS,
        "final_url": SENTENCE_CHARS,
        "content_type": CONTENT_TYPE_CHARS,
    }
    named = bound_texts(result, "", limits, cutter)
    redirected = result.final_url != result.url
    return bounded(named, cutter, {"text_preview"}, redirected=redirected, **text)


def render_web_fetch(canonical: CanonicalResult, budget: Budget) -> str:
    """Render the address, status, type and size of the document, then its text."""
    result = json_of(canonical)
    kind = one_line(result["content_type"])
    facts = [str(result["status"]), kind, f"{result['bytes_read']:,} bytes"]
    heading = f"Fetched {one_line(result['url'])} ({', '.join(filter(None, facts))})"
    if result["redirected"]:
        heading += f"\nRedirected to: {one_line(result['final_url'])}"
    return receipt([heading, *body_of(result, "text", budget.spare_chars)], result)


SEARCH = Family(
    name="web_search",
    result_types=(WebSearchOutput,),
    projector=project_web_search,
    render=render_web_search,
    budget=WebSearchBudget(),
    tool_names=frozenset({"WebSearch", "web_search"}),
)

FETCH = Family(
    name="web_fetch",
    result_types=(WebFetchOutput,),
    projector=project_web_fetch,
    render=render_web_fetch,
    tool_names=frozenset({"WebFetch", "web_fetch", "fetch_url"}),
    version=2,
)
