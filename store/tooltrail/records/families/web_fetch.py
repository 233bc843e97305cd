"""The web fetch family: a web document, and the address that it finally came from.

A response with status 404 is a success of the tool: the tool did fetch it. If the host is
unreachable, the call is an error.
"""

from typing import Annotated

from pydantic import Field

from tooltrail.records._model import DigestField, Sentence
from tooltrail.records.budgets import Budget
from tooltrail.records.cutting import Cutter
from tooltrail.records.envelope import CanonicalResult, FamilyOutput
from tooltrail.records.families._shared import (
    SENTENCE_CHARS,
    Json,
    Number,
    body_of,
    bound_texts,
    bounded,
    json_of,
    one_line,
    receipt,
)
from tooltrail.records.families._web import Moment, Url
from tooltrail.records.family import Family
from tooltrail.records.streams import StreamRecord

CONTENT_TYPE_CHARS = 120
"""Longest media type, with its parameters, that a result includes."""

_TEXT_LIMITS = {
    "url": SENTENCE_CHARS,
    "final_url": SENTENCE_CHARS,
    "content_type": CONTENT_TYPE_CHARS,
}

HttpStatus = Annotated[int, Field(ge=100, le=599)]


class WebFetchOutput(FamilyOutput):
    """A fetched web document.

    Attributes:
        url: the requested address, without any name and password.
        final_url: the address after all redirects, without any name and password.
        status: the HTTP status.
        content_type: the media type that the server sent.
        bytes_read: size of the document in bytes, before its conversion to text.
        sha256: the digest of those bytes, spelled `sha256:<hex>`.
        fetched_at: time of the request.
        text: the document as text; its role is `text`.
    """

    url: Url
    final_url: Url
    status: HttpStatus
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
    named = bound_texts(result, "", _TEXT_LIMITS, cutter)
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


FAMILY = Family(
    name="web_fetch",
    result_types=(WebFetchOutput,),
    projector=project_web_fetch,
    render=render_web_fetch,
    tool_names=frozenset({"WebFetch", "web_fetch", "fetch_url"}),
    version=2,
)
