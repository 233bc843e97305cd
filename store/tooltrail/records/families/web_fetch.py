"""The web fetch family: a document of the web, and where it really came from.

A page that answers with 404 is a success of the tool: the tool did fetch it. That a host could not
be reached is an error.
"""

from typing import Annotated

from pydantic import Field

from tooltrail.records._model import DigestField, Sentence
from tooltrail.records.budgets import Budget
from tooltrail.records.cutting import Cutter
from tooltrail.records.envelope import CanonicalResult, FamilyOutput
from tooltrail.records.families._shared import (
    SENTENCE_CHARS,
    BoundedResult,
    bound_texts,
    bounded,
    one_line,
    receipt,
)
from tooltrail.records.families._web import Moment, Url, spell_moment
from tooltrail.records.family import Family, Renderer
from tooltrail.records.previews import Encoding
from tooltrail.records.readable_json import readable
from tooltrail.records.streams import StreamRecord

CONTENT_TYPE_CHARS = 120
"""Longest media type with its parameters that is repeated in a result."""

_TEXT_LIMITS = {
    "url": SENTENCE_CHARS,
    "final_url": SENTENCE_CHARS,
    "content_type": CONTENT_TYPE_CHARS,
}

HttpStatus = Annotated[int, Field(ge=100, le=599)]
ByteCount = Annotated[int, Field(ge=0, le=2**63 - 1)]


class WebFetchBudget(Budget):
    """Bounds of the web fetch family."""


class WebFetchOutput(FamilyOutput):
    """A document of the web.

    Attributes:
        url: what was asked for; a name and password in it are dropped.
        final_url: where the document was after all redirections, the same.
        status: of HTTP.
        content_type: as the server gave it.
        bytes_read: of the document, before it was made into text.
        sha256: the digest of those bytes, spelled `sha256:<hex>`.
        fetched_at: when it was asked for.
        text: the document as text; its role is `text`.
    """

    url: Url
    final_url: Url
    status: HttpStatus
    content_type: Sentence
    bytes_read: ByteCount
    sha256: DigestField
    fetched_at: Moment
    text: StreamRecord

    def summary(self) -> str:
        """What was fetched, and how the server answered."""
        return f"status {self.status} from {one_line(self.url)}"


class WebFetchResult(BoundedResult):
    """The canonical result of a fetch.

    `redirected` says that the addresses differ, also where what is shown of them does not.
    `truncated` says that anything was left out, be it of an address.
    """

    url: str
    final_url: str
    redirected: bool
    status: HttpStatus
    content_type: str
    bytes_read: ByteCount
    sha256: DigestField
    fetched_at: str
    text_preview: str | None
    text_encoding: Encoding | None = None
    text_truncated: bool
    text_artifact: int | None = None


def project_web_fetch(
    result: WebFetchOutput, budget: WebFetchBudget, cutter: Cutter
) -> WebFetchResult:
    """Bound the text and the addresses."""
    text = cutter.stream(result.text, budget.preview_chars)
    return bounded(
        WebFetchResult,
        bound_texts(result, "", _TEXT_LIMITS, cutter),
        cutter,
        redirected=result.final_url != result.url,
        fetched_at=spell_moment(result.fetched_at),
        **text.named("text"),
    )


def render_web_fetch(canonical: CanonicalResult, budget: WebFetchBudget) -> str:
    """What was fetched from where, then its text."""
    result = WebFetchResult.model_validate(canonical.result)
    kind = one_line(result.content_type)
    facts = [str(result.status), kind, f"{result.bytes_read:,} bytes"]
    heading = f"Fetched {one_line(result.url)} ({', '.join(filter(None, facts))})"
    if result.redirected:
        heading += f"\nRedirected to: {one_line(result.final_url)}"
    sections = [heading]
    if result.text_preview:
        sections += readable([(result.text_preview, result.text_truncated)], budget.spare_chars)
    return receipt(sections, result.artifacts, {result.text_artifact: "text"})


FAMILY = Family(
    name="web_fetch",
    result_types=(WebFetchOutput,),
    projector=project_web_fetch,
    renderer=Renderer("web_fetch", 2, render_web_fetch),
    budget=WebFetchBudget(),
    tool_names=frozenset({"WebFetch", "web_fetch", "fetch_url"}),
)
