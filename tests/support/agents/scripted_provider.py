"""A server on loopback that plays the same script in any of five wire formats.

Like `fake_provider`, the server checks each request by the types of the official client and by the
rules of its provider, and answers an invalid request with 400. Each turn is written by hand in the
format of the request.
"""

# Untyped JSON of other programs.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

import json
import re
import threading
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from typing import Any, Literal

from tests.support.agents.spelled_answers import Turn, spell_stream, spell_whole
from tests.support.serving import LOOPBACK, QuietHandler, serving, url_of
from tests.support.wire.fake_provider import request_problems

FORMATS = ("openai", "openai-responses", "anthropic", "gemini", "ollama")

_PATHS = (
    (re.compile(r"/v1/chat/completions"), "openai"),
    (re.compile(r"/v1/responses"), "openai-responses"),
    (re.compile(r"/v1/messages"), "anthropic"),
    (re.compile(r"/api/chat"), "ollama"),
    (re.compile(r"/v1beta/models/[^:]+:(generateContent|streamGenerateContent)"), "gemini"),
)
_STREAM_TYPES = {"ollama": "application/x-ndjson"}

Ending = Literal["whole", "cut", "dropped", "hangs"]
"""How an answer ends: complete; after half of its bytes, with an orderly end or with a broken
connection; or, after half of its bytes, only when the client disconnects."""


@dataclass(frozen=True, slots=True)
class Refusal:
    """An HTTP answer without a turn, such as an error."""

    status: int
    body: bytes = b'{"error": {"message": "try again"}}'
    content_type: str = "application/json"
    headers: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Delivery:
    """A turn, and how its answer ends."""

    turn: Turn
    ends: Ending = "whole"


Step = Turn | Delivery | Refusal


@dataclass(slots=True)
class ScriptedProvider:
    """The server, as a test sees it.

    Attributes:
        url: its address, without a path.
        requests: all requests in order: the path, the headers in lower case, the body.
        refused: the reasons, for each rejected request.
        left: set when a client disconnected from an answer that hangs.
    """

    url: str
    requests: list[tuple[str, dict[str, str], Any]] = field(
        default_factory=list[tuple[str, dict[str, str], Any]]
    )
    refused: list[list[str]] = field(default_factory=list[list[str]])
    script: list[Step] = field(default_factory=list[Step])
    left: threading.Event = field(default_factory=threading.Event)
    stopping: threading.Event = field(default_factory=threading.Event)

    def base_url(self, format_name: str) -> str:
        """The base URL for the official client of a format."""
        return f"{self.url}/v1" if format_name.startswith("openai") else f"{self.url}/"


@contextmanager
def scripted_provider(script: Iterable[Step] = ()) -> Generator[ScriptedProvider]:
    """A server for a test on a free port; each request gets the next step of the script."""
    server = ThreadingHTTPServer(LOOPBACK, _Handler)
    server.daemon_threads = False
    provider = ScriptedProvider(url_of(server), script=list(script))
    server.provider = provider  # type: ignore[attr-defined]
    with serving(server):
        try:
            yield provider
        finally:
            provider.stopping.set()


class _Handler(QuietHandler):
    # One connection per request, so that none is open when a test ends.
    protocol_version = "HTTP/1.0"

    def do_POST(self) -> None:  # noqa: N802  name in the base class
        provider: ScriptedProvider = self.server.provider  # type: ignore[attr-defined]
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        path, _, query = self.path.partition("?")
        wire_format = next((name for known, name in _PATHS if known.fullmatch(path)), None)
        headers = {name.lower(): value for name, value in self.headers.items()}
        provider.requests.append((self.path, headers, body))
        if wire_format is None:
            self.send(404, b"<html>not here</html>", "text/html")
        elif found := request_problems(wire_format, body):
            provider.refused.append(found)
            error = json.dumps({"error": {"message": "; ".join(found)}}).encode()
            self.send(400, error)
        else:
            try:
                self._play(wire_format, _streams(path, query, wire_format, body))
            except ConnectionError:  # the client has left before the answer
                provider.left.set()

    def _play(self, wire_format: str, streams: bool) -> None:
        provider: ScriptedProvider = self.server.provider  # type: ignore[attr-defined]
        step = provider.script.pop(0)
        if isinstance(step, Refusal):
            self.send(step.status, step.body, step.content_type, step.headers)
            return
        delivery = step if isinstance(step, Delivery) else Delivery(step)
        spell = spell_stream if streams else spell_whole
        data = spell(wire_format, delivery.turn)
        stream_type = _STREAM_TYPES.get(wire_format, "text/event-stream")
        self.send_response(200)
        self.send_header("content-type", stream_type if streams else "application/json")
        if delivery.ends == "dropped":
            # Announce more bytes than are sent, so that the client notices the break.
            self.send_header("content-length", str(len(data)))
        self.end_headers()
        kept = data if delivery.ends == "whole" else data[: len(data) // 2]
        for start in range(0, len(kept), 97):
            self.wfile.write(kept[start : start + 97])
            self.wfile.flush()
        if delivery.ends == "hangs":
            self._wait_until_left(provider)

    def _wait_until_left(self, provider: ScriptedProvider) -> None:
        self.connection.settimeout(0.05)
        while not provider.stopping.is_set():
            try:
                if not self.connection.recv(1):
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        provider.left.set()


def _streams(path: str, query: str, wire_format: str, body: Any) -> bool:
    if wire_format == "gemini":
        assert ("alt=sse" in query) == path.endswith("streamGenerateContent")
        return path.endswith("streamGenerateContent")
    streams = body.get("stream", wire_format == "ollama")
    assert isinstance(streams, bool)
    return streams
