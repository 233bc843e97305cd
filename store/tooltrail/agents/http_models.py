"""Models over HTTP in five wire formats: one request per question, answers as raw bytes.

This module does not retry. It puts no key into an error, a `repr` or a record.
"""

import json
import os
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Self

from tooltrail.agents._endpoints import ENDPOINTS, Endpoint, checked_url
from tooltrail.agents._extra import missing_extra
from tooltrail.agents.models import ModelError
from tooltrail.records import InvalidRecordError, NotFoundError
from tooltrail.redaction.rules import LEAST_OF_VALUE
from tooltrail.wire import JsonObject, wire_format

try:
    import httpx
except ImportError as error:
    raise missing_extra(error) from error

_CONNECT_TIMEOUT_S = 10
"""Time limit for connecting, in seconds."""

SILENCE_TIMEOUT_MS = 10 * 60 * 1000
"""Longest time without a byte of an answer, in milliseconds. Reasoning may take long."""

_TRANSIENT = frozenset({408, 409, 425, 429})
"""Statuses below 500 after which a retry may succeed."""

_ERROR_BYTES = 64 << 10
"""Bytes of the body of an error that are read."""

_SAID_CHARS = 500
"""Characters of the server's message that an error quotes."""

_REMOVED = b"(the key)"
"""Replaces the key in what a server sends."""

_SPELLED_BYTES = 6
"""Most bytes of one character of a key in JSON."""

_BEGUN_ESCAPE = re.compile(rb"(?:\\(?:u[0-9a-fA-F]{0,3})?)?")
"""The beginning of an escape in JSON, or nothing."""

_LONGEST_WAIT_MS = 10 * 60 * 1000
"""Longest wait before a retry. A longer wait that a server asks for is ignored."""


