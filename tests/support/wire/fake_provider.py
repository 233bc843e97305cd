"""A server on loopback that imitates the providers and is as strict as they are.

Every request is checked by the types of the official client and by the rules of the server. An
invalid request is answered with 400 and an error in the provider's format. All other answers are
given beforehand: one answer for each request, in order.
"""

# Untyped JSON of other programs.
# pyright: reportUnknownVariableType=false, reportUnknownMemberType=false
# pyright: reportUnknownArgumentType=false

import json
import re
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import ThreadingHTTPServer
from typing import Any

from tests.support.serving import LOOPBACK, QuietHandler, serving, url_of
from tests.support.wire.checks import history_problems
from tests.support.wire.schemas import problems

_PATHS = (
    (re.compile(r"/v1/chat/completions"), "openai"),
    (re.compile(r"/v1/responses"), "openai-responses"),
    (re.compile(r"/v1/messages"), "anthropic"),
    (re.compile(r"/model/[^/]+/converse(-stream)?"), "bedrock"),
    (re.compile(r"/api/chat"), "ollama"),
    (re.compile(r"/v2/chat"), "cohere"),
    (re.compile(r"/v1(beta)?/models/[^/:]+:(generateContent|streamGenerateContent)"), "gemini"),
)
_STREAM_TYPES = {"ollama": "application/x-ndjson"}
_ITEMS = {
    "openai": ("messages", "openai.message"),
    "openai-responses": ("input", "openai-responses.item"),
    "anthropic": ("messages", "anthropic.message"),
    "bedrock": ("messages", "bedrock.Message"),
    "ollama": ("messages", "ollama.message"),
    "gemini": ("contents", "gemini.content"),
    "cohere": ("messages", "cohere.message"),
}
_TOOLS = {
    "openai": "openai.tool",
    "openai-responses": "openai-responses.tool",
    "anthropic": "anthropic.tool",
    "gemini": "gemini.tool",
    "cohere": "cohere.tool",
}


@dataclass(frozen=True, slots=True)
class Request:
    """A request of a client."""

    wire_format: str
    path: str
    body: Any


@dataclass(slots=True)
class FakeProvider:
    """The server, as a test sees it.

    Attributes:
        url: its address, without a path.
        requests: all requests in order, valid or not.
        refused: the reasons, for each rejected request.
    """

    url: str
    requests: list[Request] = field(default_factory=list[Request])
    refused: list[list[str]] = field(default_factory=list[list[str]])
    answers: list[Any] = field(default_factory=list[Any])

    def will_answer(self, payload: Any) -> None:
        """Answer the next request with this JSON."""
        self.answers.append(json.dumps(payload).encode())

    def will_stream(self, chunks: Iterable[bytes]) -> None:
        """Answer the next request with a stream of these chunks."""
        self.answers.append(list(chunks))


@contextmanager
def fake_provider() -> Generator[FakeProvider]:
    """A server for a test on a free port."""
    server = ThreadingHTTPServer(LOOPBACK, _Handler)
    server.daemon_threads = True
    provider = FakeProvider(url_of(server))
    server.provider = provider  # type: ignore[attr-defined]
    with serving(server):
        yield provider


class _Handler(QuietHandler):
    def do_POST(self) -> None:  # noqa: N802  name in the base class
        provider: FakeProvider = self.server.provider  # type: ignore[attr-defined]
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        path = self.path.partition("?")[0]
        wire_format = next((name for known, name in _PATHS if known.fullmatch(path)), None)
        if wire_format is None:
            self.send(404, b"{}")
            return
        provider.requests.append(Request(wire_format, path, body))
        if found := request_problems(wire_format, body):
            provider.refused.append(found)
            error = _error(wire_format, "; ".join(found))
            self.send(400, json.dumps(error).encode())
            return
        answer = provider.answers.pop(0)
        if isinstance(answer, bytes):
            self.send(200, answer)
        else:
            self._stream(answer, _STREAM_TYPES.get(wire_format, "text/event-stream"))

    def _stream(self, chunks: list[bytes], content_type: str) -> None:
        self.send_response(200)
        self.send_header("content-type", content_type)
        self.send_header("transfer-encoding", "chunked")
        self.end_headers()
        try:
            for chunk in (*filter(None, chunks), b""):
                self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
                self.wfile.flush()
        except ConnectionError:
            # A client may disconnect before the end of a stream.
            self.close_connection = True


def request_problems(wire_format: str, body: Any) -> list[str]:
    """Parts of a request that the types or the rules of its provider do not allow."""
    member, target = _ITEMS[wire_format]
    items = body.get(member)
    if isinstance(items, str):
        return []
    if not isinstance(items, list):
        return [f"there is no {member}"]
    found = [
        f"{member}[{n}]/{told}" for n, item in enumerate(items) for told in problems(target, item)
    ]
    if wire_format == "bedrock":
        for member, target in (
            ("toolConfig", "ToolConfiguration"),
            ("outputConfig", "OutputConfig"),
        ):
            if member in body:
                found += problems(f"bedrock.{target}", body[member])
    if wire_format in _TOOLS:
        for number, tool in enumerate(body.get("tools") or ()):
            found += [f"tools[{number}]/{told}" for told in problems(_TOOLS[wire_format], tool)]
    return found or history_problems(wire_format, body)


def _error(wire_format: str, message: str) -> Any:
    match wire_format:
        case "anthropic":
            return {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
        case "bedrock":
            return {"message": message}
        case "ollama":
            return {"error": message}
        case "cohere":
            return {"message": message, "id": "e"}
        case "gemini":
            return {"error": {"code": 400, "message": message, "status": "INVALID_ARGUMENT"}}
        case _:
            return {"error": {"message": message, "type": "invalid_request_error", "code": None}}
