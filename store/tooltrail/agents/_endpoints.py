"""The HTTP API of each provider: URLs, headers, and request members besides the conversation."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from types import MappingProxyType
from urllib.parse import quote, urlsplit

from pydantic import JsonValue

from tooltrail.records import InvalidRecordError
from tooltrail.wire import JsonObject

_ANTHROPIC_VERSION = "2023-06-01"
"""Version of the API, which each request to Anthropic must name."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The API of one format.

    Attributes:
        base_url: base URL of the provider, as in its official client.
        key_variables: environment variables in which the official client looks for a key.
        path: path after the base URL; `{model}` is replaced by the model.
        stream_path: path for a streamed answer; None for the same path.
        key_header: name of the header with the key, and the text before the key.
        more_headers: further headers.
        whole_members: request members for an answer in one piece.
        stream_members: request members for a streamed answer.
        has_model: whether the body names the model.
        limit: makes the request members that limit the tokens of an answer.
    """

    base_url: str
    key_variables: tuple[str, ...]
    path: str
    limit: Callable[[int], JsonObject]
    stream_path: str | None = None
    key_header: tuple[str, str] = ("authorization", "Bearer ")
    more_headers: tuple[tuple[str, str], ...] = ()
    whole_members: tuple[tuple[str, JsonValue], ...] = ()
    stream_members: tuple[tuple[str, JsonValue], ...] = (("stream", True),)
    has_model: bool = True

    def path_of(self, model: str, *, streams: bool) -> str:
        """The path for a model, after the base URL."""
        path = self.stream_path if streams and self.stream_path else self.path
        # Gemini has names with a slash: `tunedModels/x`.
        return path.replace("{model}", quote(model, safe="/"))

    def headers(self, key: str | None) -> dict[str, str]:
        """The headers of a request, with the key if there is one."""
        headers = dict(self.more_headers)
        if key is not None:
            name, before = self.key_header
            headers[name] = f"{before}{key}"
        return headers

    def body(self, model: str, members: JsonObject, *, streams: bool) -> JsonObject:
        """The body of a request."""
        asked = dict(self.stream_members if streams else self.whole_members)
        named: JsonObject = {"model": model} if self.has_model else {}
        return {**named, **members, **asked}


def _named(name: str) -> Callable[[int], JsonObject]:
    return lambda tokens: {name: tokens}


ENDPOINTS: Mapping[str, Endpoint] = MappingProxyType(
    {
        "openai": Endpoint(
            base_url="https://api.openai.com/v1",
            key_variables=("OPENAI_API_KEY",),
            path="/chat/completions",
            # Not the older `max_tokens`, which OpenAI's reasoning models refuse.
            limit=_named("max_completion_tokens"),
            stream_members=(("stream", True), ("stream_options", {"include_usage": True})),
        ),
        "openai-responses": Endpoint(
            base_url="https://api.openai.com/v1",
            key_variables=("OPENAI_API_KEY",),
            path="/responses",
            limit=_named("max_output_tokens"),
        ),
        "anthropic": Endpoint(
            base_url="https://api.anthropic.com",
            key_variables=("ANTHROPIC_API_KEY",),
            path="/v1/messages",
            key_header=("x-api-key", ""),
            more_headers=(("anthropic-version", _ANTHROPIC_VERSION),),
            limit=_named("max_tokens"),
        ),
        "gemini": Endpoint(
            base_url="https://generativelanguage.googleapis.com",
            key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
            path="/v1beta/models/{model}:generateContent",
            stream_path="/v1beta/models/{model}:streamGenerateContent?alt=sse",
            key_header=("x-goog-api-key", ""),
            limit=lambda tokens: {"generationConfig": {"maxOutputTokens": tokens}},
            stream_members=(),
            has_model=False,
        ),
        "ollama": Endpoint(
            base_url="http://127.0.0.1:11434",
            key_variables=("OLLAMA_API_KEY",),
            path="/api/chat",
            limit=lambda tokens: {"options": {"num_predict": tokens}},
            # Ollama streams by default.
            whole_members=(("stream", False),),
        ),
    }
)
"""APIs by the name of the format."""


def checked_url(url: str) -> str:
    """A checked base URL, without a slash at the end.

    Raises:
        InvalidRecordError: not an HTTP URL with a host; or the URL has a user or a password, which
            would be recorded with the agent.
    """
    has_user, is_one = "@" in url, False
    with suppress(ValueError):  # a port that is not a number
        parts = urlsplit(url)
        has_user = "@" in parts.netloc
        is_one = parts.scheme in {"http", "https"} and bool(parts.hostname) and parts.port != 0
    if has_user:
        raise InvalidRecordError(
            "the URL of a server must not contain a user or a password; the key is in a variable"
        )
    if not is_one:
        raise InvalidRecordError(f"{url!r} is not a URL such as http://127.0.0.1:11434")
    return url.rstrip("/")