@dataclass(frozen=True, slots=True)
class HttpModel:
    """A model behind an HTTP API; `of` makes one. Safe to share between tasks.

    Each question has a connection of its own, so there is nothing to close.

    Attributes:
        name: name of the model at its server.
        wire_format: name of the wire format of its server.
        provider: name of the provider, for the record; None if the format implies it.
        base_url: URL of the server, without a slash at the end.
        streams: whether answers are requested as a stream.
        silence_timeout_ms: longest time without a byte of an answer.
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
        """Make a model from its format, name and server.

        Args:
            format_name: wire format: openai, openai-responses, anthropic, gemini or ollama.
            model: name of the model at its server.
            base_url: base URL as the official client of the format takes it: with `/v1` at the end
                for both OpenAI formats, without a version for the others. By default the
                provider's server.
            api_key: the key itself.
            api_key_env: environment variable with the key. By default the variable of the
                official client, if it is set. That default key goes to the provider's own server
                only.
            provider: name of the provider.
            stream: whether to request answers as a stream.
            silence_timeout_ms: longest time without a byte of an answer.

        Raises:
            NotFoundError: the format is unknown.
            InvalidRecordError: the URL or the key is not valid, or the named variable is not set.
        """
        if format_name not in ENDPOINTS:
            known = ", ".join(ENDPOINTS)
            raise NotFoundError(f"unknown model format {format_name!r}; known formats: {known}")
        endpoint = ENDPOINTS[format_name]
        url = checked_url(base_url or endpoint.base_url)
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
        """The members of a request that limit the tokens of the answer."""
        return self._endpoint.limit(tokens)

    async def answer(self, members: JsonObject) -> AsyncIterator[bytes]:
        """Ask the model once; yield the bytes of the answer. See `ChatModel.answer`.

        Raises:
            ModelError: there is no answer, or the answer broke off.
        """
        endpoint = self._endpoint
        timeout = httpx.Timeout(self.silence_timeout_ms / 1000, connect=_CONNECT_TIMEOUT_S)
        try:
            # Redirects are not followed, because the key is for this server only.
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
                remover = _KeyRemover(self._key)
                async for piece in response.aiter_bytes():
                    yield remover.feed(piece)
                yield remover.held
        except httpx.HTTPError as error:
            raise broken(error) from error
        except (httpx.InvalidURL, ValueError, OSError, OverflowError) as error:
            # Without the message, which may quote the header with the key.
            raise ModelError(f"the request cannot be sent: {type(error).__name__}") from None

    @property
    def _endpoint(self) -> Endpoint:
        return ENDPOINTS[self.wire_format]


def _checked_key(key: str) -> str:
    """A checked key, without white space at the ends.

    Raises:
        InvalidRecordError: the key is empty, or a header cannot carry it.
    """
    stripped = key.strip()
    if not stripped or not stripped.isascii() or not stripped.isprintable():
        raise InvalidRecordError("the key is empty or has characters that a header cannot carry")
    return stripped


def _key_of(endpoint: Endpoint, variable: str | None, *, is_own: bool) -> str | None:
    if variable is None:
        names = endpoint.key_variables if is_own else ()
        return next(filter(None, map(os.environ.get, names)), None)
    key = os.environ.get(variable)
    if not key:
        raise InvalidRecordError(f"the environment variable {variable} for the key is not set")
    return key


async def refused(response: httpx.Response, format_name: str, key: str | None) -> ModelError | None:
    """The error that a response stands for; None for an answer, whose body is not read.

    Args:
        response: response with an unread body.
        format_name: wire format of the expected answer.
        key: key that was sent; removed from the message of the server.
    """
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if response.is_success:
        if "html" not in kind:
            return None
        return ModelError(
            f"the server sent {kind}, which is not an answer of a model; check the URL"
        )
    status = response.status_code
    body = await _beginning(response)
    if key is not None:
        body = re.sub(_spellings(key), _REMOVED, body)
    said = _said(body, format_name)
    return ModelError(
        f"the server answers {status} {response.reason_phrase}{said}".rstrip(),
        status=status,
        is_transient=status in _TRANSIENT or status >= 500,
        retry_after_ms=retry_after_ms(response.headers),
    )


def broken(error: httpx.HTTPError) -> ModelError:
    """The error for a request without an answer, or for an answer that broke off."""
    is_transient = isinstance(error, httpx.TransportError) and not isinstance(
        error, httpx.UnsupportedProtocol
    )
    name = type(error).__name__
    detail = f": {error}" if str(error) else ""
    return ModelError(f"no answer, {name}{detail}", is_transient=is_transient)


def _spellings(key: str) -> bytes:
    r"""A pattern for a key as it is, and as JSON may spell it: `a/b`, `a\/b`, `a\u002fb`."""
    return "".join(rf"(?:\\?{re.escape(c)}|(?i:\\u{ord(c):04x}))" for c in key).encode()


class _KeyRemover:
    """Replaces a key in an answer, which is recorded, if the key is too long to be there by chance.

    Attributes:
        held: the last bytes, if they may be the beginning of the key.
    """

    def __init__(self, key: str | None) -> None:
        self._key = key if key is not None and len(key) >= LEAST_OF_VALUE else ""
        self._pattern = re.compile(_spellings(self._key))
        self._begin = re.compile(rb"\\|" + _spellings(self._key[:1]))
        self.held = b""

    def feed(self, piece: bytes) -> bytes:
        """Add a piece of the answer, and return the next bytes without the key."""
        if not self._key:
            return piece
        data = self._pattern.sub(_REMOVED, self.held + piece)
        # A key has no newline.
        line = max(data.rfind(b"\n") + 1, len(data) - _SPELLED_BYTES * len(self._key))
        begins = (found.start() for found in self._begin.finditer(data, line))
        end = next((at for at in begins if self._begins(data, at)), len(data))
        self.held = data[end:]
        return data[:end]

    def _begins(self, data: bytes, at: int) -> bool:
        """Whether the bytes from an offset on may be the beginning of the key."""
        for character in self._key:
            spelled = re.compile(_spellings(character)).match(data, at)
            if spelled is None:
                return _BEGUN_ESCAPE.fullmatch(data, at) is not None
            at = spelled.end()
        return False


async def _beginning(response: httpx.Response) -> bytes:
    data = b""
    async for piece in response.aiter_bytes():
        data += piece
        if len(data) >= _ERROR_BYTES:
            break
    return data[:_ERROR_BYTES]


def _said(body: bytes, format_name: str) -> str:
    """The message in the body of an error, from the provider's field if it can be read."""
    text = body.decode("utf-8", "replace")
    try:
        failure = wire_format(format_name).read_response(json.loads(text)).failure
    except (ValueError, RecursionError, AttributeError, TypeError):
        failure = None  # not a JSON object
    words = " ".join((text if failure is None else failure.message or text).split())
    if not words:
        return ""
    more = "…" if len(words) > _SAID_CHARS else ""
    return f": {words[:_SAID_CHARS]}{more}"


def retry_after_ms(headers: Mapping[str, str]) -> int | None:
    """The wait that a server asks for: `retry-after-ms`, or `retry-after` (RFC 9110, 10.2.3)."""
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
    """A number of seconds, or the seconds until a date; 0 for a date in the past."""
    try:
        return float(text)
    except ValueError:
        moment = parsedate_to_datetime(text)
        aware = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
        return max((aware - datetime.now(UTC)).total_seconds(), 0)
