"""What went wrong with a request, as an error that says whether it is worth another try."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING

from tooltrail.agents.models import ModelError
from tooltrail.wire import wire_format

if TYPE_CHECKING:
    import httpx

_TRANSIENT = frozenset({408, 409, 425, 429})
"""Statuses besides those from 500 on after which the same request may be answered."""

_ERROR_BYTES = 64 << 10
"""Of the body of an error that are read."""

_SAID_CHARS = 500
"""Of what a server says that an error quotes."""

_LONGEST_WAIT_MS = 10 * 60 * 1000
"""A server that asks for more is not waited for."""


async def refused(
    response: "httpx.Response", format_name: str, key: str | None
) -> ModelError | None:
    """Why an answer is none; None if it is one, of which nothing is read then.

    Args:
        response: of which the body is still to come.
        format_name: of the wire format that it is to be in.
        key: that was sent, and is not repeated whatever the server says.
    """
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if response.is_success:
        if "html" not in kind:
            return None
        return ModelError(f"the server sent {kind}, no answer of a model: is its address right?")
    status = response.status_code
    body = await _beginning(response)
    if key is not None:
        body = body.replace(key.encode(), b"(the key)")
    said = _said(body, format_name)
    return ModelError(
        f"the server answers {status} {response.reason_phrase}{said}".rstrip(),
        status=status,
        is_transient=status in _TRANSIENT or status >= 500,
        retry_after_ms=retry_after_ms(response.headers),
    )


def broken(error: "httpx.HTTPError") -> ModelError:
    """A request that came to nothing, or an answer that broke off."""
    import httpx  # noqa: PLC0415  it is there: it raised the error

    is_transient = isinstance(error, httpx.TransportError) and not isinstance(
        error, httpx.UnsupportedProtocol
    )
    name = type(error).__name__
    detail = f": {error}" if str(error) else ""
    return ModelError(f"no answer, {name}{detail}", is_transient=is_transient)


async def _beginning(response: "httpx.Response") -> bytes:
    data = b""
    async for piece in response.aiter_bytes():
        data += piece
        if len(data) >= _ERROR_BYTES:
            break
    return data[:_ERROR_BYTES]


def _said(body: bytes, format_name: str) -> str:
    """What the body of an error says, in the provider's words if they can be read."""
    text = body.decode("utf-8", "replace")
    try:
        failure = wire_format(format_name).read_response(json.loads(text)).failure
    except (ValueError, RecursionError, AttributeError, TypeError):
        failure = None  # no JSON, or no object
    words = " ".join((text if failure is None else failure.message or text).split())
    if not words:
        return ""
    more = "…" if len(words) > _SAID_CHARS else ""
    return f": {words[:_SAID_CHARS]}{more}"


def retry_after_ms(headers: Mapping[str, str]) -> int | None:
    """How long a server asks to wait: `retry-after-ms`, or `retry-after` (RFC 9110, 10.2.3)."""
    try:
        if "retry-after-ms" in headers:
            wait = float(headers["retry-after-ms"])
        elif "retry-after" in headers:
            wait = _seconds(headers["retry-after"]) * 1000
        else:
            return None
    except (ValueError, OverflowError):
        return None
    return round(wait) if 0 <= wait <= _LONGEST_WAIT_MS else None


def _seconds(text: str) -> float:
    """A number of seconds, or a date as the seconds until then; none for one that has passed."""
    try:
        return float(text)
    except ValueError:
        moment = parsedate_to_datetime(text)
        aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return max((aware - datetime.now(UTC)).total_seconds(), 0)
