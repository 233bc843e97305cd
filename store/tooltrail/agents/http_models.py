"""Models over HTTP: five wire formats, one request for each question, bytes as they come.

Nothing is tried again in here, and no key is ever shown: neither in an error, nor in what a model
says of itself, nor in a record.
"""

import json
import os
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Self
from urllib.parse import urlsplit

from tooltrail.agents._endpoints import ENDPOINTS, Endpoint
from tooltrail.agents._extra import missing_extra
from tooltrail.agents.models import ModelError
from tooltrail.records import InvalidRecordError, NotFoundError
from tooltrail.wire import JsonObject, wire_format

try:
    import httpx
except ImportError as error:
    raise missing_extra(error) from error

_CONNECT_TIMEOUT_S = 10
"""For a connection, in seconds."""

SILENCE_TIMEOUT_MS = 10 * 60 * 1000
"""In which something must come of an answer; a model that thinks may be silent for long."""

_TRANSIENT = frozenset({408, 409, 425, 429})
"""Statuses besides those from 500 on after which the same request may be answered."""

_ERROR_BYTES = 64 << 10
"""Of the body of an error that are read."""

_SAID_CHARS = 500
"""Of what a server says that an error quotes."""

_LONGEST_WAIT_MS = 10 * 60 * 1000
"""A server that asks for more is not waited for."""


@dataclass(frozen=True, slots=True)
class HttpModel:
    """A model behind an HTTP API. `of` makes one. Safe to share between tasks.

    A connection is made for each question, so there is nothing to close.

    Attributes:
        name: as its server knows it.
        wire_format: the name of the format that its server speaks.
        provider: whose server it is, for the record; None where the format says enough.
        base_url: its address, without a slash at its end.
        streams: whether answers are asked for as a stream.
        silence_timeout_ms: in which something must come.
    """

    name: str
    wire_format: str
    base_url: str
    provider: str | None = None
    streams: bool = True
    silence_timeout_ms: int = SILENCE_TIMEOUT_MS
    _key: str | None = field(default=None, repr=False)

    @classmethod
    def of(
        cls,
        format_name: str,
        model: str,
        *,
        base_url: str | None = None,
        api_key: str | None = None,
        api_key_env: str | None = None,
        provider: str | None = None,
        stream: bool = True,
        silence_timeout_ms: int = SILENCE_TIMEOUT_MS,
    ) -> Self:
        """A model by its name and where it is.

        Args:
            format_name: of the wire format: openai, openai-responses, anthropic, gemini, ollama.
            model: as its server knows it.
            base_url: what the official client of the format takes as such: with `/v1` at its end
                for both of OpenAI's, without a version for the others. By default the provider's.
            api_key: the key itself.
            api_key_env: the variable of the environment that has the key. By default the one that
                the provider's own client reads, if it is there; but no other server than the
                provider's own is sent a key that was not named for it.
            provider: whose server it is.
            stream: whether answers are to come as a stream.
            silence_timeout_ms: in which something must come of an answer.

        Raises:
            NotFoundError: models are not asked in such a format.
            InvalidRecordError: the address or the key is none, or the variable that was named is
                not there.
        """
        if format_name not in ENDPOINTS:
            known = ", ".join(ENDPOINTS)
            raise NotFoundError(f"models are not asked in {format_name!r}, but in {known}")
        endpoint = ENDPOINTS[format_name]
        url = _checked_url(base_url or endpoint.base_url)
        is_own = url == endpoint.base_url
        key = api_key or _key_of(endpoint, api_key_env, is_own=is_own)
        return cls(
            name=model,
            wire_format=format_name,
            base_url=url,
            provider=provider,
            streams=stream,
            silence_timeout_ms=silence_timeout_ms,
            _key=None if key is None else _checked_key(key),
        )

    def answer_limit(self, tokens: int) -> JsonObject:
        """The members of a request that bound the tokens of its answer."""
        return self._endpoint.limit(tokens)

    async def answer(self, members: JsonObject) -> AsyncIterator[bytes]:
        """The answer to one question, as it comes; see `ChatModel.answer`.

        Raises:
            ModelError: there is no answer, or it broke off.
        """
        endpoint = self._endpoint
        timeout = httpx.Timeout(self.silence_timeout_ms / 1000, connect=_CONNECT_TIMEOUT_S)
        try:
            # A redirect is not followed: a key is for the server that it was given for.
            async with (
                httpx.AsyncClient(timeout=timeout, follow_redirects=False) as client,
                client.stream(
                    "POST",
                    self.base_url + endpoint.path_of(self.name, streams=self.streams),
                    headers=endpoint.headers(self._key),
                    json=endpoint.body(self.name, members, streams=self.streams),
                ) as response,
            ):
                if problem := await refused(response, self.wire_format, self._key):
                    raise problem
                async for piece in response.aiter_bytes():
                    yield piece
        except httpx.HTTPError as error:
            raise broken(error) from error
        except (httpx.InvalidURL, ValueError, OSError, OverflowError) as error:
            # Not what it says, which may be a header with the key in it.
            raise ModelError(f"the request cannot be sent: {type(error).__name__}") from None

    @property
    def _endpoint(self) -> Endpoint:
        return ENDPOINTS[self.wire_format]


def _checked_url(url: str) -> str:
    """An address without a slash at its end.

    Raises:
        InvalidRecordError: it is none.
    """
    try:
        parts = urlsplit(url)
        is_one = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is none
        is_one = False
    if not is_one:
        raise InvalidRecordError(f"{url!r} is no address such as http://127.0.0.1:11434")
    return url.rstrip("/")


def _checked_key(key: str) -> str:
    """A key that a header can carry; files of variables leave white space at its ends.

    Raises:
        InvalidRecordError: it has other characters.
    """
    stripped = key.strip()
    if not stripped or not stripped.isascii() or not stripped.isprintable():
        raise InvalidRecordError("the key is empty, or has characters that no header can carry")
    return stripped


def _key_of(endpoint: Endpoint, variable: str | None, *, is_own: bool) -> str | None:
    if variable is None:
        names = endpoint.key_variables if is_own else ()
        return next(filter(None, map(os.environ.get, names)), None)
    key = os.environ.get(variable)
    if not key:
        raise InvalidRecordError(f"the variable {variable}, which is to have the key, is not set")
    return key


async def refused(response: httpx.Response, format_name: str, key: str | None) -> ModelError | None:
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


def broken(error: httpx.HTTPError) -> ModelError:
    """A request that came to nothing, or an answer that broke off."""
    is_transient = isinstance(error, httpx.TransportError) and not isinstance(
        error, httpx.UnsupportedProtocol
    )
    name = type(error).__name__
    detail = f": {error}" if str(error) else ""
    return ModelError(f"no answer, {name}{detail}", is_transient=is_transient)


async def _beginning(response: httpx.Response) -> bytes:
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
